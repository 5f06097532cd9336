"""Live the story: sessions by every interface, and the jobs of the daemon between them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from newton.agent.services.procedures import ProcedureService
from newton.client import Client
from newton.clock import ManualClock
from newton.content.skills import SkillFile, SkillSet
from newton.heart.facts.conflicts import list_conflicts
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.jobs.schedule import JOBS
from newton.runtime.wiring import AgentServices
from tests.scenarios.life.interfaces import Voice, open_voices
from tests.scenarios.life.story import Interface, Line, Matter, Session

FREQUENT = ("embed", "extract", "embed", "summarize")
WEEKLY = ("check-vacuum",)
WHEEL = SkillFile(
    name="true-wheel",
    description="Help me true a wheel.",
    core=("Turn the wheel.", "Tighten the spokes."),
    triggers=("true a wheel",),
)


class Ending(NamedTuple):
    """The texts of current and of superseded facts, and the texts of pairs that are shown as a conflict."""

    current: tuple[str, ...]
    superseded: frozenset[str]
    contested: frozenset[tuple[str, str]]


class Check(NamedTuple):
    """The keys of the matters whose newest value is not current, is current twice, or whose old value is current."""

    missing: list[str]
    repeated: list[str]
    stale: list[str]


@dataclass(slots=True)
class Life:
    """The life of one agent. `only` is the interface of all its sessions, None for that of the story."""

    newton: AgentServices
    clock: ManualClock
    http: Client
    voices: dict[Interface, Voice]
    only: Interface | None = None
    decided: dict[str, str] = field(default_factory=dict[str, str])
    forbidden: dict[str, datetime] = field(default_factory=dict[str, datetime])

    async def hold(self, session: Session) -> None:
        by = self.only or session.by
        for line in session.lines:
            self.clock.advance(timedelta(minutes=1))
            await self._act(session.name, line, self.voices[by], by)
        self.clock.advance(timedelta(minutes=20))
        await self._run(FREQUENT)

    async def sleep(self) -> None:
        """Run the jobs of the night, and on Monday those of the week."""
        skipped = () if self.clock.now().weekday() == 0 else WEEKLY
        await self._run([name for name in JOBS if name not in skipped])

    async def _run(self, names: Sequence[str]) -> None:
        for name in names:
            await JOBS[name].run(self.newton)

    async def _act(self, session: str, line: Line, voice: Voice, by: Interface) -> None:
        if line.act == "task":
            await self._work(session, line, voice, by)
            return
        await voice.say(session, line.say)
        match line.act:
            case "decide":
                await self._decide(line)
            case "outcome":
                await self.http.review(self.decided[line.key], "success" if line.more["success"] else "failure")
            case "forbid":
                await self._forbid(line)
            case _:
                pass

    async def _decide(self, line: Line) -> None:
        reasons = [{"kind": "empirical", "text": "We talked it over."}]
        made = await self.http.decide(line.say, confidence=line.more["confidence"], reasons=reasons)
        self.decided[line.key] = made["decision_id"]

    async def _forbid(self, line: Line) -> None:
        await self.http.add_censor(line.more["pattern"], reason=line.more["reason"], action="block")
        self.forbidden[line.more["reason"]] = self.clock.now()

    async def _work(self, session: str, line: Line, voice: Voice, by: Interface) -> None:
        await self.http.push_task(line.say, session=session)
        self.clock.advance(timedelta(seconds=1))
        await voice.say(session, line.say)
        success = line.more["ends"] == "success"
        if by == "mcp":  # a host gets its contexts outside sessions, so it reports itself
            await self.http.procedure_outcome(WHEEL.name, "success" if success else "failure")
        if success:
            await self.http.pop_task("It runs true.", session=session)
        else:
            await self.http.post("/v1/tasks/fail", {"reason": "A spoke broke.", "session": session})

    async def end(self) -> Ending:
        async with self.newton.scope.transaction() as tx:
            agent_id = self.newton.scope.agent_id
            rows = await tx.fetch("select full_text, state from memory.memories where kind = 'fact'")
            pairs = await list_conflicts(tx, agent_id=agent_id)
        superseded = [row["full_text"] for row in rows if row["state"] == "SUPERSEDED"]
        current = sorted(row["full_text"] for row in rows if row["state"] not in ("SUPERSEDED", "INACTIVE"))
        contested = {(pair.older.text, pair.newer.text) for pair in pairs}
        return Ending(tuple(current), frozenset(superseded), frozenset(contested))

    async def contexts(self) -> list[dict[str, Any]]:
        """Return all stored contexts as they are rebuilt from their inputs."""
        return [await self.http.replay(one["bundle_id"]) async for one in self.http.iter_pages("/v1/bundles")]


def check(ending: Ending, matters: Sequence[Matter]) -> Check:
    """Compare what is current with the values of the story."""
    missing, repeated, stale = list[str](), list[str](), list[str]()
    for matter in matters:
        found = sum(ending.current.count(text) for text in matter.newest)
        contested = {older for older, newer in ending.contested if newer in matter.newest}
        missing += [matter.key] if not found else []
        repeated += [matter.key] if found > 1 else []
        stale += [matter.key] if any(text in ending.current and text not in contested for text in matter.older) else []
    return Check(missing, repeated, stale)


@asynccontextmanager
async def begin_life(
    registry: AgentRegistry, url: str, clock: ManualClock, agent: str, only: Interface | None = None
) -> AsyncGenerator[Life]:
    newton = await registry.create(agent)
    await ProcedureService(scope=newton.scope).sync_from_disk(SkillSet({WHEEL.name: WHEEL}))
    async with open_voices(url, agent) as (http, voices):
        yield Life(newton, clock, http, dict(voices), only)


async def live(story: Sequence[Session], clock: ManualClock, lives: Sequence[Life]) -> None:
    """Hold each session in every life, and sleep each night until the day after the last."""
    for session in story:
        await _sleep_until(session.at, clock, lives)
        for life in lives:
            await life.hold(session)
    await _sleep_until(story[-1].at + timedelta(days=1), clock, lives)


async def _sleep_until(at: datetime, clock: ManualClock, lives: Sequence[Life]) -> None:
    night = (clock.now() - timedelta(hours=6)).replace(hour=6, minute=0) + timedelta(days=1)
    while night < at:
        clock.advance(max(night - clock.now(), timedelta(0)))
        for life in lives:
            await life.sleep()
        night += timedelta(days=1)
    clock.advance(max(at - clock.now(), timedelta(0)))
