"""`newton decisions`, `think`, `done` and `review`: what was decided, and what became of it."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.brain.decision_text import format_full
from newton.brain.decisions import DecisionAmendment, ManualLink
from newton.brain.draft import Stakes, Verdict
from newton.brain.quality import total_score
from newton.brain.queries import DecisionDetail, DecisionFilter, DecisionLink, DecisionNote, DecisionSummary
from newton.errors import InputError
from newton.memory import hygiene
from newton.memory.lookup import short_id
from newton.memory.transitions import TransitionRecord
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, ask_confirmation, load_settings
from newton.runtime.cli.printing import say

MAX_LIMIT = 1_000_000  # decisions in a list

DecisionArgument = Annotated[str, Parameter(help="Its id, or the end of it as `newton decisions list` shows it.")]


async def add_thought(decision: DecisionArgument, text: str, *, agent: AgentOption = None) -> None:
    """Add a thought to a decision while it is open.

    Example: newton think 3f9c2a71 "What if the cache is cold?"

    Parameters
    ----------
    text:
        The thought.
    """
    async with open_newton(load_settings(agent)) as newton:
        await newton.decisions("cli").add_thought(decision, text)
    say("Noted.")


async def mark_done(decision: DecisionArgument, *, agent: AgentOption = None) -> None:
    """Say that what was decided is done, and its outcome awaited.

    Example: newton done 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        await newton.decisions("cli").mark_done(decision)
    say("Done; its outcome is awaited.")


async def review_decision(
    decision: DecisionArgument,
    outcome: Verdict | None = None,
    *,
    verify: Annotated[bool, Parameter(negative=(), help="Let the verifier of its category say it.")] = False,
    lesson: Annotated[str | None, Parameter(help="What it teaches.")] = None,
    at: Annotated[datetime | None, StartTime, Parameter(help="When it was known; now, if not given.")] = None,
    agent: AgentOption = None,
) -> None:
    """Say what became of a decision, once.

    Example: newton review 3f9c2a71 success --lesson "warm the cache before switching over"
    """
    if (outcome is None) != verify:
        raise InputError("What became of it is not said, or twice.", hint="Give an outcome, or --verify.")
    async with open_newton(load_settings(agent)) as newton:
        deciding = newton.decisions("cli")
        if outcome:
            await deciding.review(decision, outcome, lesson=lesson, reviewed_at=at)
        else:
            outcome = await deciding.run_verifier(decision)
    say(f"Reviewed: {outcome}." if outcome else "The verifier says nothing; the decision stays open.")


async def list_decisions(
    *,
    due: Annotated[bool, Parameter(negative=(), help="Open, and the date to look again has passed.")] = False,
    open: Annotated[bool, Parameter(negative=(), help="Those without an outcome.")] = False,
    category: Annotated[str | None, Parameter(help="Only this category.")] = None,
    stakes: Annotated[Stakes | None, Parameter(help="Only these stakes.")] = None,
    outcome: Annotated[Verdict | None, Parameter(help="Only this outcome.")] = None,
    tag: Annotated[str | None, Parameter(help="Only with this tag.")] = None,
    categories: Annotated[bool, Parameter(negative=(), help="List the categories instead.")] = False,
    limit: Annotated[int, Parameter(help="The most to show.")] = 50,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the decisions, the latest first; with --due, the first due first.

    Example: newton decisions list --due
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise InputError(f"A limit of {limit} is not possible.", hint=f"Give 1 to {MAX_LIMIT:,}.")
    category, tag = _check_name(category, "category"), _check_name(tag, "tag")
    wanted = DecisionFilter(due=due, open=open, category=category, stakes=stakes, outcome=outcome, tag=tag, limit=limit)
    async with open_newton(load_settings(agent)) as newton:
        deciding = newton.decisions("cli")
        if categories:
            for known in await deciding.list_categories():
                say(f"{known.decisions:>6} decided  {known.judged:>6} judged  {known.name}")
            return
        found = await deciding.list_decisions(wanted)
    if json:
        formatting.print_json([_summary_to_json(one) for one in found])
        return
    say("\n".join(map(_format_summary, found)) or ("Nothing is due." if due else "There is no such decision."))


async def show_decision(decision: DecisionArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show a decision: its words, thoughts, amendments, outcome, what it is to others, and its history.

    Example: newton decisions show 3f9c2a71
    """
    async with open_newton(load_settings(agent)) as newton:
        whole = await newton.decisions("cli").get(decision)
        _, history, _ = await newton.curation("cli").get(str(whole.memory.memory_id))
    if json:
        formatting.print_json(whole.as_json())
        return
    say("\n".join(_format_decision(whole, history)))


async def amend_decision(
    decision: DecisionArgument,
    text: str | None = None,
    *,
    tag: Annotated[list[str] | None, Parameter(negative=(), help="Its tags from now on; may be given often.")] = None,
    category: Annotated[str | None, Parameter(help="Its category from now on.")] = None,
    look_again: Annotated[datetime | None, StartTime, Parameter(help="When to look again.")] = None,
    agent: AgentOption = None,
) -> None:
    """Add to a decision. What was recorded stays as it was, and its confidence cannot be amended.

    Example: newton decisions amend 3f9c2a71 "The budget was cut since" --category cost

    Parameters
    ----------
    text:
        What is to be added.
    """
    added = DecisionAmendment(
        text=text, tags=tuple(tag) if tag is not None else None, category=category, look_again_at=look_again
    )
    async with open_newton(load_settings(agent)) as newton:
        await newton.decisions("cli").amend(decision, added)
    say("Amended.")


async def link_decisions(
    decision: DecisionArgument,
    other: DecisionArgument,
    *,
    supersedes: Annotated[bool, Parameter(negative=(), help="It takes the place of the other.")] = False,
    depends_on: Annotated[bool, Parameter(negative=(), help="It holds only while the other does.")] = False,
    contradicts: Annotated[bool, Parameter(negative=(), help="Both cannot be right.")] = False,
    agent: AgentOption = None,
) -> None:
    """Say how a decision belongs to another one. Without a flag, they relate to each other.

    Example: newton decisions link 3f9c2a71 0b7d114e --depends-on
    """
    if supersedes + depends_on + contradicts > 1:
        raise InputError("It can be only one of these.", hint="Give one flag; call it again for another link.")
    async with open_newton(load_settings(agent)) as newton:
        deciding = newton.decisions("cli")
        if supersedes:
            await deciding.supersede(decision, other)
        else:
            name: ManualLink = "depends_on" if depends_on else "contradicts" if contradicts else "relates"
            await deciding.link(decision, name, other)
    say("Linked.")


async def erase_decision(
    decision: DecisionArgument,
    *,
    reason: Annotated[str, Parameter(help="Why; it is kept.")],
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
    agent: AgentOption = None,
) -> None:
    """Take every word of a decision away for good. That it was made and what came of it stays in the ledger.

    Example: newton decisions erase 3f9c2a71 --reason "it names somebody who asked for it"
    """
    if not yes and not ask_confirmation("Erase its words for good?"):
        raise InputError("Nothing was erased.", hint="Answer with y, or give --yes.")
    async with open_newton(load_settings(agent)) as newton:
        erased = await newton.decisions("cli").erase(decision, reason=reason)
    say("Erased." if erased else "No word of it was left; nothing changed.")


def _check_name(name: str | None, what: str) -> str | None:
    return None if name is None else hygiene.clean_name(name, what=what)


def _format_summary(decision: DecisionSummary) -> str:
    what = (decision.description or "[erased]").split("\n", 1)[0]
    when = f"{decision.decided_at:%Y-%m-%d}"
    due = f"  due {decision.look_again_at:%Y-%m-%d}" if decision.look_again_at and decision.outcome is None else ""
    late = " (overdue)" if decision.overdue else ""
    sure = f"{decision.confidence:.3g}"
    state = decision.outcome or decision.state.lower()
    return (
        f"{short_id(decision.decision_id)}  {when}  {state:<8}  {sure:<4}  "
        f"{decision.stakes:<8}  {decision.category}: {what}{due}{late}"
    )


def _format_decision(decision: DecisionDetail, history: list[TransitionRecord]) -> Iterator[str]:
    decision_id = decision.memory.memory_id
    yield f"{short_id(decision_id)}  {decision.memory.state}  {decision_id}"
    if decision.draft:
        yield format_full(decision.draft, decision.review)
    else:
        yield f"{decision.memory.summary}  {decision.body['category']}, {decision.body['stakes']} stakes"
    parts = ", ".join(f"{name} {given:g}" for name, given in decision.quality.items())
    yield f"Quality {total_score(decision.quality):.2f} ({parts})"
    yield from (_format_ruling(ruling) for ruling in decision.body["rulings"])
    yield from (f"Thought    {_format_note(note)}" for note in decision.thoughts)
    yield from (f"Amendment  {_format_note(note)}" for note in decision.amendments)
    yield from (f"Erased     {note.recorded_at:%Y-%m-%d %H:%M}  {note.body['because']}" for note in decision.erasures)
    if decision.links:
        yield "Belongs to"
        yield from draw_links(decision_id, decision.links)
    yield "History"
    yield f"  {decision.memory.created_at:%Y-%m-%d %H:%M}  recorded ({decision.memory.origin})"
    yield from (f"  {step.at:%Y-%m-%d %H:%M}  {step.to_state}: {step.reason} ({step.origin})" for step in history)


def _format_ruling(ruling: dict[str, str]) -> str:
    if "guardrail" in ruling:
        return f"Guardrail {ruling['guardrail']}: {ruling['verdict']}"
    return f"Censor {ruling['censor'][-8:]}: {ruling['verdict']}"


def _format_note(note: DecisionNote) -> str:
    said = [note.text or ""]
    said += [f"tags: {', '.join(note.tags)}"] if note.tags is not None else []
    said += [
        f"{name.replace('_', ' ')}: {note.body[name]}" for name in ("category", "look_again_at") if note.body.get(name)
    ]
    return f"{note.recorded_at:%Y-%m-%d %H:%M}  {'; '.join(filter(None, said)) or '[erased]'}"


def draw_links(
    decision_id: UUID, links: tuple[DecisionLink, ...], *, depth: int = 2, visited: frozenset[UUID] = frozenset()
) -> list[str]:
    """The neighbourhood as a tree: what each one is to the one it hangs from, two steps deep."""
    lines: list[str] = []
    around = [edge for edge in links if decision_id in (edge.memory_id, edge.other_id)]
    near = [edge for edge in around if not {edge.memory_id, edge.other_id} - {decision_id} & visited]
    for place, edge in enumerate(near):
        last = place == len(near) - 1
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
        "overdue": decision.overdue,
        "outcome": decision.outcome,
        "reviewed_at": decision.reviewed_at.isoformat() if decision.reviewed_at else None,
        "how": decision.how,
    }
