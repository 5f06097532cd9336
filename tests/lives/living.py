"""Lives one life: a whole Newton on a clock of its own, spoken to over HTTP as OpenAI's clients do."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import httpx2
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bench.environment import BenchEnvironment, open_environment
from newton.client import Client
from newton.clock import ManualClock
from newton.errors import NewtonError
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.app import create_app
from newton.runtime.jobs.schedule import JOBS
from newton.settings import load
from tests.lives.life import MINUTE, Life, SaidLine, list_lines
from tests.lives.played_model import Body, PlayedModel
from tests.model_servers import serving_models
from tests.system.served import OPERATOR, serving

IDLE = (timedelta(minutes=6), timedelta(minutes=17), timedelta(minutes=24))  # after a conversation: the jobs of a pause
DAILY = timedelta(days=1)
AFTER_REPLY = timedelta(seconds=25)  # when the jobs look again
ORDER_SECTIONS = ("instruction", "preference")  # of the identity
READING_SECONDS = 3_600
QUESTIONS_AFTER = timedelta(days=1)

_ITEMS = """
select m.memory_id::text, m.kind, m.state, m.quarantined, coalesce(m.full_text, m.summary) as text, f.subject,
    f.attribute, m.trust, m.occurred_at as said_at, f.valid_from, f.valid_to, f.duplicate_of is not null as is_merged
from memory.memories as m
left join heart.facts as f using (agent_id, memory_id)
where m.agent_id = $1 and m.kind in ('fact', 'procedure', 'decision', 'censor')
order by m.memory_id
"""


class StoredItem(TypedDict):
    """A row of the store; the times of validity are those of facts."""

    memory_id: str
    kind: str
    state: str
    quarantined: bool
    text: str
    subject: str | None
    attribute: str | None
    trust: str
    said_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    is_merged: bool


_STORED = TypeAdapter(StoredItem)


@dataclass(kw_only=True)
class LivedLife:
    """What was seen of a life: requests with the reply to each, orders in force before each line, items at the end.

    `contexts` are those of the questions, in their order. `failures` are jobs and turns that failed.
    """

    lines: Sequence[SaidLine]
    replies: dict[str, str] = field(default_factory=dict[str, str])
    orders: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    orders_at_end: list[str] = field(default_factory=list[str])
    items: list[StoredItem] = field(default_factory=list[StoredItem])
    conflicts: list[Body] = field(default_factory=list[Body])
    contexts: list[str] = field(default_factory=list[str])
    vectors: list[list[float]] = field(default_factory=list[list[float]])
    failures: list[str] = field(default_factory=list[str])
    requests: list[tuple[str, str, Body, Body]] = field(default_factory=list[tuple[str, str, Body, Body]])


@dataclass(kw_only=True)
class _House:
    """A Newton with a clock that is set, and the last time that each job ran."""

    env: BenchEnvironment
    agents: AgentRegistry
    clock: ManualClock
    http: httpx2.AsyncClient
    client: Client
    seen: LivedLife
    ran_at: dict[str, datetime] = field(default_factory=dict[str, datetime])

    async def reach(self, moment: datetime) -> None:
        """Set the clock, and run each job whose slot has come."""
        self.clock.advance(max(moment - self.clock.now(), timedelta(0)))
        newton = await self.agents.get(self.env.newton.settings.agent)
        for name, job in JOBS.items():
            slot = job.schedule.last_slot(moment)
            if slot is None or slot <= self.ran_at.get(name, self.ran_at[""]):
                continue
            self.ran_at[name] = moment
            try:
                await job.run(newton)
            except NewtonError as error:
                self.seen.failures.append(f"{moment:%d %b %H:%M} job {name}: {error}")

    async def read_lines(self) -> None:
        """Let the readings end that began after a reply, or that a pause of some seconds starts."""
        newton = await self.agents.get(self.env.newton.settings.agent)
        await newton.readings.finish(seconds=READING_SECONDS)
        try:
            await newton.maintenance("reconciliation").reconcile(only_due=True, only_recent=True)
        except NewtonError as error:
            self.seen.failures.append(f"{self.clock.now():%d %b %H:%M} reading: {error}")

    async def pass_time(self, until: datetime) -> None:
        """Let the time between two conversations pass: a pause that closes the first one, and the jobs of days."""
        ended = self.clock.now()
        moments = [ended + pause for pause in IDLE]
        while moments[-1] + DAILY < until:
            moments.append(moments[-1] + DAILY)
        for moment in [*moments, until - MINUTE]:
            if self.clock.now() < moment < until:
                await self.reach(moment)

    async def say(self, line: SaidLine, history: list[Body]) -> None:
        """Send a line with the conversation before it, and keep the reply in `history`."""
        history.append({"role": "user", "content": line.text})
        response = await self.http.post(
            "/v1/chat/completions",
            json={"model": "newton", "messages": history},
            headers={"X-Newton-Session": line.session},
        )
        if response.status_code != 200:
            self.seen.failures.append(f"{line.id}: {response.status_code} {response.text[:300]}")
            history.append({"role": "assistant", "content": "(no reply)"})
            return
        reply = response.json()["choices"][0]["message"]
        self.seen.replies[line.id] = reply.get("content") or ""
        history.append({"role": "assistant", "content": self.seen.replies[line.id]})

    async def list_orders(self) -> list[str]:
        """The rules and wishes in force, as their list says."""
        lines = (await self.client.get("/v1/identity"))["lines"]
        return [line["text"] for line in lines if line["section"] in ORDER_SECTIONS]

    async def look_back(self, life: Life) -> None:
        """Read what is known, and ask the questions, a day after the last line."""
        scope = self.env.newton.scope
        self.seen.orders_at_end = await self.list_orders()
        async with scope.transaction() as tx:
            rows = await tx.fetch(_ITEMS, scope.agent_id)
        self.seen.items = [_STORED.validate_python(dict(row)) for row in rows]
        self.seen.conflicts = (await self.client.conflicts(limit=100))["items"]
        if scope.embedder:
            vectors = await scope.embedder.embed([row["text"] for row in self.seen.items]) if rows else []
            self.seen.vectors = [[round(float(one), 5) for one in vector] for vector in vectors]
        for question in life["gold"].get("questions", []):
            context = await self.client.context(question["q"])
            self.seen.contexts.append(context["text"])


async def live(life: Life, model: PlayedModel | None) -> LivedLife:
    """Live a life with a model, or without one (replies then quote memory), and look back a day after its end."""
    lines = list(list_lines(life))
    async with _open_house(lines, model) as house:
        history, session = list[Body](), ""
        for line in lines:
            if line.session != session:
                await house.pass_time(line.at)
                history, session = [], line.session
            await house.reach(line.at)
            house.seen.orders[line.id] = await house.list_orders()
            if model:
                model.said = line.text
            await house.say(line, history)
            await house.reach(line.at + AFTER_REPLY)
            await house.read_lines()
        await house.pass_time(lines[-1].at + QUESTIONS_AFTER)
        await house.reach(lines[-1].at + QUESTIONS_AFTER)
        await house.look_back(life)
        if model:
            pairs = zip(model.purposes, model.asked, model.replies, strict=True)
            house.seen.requests = [(*purpose, body, reply) for purpose, body, reply in pairs]
            house.seen.failures += model.missing
        return house.seen


@asynccontextmanager
async def _open_house(lines: Sequence[SaidLine], model: PlayedModel | None) -> AsyncGenerator[_House]:
    if model is None:
        async with _furnish(lines, {"quote_without_model": True}) as house:
            yield house
        return
    async with serving_models(model):
        slow = {"llm_timeout": 3_600, "llm_start_timeout": 3_600, "llm_tokens_per_day": 50_000_000}
        async with _furnish(lines, {**model.settings, **slow}) as house:
            yield house


@asynccontextmanager
async def _furnish(lines: Sequence[SaidLine], settings: Mapping[str, object]) -> AsyncGenerator[_House]:
    begun = lines[0].at - timedelta(hours=1)
    clock, seen = ManualClock(begun), LivedLife(lines=lines)
    async with open_environment(load({"embedding_provider": "local", **settings}, env={})) as opened:
        scope = replace(opened.newton.scope, clock=clock)
        contexts = replace(opened.newton.context_builder, clock=clock)
        env = replace(opened, newton=replace(opened.newton, scope=scope, context_builder=contexts))
        agents = AgentRegistry(env.newton)
        async with (
            serving(create_app(agents, operator_token=OPERATOR)) as url,
            Client(url, token=OPERATOR, timeout=3_600, max_attempts=1) as client,
            httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {OPERATOR}"}, timeout=None) as http,
        ):
            yield _House(env=env, agents=agents, clock=clock, http=http, client=client, seen=seen, ran_at={"": begun})
