"""Decisions as text for people: a line of a list, one decision in full, and the tree of its links."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from newton.brain.decision_codec import ERASED, decode_draft, format_full
from newton.brain.drafts import DecisionCheck, RecordedDecision, format_quality
from newton.brain.queries import DecisionLink, DecisionOutcome, DecisionSummary
from newton.memory.lookup import short_id
from newton.operations.text_format import pluralize

Fields = Mapping[str, Any]
NOTE_LABELS = {"category": "category", "look_again_at": "review due"}


def format_summary(decision: DecisionSummary) -> str:
    """Return a decision as one line."""
    title = (decision.description or ERASED).split("\n", 1)[0]
    due = f"  due {decision.look_again_at:%Y-%m-%d}" if decision.look_again_at and decision.outcome is None else ""
    overdue = " (overdue)" if decision.is_overdue else ""
    state = decision.outcome or decision.state.lower()
    return (
        f"{short_id(decision.decision_id)}  {decision.decided_at:%Y-%m-%d}  {state:<8}  {decision.confidence:<4.3g}  "
        f"{decision.stakes:<8}  {decision.category}: {title}{due}{overdue}"
    )


def format_outcome(decision: DecisionOutcome) -> str:
    """Return a reviewed decision with its lesson."""
    lesson = f"\n{'':10}lesson: {decision.lesson}" if decision.lesson else ""
    text = decision.description or "(erased)"
    return f"{short_id(decision.decision_id)}  {decision.reviewed_at:%Y-%m-%d}  {decision.outcome:<8} {text}{lesson}"


def format_check(check: DecisionCheck) -> str:
    """Return the results of a check of a decision as text: similar decisions, success rate, rules, and quality."""
    return "\n".join(_list_checks(check))


def format_recorded(decision: RecordedDecision) -> str:
    recorded = (
        f"Recorded as {short_id(decision.decision_id)}." if decision.is_new else "Already recorded; nothing changed."
    )
    return f"{format_check(decision)}\n{recorded}"


def _list_checks(check: DecisionCheck) -> Iterator[str]:
    rate = check.base_rate
    yield "Similar decisions:" if check.precedents else "No similar decisions."
    yield from (f"  {short_id(one.decision_id)}  {one.text or one.outcome or 'open'}" for one in check.precedents)
    if rate.success_rate is None:
        yield f"No decision in {rate.category} has been reviewed yet."
    else:
        many = pluralize(rate.reviewed, "reviewed decision")
        yield f"Base rate: {rate.success_rate:.0%} of {many} in {rate.category} succeeded."
    if check.overdue:
        yield f"{pluralize(check.overdue, 'decision')} overdue for review: `newton decisions list --due`."
    yield from (f"Censor: {one.text or short_id(one.memory_id)}" for one in check.censors)
    yield from (f"Guardrail: {one.message}" for one in check.guardrails if one.message)
    yield format_quality(check.quality_parts)
    yield from (f"({source} not available: {reason})" for source, reason in check.missing.items())


def format_decision(decision: Fields) -> str:
    """Return a decision in full, from the JSON object that every interface shows."""
    return "\n".join(_list_lines(decision))


def _list_lines(decision: Fields) -> Iterator[str]:
    decision_id = UUID(str(decision["decision_id"]))
    yield f"{short_id(decision_id)}  {decision['state']}  {decision_id}"
    if decision["description"]:
        yield format_full(decode_draft(decision, decision), None)
    else:
        yield f"{ERASED}  {decision['category']}, {decision['stakes']} stakes"
    if decision["outcome"]:
        yield f"Outcome: {decision['outcome']}, seen {_to_minute(decision['reviewed_at'])}."
        yield from [f"Lesson: {decision['lesson']}"] if decision["lesson"] else []
    yield format_quality(decision["quality"]["parts"])
    yield from map(_format_ruling, decision["rulings"])
    yield from (f"Thought    {_format_note(note)}" for note in decision["thoughts"])
    yield from (f"Amendment  {_format_note(note)}" for note in decision["amendments"])
    yield from (f"Erased     {_to_minute(one['at'])}  {one['because']}" for one in decision["erasures"])
    if links := [_to_link(one) for one in decision["links"]]:
        yield "Links"
        yield from draw_links(decision_id, links)
    yield "History"
    for change in decision["history"]:
        state = ": ".join(filter(None, (change["state"], change["reason"])))
        yield f"  {_to_minute(change['at'])}  {state} ({change['origin']})"


def _to_minute(at: str) -> str:
    """Return a time in ISO format up to its minutes.

    >>> _to_minute("2026-01-31T12:30:05+00:00")
    '2026-01-31 12:30'
    """
    return at[:16].replace("T", " ")


def _format_ruling(ruling: Fields) -> str:
    if "guardrail" in ruling:
        return f"Guardrail {ruling['guardrail']}: {ruling['verdict']}"
    return f"Censor {ruling['censor'][-8:]}: {ruling['verdict']}"


def _format_note(note: Fields) -> str:
    parts = [note["text"] or ""]
    parts += [f"tags: {', '.join(note['tags'])}"] if note.get("tags") is not None else []
    parts += [f"{label}: {note[name]}" for name, label in NOTE_LABELS.items() if note.get(name)]
    return f"{_to_minute(note['at'])}  {'; '.join(filter(None, parts)) or ERASED}"


def _to_link(fields: Fields) -> DecisionLink:
    ends = UUID(str(fields["decision_id"])), UUID(str(fields["other_id"]))
    return DecisionLink(ends[0], fields["link"], ends[1], fields["text"], fields["other_text"])


def draw_links(
    decision_id: UUID, links: Sequence[DecisionLink], *, depth: int = 2, visited: frozenset[UUID] = frozenset()
) -> list[str]:
    """Draw the decisions linked to `decision_id` as lines of a tree, `depth` levels deep, without `visited` ones."""
    lines: list[str] = []
    incident = [edge for edge in links if decision_id in (edge.memory_id, edge.other_id)]
    near = [edge for edge in incident if not {edge.memory_id, edge.other_id} - {decision_id} & visited]
    for edge in near:
        last = edge is near[-1]
        outward = edge.memory_id == decision_id
        other, text = (edge.other_id, edge.other_micro) if outward else (edge.memory_id, edge.micro)
        arrow = f"─{edge.link}→" if outward else f"←{edge.link}─"
        lines.append(f"  {'└' if last else '├'}{arrow} {short_id(other)}  {text}")
        if depth > 1:
            below = draw_links(other, links, depth=depth - 1, visited=visited | {decision_id})
            lines += [f"  {' ' if last else '│'} {line}" for line in below]
    return lines
