"""Commands `newton sessions inject`, `eject` and `stats`: what is put into a session, and its statistics."""

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from newton.agent.session_data.injections import SessionInjection
from newton.errors import InputError
from newton.memory.hygiene import clean_ref
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.operations.conversations.compactions import format_runs
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.session_info import (
    SessionStatsResponse,
    to_injection_info,
    to_stats_response,
)

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices

MAX_TEXT_CHARS = 100

SessionArgument = Annotated[str, Parameter(help="Name of the session.")]


async def inject_into_session(
    session: SessionArgument,
    *,
    memory: Annotated[
        str | None, Parameter(help="Memory that every context of the session shows: its id or the end of the id.")
    ] = None,
    text: Annotated[str | None, Parameter(help="Text that every context of the session shows.")] = None,
    other: Annotated[
        str | None, Parameter("--from", help="Session that contains the messages to show at the end of this one.")
    ] = None,
    first: Annotated[int | None, Parameter(help="Position of the first message.")] = None,
    last: Annotated[int | None, Parameter(help="Position of the last message.")] = None,
    agent: AgentOption = None,
) -> None:
    """Put a memory or a text into every context of a session, or messages of another session at its end.

    Give one of --memory, --text and --from. `newton sessions eject` undoes it.

    Example: newton sessions inject planning --memory 3f9c2a71

    Example: newton sessions inject planning --from planning-with-redis --first 12 --last 14
    """
    if sum(one is not None for one in (memory, text, other)) != 1:
        raise InputError("Nothing or too much to inject is given.", hint="Give one of --memory, --text and --from.")
    ref = clean_ref(session, what="session")
    async with open_agent(load_settings(agent)) as newton:
        service = newton.injections("cli")
        if memory is not None:
            injection = await service.inject_memory(ref, memory)
        elif text is not None:
            injection = await service.inject_text(ref, text)
        else:
            injection = await _inject_messages(newton, ref, other or "", first, last)
    say(f"Injected {_describe(injection)} into {session}.")
    say(f"Undo: `newton sessions eject {shlex.quote(session)} {short_id(injection.injection_id)}`")


async def eject_from_session(
    session: SessionArgument,
    injection: Annotated[
        str | None,
        Parameter(help="End of the id that `newton sessions inject` printed; if omitted, all injections are listed."),
    ] = None,
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Take out a memory, a text or messages that were put into a session, or list them.

    Example: newton sessions eject planning 3f9c2a71
    """
    ref = clean_ref(session, what="session")
    async with open_agent(load_settings(agent)) as newton:
        service = newton.injections("cli")
        removed = None if injection is None else await service.eject(ref, injection)
        found = [removed] if removed else await service.list_injections(ref)
    if json:
        formatting.print_json([to_injection_info(one).model_dump(mode="json") for one in found])
    elif removed:
        say(f"Removed {_describe(removed)} from {session}.")
    else:
        say("\n".join(map(_format_injection, found)) or "Nothing was put into this session.")


async def show_stats(
    session: Annotated[
        str | None, Parameter(help="Name of a session; if omitted, the compactions of all sessions are counted.")
    ] = None,
    *,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show the tokens of a session by part, its compactions and its latest context; without SESSION, all compactions.

    Example: newton sessions stats planning
    """
    async with open_agent(load_settings(agent)) as newton:
        if session is None:
            runs = await newton.sessions("cli").get_compaction_stats()
            if json:
                formatting.print_json([{**asdict(one), "last_at": one.last_at.isoformat()} for one in runs])
            else:
                say("\n".join(map(format_runs, runs)) or "No compactions yet.")
            return
        stats = to_stats_response(await newton.session_stats().read(clean_ref(session, what="session")))
    if json:
        formatting.print_json(stats.model_dump(mode="json"))
    else:
        say(format_stats(stats))


async def _inject_messages(
    newton: "AgentServices", session: str, other: str, first: int | None, last: int | None
) -> SessionInjection:
    if first is None or last is None:
        what = "The positions of the messages are missing."
        raise InputError(
            what, hint=f"Give --first and --last; `newton sessions log {shlex.quote(other)}` shows the positions."
        )
    ref = clean_ref(other, what="session")
    return await newton.injections("cli").inject_messages(session, ref, first=first, last=last)


def _describe(injection: SessionInjection) -> str:
    if injection.type == "messages":
        return injection.text
    return f'the {injection.type} "{formatting.truncate(one_line(injection.text), MAX_TEXT_CHARS)}"'


def _format_injection(injection: SessionInjection) -> str:
    tokens, time = f"{injection.tokens:,} tokens", f"{injection.created_at:%Y-%m-%d %H:%M}"
    return f"{short_id(injection.injection_id)}  {_describe(injection)}  {tokens}  {time}"


def format_stats(stats: SessionStatsResponse) -> str:
    """Format the statistics of a session."""
    return "\n".join(_format_stats(stats))


def _format_stats(stats: SessionStatsResponse) -> Iterator[str]:
    many = formatting.pluralize(stats.messages, "message")
    yield f"{many}, {stats.log_tokens:,} tokens."
    yield f"A model receives {stats.view_tokens:,} of at most {stats.max_tokens:,} tokens:"
    for part, size in sorted(stats.parts.items(), key=lambda pair: -pair[1].tokens):
        yield f"  {part:<12}{size.tokens:>8,} tokens in {formatting.pluralize(size.messages, 'message')}"
    if stats.injected_tokens:
        yield f"Texts in every context: {stats.injected_tokens:,} tokens."
    for one in stats.compactions:
        restored = f", {one.restored} undone" if one.restored else ""
        yield f"Compactions of kind {one.kind}: {one.in_use} ({one.tokens_before:,} -> {one.tokens:,} tokens{restored})"
    if stats.masked.messages:
        masked = formatting.pluralize(stats.masked.messages, "tool output")
        yield f"Masked: {masked}, {stats.masked.tokens_saved:,} tokens saved."
    yield from map(format_runs, stats.runs)
    if stats.context:
        layers = ", ".join(f"{name} {tokens:,}" for name, tokens in stats.context.layers.items())
        context = stats.context
        yield f"Latest context {short_id(context.bundle_id)}: {context.tokens:,} of {context.budget:,} tokens"
        yield f"  {layers}"
