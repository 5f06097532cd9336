"""Queries of decisions: lists, details and the track record."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from newton.brain import ledger
from newton.brain.codec import DecisionReview, decode_draft, decode_review
from newton.brain.draft import DecisionDraft, ReasonKind, ReviewedDecision, Stakes, TrackRecord, Verdict
from newton.brain.hash_chain import ChainRecord
from newton.brain.quality import QUALITY_PARTS, total_score
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import NotFoundError
from newton.memory.lookup import MemoryDetail, read_memory

SQL = load("newton.brain", "queries.sql")

MAX_LINKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """A filter of decisions. `due`: open ones whose review date has passed, most overdue first.

    `before` is the last decision of the previous page, in lists that are newest first.
    """

    due: bool = False
    open: bool = False
    category: str | None = None
    stakes: Stakes | None = None
    outcome: Verdict | None = None
    tag: str | None = None
    before: UUID | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSummary:
    """A decision in a list. Its description is None when erased."""

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


class CategoryCount(NamedTuple):
    name: str
    decisions: int
    judged: int


class DecisionNote(NamedTuple):
    """An addition to a decision: its text, unless erased, and other changes."""

    recorded_at: datetime
    origin: str
    text: str | None
    body: Mapping[str, Any]
    tags: tuple[str, ...] | None = None


class DecisionLink(NamedTuple):
    """A link between two decisions."""

    memory_id: UUID
    link: str
    other_id: UUID
    micro: str
    other_micro: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDetail:
    """A decision with its thoughts, amendments and links. `body` remains when its text is erased."""

    memory: MemoryDetail
    body: Mapping[str, Any]
    draft: DecisionDraft | None
    review: DecisionReview | None
    thoughts: tuple[DecisionNote, ...]
    amendments: tuple[DecisionNote, ...]
    erasures: tuple[DecisionNote, ...]
    links: tuple[DecisionLink, ...]

    @property
    def category(self) -> str:
        """Return the category as last amended."""
        given = [note.body["category"] for note in self.amendments if note.body.get("category")]
        return given[-1] if given else cast("str", self.body["category"])

    @property
    def quality(self) -> Mapping[str, float]:
        """Return the quality parts in display order."""
        given = cast("Mapping[str, float]", self.body["quality"])
        return {name: given[name] for name in sorted(given, key=list(QUALITY_PARTS).index)}

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form, the same for every interface."""
        return {
            "decision_id": str(self.memory.memory_id),
            "state": self.memory.state,
            **{name: value for name, value in self.body.items() if name != "quality"},
            "quality": {"score": total_score(self.quality), "parts": dict(self.quality)},
            **_draft_to_json(self.draft),
            **_review_to_json(self.review),
            "thoughts": [{"at": note.recorded_at.isoformat(), "text": note.text} for note in self.thoughts],
            "amendments": [
                {"at": note.recorded_at.isoformat(), "text": note.text, "tags": note.tags, **note.body}
                for note in self.amendments
            ],
            "links": [
                {"decision_id": str(edge.memory_id), "link": edge.link, "other_id": str(edge.other_id)}
                for edge in self.links
            ],
        }


def _draft_to_json(draft: DecisionDraft | None) -> dict[str, Any]:
    """Return the draft's texts; null when erased."""
    return {
        "description": draft and draft.description,
        "context": draft and draft.context,
        "alternatives": draft and draft.alternatives,
        "reasons": draft and [{"kind": reason.kind, "text": reason.text} for reason in draft.reasons],
        "tags": draft and draft.tags,
        "expected": draft and draft.expected,
        "reviewed_by": draft and draft.reviewed_by,
    }


def _review_to_json(review: DecisionReview | None) -> dict[str, Any]:
    return {
        "outcome": review and review.verdict,
        "lesson": review and review.lesson,
        "reviewed_at": review and review.at.isoformat(),
        "how": review and review.how,
    }


async def list_decisions(tx: Tx, criteria: DecisionFilter, *, agent_id: UUID, now: datetime) -> list[DecisionSummary]:
    """Return the matching decisions: due ones by date, others newest first."""
    rows = await SQL["list_decisions"].fetch_all(
        tx,
        agent_id=agent_id,
        now=now,
        due=criteria.due,
        open=criteria.open,
        category=criteria.category,
        stakes=criteria.stakes,
        outcome=criteria.outcome,
        tag=criteria.tag,
        before=criteria.before,
        max_rows=criteria.limit,
    )
    return [DecisionSummary(**row) for row in rows]


async def list_categories(tx: Tx, *, agent_id: UUID) -> list[CategoryCount]:
    """Return all categories, most used first."""
    return [CategoryCount(*row) for row in await SQL["count_by_category"].fetch_all(tx, agent_id=agent_id)]


async def get_decision(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> DecisionDetail:
    """Return a decision in full. Raises NotFoundError."""
    records = await ledger.list_records(tx, decision_id, agent_id=agent_id)
    if not records:
        raise NotFoundError(f"There is no decision {decision_id}.", hint="`newton decisions` lists the ids.")
    first, outcomes = records[0], _filter_by_kind(records, "outcome")
    edges = await SQL["list_links"].fetch_all(tx, agent_id=agent_id, memory_id=decision_id, max_rows=MAX_LINKS)
    return DecisionDetail(
        memory=await read_memory(tx, decision_id, agent_id=agent_id),
        body=first.body,
        draft=decode_draft(first.body, first.words) if first.words is not None else None,
        review=decode_review(outcomes[0].body, outcomes[0].words) if outcomes else None,
        thoughts=tuple(_to_note(one) for one in _filter_by_kind(records, "thought")),
        amendments=tuple(_to_note(one) for one in _filter_by_kind(records, "amendment")),
        erasures=tuple(_to_note(one) for one in _filter_by_kind(records, "erasure")),
        links=tuple(DecisionLink(*row) for row in edges),
    )


async def list_reviewed_decisions(tx: Tx, *, agent_id: UUID) -> list[ReviewedDecision]:
    """Return every reviewed decision in decision order."""
    rows = await SQL["list_reviewed"].fetch_all(tx, agent_id=agent_id)
    return [
        ReviewedDecision(
            decision_id=decision_id,
            decided_at=decided_at,
            reviewed_at=reviewed_at,
            confidence=confidence,
            outcome=outcome,
            category=category,
            stakes=stakes,
            frame=frame,
            reason_kinds=_parse_kinds(kinds),
        )
        for decision_id, decided_at, reviewed_at, confidence, outcome, category, stakes, frame, kinds in rows
    ]


async def get_track_record(tx: Tx, *, agent_id: UUID, category: str, now: datetime) -> TrackRecord:
    """Return the current track record, overall and of one category."""
    row = await SQL["get_track_record"].fetch_one(tx, agent_id=agent_id, category=category, now=now)
    assert row is not None
    return TrackRecord(**row)


@functools.lru_cache(maxsize=256)
def _parse_kinds(text: str) -> tuple[ReasonKind, ...]:
    return tuple(json.loads(text))


def _filter_by_kind(records: Sequence[ChainRecord], kind: str) -> list[ChainRecord]:
    return [one for one in records if one.kind == kind]


def _to_note(entry: ChainRecord) -> DecisionNote:
    words = cast("Mapping[str, Any]", entry.words or {})
    said = words.get("tags")
    return DecisionNote(
        entry.recorded_at, entry.origin, words.get("text"), entry.body, None if said is None else tuple(said)
    )
