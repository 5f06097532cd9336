"""Queries for decisions: lists, details, and the agent's track record."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from newton.brain.decision_codec import TEXT_FIELDS, DecisionReview, encode_texts
from newton.brain.decisions import load_decision
from newton.brain.drafts import (
    QUALITY_PARTS,
    DecisionDraft,
    ReasonKind,
    ReviewedDecision,
    Stakes,
    TrackRecord,
    Verdict,
    total_score,
)
from newton.brain.hash_chain import ChainRecord, RecordKind
from newton.brain.ledger import RECORD_REFS
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.lookup import MemoryDetail, read_memory
from newton.memory.store import TransitionRecord

SQL = load("newton.brain", "queries.sql")

MAX_LINKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFilter:
    """The decisions to list; a filter of None or False selects all.

    `due` selects open decisions whose review date has passed, most overdue first. Other lists are newest first, and
    `before` is the last decision of the previous page.
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
    """A decision in a list. `description` is null if its text was erased."""

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
    review_method: str | None
    is_overdue: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionOutcome:
    """A reviewed decision. `description` and `lesson` are null if the text was erased."""

    decision_id: UUID
    description: str | None
    category: str
    confidence: float
    outcome: Verdict
    reviewed_at: datetime
    review_method: str
    lesson: str | None


@dataclass(frozen=True, slots=True)
class CategoryCount:
    """The numbers of all decisions of a category, and of those with an outcome."""

    name: str
    decisions: int
    reviewed: int


class DecisionNote(NamedTuple):
    """A thought (step of the deliberation), amendment or erasure of a decision.

    `text` is None if there is none or it was erased. `body` has the changed fields, and `tags` the new tags if they
    change.
    """

    recorded_at: datetime
    origin: str
    text: str | None
    body: Mapping[str, Any]
    tags: tuple[str, ...] | None = None


class DecisionLink(NamedTuple):
    """A link from one decision to another. `micro` and `other_micro` are their texts in about 20 tokens."""

    memory_id: UUID
    link: str
    other_id: UUID
    micro: str
    other_micro: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDetail:
    """A decision with its thoughts, amendments and links. If its text is erased, `draft` is None and `body` remains."""

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
        """The category of the decision, as last amended."""
        amended = [note.body["category"] for note in self.amendments if note.body.get("category")]
        return amended[-1] if amended else cast("str", self.body["category"])

    @property
    def quality(self) -> Mapping[str, float]:
        """The score of each criterion of the quality, by name, in display order."""
        parts = cast("Mapping[str, float]", self.body["quality"])
        return {name: parts[name] for name in sorted(parts, key=list(QUALITY_PARTS).index)}

    def to_fields(self, history: Sequence[TransitionRecord]) -> dict[str, Any]:
        """Return the decision as the JSON object that every interface shows. `history` are its changes of state."""
        steps = [(self.memory.created_at, "recorded", None, self.memory.origin)]
        steps += [(one.changed_at, one.to_state, one.reason, one.origin) for one in history]
        return {
            "decision_id": self.memory.memory_id,
            "state": self.memory.state,
            **{name: value for name, value in self.body.items() if name != "quality"},
            "quality": {"score": total_score(self.quality), "parts": dict(self.quality)},
            **(encode_texts(self.draft) if self.draft else dict.fromkeys(TEXT_FIELDS)),
            **_review_to_json(self.review),
            "thoughts": [{"at": note.recorded_at.isoformat(), "text": note.text} for note in self.thoughts],
            "amendments": [
                {"at": note.recorded_at.isoformat(), "text": note.text, "tags": note.tags, **note.body}
                for note in self.amendments
            ],
            "erasures": [
                {"at": note.recorded_at.isoformat(), "because": note.body["because"]} for note in self.erasures
            ],
            "links": [
                {
                    **{"decision_id": link.memory_id, "link": link.link, "other_id": link.other_id},
                    **{"text": link.micro, "other_text": link.other_micro},
                }
                for link in self.links
            ],
            "history": [
                {"at": at.isoformat(), "state": state, "reason": reason, "origin": origin}
                for at, state, reason, origin in steps
            ],
        }


def _review_to_json(review: DecisionReview | None) -> dict[str, Any]:
    return {
        "outcome": review and review.verdict,
        "lesson": review and review.lesson,
        "reviewed_at": review and review.at.isoformat(),
        "how": review and review.how,
    }


async def list_outcomes(
    tx: Tx, *, agent_id: UUID, category: str | None, outcome: Verdict | None, limit: int
) -> list[DecisionOutcome]:
    """Return up to `limit` reviewed decisions with their outcomes, the latest review first."""
    rows = await SQL["list_outcomes"].fetch_all(tx, agent_id=agent_id, category=category, outcome=outcome, limit=limit)
    return [DecisionOutcome(**row) for row in rows]


async def list_decisions(tx: Tx, criteria: DecisionFilter, *, agent_id: UUID, now: datetime) -> list[DecisionSummary]:
    """Return the decisions that match the filter: with `due` the most overdue first, otherwise the newest first."""
    rows = await SQL["list_decisions"].fetch_all(tx, agent_id=agent_id, now=now, **asdict(criteria))
    return [DecisionSummary(**row) for row in rows]


async def list_categories(tx: Tx, *, agent_id: UUID) -> list[CategoryCount]:
    """Return all categories, each with the counts of its decisions and of its reviewed ones, most used first."""
    return [CategoryCount(*row) for row in await SQL["count_by_category"].fetch_all(tx, agent_id=agent_id)]


async def get_decision(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> DecisionDetail:
    """Return a decision with its thoughts, amendments and links. Raises NotFoundError for an unknown id."""
    stored = await load_decision(tx, decision_id, agent_id=agent_id)
    links = await SQL["list_links"].fetch_all(tx, agent_id=agent_id, memory_id=decision_id, max_rows=MAX_LINKS)
    return DecisionDetail(
        memory=await read_memory(tx, decision_id, agent_id=agent_id),
        body=stored.body,
        draft=stored.draft,
        review=stored.review,
        thoughts=_to_notes(stored.records, "thought"),
        amendments=_to_notes(stored.records, "amendment"),
        erasures=_to_notes(stored.records, "erasure"),
        links=tuple(DecisionLink(*row) for row in links),
    )


async def list_reviewed_decisions(tx: Tx, *, agent_id: UUID) -> list[ReviewedDecision]:
    """Return every reviewed decision without its texts, sorted by decision time.

    Decision records are left out, because nobody stated how confident they are.
    """
    rows = await SQL["list_reviewed"].fetch_all(tx, agent_id=agent_id, records=RECORD_REFS)
    return [ReviewedDecision(*columns, reason_kinds=parse_kinds(kinds)) for *columns, kinds in rows]


async def get_track_record(tx: Tx, *, agent_id: UUID, category: str, now: datetime) -> TrackRecord:
    """Return the counts and rates of all the agent's own decisions up to now, and of those of one category."""
    arguments = {"agent_id": agent_id, "category": category, "now": now, "records": RECORD_REFS}
    row = await SQL["get_track_record"].fetch_one(tx, **arguments)
    assert row is not None, "an aggregate returns one row"
    return TrackRecord(**row)


@functools.lru_cache(maxsize=256)
def parse_kinds(text: str) -> tuple[ReasonKind, ...]:
    """Return the kinds of reasons in a JSON list."""
    return tuple(json.loads(text))


def _to_notes(records: Sequence[ChainRecord], kind: RecordKind) -> tuple[DecisionNote, ...]:
    return tuple(_to_note(record, record.words or {}) for record in records if record.kind == kind)


def _to_note(record: ChainRecord, texts: Mapping[str, Any]) -> DecisionNote:
    tags = texts.get("tags")
    return DecisionNote(
        record.recorded_at, record.origin, texts.get("text"), record.body, None if tags is None else tuple(tags)
    )
