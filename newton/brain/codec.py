"""Validation of decisions and reviews, and their encoding as record bodies and texts, without secrets. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from newton.brain.draft import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict
from newton.brain.hash_chain import JsonObject
from newton.brain.quality import score_parts
from newton.errors import ConflictError, InputError
from newton.memory import hygiene

ReviewMethod = Literal["hand", "api", "superseded", "verifier", "import"]

MAX_ITEMS = 50  # reasons, alternatives or tags of one decision


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionReview:
    """The outcome of a decision: when it was known, and how it was determined."""

    verdict: Verdict
    at: datetime
    how: ReviewMethod
    lesson: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDecision:
    """A decision to record, with its guardrail rulings and, if known already, its outcome."""

    draft: DecisionDraft
    rulings: Sequence[JsonObject] = ()
    review: DecisionReview | None = None


def validate(new_decision: NewDecision) -> NewDecision:
    """Return the decision normalized. Raises InputError for invalid data, such as an outcome before the decision."""
    choice = validate_draft(new_decision.draft)
    if new_decision.review is None:
        return replace(new_decision, draft=choice)
    return replace(new_decision, draft=choice, review=validate_review(new_decision.review, decided_at=choice.at))


def validate_draft(draft: DecisionDraft) -> DecisionDraft:
    """Return the draft with secrets redacted. Raises InputError for an invalid draft."""
    if not (math.isfinite(draft.confidence) and 0 <= draft.confidence <= 1):
        raise InputError(f"A confidence of {draft.confidence} is not possible.", hint="Give a number from 0 to 1.")
    _ensure_one_of("stakes", draft.stakes, get_args(Stakes))
    for reason in draft.reasons:
        _ensure_one_of("kind of reason", reason.kind, get_args(ReasonKind))
    for what, given in (("reasons", draft.reasons), ("alternatives", draft.alternatives), ("tags", draft.tags)):
        if len(given) > MAX_ITEMS:
            raise InputError(f"{len(given)} {what} are too many.", hint=f"Give at most {MAX_ITEMS}.")
    at = hygiene.validate_time(draft.at, what="time of the decision").astimezone(UTC)
    return replace(
        draft,
        description=hygiene.clean_text(draft.description, what="description"),
        at=at,
        confidence=float(draft.confidence) + 0.0,  # jsonb turns minus zero into zero
        context=_clean_text(draft.context, "context"),
        expected=_clean_text(draft.expected, "expected outcome"),
        alternatives=tuple(hygiene.clean_text(one, what="alternative") for one in draft.alternatives),
        reasons=tuple(
            DecisionReason(reason.kind, hygiene.clean_text(reason.text, what="reason")) for reason in draft.reasons
        ),
        tags=normalize_tags(draft.tags),
        category=hygiene.clean_name(draft.category, what="category"),
        frame=None if draft.frame is None else hygiene.clean_name(draft.frame, what="frame"),
        reviewed_by=None if draft.reviewed_by is None else hygiene.clean_name(draft.reviewed_by, what="reviewer"),
        ref=None if draft.ref is None else hygiene.clean_ref(draft.ref, what="ref"),
        look_again_at=ensure_review_date(draft.look_again_at, decided_at=at),
    )


def validate_review(review: DecisionReview, *, decided_at: datetime) -> DecisionReview:
    """Return the review normalized. Raises InputError for an outcome before the decision."""
    _ensure_one_of("outcome", review.verdict, get_args(Verdict))
    if hygiene.validate_time(review.at, what="time of the outcome") < decided_at:
        raise InputError(
            f"The outcome of {review.at:%Y-%m-%d %H:%M} is before the decision of {decided_at:%Y-%m-%d %H:%M}.",
            hint="Give the time at which it was known.",
        )
    return replace(review, at=review.at.astimezone(UTC), lesson=_clean_text(review.lesson, "lesson"))


def ensure_review_date(review_at: datetime | None, *, decided_at: datetime) -> datetime | None:
    """Return the review date. Raises InputError for one that is not after the decision."""
    if review_at is not None and hygiene.validate_time(review_at, what="time to look again") <= decided_at:
        raise InputError("The review date is not after the decision.", hint="Give a later date.")
    return None if review_at is None else review_at.astimezone(UTC)


def normalize_tags(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hygiene.clean_name(tag, what="tag") for tag in names))


def encode_body(new_decision: NewDecision) -> dict[str, object]:
    """Encode everything except a person's words."""
    choice = new_decision.draft
    return {
        "at": format_time(choice.at),
        "confidence": choice.confidence,
        "category": choice.category,
        "stakes": choice.stakes,
        "frame": choice.frame,
        "look_again_at": format_time(choice.look_again_at) if choice.look_again_at else None,
        "reason_kinds": list(dict.fromkeys(reason.kind for reason in choice.reasons)),
        "alternatives": len(choice.alternatives),
        "reviewed": choice.reviewed_by is not None,
        "quality": score_parts(choice),
        "rulings": list(new_decision.rulings),
        "ref": choice.ref,
    }


def encode_texts(draft: DecisionDraft) -> dict[str, object]:
    return {
        "description": draft.description,
        "context": draft.context,
        "alternatives": list(draft.alternatives),
        "reasons": [{"kind": reason.kind, "text": reason.text} for reason in draft.reasons],
        "tags": list(draft.tags),
        "expected": draft.expected,
        "reviewed_by": draft.reviewed_by,
    }


def encode_review(review: DecisionReview, *, by: UUID | None = None) -> dict[str, object]:
    body: dict[str, object] = {"outcome": review.verdict, "at": format_time(review.at), "how": review.how}
    return body if by is None else {**body, "by": str(by)}


def decode_draft(body: Mapping[str, Any], texts: Mapping[str, Any]) -> DecisionDraft:
    """Decode the draft of a record."""
    return DecisionDraft(
        description=texts["description"],
        confidence=float(body["confidence"]),
        at=datetime.fromisoformat(body["at"]),
        context=texts["context"],
        alternatives=tuple(texts["alternatives"]),
        reasons=tuple(DecisionReason(reason["kind"], reason["text"]) for reason in texts["reasons"]),
        tags=tuple(texts["tags"]),
        category=body["category"],
        stakes=body["stakes"],
        frame=body["frame"],
        expected=texts["expected"],
        look_again_at=datetime.fromisoformat(body["look_again_at"]) if body["look_again_at"] else None,
        reviewed_by=texts["reviewed_by"],
        ref=body["ref"],
    )


def decode_review(body: Mapping[str, Any], texts: Mapping[str, Any] | None) -> DecisionReview:
    return DecisionReview(
        verdict=body["outcome"],
        at=datetime.fromisoformat(body["at"]),
        how=body["how"],
        lesson=texts["lesson"] if texts else None,
    )


def ensure_same_draft(stored: DecisionDraft, new: DecisionDraft) -> None:
    """Raise ConflictError when a known ref comes with a different draft."""
    if (encode_body(NewDecision(draft=stored)), encode_texts(stored)) != (
        encode_body(NewDecision(draft=new)),
        encode_texts(new),
    ):
        raise ConflictError(
            f"The decision {new.ref!r} exists with different content.",
            hint="Decisions are immutable: use a new ref, or amend the existing decision.",
        )


def ensure_same_outcome(stored: DecisionReview, new: DecisionReview, ref: str | None) -> None:
    """Raise ConflictError when a reviewed decision comes with a different outcome."""
    if (stored.verdict, stored.at, stored.lesson) != (new.verdict, new.at, new.lesson):
        raise ConflictError(
            f"The decision {ref!r} was reviewed: {stored.verdict}, seen {stored.at:%Y-%m-%d %H:%M}.",
            hint="An outcome can be recorded only once.",
        )


def format_time(moment: datetime) -> str:
    """Format a time as stored in a body."""
    return moment.astimezone(UTC).isoformat()


def _clean_text(text: str | None, what: str) -> str | None:
    return None if text is None else hygiene.clean_text(text, what=what)


def _ensure_one_of(what: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InputError(f"{value!r} is no {what}.", hint=f"Known: {', '.join(allowed)}.")
