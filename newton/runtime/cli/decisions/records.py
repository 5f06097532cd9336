"""Commands that list, amend, link, review and erase decisions, such as `newton decisions` and `newton review`."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.brain.decision_text import format_full
from newton.brain.decisions import DecisionAmendment, ManualLink
from newton.brain.draft import Stakes
from newton.brain.outcomes import Verdict
from newton.brain.quality import format_quality
from newton.brain.queries import DecisionDetail, DecisionFilter, DecisionLink, DecisionNote, DecisionSummary
from newton.errors import InputError
from newton.memory import hygiene
from newton.memory.lookup import short_id
from newton.memory.transitions import TransitionRecord
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import require_own_process
from newton.runtime.cli.options import (
    AgentOption,
    JsonOption,
    LimitOption,
    ReasonOption,
    StartTime,
    YesOption,
    load_settings,
    require_yes,
)
from newton.runtime.cli.printing import say
from newton.runtime.tools.views import OutcomeInfo

MAX_LIMIT = 1_000_000

DecisionArgument = Annotated[
    str, Parameter(help="Id of the decision, or the end of the id as `newton decisions list` prints it.")
]


async def add_thought(
    decision: DecisionArgument,
    text: Annotated[str, Parameter(help="Text of the thought.")],
    *,
    agent: AgentOption = None,
) -> None:
    """Add a thought, a step of deliberation, to a decision without an outcome.

    Example: newton think 3f9c2a71 "What if the cache is cold?"
    """
    async with open_agent(load_settings(agent)) as newton:
        await newton.decisions("cli").add_thought(decision, text)
    say("Thought added.")


async def mark_done(
    decision: DecisionArgument,
    *,
    agent: AgentOption = None,
) -> None:
    """Mark a decision as carried out. Its outcome is still open.

    Example: newton done 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        await newton.decisions("cli").mark_done(decision)
    say("The decision is marked as done. Record the outcome with `newton review`.")


async def list_outcomes(
    *,
    category: Annotated[str | None, Parameter(help="Only decisions of this category.")] = None,
    outcome: Annotated[Verdict | None, Parameter(help="Only decisions with this outcome.")] = None,
    limit: LimitOption = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the reviewed decisions with their outcomes and lessons, latest review first.

    Example: newton outcomes --category architecture
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"A limit of {limit} is out of range.", hint=f"Give a limit from 1 to {MAX_LIMIT:,}.")
    async with open_agent(load_settings(agent)) as newton:
        found = await newton.decisions("cli").list_outcomes(
            category=_check_name(category, "category"), outcome=outcome, limit=limit
        )
    if json:
        formatting.print_json([OutcomeInfo.from_source(one).model_dump(mode="json") for one in found])
        return
    for one in found:
        lesson = f"\n{'':10}lesson: {one.lesson}" if one.lesson else ""
        text = one.description or "(erased)"
        say(f"{short_id(one.decision_id)}  {one.reviewed_at:%Y-%m-%d}  {one.outcome:<8} {text}{lesson}")
    if not found:
        say("No decision has been reviewed yet.")


async def review_decision(
    decision: DecisionArgument,
    outcome: Annotated[Verdict | None, Parameter(help="Outcome of the decision.")] = None,
    *,
    verify: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Instead of giving OUTCOME, run the program configured for the category as verifier.",
        ),
    ] = False,
    lesson: Annotated[str | None, Parameter(help="Lesson learnt.")] = None,
    at: Annotated[datetime | None, StartTime, Parameter(help="When the outcome was known (default: now).")] = None,
    agent: AgentOption = None,
) -> None:
    """Record the outcome of a decision. An outcome can be recorded only once.

    Example: newton review 3f9c2a71 success --lesson "warm the cache before switching over"
    """
    if (outcome is None) != verify:
        raise InputError("The outcome is missing or given twice.", hint="Give an outcome, or --verify.")
    if verify:
        require_own_process()  # a verifier is started in the caller's folder
    async with open_agent(load_settings(agent)) as newton:
        service = newton.decisions("cli")
        if outcome:
            await service.review(decision, outcome, lesson=lesson, reviewed_at=at)
        else:
            outcome = await service.run_verifier(decision)
    say(f"Reviewed: {outcome}." if outcome else "The verifier reports no outcome; the decision stays open.")


async def list_decisions(
    *,
    due: Annotated[bool, Parameter(negative=(), help="Only open decisions whose review is due.")] = False,
    open: Annotated[bool, Parameter(negative=(), help="Only decisions without an outcome.")] = False,
    category: Annotated[str | None, Parameter(help="Only decisions of this category.")] = None,
    stakes: Annotated[Stakes | None, Parameter(help="Only decisions with these stakes.")] = None,
    outcome: Annotated[Verdict | None, Parameter(help="Only decisions with this outcome.")] = None,
    tag: Annotated[str | None, Parameter(help="Only decisions with this tag.")] = None,
    categories: Annotated[bool, Parameter(negative=(), help="List the categories instead of decisions.")] = False,
    limit: LimitOption = 50,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List decisions, newest first; with --due, by due date.

    Example: newton decisions list --due
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"A limit of {limit} is out of range.", hint=f"Give a limit from 1 to {MAX_LIMIT:,}.")
    category, tag = _check_name(category, "category"), _check_name(tag, "tag")
    filters = DecisionFilter(
        due=due, open=open, category=category, stakes=stakes, outcome=outcome, tag=tag, limit=limit
    )
    async with open_agent(load_settings(agent)) as newton:
        service = newton.decisions("cli")
        if categories:
            for one in await service.list_categories():
                say(f"{formatting.pluralize(one.decisions, 'decision'):>16}  {one.judged:>6} reviewed  {one.name}")
            return
        decisions = await service.list_decisions(filters)
    if json:
        formatting.print_json(list(map(_summary_to_json, decisions)))
        return
    say("\n".join(map(_format_summary, decisions)) or ("No review is due." if due else "No matching decision."))


async def show_decision(decision: DecisionArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show a decision with its thoughts, amendments, outcome, links and history.

    Example: newton decisions show 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        detail = await newton.decisions("cli").get(decision)
        _, history, _ = await newton.curation("cli").get(str(detail.memory.memory_id))
    if json:
        formatting.print_json(detail.as_json())
    else:
        say("\n".join(_format_decision(detail, history)))


async def amend_decision(
    decision: DecisionArgument,
    text: Annotated[str | None, Parameter(help="Text to add.")] = None,
    *,
    tag: Annotated[
        list[str] | None, Parameter(negative=(), help="New tag, replacing the old ones; repeatable.")
    ] = None,
    category: Annotated[str | None, Parameter(help="New category.")] = None,
    review_due: Annotated[
        datetime | None, StartTime, Parameter(help="New date on which the outcome is due for review.")
    ] = None,
    agent: AgentOption = None,
) -> None:
    """Add text to a decision, or change its tags, category or review date. The original record is kept unchanged.

    Example: newton decisions amend 3f9c2a71 "The budget was cut since" --category cost
    """
    tags = tuple(tag) if tag is not None else None
    amendment = DecisionAmendment(text=text, tags=tags, category=category, look_again_at=review_due)
    async with open_agent(load_settings(agent)) as newton:
        await newton.decisions("cli").amend(decision, amendment)
    say("Decision amended.")


async def link_decisions(
    decision: DecisionArgument,
    other: DecisionArgument,
    *,
    supersedes: Annotated[bool, Parameter(negative=(), help="The first decision supersedes the second.")] = False,
    depends_on: Annotated[bool, Parameter(negative=(), help="The first decision depends on the second.")] = False,
    contradicts: Annotated[bool, Parameter(negative=(), help="The first decision contradicts the second.")] = False,
    agent: AgentOption = None,
) -> None:
    """Link a decision to another one. Without a flag, the type of the link is `relates`.

    Example: newton decisions link 3f9c2a71 0b7d114e --depends-on
    """
    if supersedes + depends_on + contradicts > 1:
        raise InputError(
            "More than one type of link is given.",
            hint="Give one of --supersedes, --depends-on and --contradicts; run the command again for another link.",
        )
    async with open_agent(load_settings(agent)) as newton:
        service = newton.decisions("cli")
        if supersedes:
            await service.supersede(decision, other)
        else:
            name: ManualLink = "depends_on" if depends_on else "contradicts" if contradicts else "relates"
            await service.link(decision, name, other)
    say("Decisions linked.")


async def erase_decision(
    decision: DecisionArgument, *, reason: ReasonOption, yes: YesOption = False, agent: AgentOption = None
) -> None:
    """Permanently erase the text of a decision. Its record (without text) and its outcome remain.

    Example: newton decisions erase 3f9c2a71 --reason "it names a person"
    """
    require_yes("Permanently erase the text of this decision?", yes=yes)
    async with open_agent(load_settings(agent)) as newton:
        erased = await newton.decisions("cli").erase(decision, reason=reason)
    say("Text of the decision erased." if erased else "The text is erased already; nothing changed.")


def _check_name(name: str | None, what: str) -> str | None:
    return None if name is None else hygiene.clean_name(name, what=what)


def _format_summary(decision: DecisionSummary) -> str:
    title = (decision.description or "[erased]").split("\n", 1)[0]
    due = f"  due {decision.look_again_at:%Y-%m-%d}" if decision.look_again_at and decision.outcome is None else ""
    overdue = " (overdue)" if decision.overdue else ""
    state = decision.outcome or decision.state.lower()
    return (
        f"{short_id(decision.decision_id)}  {decision.decided_at:%Y-%m-%d}  {state:<8}  {decision.confidence:<4.3g}  "
        f"{decision.stakes:<8}  {decision.category}: {title}{due}{overdue}"
    )


def _format_decision(decision: DecisionDetail, history: list[TransitionRecord]) -> Iterator[str]:
    decision_id = decision.memory.memory_id
    yield f"{short_id(decision_id)}  {decision.memory.state}  {decision_id}"
    if decision.draft:
        yield format_full(decision.draft, decision.review)
    else:
        yield f"{decision.memory.summary}  {decision.body['category']}, {decision.body['stakes']} stakes"
    yield format_quality(decision.quality)
    yield from map(_format_ruling, decision.body["rulings"])
    yield from (f"Thought    {_format_note(note)}" for note in decision.thoughts)
    yield from (f"Amendment  {_format_note(note)}" for note in decision.amendments)
    yield from (f"Erased     {note.recorded_at:%Y-%m-%d %H:%M}  {note.body['because']}" for note in decision.erasures)
    if decision.links:
        yield "Links"
        yield from draw_links(decision_id, decision.links)
    yield "History"
    yield f"  {decision.memory.created_at:%Y-%m-%d %H:%M}  recorded ({decision.memory.origin})"
    yield from (f"  {step.at:%Y-%m-%d %H:%M}  {step.to_state}: {step.reason} ({step.origin})" for step in history)


def _format_ruling(ruling: dict[str, str]) -> str:
    if "guardrail" in ruling:
        return f"Guardrail {ruling['guardrail']}: {ruling['verdict']}"
    return f"Censor {ruling['censor'][-8:]}: {ruling['verdict']}"


def _format_note(note: DecisionNote) -> str:
    parts = [note.text or ""]
    parts += [f"tags: {', '.join(note.tags)}"] if note.tags is not None else []
    labels = {"category": "category", "look_again_at": "review due"}
    parts += [f"{label}: {note.body[name]}" for name, label in labels.items() if note.body.get(name)]
    return f"{note.recorded_at:%Y-%m-%d %H:%M}  {'; '.join(filter(None, parts)) or '[erased]'}"


def draw_links(
    decision_id: UUID, links: tuple[DecisionLink, ...], *, depth: int = 2, visited: frozenset[UUID] = frozenset()
) -> list[str]:
    """Return the lines of a tree, `depth` levels deep, of decisions linked to `decision_id`; skip `visited` ones."""
    lines: list[str] = []
    around = [edge for edge in links if decision_id in (edge.memory_id, edge.other_id)]
    near = [edge for edge in around if not {edge.memory_id, edge.other_id} - {decision_id} & visited]
    for edge in near:
        last = edge is near[-1]
        outward = edge.memory_id == decision_id
        other, micro = (edge.other_id, edge.other_micro) if outward else (edge.memory_id, edge.micro)
        arrow = f"─{edge.link}→" if outward else f"←{edge.link}─"
        lines.append(f"  {'└' if last else '├'}{arrow} {short_id(other)}  {micro}")
        if depth > 1:
            below = draw_links(other, links, depth=depth - 1, visited=visited | {decision_id})
            lines += [f"  {' ' if last else '│'} {line}" for line in below]
    return lines


def _summary_to_json(decision: DecisionSummary) -> dict[str, object]:
    return {
        "decision_id": str(decision.decision_id),
        "state": decision.state,
        "description": decision.description,
        "decided_at": decision.decided_at.isoformat(),
        "confidence": decision.confidence,
        "category": decision.category,
        "stakes": decision.stakes,
        "frame": decision.frame,
        "look_again_at": decision.look_again_at.isoformat() if decision.look_again_at else None,
        "is_overdue": decision.overdue,
        "outcome": decision.outcome,
        "reviewed_at": decision.reviewed_at.isoformat() if decision.reviewed_at else None,
        "review_method": decision.how,
    }
