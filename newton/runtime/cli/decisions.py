"""`newton decisions`, `think`, `done` and `review`: what was decided, and what became of it."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated
from uuid import UUID

from cyclopts import Parameter

from newton.brain.choice import Stakes, Verdict
from newton.brain.decisions import Amendment, ByHand
from newton.brain.quality import score
from newton.brain.reading import Edge, Filter, Listed, Note, Whole
from newton.brain.showing import in_full
from newton.errors import InputError
from newton.memory import hygiene
from newton.memory.lookup import short
from newton.memory.transitions import Transition
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, When, agreed, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened

MOST = 1_000_000  # decisions in a list

Which = Annotated[str, Parameter(help="Its id, or the end of it as `newton decisions list` shows it.")]


async def think(decision: Which, text: str, *, agent: Agent = None) -> None:
    """Add a thought to a decision while it is open.

    Example: newton think 3f9c2a71 "What if the cache is cold?"

    Parameters
    ----------
    text:
        The thought.
    """
    async with opened(settings(agent)) as newton:
        await newton.deciding("cli").think(decision, text)
    say("Noted.")


async def done(decision: Which, *, agent: Agent = None) -> None:
    """Say that what was decided is done, and its outcome awaited.

    Example: newton done 3f9c2a71
    """
    async with opened(settings(agent)) as newton:
        await newton.deciding("cli").done(decision)
    say("Done; its outcome is awaited.")


async def review(
    decision: Which,
    outcome: Verdict | None = None,
    *,
    verify: Annotated[bool, Parameter(negative=(), help="Let the verifier of its category say it.")] = False,
    lesson: Annotated[str | None, Parameter(help="What it teaches.")] = None,
    at: Annotated[datetime | None, When, Parameter(help="When it was known; now, if not given.")] = None,
    agent: Agent = None,
) -> None:
    """Say what became of a decision, once.

    Example: newton review 3f9c2a71 success --lesson "warm the cache before switching over"
    """
    if (outcome is None) != verify:
        raise InputError("What became of it is not said, or twice.", hint="Give an outcome, or --verify.")
    async with opened(settings(agent)) as newton:
        deciding = newton.deciding("cli")
        if outcome:
            await deciding.review(decision, outcome, lesson=lesson, at=at)
        else:
            outcome = await deciding.verified(decision)
    say(f"Reviewed: {outcome}." if outcome else "The verifier says nothing; the decision stays open.")


async def list_(
    *,
    due: Annotated[bool, Parameter(negative=(), help="Open, and the date to look again has passed.")] = False,
    open: Annotated[bool, Parameter(negative=(), help="Those without an outcome.")] = False,
    category: Annotated[str | None, Parameter(help="Only this category.")] = None,
    stakes: Annotated[Stakes | None, Parameter(help="Only these stakes.")] = None,
    outcome: Annotated[Verdict | None, Parameter(help="Only this outcome.")] = None,
    tag: Annotated[str | None, Parameter(help="Only with this tag.")] = None,
    categories: Annotated[bool, Parameter(negative=(), help="List the categories instead.")] = False,
    limit: Annotated[int, Parameter(help="The most to show.")] = 50,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """List the decisions, the latest first; with --due, the first due first.

    Example: newton decisions list --due
    """
    if not 1 <= limit <= MOST:
        raise InputError(f"A limit of {limit} is not possible.", hint=f"Give 1 to {MOST:,}.")
    category, tag = _named(category, "category"), _named(tag, "tag")
    wanted = Filter(due=due, open=open, category=category, stakes=stakes, outcome=outcome, tag=tag, most=limit)
    async with opened(settings(agent)) as newton:
        deciding = newton.deciding("cli")
        if categories:
            for known in await deciding.categories():
                say(f"{known.decisions:>6} decided  {known.judged:>6} judged  {known.name}")
            return
        found = await deciding.listed(wanted)
    if json:
        show.as_json([_plain(one) for one in found])
        return
    say("\n".join(map(_line, found)) or ("Nothing is due." if due else "There is no such decision."))


async def show_(decision: Which, *, agent: Agent = None, json: AsJson = False) -> None:
    """Show a decision: its words, thoughts, amendments, outcome, what it is to others, and its history.

    Example: newton decisions show 3f9c2a71
    """
    async with opened(settings(agent)) as newton:
        whole = await newton.deciding("cli").whole(decision)
        _, history, _ = await newton.curation("cli").look(str(whole.memory.memory_id))
    if json:
        show.as_json(whole.as_json())
        return
    say("\n".join(_told(whole, history)))


async def amend(
    decision: Which,
    text: str | None = None,
    *,
    tag: Annotated[list[str] | None, Parameter(negative=(), help="Its tags from now on; may be given often.")] = None,
    category: Annotated[str | None, Parameter(help="Its category from now on.")] = None,
    look_again: Annotated[datetime | None, When, Parameter(help="When to look again.")] = None,
    agent: Agent = None,
) -> None:
    """Add to a decision. What was recorded stays as it was, and its confidence cannot be amended.

    Example: newton decisions amend 3f9c2a71 "The budget was cut since" --category cost

    Parameters
    ----------
    text:
        What is to be added.
    """
    added = Amendment(
        text=text, tags=tuple(tag) if tag is not None else None, category=category, look_again_at=look_again
    )
    async with opened(settings(agent)) as newton:
        await newton.deciding("cli").amend(decision, added)
    say("Amended.")


async def link(
    decision: Which,
    other: Which,
    *,
    supersedes: Annotated[bool, Parameter(negative=(), help="It takes the place of the other.")] = False,
    depends_on: Annotated[bool, Parameter(negative=(), help="It holds only while the other does.")] = False,
    contradicts: Annotated[bool, Parameter(negative=(), help="Both cannot be right.")] = False,
    agent: Agent = None,
) -> None:
    """Say how a decision belongs to another one. Without a flag, they relate to each other.

    Example: newton decisions link 3f9c2a71 0b7d114e --depends-on
    """
    if supersedes + depends_on + contradicts > 1:
        raise InputError("It can be only one of these.", hint="Give one flag; call it again for another link.")
    async with opened(settings(agent)) as newton:
        deciding = newton.deciding("cli")
        if supersedes:
            await deciding.supersede(decision, other)
        else:
            name: ByHand = "depends_on" if depends_on else "contradicts" if contradicts else "relates"
            await deciding.link(decision, name, other)
    say("Linked.")


async def erase(
    decision: Which,
    *,
    because: Annotated[str, Parameter(help="Why; it is kept.")],
    yes: Annotated[bool, Parameter(negative=(), help="Do not ask.")] = False,
    agent: Agent = None,
) -> None:
    """Take every word of a decision away for good. That it was made and what came of it stays in the ledger.

    Example: newton decisions erase 3f9c2a71 --because "it names somebody who asked for it"
    """
    if not yes and not agreed("Erase its words for good?"):
        raise InputError("Nothing was erased.", hint="Answer with y, or give --yes.")
    async with opened(settings(agent)) as newton:
        erased = await newton.deciding("cli").erase(decision, because=because)
    say("Erased." if erased else "No word of it was left; nothing changed.")


def _named(given: str | None, what: str) -> str | None:
    return None if given is None else hygiene.name(given, what=what)


def _line(one: Listed) -> str:
    what = (one.description or "[erased]").split("\n", 1)[0]
    when = f"{one.decided_at:%Y-%m-%d}"
    due = f"  due {one.look_again_at:%Y-%m-%d}" if one.look_again_at and one.outcome is None else ""
    late = " (overdue)" if one.overdue else ""
    sure = f"{one.confidence:.3g}"
    state = one.outcome or one.state.lower()
    return (
        f"{short(one.decision_id)}  {when}  {state:<8}  {sure:<4}  {one.stakes:<8}  {one.category}: {what}{due}{late}"
    )


def _told(whole: Whole, history: list[Transition]) -> Iterator[str]:
    decision_id = whole.memory.memory_id
    yield f"{short(decision_id)}  {whole.memory.state}  {decision_id}"
    if whole.choice:
        yield in_full(whole.choice, whole.review)
    else:
        yield f"{whole.memory.summary}  {whole.body['category']}, {whole.body['stakes']} stakes"
    parts = ", ".join(f"{name} {given:g}" for name, given in whole.quality.items())
    yield f"Quality {score(whole.quality):.2f} ({parts})"
    yield from (_ruled(ruling) for ruling in whole.body["rulings"])
    yield from (f"Thought    {_note(note)}" for note in whole.thoughts)
    yield from (f"Amendment  {_note(note)}" for note in whole.amendments)
    yield from (f"Erased     {note.at:%Y-%m-%d %H:%M}  {note.body['because']}" for note in whole.erasures)
    if whole.edges:
        yield "Belongs to"
        yield from drawn(decision_id, whole.edges)
    yield "History"
    yield f"  {whole.memory.created_at:%Y-%m-%d %H:%M}  recorded ({whole.memory.origin})"
    yield from (f"  {step.at:%Y-%m-%d %H:%M}  {step.to_state}: {step.because} ({step.origin})" for step in history)


def _ruled(ruling: dict[str, str]) -> str:
    if "guardrail" in ruling:
        return f"Guardrail {ruling['guardrail']}: {ruling['verdict']}"
    return f"Censor {ruling['censor'][-8:]}: {ruling['verdict']}"


def _note(note: Note) -> str:
    said = [note.text or ""]
    said += [f"tags: {', '.join(note.tags)}"] if note.tags is not None else []
    said += [
        f"{name.replace('_', ' ')}: {note.body[name]}" for name in ("category", "look_again_at") if note.body.get(name)
    ]
    return f"{note.at:%Y-%m-%d %H:%M}  {'; '.join(filter(None, said)) or '[erased]'}"


def drawn(
    decision_id: UUID, edges: tuple[Edge, ...], *, depth: int = 2, seen: frozenset[UUID] = frozenset()
) -> list[str]:
    """The neighbourhood as a tree: what each one is to the one it hangs from, two steps deep."""
    lines: list[str] = []
    around = [edge for edge in edges if decision_id in (edge.memory_id, edge.other_id)]
    near = [edge for edge in around if not {edge.memory_id, edge.other_id} - {decision_id} & seen]
    for place, edge in enumerate(near):
        last = place == len(near) - 1
        outward = edge.memory_id == decision_id
        other, micro = (edge.other_id, edge.other_micro) if outward else (edge.memory_id, edge.micro)
        arrow = f"─{edge.link}→" if outward else f"←{edge.link}─"
        lines.append(f"  {'└' if last else '├'}{arrow} {short(other)}  {micro}")
        if depth > 1:
            below = drawn(other, edges, depth=depth - 1, seen=seen | {decision_id})
            lines += [f"  {' ' if last else '│'} {line}" for line in below]
    return lines


def _plain(one: Listed) -> dict[str, object]:
    return {
        "decision_id": str(one.decision_id),
        "state": one.state,
        "description": one.description,
        "decided_at": one.decided_at.isoformat(),
        "confidence": one.confidence,
        "category": one.category,
        "stakes": one.stakes,
        "frame": one.frame,
        "look_again_at": one.look_again_at.isoformat() if one.look_again_at else None,
        "overdue": one.overdue,
        "outcome": one.outcome,
        "reviewed_at": one.reviewed_at.isoformat() if one.reviewed_at else None,
        "how": one.how,
    }
