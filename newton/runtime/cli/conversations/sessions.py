"""`newton sessions`: conversations, what models are shown of them, and what was made shorter."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.agent.loop.prompt import count_message_tokens, to_chat_messages
from newton.agent.services.sessions import ViewPreview
from newton.dialogue.branches import BranchSummary, SessionCheckpoint
from newton.dialogue.compaction.entry_store import EntryStatus
from newton.dialogue.compaction.progress_events import (
    CompactionCompleted,
    CompactionEvent,
    CompactionFailed,
    CompactionProgressed,
    CompactionStarted,
)
from newton.dialogue.log import InjectedRange
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import CompactionEntry, ViewMessage
from newton.memory.hygiene import clean_ref as checked
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.providers.chat import to_openai_message
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

MAX_TEXT_CHARS = 100  # characters of a line in a list
MAX_TITLE_CHARS = 60

# What a strategy has done, as people say it.
STRATEGY_MESSAGES = {
    "mask_outputs": "what tools gave some turns ago is left out",
    "tool_calls": "older work with tools is told in short",
    "threshold": "the oldest turns are told in short",
    "goal_batch": "turns that are done are told together",
    "goal_merge": "older accounts are told as one",
}

MaxTokensOption = Annotated[int | None, Parameter(help="Maximum tokens; by default the budget of a conversation.")]
SessionArgument = Annotated[str, Parameter(help="The name of a conversation.")]


async def list_sessions(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the conversations, the one that was used last at the end: when that was, their lines, how they began.

    Example: newton sessions
    """
    async with open_newton(load_settings(agent)) as newton:
        known = await newton.sessions("cli").list_sessions()
    if json:
        formatting.print_json([_session_to_json(one) for one in known])
        return
    say("\n".join(map(_format_session, known)) or "There is no conversation yet. `newton chat` begins one.")


async def show_log(session: SessionArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show every line of a conversation with its number, whole and as it was said.

    Example: newton sessions log planning
    """
    async with open_newton(load_settings(agent)) as newton:
        lines = await newton.sessions("cli").read_log(checked(session, what="session"))
    if json:
        formatting.print_json([_message_to_json(placed) for placed in lines])
        return
    for placed in lines:
        say(f"{placed.position:>5}  {placed.message.said_at:%Y-%m-%d %H:%M}  {_format_message(placed.message)}")


async def show_view(
    session: SessionArgument,
    *,
    tokens: MaxTokensOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show a conversation as a model would be sent it now: lines, and accounts in the place of older ones.

    It is only looked at: what is told shorter here is not kept. What Newton said itself, because no model answered, is
    not sent. With --json its messages come as the chat protocol of OpenAI has them, and what
    each of them costs.

    Example: newton sessions view planning --tokens 8000
    """
    async with open_newton(load_settings(agent)) as newton:
        seen = await newton.sessions("cli").preview(checked(session, what="session"), max_tokens=tokens)
    if json:
        figures = {name: value for name, value in seen._asdict().items() if name != "view"}
        sent = to_chat_messages(seen.view)
        given = {
            "messages": [to_openai_message(one) for one in sent],
            "message_tokens": count_message_tokens(sent, count_tokens=newton.scope.count_tokens),
        }
        formatting.print_json({**figures, **given})
        return
    say("\n".join(_format_view(seen)))


async def compact_session(
    session: SessionArgument, *, tokens: MaxTokensOption = None, agent: AgentOption = None
) -> None:
    """Make a conversation shorter now, where that is due. The log stays, and `newton sessions expand` takes it back.

    Example: newton sessions compact planning --tokens 8000
    """
    async with open_newton(load_settings(agent)) as newton:
        doors = newton.sessions("cli", print_progress)
        before, after = await doors.compact(checked(session, what="session"), max_tokens=tokens)
    if saved := before.tokens - after.tokens:
        say(f"{session} is shown in {after.tokens:,} tokens from now on, {saved:,} fewer.")
    else:
        say(f"Nothing of {session} is due to be made shorter: it is shown in {after.tokens:,} tokens.")


async def list_compactions(session: SessionArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List what stands for older lines of a conversation: which lines, how it was made, and what it saved.

    Example: newton sessions compactions planning
    """
    async with open_newton(load_settings(agent)) as newton:
        made = await newton.sessions("cli").list_entries(checked(session, what="session"))
    if json:
        formatting.print_json([_entry_to_json(one) for one in made])
        return
    say("\n".join(map(_format_entry, made, _nesting_depths(made))) or "Nothing of it was made shorter.")


async def expand_compaction(session: SessionArgument, entry: str, *, agent: AgentOption = None) -> None:
    """Bring back what an entry stands for. The lines are shown again, and are not made shorter any more.

    Example: newton sessions expand planning 3f9c2a71

    Parameters
    ----------
    entry:
        The end of its id, as `newton sessions compactions` shows it.
    """
    async with open_newton(load_settings(agent)) as newton:
        dropped = await newton.sessions("cli").restore(checked(session, what="session"), entry)
    if dropped:
        say(f"{formatting.pluralize(dropped, 'entry', 'entries')} dropped. What stood there before is shown again.")
    else:
        say("Nothing to drop: it was dropped before.")


async def checkpoint_session(
    session: SessionArgument,
    name: Annotated[
        str | None, Parameter(help="What the place is called; without it, the checkpoints are listed.")
    ] = None,
    *,
    agent: AgentOption = None,
) -> None:
    """Name the place where a conversation is, to branch off there later; or list the places that have names.

    Example: newton sessions checkpoint planning before-redis
    """
    ref = checked(session, what="session")
    async with open_newton(load_settings(agent)) as newton:
        doors = newton.sessions("cli")
        known = (
            [await doors.create_checkpoint(ref, checked(name, what="checkpoint"))]
            if name
            else await doors.list_checkpoints(ref)
        )
    say(format_checkpoints(known, session))


async def branch_session(
    session: SessionArgument,
    new: Annotated[str, Parameter(help="What the new conversation is called.")],
    *,
    at: Annotated[str | None, Parameter(help="A checkpoint or the number of a line; without it, the end.")] = None,
    agent: AgentOption = None,
) -> None:
    """Begin a conversation that goes on from another, as it is shown there. The other stays as it is.

    Example: newton sessions branch planning planning-with-redis --at before-redis
    """
    async with open_newton(load_settings(agent)) as newton:
        await newton.sessions("cli").create_branch(
            checked(session, what="session"), checked(new, what="session"), at=at
        )
    say(f"{new} goes on from {session}. `newton chat --session {new}` talks there.")


async def inject_messages(
    session: SessionArgument,
    *,
    other: Annotated[str, Parameter("--from", help="The conversation that the lines are of.")],
    first: Annotated[int, Parameter(help="The number of the first line.")],
    last: Annotated[int, Parameter(help="The number of the last line.")],
    agent: AgentOption = None,
) -> None:
    """Show lines of one conversation in another, behind its last line. They stay where they are, and can be taken out
    again with `newton sessions eject`.

    Example: newton sessions inject planning --from planning-with-redis --first 12 --last 14
    """
    async with open_newton(load_settings(agent)) as newton:
        made = await newton.sessions("cli").inject(
            checked(session, what="session"), checked(other, what="session"), first=first, last=last
        )
    lines = made.last - made.first + 1
    say(
        f"{formatting.pluralize(lines, 'line')} of {other} "
        f"{'is' if lines == 1 else 'are'} shown in {session} from now on."
    )
    say(f"`newton sessions eject {session} {short_id(made.injection_id)}` takes them out again.")


async def eject_messages(
    session: SessionArgument,
    injection: Annotated[
        str | None, Parameter(help="The end of the id of what was injected; without it, all of it is listed.")
    ] = None,
    *,
    agent: AgentOption = None,
) -> None:
    """Take lines of another conversation out again that were injected; or list what was.

    Example: newton sessions eject planning 3f9c2a71
    """
    ref = checked(session, what="session")
    async with open_newton(load_settings(agent)) as newton:
        doors = newton.sessions("cli")
        if injection is not None:
            gone = await doors.eject(ref, injection)
            say(f"Lines {gone.first}-{gone.last} of {gone.ref} are not shown in {session} any more.")
        else:
            say("\n".join(map(_format_injection, await doors.list_injections(ref))) or "Nothing was injected into it.")


async def show_compaction_stats(
    session: Annotated[str | None, Parameter(help="Of which conversation; without it, of all.")] = None,
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show how compactions went: how often each strategy ran, what it saved, how long it took.

    Example: newton sessions stats
    """
    async with open_newton(load_settings(agent)) as newton:
        tallies = await newton.sessions("cli").get_compaction_stats(session and checked(session, what="session"))
    if json:
        formatting.print_json([{**one._asdict(), "last_at": one.last_at.isoformat()} for one in tallies])
        return
    if not tallies:
        say("Nothing was made shorter yet.")
    for one in tallies:
        failed = f", {one.failed} changed nothing" if one.failed else ""
        say(
            f"{one.strategy:<14}{formatting.pluralize(one.runs, 'run')} in "
            f"{formatting.pluralize(one.sessions, 'conversation')}{failed}"
            f"; {one.saved:,} tokens saved; {one.mean_ms:,.0f} ms each, {one.most_ms:,.0f} ms at most;"
            f" last {one.last_at:%Y-%m-%d %H:%M}"
        )


def print_progress(event: CompactionEvent) -> None:
    """Tells of a compaction while it runs, where a person watches; elsewhere nothing."""
    if not formatting.is_interactive():
        return
    match event:
        case CompactionStarted():
            formatting.print_status(
                f"Making this conversation shorter: {event.current:,} tokens, {event.max:,} at most …"
            )
        case CompactionProgressed():
            formatting.print_status(f"Making this conversation shorter: {event.processed / event.total:.0%}")
        case CompactionCompleted():
            done = STRATEGY_MESSAGES.get(event.strategy, "older parts are told shorter")
            full = " Nothing more can be made shorter." if event.exhausted else ""
            formatting.print_status("")
            formatting.print_notice(
                f"(To save room, {done}: {event.saved:,} tokens less, {event.new_count:,} are shown now.{full})"
            )
        case CompactionFailed():
            formatting.print_status("")
            formatting.print_notice(f"(Making this conversation shorter met with this: {event.error.rstrip('.')}.)")


def format_checkpoints(checkpoints: Sequence[SessionCheckpoint], session: str) -> str:
    """Checkpoints, a line each."""
    return "\n".join(f"{one.name}: behind line {one.position} of {session}." for one in checkpoints) or (
        f"{session} has no checkpoint."
    )


def _format_session(branch: BranchSummary) -> str:
    leaves = f" (goes on from {branch.parent}, line {branch.parent_position})" if branch.parent else ""
    began = f"  {formatting.truncate(branch.began, MAX_TITLE_CHARS)}" if branch.began else ""
    return (
        f"{branch.used_at:%Y-%m-%d %H:%M}  "
        f"{formatting.pluralize(branch.lines, 'line'):>11}  {branch.ref}{leaves}{began}"
    )


def _session_to_json(branch: BranchSummary) -> dict[str, object]:
    times = {"created_at": branch.created_at.isoformat(), "used_at": branch.used_at.isoformat()}
    return {**branch._asdict(), "session_id": str(branch.session_id), **times}


def _format_view(preview: ViewPreview) -> Iterator[str]:
    for item in preview.view:
        lines = f"{item.first}" if item.first == item.last else f"{item.first}-{item.last}"
        yield f"{lines:>9}  {item.tokens:>6,}  {_format_speaker(item)}{item.text}{_format_tool_calls(item)}"
    yield (
        f"\n{preview.tokens:,} tokens, of {preview.room:,} that there is room for; "
        f"all its lines are {preview.logged:,}."
    )
    parts = [
        ("told shorter", preview.shorter, "line"),
        ("left out", preview.left_out, "line"),
        ("cut", preview.cut, "message"),
    ]
    if told := [f"{formatting.pluralize(number, what)} {how}" for how, number, what in parts if number]:
        yield f"For want of room: {', '.join(told)}."


def _format_injection(injection: InjectedRange) -> str:
    return (
        f"{short_id(injection.injection_id)}  lines {injection.first}-{injection.last} of "
        f"{injection.ref}, behind line {injection.place}"
        f"  {injection.tokens:,} tokens  {injection.at:%Y-%m-%d %H:%M}"
    )


def _format_speaker(item: ViewMessage) -> str:
    return "" if item.kind not in ("line", "mask") else f"{item.name or item.role}: "


def _format_tool_calls(item: ViewMessage | Message) -> str:
    return "".join(f" → {call.name} {call.arguments}" for call in item.calls)


def _format_message(message: Message) -> str:
    aside = "  (by Newton itself; sent to no model)" if message.is_notice else ""
    return f"{message.speaker}: {message.content}{_format_tool_calls(message)}{aside}"


def _nesting_depths(entries: Sequence[EntryStatus]) -> Iterator[int]:
    """For each entry how many that count cover it. They come by their place, the outer ones first."""
    over: list[CompactionEntry] = []
    for entry, dropped in entries:
        over = [one for one in over if one.last >= entry.last]
        yield len(over)
        if dropped is None:
            over.append(entry)


def _format_entry(status: EntryStatus, depth: int) -> str:
    entry, indent = status.entry, "   " * depth
    dropped = f"  dropped {status.restored_at:%Y-%m-%d %H:%M}" if status.restored_at else ""
    by = entry.model or "without a model"
    text = one_line(entry.text)
    return (
        f"{indent}{short_id(entry.entry_id)}  lines {entry.first}-{entry.last}  {entry.strategy} ({by}, {entry.prompt})"
        f"  {entry.before:,} → {entry.tokens:,} tokens{dropped}\n"
        f"{indent}          {text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + ' …'}"
    )


def _entry_to_json(status: EntryStatus) -> dict[str, object]:
    entry = status.entry
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
        "restored_at": status.restored_at and status.restored_at.isoformat(),
    }


def _message_to_json(stored: StoredMessage) -> dict[str, object]:
    line = stored.message
    return {
        "position": stored.position,
        "ref": line.ref,
        "role": line.role,
        "name": line.name,
        "content": line.content,
        "calls": [call._asdict() for call in line.calls],
        "answers": line.tool_call_id,
        "aside": line.is_notice,
        "tokens": stored.tokens,
        "at": line.said_at.isoformat(),
    }
