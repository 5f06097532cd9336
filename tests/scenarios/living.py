"""A mind that lives on at random: it is told, corrected, taught, forbidden; it decides, learns and forgets."""

import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from newton.brain import decisions
from newton.brain.calibration import snapshots
from newton.clock import ManualClock
from newton.content.skills import SkillFile
from newton.db.pool import Database, Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import ConflictError
from newton.heart import censors, episodes, procedures
from newton.heart.censors import CensorRule
from newton.heart.episodes import EpisodeSummary, NewEpisode
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory.forgetting import forget
from newton.memory.memory import WriteContext
from tests.db.deciding import choice, recorded, reviewed
from tests.support import count, ground, part, teller

PLACES = ("Lisbon", "Bergen", "Porto", "Turin", "Graz", "Lyon", "Ghent", "Cork")
PEOPLE = ("Ana", "Ben", "Carla", "Dmitri", "Edda")
THINGS = ("ferry", "kettle", "ledger", "deploy", "garden", "migration", "cache", "harbour")
Act = Callable[[Tx], Awaitable[None]]


@dataclass(slots=True)
class Living:
    """One mind on a clock. `known` has the ids of what something may still happen to, by what it is. With `uses` its
    procedures are followed."""

    db: Database
    agent_id: UUID
    clock: ManualClock
    chosen: random.Random
    uses: bool = True
    known: dict[str, list[UUID]] = field(default_factory=dict[str, list[UUID]])
    number: int = 0

    async def go_on(self, writes: int, *, at_once: int = 25, forgetting: bool = False) -> None:
        """So many happenings, each a minute after the one before; with `forgetting` some take away what is new."""
        acts: list[Act] = [*self._tellings(), *self._changes()] + ([self._forget] if forgetting else [])
        first = self.number
        while self.number < first + writes:
            async with self.db.transaction(self.agent_id) as tx:
                for _ in range(min(at_once, first + writes - self.number)):
                    self.clock.advance(timedelta(minutes=1))
                    self.number += 1
                    with suppress(ConflictError):
                        async with part(tx):
                            await self.chosen.choice(acts)(tx)

    @property
    def ctx(self) -> WriteContext:
        return teller(self.agent_id, now=self.clock.now())

    @property
    def ground(self) -> LifecycleContext:
        return ground(self.ctx)

    def _tellings(self) -> Sequence[Act]:
        return (self._fact, self._fact, self._line, self._line, self._episode, self._decision, self._skill, self._rule)

    def _changes(self) -> Sequence[Act]:
        return (
            self._again, self._correct, self._take_back, self._structure, self._outcome, self._outcome, self._done,
            self._lift, *([self._use] if self.uses else []),
        )  # fmt: skip

    def _words(self) -> str:
        person, thing, place = self.chosen.choice(PEOPLE), self.chosen.choice(THINGS), self.chosen.choice(PLACES)
        return f"{person} moved the {thing} number {self.number} to {place}"

    def _one(self, kind: str) -> UUID | None:
        known = self.known.get(kind)
        return self.chosen.choice(known) if known else None

    def _note(self, kind: str, memory_id: UUID) -> None:
        self.known.setdefault(kind, []).append(memory_id)

    async def _tell(self, tx: Tx) -> UUID:
        told = NewFact(
            ref=f"f{self.number}",
            content=self._words(),
            valid_from=self.clock.now(),
            subject=self.chosen.choice(PEOPLE),
            attribute=self.chosen.choice(("lives in", "likes", "works at")),
            confidence=self.chosen.choice((None, 0.4, 0.9)),
        )
        await fact_store.add_facts(tx, [told], ctx=self.ground)
        return await fact_store.find_fact_id(tx, told, agent_id=self.agent_id)

    async def _fact(self, tx: Tx) -> None:
        self._note("fact", await self._tell(tx))

    async def _line(self, tx: Tx) -> None:
        session_id = await sessions.ensure_session(
            tx, agent_id=self.agent_id, ref=f"s{self.number // 40}", now=self.ctx.now
        )
        line = Message(role="user", content=f"{self._words()}, they say.", said_at=self.ctx.now)
        await sessions.append(tx, [line], session_id=session_id, ctx=self.ctx)

    async def _episode(self, tx: Tx) -> None:
        now = self.ctx.now
        lived = NewEpisode(
            ref=f"e{self.number}", title="A day", content=f"{self._words()}. " * 9, started_at=now, ended_at=now
        )
        await episodes.add_episodes(tx, [lived], ctx=self.ctx)
        self._note("episode", await episodes.find_episode_id(tx, lived, agent_id=self.agent_id))

    async def _decision(self, tx: Tx) -> None:
        made = choice(f"Whether {self._words()}", at=self.ctx.now, ref=f"d{self.number}")
        self._note("decision", (await recorded(tx, made, ctx=self.ctx))[0])

    async def _skill(self, tx: Tx) -> None:
        skill = SkillFile(name=f"skill-{self.number % 7}", description=f"How {self._words()}.", core=(self._words(),))
        if learnt := await procedures.add_procedure(tx, skill, ctx=self.ground):
            self._note("procedure", learnt)

    async def _rule(self, tx: Tx) -> None:
        rule = CensorRule(trigger=f"sink the {self.chosen.choice(THINGS)} {self.number % 5}", reason="it is needed")
        for memory_id in await censors.add_rules(tx, [rule], ctx=self.ground):
            self._note("censor", memory_id)

    async def _again(self, tx: Tx) -> None:
        if one := self._one("fact"):
            await fact_store.confirm(tx, one, ref=f"r{self.number}", source=f"s{self.number}", ctx=self.ground)

    async def _correct(self, tx: Tx) -> None:
        if one := self._one("fact"):
            await fact_store.supersede(tx, one, by_fact=await self._tell(tx), ctx=self.ground)

    async def _take_back(self, tx: Tx) -> None:
        if one := self._one("fact"):
            await fact_store.retract(tx, one, ctx=self.ground)

    async def _structure(self, tx: Tx) -> None:
        if one := self._one("episode"):
            told = EpisodeSummary(
                title=f"Day {self.number}", summary=self._words(), outcome=self.chosen.choice((None, "failure"))
            )
            await episodes.set_summary(tx, one, told, ctx=self.ctx)

    async def _outcome(self, tx: Tx) -> None:
        if one := self._one("decision"):
            verdict = self.chosen.choice(("success", "failure", "partial"))
            given = reviewed(verdict, at=self.ctx.now, lesson=self._words())
            await decisions.review(tx, one, given, ctx=self.ctx)
            await snapshots.take_snapshot(tx, agent_id=self.agent_id, now=self.ctx.now, count_tokens=count)

    async def _done(self, tx: Tx) -> None:
        if one := self._one("decision"):
            await decisions.mark_done(tx, one, ctx=self.ctx)

    async def _use(self, tx: Tx) -> None:
        if one := self._one("procedure"):
            await engine.record_activations(tx, "procedure", [one], stage="action", ctx=self.ground)
            result = self.chosen.choice(("success", "failure"))
            await engine.record_result(tx, "procedure", one, result, ctx=self.ground)

    async def _lift(self, tx: Tx) -> None:
        if one := self._one("censor"):
            await censors.retire(tx, one, ctx=self.ground)

    async def _forget(self, tx: Tx) -> None:
        """Something that was told just now goes again."""
        await forget(tx, [await self._tell(tx)], derived=False, reason="a slip", ctx=self.ctx)
