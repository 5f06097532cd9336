"""A decision in words: short for contexts, and in full for a reader. Pure: the token counter is passed in."""

from newton.brain.choice import Choice
from newton.brain.stating import Review
from newton.memory.memory import Count, Forms
from newton.memory.representations import forms, one_line

ERASED = "[erased]"


def short_forms(choice: Choice, review: Review | None, *, count: Count) -> Forms:
    """Micro and summary: both begin with outcome and confidence, the summary goes on to lesson and reasons."""
    return forms(in_a_line(choice, review), count=count, prefix=mark(choice.confidence, review))


def erased_forms(confidence: float, review: Review | None, *, count: Count) -> Forms:
    return forms(ERASED, count=count, prefix=mark(confidence, review))


def mark(confidence: float, review: Review | None) -> str:
    """
    >>> mark(0.85, None)
    '[pending, 0.85] '
    """
    return f"[{review.verdict if review else 'pending'}, {confidence:.3g}] "


def in_a_line(choice: Choice, review: Review | None) -> str:
    parts = [_sentence(choice.description)]
    if review and review.lesson:
        parts.append(f"Lesson: {_sentence(review.lesson)}")
    if choice.reasons:
        parts.append("Because: " + "; ".join(f"{r.text.rstrip('.')} ({r.kind})" for r in choice.reasons) + ".")
    if choice.alternatives:
        parts.append("Instead of: " + "; ".join(one.rstrip(".") for one in choice.alternatives) + ".")
    return one_line(" ".join(parts))


def cue(choice: Choice) -> str:
    """What its vector is made of, and what is looked for when such a decision is to be made."""
    return one_line(f"{choice.description} {choice.context or ''}")


def searched(choice: Choice) -> str:
    """The words by which it is found."""
    said = [choice.description, choice.context, choice.expected, *choice.alternatives]
    return one_line(" ".join([*filter(None, said), *(reason.text for reason in choice.reasons), *choice.tags]))


def in_full(choice: Choice, review: Review | None) -> str:
    """All of it, a line for each part."""
    lines = [
        choice.description,
        f"Decided {choice.at:%Y-%m-%d %H:%M}, {choice.category}, {choice.stakes} stakes, {choice.confidence:.3g} sure.",
        *_line("Context", choice.context),
        *(f"Reason ({reason.kind}): {reason.text}" for reason in choice.reasons),
        *(f"Alternative: {one}" for one in choice.alternatives),
        *_line("Expected", choice.expected),
        *_line("Look again", f"{choice.look_again_at:%Y-%m-%d}" if choice.look_again_at else None),
        *_line("Reviewed before by", choice.reviewed_by),
        *_line("Tags", ", ".join(choice.tags) or None),
    ]
    if review:
        lines.append(f"Outcome: {review.verdict}, seen {review.at:%Y-%m-%d %H:%M}.")
        lines += _line("Lesson", review.lesson)
    return "\n".join(lines)


def _line(name: str, said: str | None) -> list[str]:
    return [f"{name}: {said}"] if said else []


def _sentence(text: str) -> str:
    said = text.strip()
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."
