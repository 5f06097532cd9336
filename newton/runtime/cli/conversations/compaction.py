"""Commands `newton sessions` on compaction: the summaries that a model receives in place of older messages."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.dialogue.compaction.entry_store import EntryStatus
from newton.dialogue.view import CompactionEntry
from newton.memory.hygiene import clean_ref
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.conversations.sessions import MaxTokensOption, SessionArgument
from newton.runtime.cli.options import AgentOption, JsonOption, StrategyOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.cli.progress import print_progress
from newton.runtime.error_status import EXIT_FAILED, EXIT_OK

MAX_TEXT_CHARS = 100


async def compact_session(
    session: SessionArgument,
    *,
    max_tokens: MaxTokensOption = None,
    strategy: StrategyOption = None,
    agent: AgentOption = None,
) -> int:
    """Replace older messages by summaries in what a model receives of a session, down to --max-tokens if possible.

    The stored messages do not change. `newton sessions expand` undoes a summary. If the limit is not reached, the
    reasons are printed and the exit status is 1.

    Example: newton sessions compact planning --max-tokens 8000
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.sessions("cli", print_progress)
        ref = clean_ref(session, what="session")
        outcome = await service.compact(ref, max_tokens=max_tokens, strategy=strategy)
    tokens = outcome.after.tokens
    if saved := outcome.before.tokens - tokens:
        say(f"A model now receives {tokens:,} tokens of the session {session}, {saved:,} fewer.")
    elif outcome.is_reached:
        say(f"No compaction is due: a model receives {tokens:,} tokens of the session {session}.")
    if outcome.is_reached:
        return EXIT_OK
    say(f"{tokens:,} tokens are more than the {outcome.max_tokens:,} requested, because:")
    for obstacle in outcome.obstacles:
        say(f"  {obstacle.reason} ({obstacle.tokens:,} tokens)")
    return EXIT_FAILED


async def list_compactions(session: SessionArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the compaction entries of a session: texts that a model receives in place of a range of messages.

    Example: newton sessions compactions planning
    """
    async with open_agent(load_settings(agent)) as newton:
        entries = await newton.sessions("cli").list_entries(clean_ref(session, what="session"))
    if json:
        formatting.print_json(list(map(_entry_to_json, entries)))
    else:
        say(
            "\n".join(map(_format_entry, entries, _nesting_depths(entries)))
            or "No messages of this session have been compacted."
        )


async def expand_compaction(
    session: SessionArgument,
    compaction: Annotated[
        str, Parameter(help="End of the compaction entry's id, as `newton sessions compactions` prints it.")
    ],
    *,
    agent: AgentOption = None,
) -> None:
    """Undo a compaction entry: a model receives its messages in full again, and they are never compacted again.

    Example: newton sessions expand planning 3f9c2a71
    """
    async with open_agent(load_settings(agent)) as newton:
        restored = await newton.sessions("cli").restore(clean_ref(session, what="session"), compaction)
    if restored:
        many = formatting.pluralize(restored, "compaction entry", "compaction entries")
        say(f"{many} expanded. A model receives the messages in full again.")
    else:
        say("The compaction entry is expanded already; nothing changed.")


def _nesting_depths(entries: Sequence[EntryStatus]) -> Iterator[int]:
    """Yield, for each compaction entry, how many active entries enclose it. Outer entries must come first."""
    over: list[CompactionEntry] = []
    for entry, restored_at in entries:
        over = [one for one in over if one.last >= entry.last]
        yield len(over)
        if restored_at is None:
            over.append(entry)


def _format_entry(status: EntryStatus, depth: int) -> str:
    entry, indent = status.entry, "   " * depth
    expanded = f"  expanded {status.restored_at:%Y-%m-%d %H:%M}" if status.restored_at else ""
    source = f"{entry.strategy} ({entry.model or 'no model'}, {entry.prompt})"
    text = one_line(entry.text)
    return (
        f"{indent}{short_id(entry.entry_id)}  messages {entry.first}-{entry.last}  {source}"
        f"  {entry.before:,} → {entry.tokens:,} tokens{expanded}\n"
        f"{indent}          {text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + ' …'}"
    )


def _entry_to_json(status: EntryStatus) -> dict[str, object]:
    entry = status.entry
    return {
        "compaction_id": str(entry.entry_id),
        "kind": entry.kind,
        "first_position": entry.first,
        "last_position": entry.last,
        "text": entry.text,
        "tokens": entry.tokens,
        "tokens_before": entry.before,
        "strategy": entry.strategy,
        "prompt": entry.prompt,
        "model": entry.model,
        "created_at": entry.made_at.isoformat(),
        "restored_at": status.restored_at and status.restored_at.isoformat(),
    }
