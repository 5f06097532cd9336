"""Command `newton sessions stats`: the statistics of a session."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from newton.memory.hygiene import clean_ref
from newton.memory.lookup import short_id
from newton.operations.conversations.compactions import format_runs
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.session_info import SessionStatsResponse, to_stats_response


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
