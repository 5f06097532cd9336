"""A choice and a review as they are kept: checked, without secrets, and as body and words of a record. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from newton.brain.chain import Json
from newton.brain.choice import Choice, Reason, ReasonKind, Stakes, Verdict
from newton.brain.quality import quality
from newton.errors import ConflictError, InputError
from newton.memory import hygiene

How = Literal["hand", "api", "superseded", "verifier", "import"]

MOST_OF_EACH = 50  # reasons, alternatives and tags of one choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What became of a decision, when that was seen, and by whom."""

    verdict: Verdict
    at: datetime
    how: How
    lesson: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A choice about to be recorded: with what the guardrails said of it and, if it is told afterwards, its outcome."""

    choice: Choice
    rulings: Sequence[Json] = ()
    review: Review | None = None


def checked(intent: Intent) -> Intent:
    """The same, fit to be kept. Raises InputError for what cannot be, such as an outcome before the decision."""
    choice = checked_choice(intent.choice)
    if intent.review is None:
        return replace(intent, choice=choice)
    return replace(intent, choice=choice, review=checked_review(intent.review, decided_at=choice.at))


def checked_choice(choice: Choice) -> Choice:
    """The choice with secrets replaced. Raises InputError for what cannot be kept."""
    if not (math.isfinite(choice.confidence) and 0 <= choice.confidence <= 1):
        raise InputError(f"A confidence of {choice.confidence} is not possible.", hint="It runs from 0 to 1.")
    _among("stakes", choice.stakes, get_args(Stakes))
    for reason in choice.reasons:
        _among("kind of reason", reason.kind, get_args(ReasonKind))
    for what, given in (("reasons", choice.reasons), ("alternatives", choice.alternatives), ("tags", choice.tags)):
        if len(given) > MOST_OF_EACH:
            raise InputError(f"{len(given)} {what} are too many.", hint=f"Give at most {MOST_OF_EACH}.")
    at = hygiene.moment(choice.at, what="time of the decision").astimezone(UTC)
    return replace(
        choice,
        description=hygiene.clean(choice.description, what="description"),
        at=at,
        confidence=float(choice.confidence) + 0.0,  # of minus zero jsonb would make zero
        context=_text(choice.context, "context"),
        expected=_text(choice.expected, "expected outcome"),
        alternatives=tuple(hygiene.clean(one, what="alternative") for one in choice.alternatives),
        reasons=tuple(Reason(reason.kind, hygiene.clean(reason.text, what="reason")) for reason in choice.reasons),
        tags=tags(choice.tags),
        category=hygiene.name(choice.category, what="category"),
        frame=None if choice.frame is None else hygiene.name(choice.frame, what="frame"),
        reviewed_by=None if choice.reviewed_by is None else hygiene.name(choice.reviewed_by, what="reviewer"),
        ref=None if choice.ref is None else hygiene.ref(choice.ref, what="ref"),
        look_again_at=look_again(choice.look_again_at, decided_at=at),
    )


def checked_review(review: Review, *, decided_at: datetime) -> Review:
    """Raises InputError for an outcome before the decision."""
    _among("outcome", review.verdict, get_args(Verdict))
    if hygiene.moment(review.at, what="time of the outcome") < decided_at:
        raise InputError(
            f"The outcome of {review.at:%Y-%m-%d %H:%M} is before the decision of {decided_at:%Y-%m-%d %H:%M}.",
            hint="Give the time at which it was known.",
        )
    return replace(review, at=review.at.astimezone(UTC), lesson=_text(review.lesson, "lesson"))


def look_again(at: datetime | None, *, decided_at: datetime) -> datetime | None:
    """Raises InputError for a date to look again that is not after the decision."""
    if at is not None and hygiene.moment(at, what="time to look again") <= decided_at:
        raise InputError("The time to look again is not after the decision.", hint="Give a later date.")
    return None if at is None else at.astimezone(UTC)


def tags(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hygiene.name(tag, what="tag") for tag in given))


def body_of(intent: Intent) -> dict[str, object]:
    """All of it that is not a person's words."""
    choice = intent.choice
    return {
        "at": written(choice.at),
        "confidence": choice.confidence,
        "category": choice.category,
        "stakes": choice.stakes,
        "frame": choice.frame,
        "look_again_at": written(choice.look_again_at) if choice.look_again_at else None,
        "reason_kinds": list(dict.fromkeys(reason.kind for reason in choice.reasons)),
        "alternatives": len(choice.alternatives),
        "reviewed": choice.reviewed_by is not None,
        "quality": quality(choice),
        "rulings": list(intent.rulings),
        "ref": choice.ref,
    }


def words_of(choice: Choice) -> dict[str, object]:
    return {
        "description": choice.description,
        "context": choice.context,
        "alternatives": list(choice.alternatives),
        "reasons": [{"kind": reason.kind, "text": reason.text} for reason in choice.reasons],
        "tags": list(choice.tags),
        "expected": choice.expected,
        "reviewed_by": choice.reviewed_by,
    }


def review_body(review: Review, *, by: UUID | None = None) -> dict[str, object]:
    body: dict[str, object] = {"outcome": review.verdict, "at": written(review.at), "how": review.how}
    return body if by is None else {**body, "by": str(by)}


def choice_of(body: Mapping[str, Any], words: Mapping[str, Any]) -> Choice:
    """The choice as it was stated, of its record."""
    return Choice(
        description=words["description"],
        confidence=float(body["confidence"]),
        at=datetime.fromisoformat(body["at"]),
        context=words["context"],
        alternatives=tuple(words["alternatives"]),
        reasons=tuple(Reason(reason["kind"], reason["text"]) for reason in words["reasons"]),
        tags=tuple(words["tags"]),
        category=body["category"],
        stakes=body["stakes"],
        frame=body["frame"],
        expected=words["expected"],
        look_again_at=datetime.fromisoformat(body["look_again_at"]) if body["look_again_at"] else None,
        reviewed_by=words["reviewed_by"],
        ref=body["ref"],
    )


def review_of(body: Mapping[str, Any], words: Mapping[str, Any] | None) -> Review:
    return Review(
        verdict=body["outcome"],
        at=datetime.fromisoformat(body["at"]),
        how=body["how"],
        lesson=words["lesson"] if words else None,
    )


def same_again(known: Choice, told: Choice) -> None:
    """Raises ConflictError when a known ref comes with another choice."""
    if (body_of(Intent(choice=known)), words_of(known)) != (body_of(Intent(choice=told)), words_of(told)):
        raise ConflictError(
            f"The decision {told.ref!r} is there with other content.",
            hint="A decision is not changed: send it under a ref of its own, or amend the one that is there.",
        )


def same_outcome(known: Review, told: Review, ref: str | None) -> None:
    """Raises ConflictError when a reviewed decision comes with another outcome."""
    if (known.verdict, known.at, known.lesson) != (told.verdict, told.at, told.lesson):
        raise ConflictError(
            f"The decision {ref!r} was reviewed: {known.verdict}, seen {known.at:%Y-%m-%d %H:%M}.",
            hint="An outcome is given once.",
        )


def written(at: datetime) -> str:
    """A time as a body has it."""
    return at.astimezone(UTC).isoformat()


def _text(text: str | None, what: str) -> str | None:
    return None if text is None else hygiene.clean(text, what=what)


def _among(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise InputError(f"{given!r} is no {what}.", hint=f"Known: {', '.join(known)}.")
