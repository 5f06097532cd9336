"""Deciding: what speaks for and against a choice is looked at first, then it is recorded; and what becomes of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from newton.agent import gate, verifying
from newton.agent.gate import Gate
from newton.agent.scope import AgentScope
from newton.brain import decisions, ledger, reading, snapshots
from newton.brain.chain import Fault, Head, Json
from newton.brain.choice import Choice, Judged, Standing, Verdict
from newton.brain.decisions import Amendment, ByHand
from newton.brain.headnote import HeadNotes
from newton.brain.quality import quality
from newton.brain.reading import Category, Filter, Listed, Whole
from newton.brain.showing import cue
from newton.brain.stating import How, Intent, Review, checked_choice
from newton.db.pool import Tx, once_landed
from newton.errors import CensoredError, ConfigError, ConflictError, GuardedError
from newton.memory.lookup import resolve
from newton.memory.recall import Found, Search, Width, recall

if TYPE_CHECKING:
    # CEL takes a fifth of a second to load, and most commands judge no choice
    from newton.brain.guarding import Ruling

T = TypeVar("T")

SEARCHED, MOST_PRECEDENTS = 20, 5
ALIKE = 0.35  # evidence, by meaning or by words, from which on a decision is a precedent


Judge = Callable[[Tx, Choice, Standing], Awaitable[Sequence["Ruling"]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is to be seen before a choice is made. `missing` says which part could not be asked, and why."""

    choice: Choice
    precedents: Sequence[Found]
    standing: Standing
    censors: gate.Ruling
    rulings: "Sequence[Ruling]"
    quality: dict[str, float]
    missing: dict[str, str]

    @property
    def blocked(self) -> bool:
        return self.censors.blocks or any(ruling.blocks for ruling in self.rulings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision that is in the ledger, with what was to be seen before. One that was there already is not new."""

    decision_id: UUID
    new: bool
    outlook: Outlook


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """For one agent; `origin` names the door, and `trust` is how far it is believed.

    A decision is named by its id or the end of it.
    """

    scope: AgentScope
    gate: Gate
    notes: HeadNotes
    judge: Judge
    verifiers: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    verifier_seconds: float = 60.0

    async def look(self, choice: Choice) -> Outlook:
        """What speaks for and against a choice. Nothing is recorded or counted. Raises InputError."""
        return await self._look(checked_choice(choice), dry=True)

    async def decide(self, choice: Choice, *, supersedes: Sequence[str] = ()) -> Decided:
        """Weighs the choice and records it. Raises as both do."""
        return await self.record(await self.weigh(choice), supersedes=supersedes)

    async def weigh(self, choice: Choice) -> Outlook:
        """Looks before a choice that is about to be recorded; that a censor was met is counted.

        Raises InputError for what cannot be, and CensoredError or GuardedError for what may not.
        """
        outlook = await self._look(checked_choice(choice), dry=False)
        _allowed(outlook)
        return outlook

    async def record(self, outlook: Outlook, *, supersedes: Sequence[str] = ()) -> Decided:
        """Records a choice that was weighed, with what guardrails and censors said of it. Asks no model."""

        async def work(tx: Tx) -> decisions.Recorded:
            choice = await decisions.as_told(tx, outlook.choice, agent_id=self.scope.agent_id)
            intent = Intent(choice=choice, rulings=_said(outlook))
            (made,) = await decisions.record(tx, [intent], ctx=self.scope.write_context())
            for given in supersedes:
                old = await self._which(tx, given)
                await decisions.supersede(tx, made.decision_id, old, ctx=self.scope.write_context())
                self._tell("superseded", old, superseded_by=str(made.decision_id))
            if made.new:
                self._tell("recorded", made.decision_id, stakes=choice.stakes)
                alike = {found.memory_id: found.similarity for found in outlook.precedents}
                await decisions.relate(tx, made.decision_id, alike, ctx=self.scope.write_context())
            return made

        made = await self._written(work)
        if supersedes:
            await self.reflect()
        return Decided(decision_id=made.decision_id, new=made.new, outlook=outlook)

    async def think(self, given: str, text: str) -> None:
        """Adds a thought to a decision that is open."""
        await self._change(
            given, "deliberated", lambda tx, one: decisions.think(tx, one, text, ctx=self.scope.write_context())
        )

    async def amend(self, given: str, amendment: Amendment) -> None:
        await self._change(
            given, "amended", lambda tx, one: decisions.amend(tx, one, amendment, ctx=self.scope.write_context())
        )

    async def done(self, given: str) -> None:
        """It is done; its outcome is awaited."""
        await self._change(given, "done", lambda tx, one: decisions.done(tx, one, ctx=self.scope.write_context()))

    async def review(
        self, given: str, verdict: Verdict, *, lesson: str | None = None, at: datetime | None = None, how: How = "hand"
    ) -> None:
        """Gives a decision its outcome, once; `at` is when that was known, by default now."""
        ctx = self.scope.write_context()
        outcome = Review(verdict=verdict, at=at or ctx.now, how=how, lesson=lesson)

        async def work(tx: Tx, one: UUID) -> None:
            await decisions.review(tx, one, outcome, ctx=ctx)

        await self._change(given, "reviewed", work, outcome=verdict)
        await self.reflect()

    async def reflect(self) -> None:
        """Works out what the record says since an outcome came in, for the contexts to come."""
        async with self.scope.transaction() as tx:
            await snapshots.take(tx, agent_id=self.scope.agent_id, now=self.scope.now(), count=self.scope.count_tokens)

    async def verified(self, given: str) -> Verdict | None:
        """Asks the verifier of the decision's category, and gives the decision the outcome it says, if it says one.

        Raises ConfigError when none is set, and ConflictError when the decision was reviewed.
        """
        whole = await self.whole(given)
        category = whole.category
        if category not in self.verifiers:
            raise ConfigError(f"No verifier is set for {category}.", hint="Set it under [verifiers] in newton.toml.")
        if whole.review:
            raise ConflictError("The decision was reviewed already.", hint="An outcome is given once.")
        command, decision_id = self.verifiers[category], whole.memory.memory_id
        said = await verifying.verdict(command, decision_id, seconds=self.verifier_seconds)
        if said:
            await self.review(str(decision_id), said, how="verifier")
        return said

    async def supersede(self, new: str, old: str) -> None:
        async def work(tx: Tx) -> None:
            one, other = await self._which(tx, new), await self._which(tx, old)
            await decisions.supersede(tx, one, other, ctx=self.scope.write_context())
            self._tell("superseded", other, superseded_by=str(one))

        await self._written(work)
        await self.reflect()

    async def link(self, one: str, name: ByHand, other: str) -> None:
        async def work(tx: Tx, decision_id: UUID) -> None:
            await decisions.link(tx, decision_id, name, await self._which(tx, other), ctx=self.scope.write_context())

        await self._change(one, "linked", work)

    async def erase(self, given: str, *, because: str) -> bool:
        """Takes the words of a decision away for good. False when none was left."""
        return await self._change(
            given,
            "erased",
            lambda tx, one: decisions.erase(tx, one, because=because, ctx=self.scope.write_context()),
        )

    async def listed(self, wanted: Filter) -> list[Listed]:
        now = self.scope.now()
        async with self.scope.transaction() as tx:
            return await reading.listed(tx, wanted, agent_id=self.scope.agent_id, now=now)

    async def judged(self) -> list[Judged]:
        """Every decision whose outcome is known: what calibration is computed from."""
        async with self.scope.transaction() as tx:
            return await reading.judged(tx, agent_id=self.scope.agent_id)

    async def rulings(self, choice: Choice) -> "tuple[Standing, Sequence[Ruling]]":
        """The record of the agent as it is now, and what the guardrails say of a choice before it."""
        now = self.scope.now()
        async with self.scope.transaction() as tx:
            standing = await reading.standing(tx, agent_id=self.scope.agent_id, category=choice.category, now=now)
            return standing, await self.judge(tx, choice, standing)

    async def categories(self) -> list[Category]:
        async with self.scope.transaction() as tx:
            return await reading.categories(tx, agent_id=self.scope.agent_id)

    async def whole(self, given: str) -> Whole:
        """A decision with everything that belongs to it."""
        async with self.scope.transaction() as tx:
            return await reading.whole(tx, await self._which(tx, given), agent_id=self.scope.agent_id)

    async def verify(self) -> Fault | Head:
        """The first broken place of the ledger, or its end when it is whole, beside what was noted outside of it."""
        noted = self.notes.seen(self.scope.agent_id)
        async with self.scope.transaction() as tx:
            return await ledger.verify(tx, agent_id=self.scope.agent_id, noted=noted)

    async def _look(self, choice: Choice, *, dry: bool) -> Outlook:
        text = "\n".join(filter(None, [choice.description, choice.context, choice.expected]))
        censors = await self.gate.check(text, "action", dry=dry)
        search = Search(db=self.scope.db, agent_id=self.scope.agent_id, widths={"decision": Width(SEARCHED, SEARCHED)})
        recalled = await recall(cue(choice), embedder=self.scope.embedder, search=search)
        standing, rulings = await self.rulings(choice)
        alike = [found for found in recalled.found if max(found.similarity, found.lexical) >= ALIKE]
        return Outlook(
            choice=choice,
            precedents=alike[:MOST_PRECEDENTS],
            standing=standing,
            censors=censors,
            rulings=rulings,
            quality=quality(choice),
            missing={**recalled.missing, **({"censors by meaning": censors.unread} if censors.unread else {})},
        )

    async def _change(self, given: str, what: str, work: Callable[[Tx, UUID], Awaitable[T]], **more: str) -> T:
        async def found(tx: Tx) -> T:
            decision_id = await self._which(tx, given)
            done = await work(tx, decision_id)
            self._tell(what, decision_id, **more)
            return done

        return await self._written(found)

    async def _written(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """The unit of work; when it has landed, the note of where the chain ends."""
        seen = await asyncio.to_thread(self.notes.last, self.scope.agent_id)
        async with self.scope.transaction() as tx:
            result = await work(tx)
            head = await ledger.grown(tx, seen, agent_id=self.scope.agent_id)
            once_landed(lambda: asyncio.to_thread(self.notes.note, self.scope.agent_id, head))
        return result

    def _tell(self, what: str, one: UUID, **more: str) -> None:
        self.scope.publish(f"decision.{what}", {"decision_id": str(one), **more})

    async def _which(self, tx: Tx, given: str) -> UUID:
        return await resolve(tx, given, agent_id=self.scope.agent_id, kind="decision")


def _allowed(outlook: Outlook) -> None:
    if outlook.censors.blocks:
        raise CensoredError(f"A censor forbids it: {outlook.censors.words}.", hint="Choose something else.")
    if stopped := [ruling.words for ruling in outlook.rulings if ruling.blocks]:
        raise GuardedError(
            "; ".join(stopped), hint="Nothing was recorded. Mend the decision, or see `newton guard list`."
        )


def _said(outlook: Outlook) -> list[Json]:
    """What guardrails and censors said, as it is kept."""
    ruled: list[Json] = [{"guardrail": ruling.rule.name, "verdict": ruling.verdict} for ruling in outlook.rulings]
    return ruled + [{"censor": str(censor.memory_id), "verdict": "warned"} for censor in outlook.censors.met]
