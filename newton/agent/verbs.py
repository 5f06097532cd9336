"""What anyone may ask of a memory, whichever door they came through: remember and recall."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.errors import InputError
from newton.heart import episodes, facts
from newton.heart.episodes import Experience
from newton.heart.facts import Learnt, Statement
from newton.ids import new_id
from newton.memory import store
from newton.memory.hygiene import clean, moment, name
from newton.memory.importance import share_of
from newton.memory.memory import ARCHIVED, RECALLED, Kind
from newton.memory.recall import Recollection, Search, Width, recall

if TYPE_CHECKING:
    pass

SEARCHED = 100
MOST_RECALLED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A fact as a caller tells it: `confidence` from 0 to 1, `importance` from 0 to 10, times with a zone."""

    content: str
    subject: str | None = None
    attribute: str | None = None
    confidence: float | None = None
    importance: float | None = None
    at: datetime | None = None
    until: datetime | None = None


class Kept(NamedTuple):
    """What became of a fact that was told, and the memory that has it."""

    learnt: Learnt
    memory_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbs:
    """The verbs of one agent. `origin` names the door, and `trust` is how far what it says is believed."""

    scope: AgentScope

    async def remember(self, remark: Remark) -> Kept:
        """Keeps a fact, or confirms it when it is known word for word.

        Raises InputError for an empty text, a name of several lines, a number off its scale, a time without a zone, or
        an end before the beginning, and ConflictError for what was said to be wrong.
        """
        sure = remark.confidence
        if sure is not None and not 0 <= sure <= 1:
            raise InputError(f"A confidence of {sure} is not possible.", hint="It runs from 0 to 1.")
        told = Statement(
            ref=str(new_id()),
            content=clean(remark.content),
            subject=name(remark.subject, what="subject") if remark.subject is not None else None,
            attribute=name(remark.attribute, what="attribute") if remark.attribute is not None else None,
            confidence=sure,
            importance=share_of(remark.importance),
            at=_zoned(remark.at) or self.scope.now(),
            until=_zoned(remark.until),
        )
        async with self.scope.transaction() as tx:
            learnt = await facts.learn(tx, [told], ctx=self.scope.write_context())
            known = await facts.telling(tx, told, agent_id=self.scope.agent_id)
            await facts.ensure_not_wrong(tx, known, ctx=self.scope.write_context())
            return self._told(Kept(learnt[0], known), "fact")

    async def relive(self, content: str, *, title: str, at: datetime | None = None) -> Kept:
        """Keeps an episode somebody tells of."""
        when = _zoned(at) or self.scope.now()
        experience = Experience(
            ref=str(new_id()),
            title=name(title, what="title"),
            content=clean(content),
            started_at=when,
            ended_at=when,
        )
        async with self.scope.transaction() as tx:
            await episodes.keep(tx, [experience], ctx=self.scope.write_context())
            known = await episodes.telling(tx, experience, agent_id=self.scope.agent_id)
            return self._told(Kept("new", known), "episode")

    async def recall(
        self,
        text: str,
        *,
        kinds: Sequence[Kind] = RECALLED,
        most: int = 10,
        quarantined: bool = False,
        as_of: datetime | None = None,
    ) -> Recollection:
        """The memories most likely meant by the text, at most `most`; what tools and the web said only on request.

        What is superseded ranks lower, what was wrong is left out. With `as_of` it is as it was known at that moment.
        """
        if most < 1:
            raise InputError(f"A limit of {most} finds nothing.", hint="Give 1 or more.")
        if "artifact" in kinds:
            raise InputError(
                "An artifact is found in its own session alone.",
                hint="Ask in that session: `newton ask --session NAME`.",
            )
        if most > MOST_RECALLED:
            raise InputError(f"A limit of {most:,} is too wide.", hint=f"Give at most {MOST_RECALLED:,}.")
        asked = clean(text, what="question")
        width = Width(searched=max(most, SEARCHED), kept=max(most, SEARCHED))
        search = Search(
            db=self.scope.db,
            agent_id=self.scope.agent_id,
            widths=dict.fromkeys(kinds, width),
            quarantined=quarantined,
            past={"INACTIVE", "RETIRED", ARCHIVED},
            moment=_zoned(as_of),
        )
        recalled = await recall(asked, embedder=self.scope.embedder, search=search)
        shown = [found for found in recalled.found if not found.echoes(asked)]
        if as_of is None:
            await self.read([found.memory_id for found in shown[:most]])
        return replace(recalled, found=shown[:most])

    async def read(self, memory_ids: Sequence[UUID]) -> None:
        """Counts that these memories were shown to somebody."""
        async with self.scope.transaction() as tx:
            await store.note_read(tx, memory_ids, agent_id=self.scope.agent_id, now=self.scope.now())

    def _told(self, kept: Kept, kind: Kind) -> Kept:
        about = {"memory_id": str(kept.memory_id), "kind": kind, "learnt": kept.learnt}
        self.scope.publish("memory.remembered", about)
        return kept


def _zoned(at: datetime | None) -> datetime | None:
    return None if at is None else moment(at)
