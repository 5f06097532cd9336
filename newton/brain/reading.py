"""Decisions read back: lists, one with all that belongs to it, and the record of the one who made them."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from newton.brain import ledger
from newton.brain.chain import Written
from newton.brain.choice import Choice, Judged, ReasonKind, Stakes, Standing, Verdict
from newton.brain.quality import PARTS, score
from newton.brain.stating import Review, choice_of, review_of
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import NotFoundError
from newton.memory.lookup import Record, record

SQL = load("newton.brain", "reading.sql")

MOST_LINKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which decisions are asked for. `due`: open, and the date to look again has passed; those are listed first-due.

    `before` is the last one of the page before, of those that are listed the latest first.
    """

    due: bool = False
    open: bool = False
    category: str | None = None
    stakes: Stakes | None = None
    outcome: Verdict | None = None
    tag: str | None = None
    before: UUID | None = None
    most: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A decision in a list. Its description is None when it was erased."""

    decision_id: UUID
    state: str
    description: str | None
    decided_at: datetime
    confidence: float
    category: str
    stakes: Stakes
    frame: str | None
    look_again_at: datetime | None
    outcome: Verdict | None
    reviewed_at: datetime | None
    how: str | None
    overdue: bool


class Category(NamedTuple):
    name: str
    decisions: int
    judged: int


class Note(NamedTuple):
    """What was added to a decision and when: words, unless they were erased, and what else it changed."""

    at: datetime
    origin: str
    text: str | None
    body: Mapping[str, Any]
    tags: tuple[str, ...] | None = None


class Edge(NamedTuple):
    """One decision is something to another."""

    memory_id: UUID
    link: str
    other_id: UUID
    micro: str
    other_micro: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A decision with everything that belongs to it. `body` is what is left when its words were erased."""

    memory: Record
    body: Mapping[str, Any]
    choice: Choice | None
    review: Review | None
    thoughts: tuple[Note, ...]
    amendments: tuple[Note, ...]
    erasures: tuple[Note, ...]
    edges: tuple[Edge, ...]

    @property
    def category(self) -> str:
        """As it was amended last."""
        given = [note.body["category"] for note in self.amendments if note.body.get("category")]
        return given[-1] if given else cast("str", self.body["category"])

    @property
    def quality(self) -> Mapping[str, float]:
        """The parts in the order in which they are told."""
        given = cast("Mapping[str, float]", self.body["quality"])
        return {name: given[name] for name in sorted(given, key=list(PARTS).index)}

    def as_json(self) -> dict[str, Any]:
        """The public form: what every door answers."""
        return {
            "decision_id": str(self.memory.memory_id),
            "state": self.memory.state,
            **{name: value for name, value in self.body.items() if name != "quality"},
            "quality": {"score": score(self.quality), "parts": dict(self.quality)},
            **_stated(self.choice),
            **_came_of_it(self.review),
            "thoughts": [{"at": note.at.isoformat(), "text": note.text} for note in self.thoughts],
            "amendments": [
                {"at": note.at.isoformat(), "text": note.text, "tags": note.tags, **note.body}
                for note in self.amendments
            ],
            "links": [
                {"decision_id": str(edge.memory_id), "link": edge.link, "other_id": str(edge.other_id)}
                for edge in self.edges
            ],
        }


def _stated(choice: Choice | None) -> dict[str, Any]:
    """The words of a choice; null when they were erased."""
    return {
        "description": choice and choice.description,
        "context": choice and choice.context,
        "alternatives": choice and choice.alternatives,
        "reasons": choice and [{"kind": reason.kind, "text": reason.text} for reason in choice.reasons],
        "tags": choice and choice.tags,
        "expected": choice and choice.expected,
        "reviewed_by": choice and choice.reviewed_by,
    }


def _came_of_it(given: Review | None) -> dict[str, Any]:
    return {
        "outcome": given and given.verdict,
        "lesson": given and given.lesson,
        "reviewed_at": given and given.at.isoformat(),
        "how": given and given.how,
    }


async def listed(tx: Tx, wanted: Filter, *, agent_id: UUID, now: datetime) -> list[Listed]:
    """The decisions asked for: those due by their dates, others the latest first."""
    rows = await SQL["list_decisions"].all(
        tx,
        agent_id=agent_id,
        now=now,
        due=wanted.due,
        open=wanted.open,
        category=wanted.category,
        stakes=wanted.stakes,
        outcome=wanted.outcome,
        tag=wanted.tag,
        before=wanted.before,
        max_rows=wanted.most,
    )
    return [Listed(**row) for row in rows]


async def categories(tx: Tx, *, agent_id: UUID) -> list[Category]:
    """Every category there is, the most used first."""
    return [Category(*row) for row in await SQL["count_by_category"].all(tx, agent_id=agent_id)]


async def whole(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> Whole:
    """Raises NotFoundError."""
    records = await ledger.about(tx, decision_id, agent_id=agent_id)
    if not records:
        raise NotFoundError(f"There is no decision {decision_id}.", hint="`newton decisions` shows ids.")
    first, outcomes = records[0], _of(records, "outcome")
    edges = await SQL["list_links"].all(tx, agent_id=agent_id, memory_id=decision_id, max_rows=MOST_LINKS)
    return Whole(
        memory=await record(tx, decision_id, agent_id=agent_id),
        body=first.body,
        choice=choice_of(first.body, first.words) if first.words is not None else None,
        review=review_of(outcomes[0].body, outcomes[0].words) if outcomes else None,
        thoughts=tuple(_note(one) for one in _of(records, "thought")),
        amendments=tuple(_note(one) for one in _of(records, "amendment")),
        erasures=tuple(_note(one) for one in _of(records, "erasure")),
        edges=tuple(Edge(*row) for row in edges),
    )


async def judged(tx: Tx, *, agent_id: UUID) -> list[Judged]:
    """Every decision whose outcome is known, in the order in which they were made."""
    rows = await SQL["list_reviewed"].all(tx, agent_id=agent_id)
    return [
        Judged(
            decision_id=decision_id,
            decided_at=decided_at,
            reviewed_at=reviewed_at,
            confidence=confidence,
            outcome=outcome,
            category=category,
            stakes=stakes,
            frame=frame,
            reason_kinds=_kinds(kinds),
        )
        for decision_id, decided_at, reviewed_at, confidence, outcome, category, stakes, frame, kinds in rows
    ]


async def standing(tx: Tx, *, agent_id: UUID, category: str, now: datetime) -> Standing:
    """The record of the agent at this moment, and that of one category."""
    row = await SQL["get_track_record"].one(tx, agent_id=agent_id, category=category, now=now)
    assert row is not None
    return Standing(**row)


@functools.lru_cache(maxsize=256)
def _kinds(written: str) -> tuple[ReasonKind, ...]:
    return tuple(json.loads(written))


def _of(records: Sequence[Written], kind: str) -> list[Written]:
    return [one for one in records if one.kind == kind]


def _note(one: Written) -> Note:
    words = cast("Mapping[str, Any]", one.words or {})
    said = words.get("tags")
    return Note(one.recorded_at, one.origin, words.get("text"), one.body, None if said is None else tuple(said))
