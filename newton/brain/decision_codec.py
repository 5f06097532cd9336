"""Encoding of decisions and reviews as ledger records, without their secrets, and as the texts that show them. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from newton.brain.drafts import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict, score_parts
from newton.brain.hash_chain import JsonObject
from newton.errors import ConflictError, InputError
from newton.memory import hygiene
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, ShortForms, TokenCounter, Trust, lowest_trust
from newton.memory.representations import make_short_forms, one_line
from newton.memory.source_marks import BY_ASSISTANT, describe_source

ReviewMethod = Literal["hand", "api", "superseded", "verifier", "import"]

MAX_ITEMS = 50  # reasons, alternatives or tags of one decision
PLAIN_FIELDS = ("confidence", "category", "stakes", "frame", "ref")  # stored in the body as they are
TEXT_FIELDS = ("description", "context", "alternatives", "reasons", "tags", "expected", "reviewed_by")


REPORT_OPENING = "The assistant reports:"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionReview:
    """The outcome of a decision, the time at which it was known, how it was determined, and the lesson from it.

    `trust` is that of whoever recorded it.
    """

    verdict: Verdict
    at: datetime
    how: ReviewMethod
    lesson: str | None = None
    trust: Trust = "user"

    @property
    def is_of_person(self) -> bool:
        return self.trust in PERSON_TIERS

    @property
    def report(self) -> str:
        """Return it as the report of a model, which is shown beside what counts."""
        return f"{REPORT_OPENING} {self.verdict}. {self.lesson or ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDecision:
    """A decision to record, with the results of its guardrails and, if it is known already, its outcome."""

    draft: DecisionDraft
    rulings: Sequence[JsonObject] = ()
    review: DecisionReview | None = None


def validate(new_decision: NewDecision) -> NewDecision:
    """Return the decision with normalized fields, and with secrets replaced by markers.

    Raises InputError for invalid data, such as an outcome before the decision.
    """
    draft, review = validate_draft(new_decision.draft), new_decision.review
    return replace(new_decision, draft=draft, review=review and validate_review(review, decided_at=draft.at))


def validate_draft(draft: DecisionDraft) -> DecisionDraft:
    """Return the draft with normalized fields, and with secrets replaced. Raises InputError for an invalid field."""
    if not (math.isfinite(draft.confidence) and 0 <= draft.confidence <= 1):
        raise InputError(f"A confidence of {draft.confidence} is out of range.", hint="Give a confidence from 0 to 1.")
    _ensure_one_of("stakes", draft.stakes, get_args(Stakes))
    for reason in draft.reasons:
        _ensure_one_of("kind of reason", reason.kind, get_args(ReasonKind))
    for name, items in (("reasons", draft.reasons), ("alternatives", draft.alternatives), ("tags", draft.tags)):
        if len(items) > MAX_ITEMS:
            raise InputError(f"{len(items)} {name} are too many.", hint=f"Give at most {MAX_ITEMS} {name}.")
    at = hygiene.validate_time(draft.at, what="time of the decision").astimezone(UTC)
    return replace(
        draft,
        description=hygiene.clean_text(draft.description, what="description"),
        at=at,
        confidence=float(draft.confidence) + 0.0,  # jsonb stores -0.0 as 0
        context=_if_given(hygiene.clean_text, draft.context, "context"),
        expected=_if_given(hygiene.clean_text, draft.expected, "expected outcome"),
        alternatives=tuple(hygiene.clean_text(one, what="alternative") for one in draft.alternatives),
        reasons=tuple(DecisionReason(r.kind, hygiene.clean_text(r.text, what="reason")) for r in draft.reasons),
        tags=normalize_tags(draft.tags),
        category=hygiene.clean_name(draft.category, what="category"),
        frame=_if_given(hygiene.clean_name, draft.frame, "frame"),
        reviewed_by=_if_given(hygiene.clean_name, draft.reviewed_by, "reviewer"),
        ref=_if_given(hygiene.clean_ref, draft.ref, "ref"),
        look_again_at=ensure_review_date(draft.look_again_at, decided_at=at),
    )


def validate_review(review: DecisionReview, *, decided_at: datetime) -> DecisionReview:
    """Return the review with its time in UTC and with secrets redacted.

    Raises InputError for an unknown outcome, and for an outcome before the decision.
    """
    _ensure_one_of("outcome", review.verdict, get_args(Verdict))
    if hygiene.validate_time(review.at, what="time of the outcome") < decided_at:
        raise InputError(
            f"The outcome of {review.at:%Y-%m-%d %H:%M} is before the decision of {decided_at:%Y-%m-%d %H:%M}.",
            hint="Give the time at which the outcome was known.",
        )
    return replace(review, at=review.at.astimezone(UTC), lesson=_if_given(hygiene.clean_text, review.lesson, "lesson"))


def ensure_review_date(review_at: datetime | None, *, decided_at: datetime) -> datetime | None:
    """Return the review date in UTC; None if there is none. Raises InputError if it is not after the decision."""
    if review_at is not None and hygiene.validate_time(review_at, what="review date") <= decided_at:
        raise InputError("The review date is not after the decision.", hint="Give a review date after the decision.")
    return None if review_at is None else review_at.astimezone(UTC)


def normalize_tags(names: Sequence[str]) -> tuple[str, ...]:
    """Return the tags without duplicates and with secrets redacted. Raises InputError for an invalid tag."""
    return tuple(dict.fromkeys(hygiene.clean_name(tag, what="tag") for tag in names))


def encode_body(new_decision: NewDecision) -> dict[str, object]:
    """Return all fields of a decision except free text: the body of a ledger record, which is never erased."""
    draft = new_decision.draft
    return {
        "at": format_time(draft.at),
        **{name: getattr(draft, name) for name in PLAIN_FIELDS},
        "look_again_at": format_time(draft.look_again_at) if draft.look_again_at else None,
        "reason_kinds": list(dict.fromkeys(reason.kind for reason in draft.reasons)),
        "alternatives": len(draft.alternatives),
        "reviewed": draft.reviewed_by is not None,
        "quality": score_parts(draft),
        "rulings": list(new_decision.rulings),
    }


def encode_texts(draft: DecisionDraft) -> dict[str, Any]:
    """Return the free text of a draft, which can be erased, as fields of a ledger record; tuples become lists."""
    texts = {name: getattr(draft, name) for name in TEXT_FIELDS}
    reasons = [asdict(reason) for reason in draft.reasons]
    return texts | {"alternatives": list(draft.alternatives), "reasons": reasons, "tags": list(draft.tags)}


def encode_review(review: DecisionReview, *, by: UUID | None = None) -> dict[str, object]:
    """Return the body of a ledger record for an outcome; `by` is the decision that caused it by superseding, if any."""
    body: dict[str, object] = {"outcome": review.verdict, "at": format_time(review.at), "how": review.how}
    body |= {} if review.is_of_person else {"trust": review.trust}
    return body if by is None else {**body, "by": str(by)}


def decode_draft(body: Mapping[str, Any], texts: Mapping[str, Any]) -> DecisionDraft:
    """Return the draft that the body and the texts of a ledger record contain."""
    fields: dict[str, Any] = {name: body[name] for name in PLAIN_FIELDS} | {name: texts[name] for name in TEXT_FIELDS}
    fields |= {
        "confidence": float(body["confidence"]),
        "at": datetime.fromisoformat(body["at"]),
        "look_again_at": datetime.fromisoformat(body["look_again_at"]) if body["look_again_at"] else None,
        "alternatives": tuple(texts["alternatives"]),
        "reasons": tuple(DecisionReason(reason["kind"], reason["text"]) for reason in texts["reasons"]),
        "tags": tuple(texts["tags"]),
    }
    return DecisionDraft(**fields)


def decode_review(body: Mapping[str, Any], texts: Mapping[str, Any] | None) -> DecisionReview:
    """Return the review that the body and the texts of a ledger record contain; `texts` is None if they were erased."""
    lesson, seen_at = texts["lesson"] if texts else None, datetime.fromisoformat(body["at"])
    trust = body.get("trust", "user")
    return DecisionReview(verdict=body["outcome"], at=seen_at, how=body["how"], lesson=lesson, trust=trust)


def clean_note(text: str, trust: Trust) -> str:
    """Return a text to add to a decision, without secrets; one from a tool or the web says so."""
    cleaned = hygiene.clean_text(text)
    return f"{cleaned} ({describe_source(trust, quarantined=True)})" if trust in UNTRUSTED_TIERS else cleaned


def clean_amendment(text: str, trust: Trust) -> str:
    """Return a text that amends a decision as `clean_note` does; one from a model says whose word it is, too."""
    cleaned = clean_note(text, trust)
    return f"{cleaned} ({BY_ASSISTANT})" if trust == "agent" and not cleaned.startswith(REPORT_OPENING) else cleaned


def mark_lesson(
    review: DecisionReview, trust: Trust, *, decision_trust: Trust
) -> tuple[DecisionReview, DecisionReview]:
    """Return a review to record, and as the memory of the decision shows it, which is trusted as the decision is.

    A lesson of lower trust says whose word it is; one from a tool or the web is only recorded.
    """
    if not review.lesson or lowest_trust([trust, decision_trust]) == decision_trust:
        return review, review
    marked = replace(review, lesson=f"{review.lesson} ({describe_source(trust, quarantined=True)})")
    return marked, replace(marked, lesson=None) if trust in UNTRUSTED_TIERS else marked


def ensure_same_draft(stored: DecisionDraft, new: DecisionDraft) -> None:
    """Raise ConflictError if a new draft differs from the stored one with the same `ref` (external id)."""
    before, after = [(encode_body(NewDecision(draft=draft)), encode_texts(draft)) for draft in (stored, new)]
    if before != after:
        raise ConflictError(
            f"The decision {new.ref!r} exists with different content.",
            hint="Decisions are immutable: use a new ref, or amend the existing decision.",
        )


def ensure_same_outcome(stored: DecisionReview, new: DecisionReview, ref: str | None) -> None:
    """Raise ConflictError if a new review of the decision `ref` has another outcome, time or lesson than the stored."""
    if (stored.verdict, stored.at, stored.lesson) != (new.verdict, new.at, new.lesson):
        raise ConflictError(
            f"The decision {ref!r} was already reviewed: {stored.verdict}, on {stored.at:%Y-%m-%d %H:%M}.",
            hint="An outcome can be recorded only once.",
        )


def format_time(moment: datetime) -> str:
    """Return a time in the format of ledger records: ISO 8601 in UTC."""
    return moment.astimezone(UTC).isoformat()


def _if_given(clean: Callable[..., str], text: str | None, what: str) -> str | None:
    return None if text is None else clean(text, what=what)


def _ensure_one_of(what: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InputError(f"{value!r} is not a valid {what}.", hint=f"Use one of: {', '.join(allowed)}.")


ERASED = "[erased]"


def format_short_forms(
    draft: DecisionDraft, review: DecisionReview | None, *, count_tokens: TokenCounter
) -> ShortForms:
    """Return the short forms of a decision, of about 20 and at most about 100 tokens.

    Both begin with outcome and confidence. The description, the lesson, the reasons and the alternatives follow, as far
    as they fit.
    """
    prefix = format_prefix(draft.confidence, review)
    return make_short_forms(format_line(draft, review), count_tokens=count_tokens, prefix=prefix)


def format_erased_forms(confidence: float, review: DecisionReview | None, *, count_tokens: TokenCounter) -> ShortForms:
    """Return the short forms of a decision whose text was erased."""
    return make_short_forms(ERASED, count_tokens=count_tokens, prefix=format_prefix(confidence, review))


def format_prefix(confidence: float, review: DecisionReview | None) -> str:
    """Return the outcome and the confidence, with which the short forms of a decision begin.

    >>> format_prefix(0.85, None)
    '[pending, 0.85] '
    """
    return f"[{review.verdict if review else 'pending'}, {confidence:.3g}] "


def format_line(draft: DecisionDraft, review: DecisionReview | None) -> str:
    """Return the text of the short forms: description, lesson, reasons and alternatives, on one line."""
    parts = [_to_sentence(draft.description)]
    if review and review.lesson:
        parts.append(f"Lesson: {_to_sentence(review.lesson)}")
    if draft.reasons:
        parts.append("Because: " + "; ".join(f"{r.text.rstrip('.')} ({r.kind})" for r in draft.reasons) + ".")
    if draft.alternatives:
        parts.append("Instead of: " + "; ".join(one.rstrip(".") for one in draft.alternatives) + ".")
    return one_line(" ".join(parts))


def to_embedding_text(draft: DecisionDraft) -> str:
    """Return the text by whose vector a decision is found: its description and context."""
    return one_line(f"{draft.description} {draft.context or ''}")


def to_search_text(draft: DecisionDraft) -> str:
    """Return the text in which a search by words finds a decision: all its free text and its tags."""
    texts = [draft.description, draft.context, draft.expected, *draft.alternatives]
    return one_line(" ".join([*filter(None, texts), *(reason.text for reason in draft.reasons), *draft.tags]))


def format_full(draft: DecisionDraft, review: DecisionReview | None) -> str:
    """Return every field of a decision as text, one per line."""
    lines = [
        draft.description,
        f"Decided {draft.at:%Y-%m-%d %H:%M}, {draft.category}, {draft.stakes} stakes, {draft.confidence:.3g} sure.",
        *_labelled_lines("Context", draft.context),
        *(f"Reason ({reason.kind}): {reason.text}" for reason in draft.reasons),
        *(f"Alternative: {one}" for one in draft.alternatives),
        *_labelled_lines("Expected", draft.expected),
        *_labelled_lines("Review due", f"{draft.look_again_at:%Y-%m-%d}" if draft.look_again_at else None),
        *_labelled_lines("Reviewed before by", draft.reviewed_by),
        *_labelled_lines("Tags", ", ".join(draft.tags) or None),
    ]
    if review:
        lines.append(f"Outcome: {review.verdict}, seen {review.at:%Y-%m-%d %H:%M}.")
        lines += _labelled_lines("Lesson", review.lesson)
    return "\n".join(lines)


def _labelled_lines(name: str, text: str | None) -> list[str]:
    return [f"{name}: {text}"] if text else []


def _to_sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
