"""The text of decisions: short forms for contexts, the full form for people, and the texts to search. Pure."""

from newton.brain.codec import DecisionReview
from newton.brain.draft import DecisionDraft
from newton.memory.memory import ShortForms, TokenCounter
from newton.memory.representations import make_short_forms, one_line

ERASED = "[erased]"


def format_short_forms(
    draft: DecisionDraft, review: DecisionReview | None, *, count_tokens: TokenCounter
) -> ShortForms:
    """Return the short forms of a decision.

    Both begin with outcome and confidence. The description, the lesson, the reasons and the alternatives follow, as far
    as they fit.
    """
    prefix = format_prefix(draft.confidence, review)
    return make_short_forms(format_line(draft, review), count_tokens=count_tokens, prefix=prefix)


def format_erased_forms(confidence: float, review: DecisionReview | None, *, count_tokens: TokenCounter) -> ShortForms:
    return make_short_forms(ERASED, count_tokens=count_tokens, prefix=format_prefix(confidence, review))


def format_prefix(confidence: float, review: DecisionReview | None) -> str:
    """Return the outcome and the confidence, with which the short forms of a decision begin.

    >>> format_prefix(0.85, None)
    '[pending, 0.85] '
    """
    return f"[{review.verdict if review else 'pending'}, {confidence:.3g}] "


def format_line(draft: DecisionDraft, review: DecisionReview | None) -> str:
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
