"""An agent in this process on a clock that is set, told messages as a chat stores them, without a language model."""

import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.agent.services.conflicts import ConflictService
from newton.agent.services.memories import FactDraft
from newton.agent.services.sessions import SessionService
from newton.clock import ManualClock
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest
from newton.dialogue.messages import Message, Role, StoredMessage
from newton.errors import NewtonError
from newton.heart.identity import user_rules
from newton.memory import agents
from newton.providers.fakes import ScriptedChat
from newton.runtime.jobs.schedule import JOBS
from newton.runtime.wiring import AgentServices
from newton.text.words import extract_content_words

ORIGIN = "bench"
MESSAGE_GAP, PAUSE = timedelta(seconds=40), timedelta(minutes=30)  # between messages; until a session is closed
MIN_SHARED_WORDS = 0.6  # of a statement, in the fact that states it

FACTS = """
select m.memory_id, coalesce(m.full_text, m.summary) as text, m.occurred_at as said_at,
    f.is_current and m.quarantined is not true and coalesce(f.valid_to > $2, true) as is_current,
    f.duplicate_of is not null as is_merged
from memory.memories as m
join heart.facts as f using (agent_id, memory_id)
where m.agent_id = $1
order by m.occurred_at, m.memory_id
"""
TEXTS = """
select m.memory_id, coalesce(m.full_text, m.summary) as text
from memory.memories as m
where m.agent_id = $1 and m.memory_id = any($2)
"""
TABLES = """
select c.oid::regclass::text as name
from pg_class as c
where c.relkind in ('r', 'p') and not c.relispartition
    and c.relnamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
    and has_table_privilege(c.oid, 'select')
"""
_WORD = re.compile(r"\w+")


class StoredFact(NamedTuple):
    """A fact as it is stored. `said_at` is the time of the message that states it."""

    memory_id: UUID
    text: str
    said_at: datetime
    is_current: bool
    is_merged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedAgent:
    """An agent that is told messages, and what it then knows."""

    services: AgentServices
    clock: ManualClock

    @property
    def sessions(self) -> SessionService:
        return self.services.sessions(ORIGIN)

    async def say(self, session: str, *texts: str, role: Role = "user") -> Sequence[StoredMessage]:
        """Store messages one by one, and learn from each; return them as stored, with the notices on wills."""
        stored = list[StoredMessage]()
        for text in texts:
            self.clock.advance(MESSAGE_GAP)
            stored += await self.sessions.append(session, [Message(role=role, content=text, said_at=self.clock.now())])
            await self._learn()
        return stored

    async def converse(self, session: str, text: str, reply: str) -> tuple[str, str]:
        """Take a turn that a model, if any, answers with `reply`; return how and why its context came about."""
        self.clock.advance(MESSAGE_GAP)
        turn, method = TurnInput(session_id=await self.sessions.begin(session), text=text), ("", "no context")
        runner = self.services.turn_runner(ScriptedChat(reply) if reply else None, origin=ORIGIN)
        async with aclosing(runner.run(turn)) as pieces:
            async for piece in pieces:
                if isinstance(piece, TurnResult) and piece.context:
                    method = piece.context.method, piece.context.reason
        await self._learn()
        return method

    async def remember(self, text: str) -> None:
        """Store a note as a fact, as the command `remember` does."""
        self.clock.advance(MESSAGE_GAP)
        await self.services.memories(ORIGIN).remember(FactDraft(content=text))
        await self._learn()

    async def _learn(self) -> None:
        """Learn from what was written, as the daemon does, without its time limit. Raises RuntimeError on a failure."""
        failed = dict[str, str]()
        await self.services.maintenance(ORIGIN).process_recent(failed=failed)
        if failed:
            raise RuntimeError(f"Learning failed: {failed}.")

    async def rest(self, until: datetime | None = None, *, nightly: bool = False) -> None:
        """Let the sessions end and learn from them, with the jobs of the night if so; then set the clock to `until`."""
        self.clock.advance(PAUSE)
        await self.services.maintenance(ORIGIN).learn_if_possible()
        if nightly:
            for job in JOBS.values():
                try:
                    await job.run(self.services)
                except NewtonError as error:
                    raise RuntimeError(f"The job {job.name} failed at {self.clock.now()}.") from error
        self.clock.advance(max((until or self.clock.now()) - self.clock.now(), timedelta()))

    async def read_facts(self) -> list[StoredFact]:
        """Return all facts, in the order in which they were said."""
        async with self.services.scope.transaction() as tx:
            rows = await tx.fetch(FACTS, self.services.scope.agent_id, self.clock.now())
        return [StoredFact(*row) for row in rows]

    async def read_texts(self, memory_ids: Sequence[UUID]) -> list[str]:
        """Return the texts of memories, in the order of their ids."""
        async with self.services.scope.transaction() as tx:
            rows = await tx.fetch(TEXTS, self.services.scope.agent_id, list(memory_ids))
        texts: dict[UUID, str] = {row["memory_id"]: row["text"] for row in rows}
        return [texts[one] for one in memory_ids]

    async def list_conflicts(self) -> list[frozenset[UUID]]:
        """Return the pairs of facts that are unsettled."""
        pairs = await ConflictService(scope=self.services.scope).list_conflicts()
        return [frozenset((pair.newer.memory_id, pair.older.memory_id)) for pair in pairs]

    async def count_confirmed(self) -> tuple[int, int]:
        """Return the number of facts that were told once, and of those that were confirmed."""
        report = await self.services.metrics().report()
        metric = next(one for one in report.metrics if one.name == "facts confirmed")
        confirmed = round(metric.sample_size * (metric.value or 0))
        return metric.sample_size - confirmed, confirmed

    async def read_rules(self) -> list[str]:
        """Return the rules of the user that are in force."""
        async with self.services.scope.transaction() as tx:
            return [one.text for one in await user_rules.list_rules(tx, agent_id=self.services.scope.agent_id)]

    async def build_context(self, text: str) -> Bundle:
        """Return the context for an input outside of a session."""
        settings = self.services.settings
        request = ContextBuildRequest(
            agent_id=self.services.scope.agent_id, input=text, tokens=settings.context_tokens, profile=settings.profile
        )
        bundle = await self.services.context_builder.build(request)
        if bundle.missing:
            raise RuntimeError(f"The context lacks sources: {bundle.missing}.")
        return bundle

    async def read_rows(self) -> dict[str, list[str]]:
        """Return the rows of all tables as texts, by the name of the table."""
        async with self.services.scope.transaction() as tx:
            tables = {row["name"]: await tx.fetch(f"table {row['name']}") for row in await tx.fetch(TABLES)}
        return {name: [" ".join(map(str, row)).replace("\\n", " ") for row in rows] for name, rows in tables.items()}


async def create_agent(newton: AgentServices, name: str, *, start: datetime | None = None) -> SimulatedAgent:
    """Return a new agent that shares the database and the models of `newton`."""
    clock = ManualClock(start or datetime(2026, 10, 5, 9, tzinfo=UTC))
    agent_id = await agents.get_or_create_agent(newton.scope.db, name, now=clock.now())
    scope = replace(newton.scope, agent_id=agent_id, clock=clock)
    services = replace(
        newton,
        settings=newton.settings.model_copy(update={"agent": name}),
        scope=scope,
        context_builder=replace(newton.context_builder, clock=clock),
    )
    return SimulatedAgent(services=services, clock=clock)


def has_words(text: str, words: str) -> bool:
    """Return whether a text has these words one behind the other, whatever their case and the marks between them.

    >>> has_words("My dentist is Dr. Vogel", "dr vogel"), has_words("She is at Tomkins.", "tom")
    (True, False)
    """
    return f" {_fold(words)} " in f" {_fold(text)} "


def share_words(text: str, statement: str) -> float:
    """Return the share of the content words of a statement that a text has; of all words if it has no content word."""
    wanted, found = extract_content_words(statement), extract_content_words(text)
    if not wanted:
        wanted, found = frozenset(_fold(statement).split()), frozenset(_fold(text).split())
    return len(wanted & found) / max(1, len(wanted))


def states(text: str, statement: str) -> bool:
    """Return whether a text says what a statement says, by the words that they share."""
    return share_words(text, statement) >= MIN_SHARED_WORDS


def _fold(text: str) -> str:
    return " ".join(_WORD.findall(text)).casefold()
