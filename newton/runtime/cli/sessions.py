"""`newton sessions`: conversations, what models are shown of them, and what was made shorter."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.agent.conversations import Preview
from newton.agent.sending import costs, messages
from newton.dialogue.branches import Branch, Checkpoint
from newton.dialogue.compaction.events import Completed, Event, Failed, Progressed, Started
from newton.dialogue.entries import Listed
from newton.dialogue.lines import Line, Placed
from newton.dialogue.log import Injection
from newton.dialogue.view import Entry, Shown
from newton.memory.hygiene import ref as checked
from newton.memory.lookup import short
from newton.memory.representations import one_line
from newton.providers.chat import wire
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened

WIDTH = 100  # characters of a line in a list
TITLE = 60

# What a strategy has done, as people say it.
DONE = {
    "mask_outputs": "what tools gave some turns ago is left out",
    "tool_calls": "older work with tools is told in short",
    "threshold": "the oldest turns are told in short",
    "goal_batch": "turns that are done are told together",
    "goal_merge": "older accounts are told as one",
}

Most = Annotated[
    int | None, Parameter(help="In so many tokens at most; without it, in the room that a conversation has.")
]
Session = Annotated[str, Parameter(help="The name of a conversation.")]


async def list_(*, agent: Agent = None, json: AsJson = False) -> None:
    """List the conversations, the one that was used last at the end: when that was, their lines, how they began.

    Example: newton sessions
    """
    async with opened(settings(agent)) as newton:
        known = await newton.conversations("cli").list()
    if json:
        show.as_json([_plain_branch(one) for one in known])
        return
    say("\n".join(map(_told_of, known)) or "There is no conversation yet. `newton chat` begins one.")


async def log(session: Session, *, agent: Agent = None, json: AsJson = False) -> None:
    """Show every line of a conversation with its number, whole and as it was said.

    Example: newton sessions log planning
    """
    async with opened(settings(agent)) as newton:
        lines = await newton.conversations("cli").log(checked(session, what="session"))
    if json:
        show.as_json([_plain_line(placed) for placed in lines])
        return
    for placed in lines:
        say(f"{placed.position:>5}  {placed.line.said_at:%Y-%m-%d %H:%M}  {_said(placed.line)}")


async def view(
    session: Session,
    *,
    most: Most = None,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Show a conversation as a model would be sent it now: lines, and accounts in the place of older ones.

    It is only looked at: what is told shorter here is not kept. What Newton said itself, because no model answered, is
    not sent. With --json its messages come as the chat protocol of OpenAI has them, and what
    each of them costs.

    Example: newton sessions view planning --most 8000
    """
    async with opened(settings(agent)) as newton:
        seen = await newton.conversations("cli").preview(checked(session, what="session"), most=most)
    if json:
        figures = {name: value for name, value in seen._asdict().items() if name != "view"}
        sent = messages(seen.view)
        given = {
            "messages": [wire(one) for one in sent],
            "message_tokens": costs(sent, count=newton.scope.count_tokens),
        }
        show.as_json({**figures, **given})
        return
    say("\n".join(_shown(seen)))


async def compact(session: Session, *, most: Most = None, agent: Agent = None) -> None:
    """Make a conversation shorter now, where that is due. The log stays, and `newton sessions restore` takes it back.

    Example: newton sessions compact planning --most 8000
    """
    async with opened(settings(agent)) as newton:
        doors = newton.conversations("cli", progress)
        before, after = await doors.compact(checked(session, what="session"), most=most)
    if saved := before.tokens - after.tokens:
        say(f"{session} is shown in {after.tokens:,} tokens from now on, {saved:,} fewer.")
    else:
        say(f"Nothing of {session} is due to be made shorter: it is shown in {after.tokens:,} tokens.")


async def entries(session: Session, *, agent: Agent = None, json: AsJson = False) -> None:
    """List what stands for older lines of a conversation: which lines, how it was made, and what it saved.

    Example: newton sessions entries planning
    """
    async with opened(settings(agent)) as newton:
        made = await newton.conversations("cli").entries(checked(session, what="session"))
    if json:
        show.as_json([_plain_entry(one) for one in made])
        return
    say("\n".join(map(_entry, made, _depths(made))) or "Nothing of it was made shorter.")


async def restore(session: Session, entry: str, *, agent: Agent = None) -> None:
    """Bring back what an entry stands for. The lines are shown again, and are not made shorter any more.

    Example: newton sessions restore planning 3f9c2a71

    Parameters
    ----------
    entry:
        The end of its id, as `newton sessions entries` shows it.
    """
    async with opened(settings(agent)) as newton:
        dropped = await newton.conversations("cli").restore(checked(session, what="session"), entry)
    if dropped:
        say(f"{show.counted(dropped, 'entry', 'entries')} dropped. What stood there before is shown again.")
    else:
        say("Nothing to drop: it was dropped before.")


async def checkpoint(
    session: Session,
    name: Annotated[
        str | None, Parameter(help="What the place is called; without it, the checkpoints are listed.")
    ] = None,
    *,
    agent: Agent = None,
) -> None:
    """Name the place where a conversation is, to branch off there later; or list the places that have names.

    Example: newton sessions checkpoint planning before-redis
    """
    ref = checked(session, what="session")
    async with opened(settings(agent)) as newton:
        doors = newton.conversations("cli")
        known = (
            [await doors.checkpoint(ref, checked(name, what="checkpoint"))] if name else await doors.checkpoints(ref)
        )
    say(places(known, session))


async def branch(
    session: Session,
    new: Annotated[str, Parameter(help="What the new conversation is called.")],
    *,
    at: Annotated[str | None, Parameter(help="A checkpoint or the number of a line; without it, the end.")] = None,
    agent: Agent = None,
) -> None:
    """Begin a conversation that goes on from another, as it is shown there. The other stays as it is.

    Example: newton sessions branch planning planning-with-redis --at before-redis
    """
    async with opened(settings(agent)) as newton:
        await newton.conversations("cli").branch(checked(session, what="session"), checked(new, what="session"), at=at)
    say(f"{new} goes on from {session}. `newton chat --session {new}` talks there.")


async def inject(
    session: Session,
    *,
    other: Annotated[str, Parameter("--from", help="The conversation that the lines are of.")],
    first: Annotated[int, Parameter(help="The number of the first line.")],
    last: Annotated[int, Parameter(help="The number of the last line.")],
    agent: Agent = None,
) -> None:
    """Show lines of one conversation in another, behind its last line. They stay where they are, and can be taken out
    again with `newton sessions eject`.

    Example: newton sessions inject planning --from planning-with-redis --first 12 --last 14
    """
    async with opened(settings(agent)) as newton:
        made = await newton.conversations("cli").inject(
            checked(session, what="session"), checked(other, what="session"), first=first, last=last
        )
    lines = made.last - made.first + 1
    say(f"{show.counted(lines, 'line')} of {other} {'is' if lines == 1 else 'are'} shown in {session} from now on.")
    say(f"`newton sessions eject {session} {short(made.injection_id)}` takes them out again.")


async def eject(
    session: Session,
    injection: Annotated[
        str | None, Parameter(help="The end of the id of what was injected; without it, all of it is listed.")
    ] = None,
    *,
    agent: Agent = None,
) -> None:
    """Take lines of another conversation out again that were injected; or list what was.

    Example: newton sessions eject planning 3f9c2a71
    """
    ref = checked(session, what="session")
    async with opened(settings(agent)) as newton:
        doors = newton.conversations("cli")
        if injection is not None:
            gone = await doors.eject(ref, injection)
            say(f"Lines {gone.first}-{gone.last} of {gone.ref} are not shown in {session} any more.")
        else:
            say("\n".join(map(_injection, await doors.injections(ref))) or "Nothing was injected into it.")


async def stats(
    session: Annotated[str | None, Parameter(help="Of which conversation; without it, of all.")] = None,
    *,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Show how compactions went: how often each strategy ran, what it saved, how long it took.

    Example: newton sessions stats
    """
    async with opened(settings(agent)) as newton:
        tallies = await newton.conversations("cli").tallies(session and checked(session, what="session"))
    if json:
        show.as_json([{**one._asdict(), "last_at": one.last_at.isoformat()} for one in tallies])
        return
    if not tallies:
        say("Nothing was made shorter yet.")
    for one in tallies:
        failed = f", {one.failed} changed nothing" if one.failed else ""
        say(
            f"{one.strategy:<14}{show.counted(one.runs, 'run')} in {show.counted(one.sessions, 'conversation')}{failed}"
            f"; {one.saved:,} tokens saved; {one.mean_ms:,.0f} ms each, {one.most_ms:,.0f} ms at most;"
            f" last {one.last_at:%Y-%m-%d %H:%M}"
        )


def progress(event: Event) -> None:
    """Tells of a compaction while it runs, where a person watches; elsewhere nothing."""
    if not show.watched():
        return
    match event:
        case Started():
            show.status(f"Making this conversation shorter: {event.current:,} tokens, {event.max:,} at most …")
        case Progressed():
            show.status(f"Making this conversation shorter: {event.processed / event.total:.0%}")
        case Completed():
            done = DONE.get(event.strategy, "older parts are told shorter")
            full = " Nothing more can be made shorter." if event.exhausted else ""
            show.status("")
            show.notice(
                f"(To save room, {done}: {event.saved:,} tokens less, {event.new_count:,} are shown now.{full})"
            )
        case Failed():
            show.status("")
            show.notice(f"(Making this conversation shorter met with this: {event.error.rstrip('.')}.)")


def places(known: Sequence[Checkpoint], session: str) -> str:
    """Checkpoints, a line each."""
    return "\n".join(f"{one.name}: behind line {one.position} of {session}." for one in known) or (
        f"{session} has no checkpoint."
    )


def _told_of(one: Branch) -> str:
    leaves = f" (goes on from {one.parent}, line {one.parent_position})" if one.parent else ""
    began = f"  {show.beginning(one.began, TITLE)}" if one.began else ""
    return f"{one.used_at:%Y-%m-%d %H:%M}  {show.counted(one.lines, 'line'):>11}  {one.ref}{leaves}{began}"


def _plain_branch(one: Branch) -> dict[str, object]:
    times = {"created_at": one.created_at.isoformat(), "used_at": one.used_at.isoformat()}
    return {**one._asdict(), "session_id": str(one.session_id), **times}


def _shown(seen: Preview) -> Iterator[str]:
    for item in seen.view:
        lines = f"{item.first}" if item.first == item.last else f"{item.first}-{item.last}"
        yield f"{lines:>9}  {item.tokens:>6,}  {_head(item)}{item.text}{_calling(item)}"
    yield f"\n{seen.tokens:,} tokens, of {seen.room:,} that there is room for; all its lines are {seen.logged:,}."
    parts = [("told shorter", seen.shorter, "line"), ("left out", seen.left_out, "line"), ("cut", seen.cut, "message")]
    if told := [f"{show.counted(number, what)} {how}" for how, number, what in parts if number]:
        yield f"For want of room: {', '.join(told)}."


def _injection(one: Injection) -> str:
    return (
        f"{short(one.injection_id)}  lines {one.first}-{one.last} of {one.ref}, behind line {one.place}"
        f"  {one.tokens:,} tokens  {one.at:%Y-%m-%d %H:%M}"
    )


def _head(item: Shown) -> str:
    return "" if item.kind not in ("line", "mask") else f"{item.name or item.role}: "


def _calling(item: Shown | Line) -> str:
    return "".join(f" → {call.name} {call.arguments}" for call in item.calls)


def _said(line: Line) -> str:
    aside = "  (by Newton itself; sent to no model)" if line.aside else ""
    return f"{line.speaker}: {line.content}{_calling(line)}{aside}"


def _depths(made: Sequence[Listed]) -> Iterator[int]:
    """For each entry how many that count cover it. They come by their place, the outer ones first."""
    over: list[Entry] = []
    for entry, dropped in made:
        over = [one for one in over if one.last >= entry.last]
        yield len(over)
        if dropped is None:
            over.append(entry)


def _entry(one: Listed, depth: int) -> str:
    entry, indent = one.entry, "   " * depth
    dropped = f"  dropped {one.restored_at:%Y-%m-%d %H:%M}" if one.restored_at else ""
    by = entry.model or "without a model"
    text = one_line(entry.text)
    return (
        f"{indent}{short(entry.entry_id)}  lines {entry.first}-{entry.last}  {entry.strategy} ({by}, {entry.prompt})"
        f"  {entry.before:,} → {entry.tokens:,} tokens{dropped}\n"
        f"{indent}          {text if len(text) <= WIDTH else text[:WIDTH] + ' …'}"
    )


def _plain_entry(one: Listed) -> dict[str, object]:
    entry = one.entry
    return {
        "entry_id": str(entry.entry_id),
        "kind": entry.kind,
        "first": entry.first,
        "last": entry.last,
        "text": entry.text,
        "tokens": entry.tokens,
        "before": entry.before,
        "strategy": entry.strategy,
        "prompt": entry.prompt,
        "model": entry.model,
        "made_at": entry.made_at.isoformat(),
        "restored_at": one.restored_at and one.restored_at.isoformat(),
    }


def _plain_line(placed: Placed) -> dict[str, object]:
    line = placed.line
    return {
        "position": placed.position,
        "ref": line.ref,
        "role": line.role,
        "name": line.name,
        "content": line.content,
        "calls": [call._asdict() for call in line.calls],
        "answers": line.answers,
        "aside": line.aside,
        "tokens": placed.tokens,
        "at": line.said_at.isoformat(),
    }
