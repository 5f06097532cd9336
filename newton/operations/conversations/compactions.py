"""Operations on the compactions of a session: shorter texts that a model receives in place of older messages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import Ref
from newton.dialogue.compaction.entry_store import CompactionStats, EntryStatus
from newton.dialogue.compaction.strategies import CompactionObstacle
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.operations.declaration import operation
from newton.operations.fields import RequestStrategy, SessionName, ViewTokens, describe_id
from newton.operations.results import ItemList
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_TEXT_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionInfo:
    """A compaction: a shorter text that a model is sent in place of the messages from the first to the last position.

    `model` wrote the text after the named `prompt`; it is null if no model did. `restored_at` is when the messages were
    restored; null while the text is in use.
    """

    compaction_id: UUID
    kind: str
    first_position: int
    last_position: int
    text: str
    tokens: int
    tokens_before: int
    strategy: str
    prompt: str
    model: str | None
    created_at: datetime
    restored_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionList:
    """All compactions of a session by position; one that covers messages of others comes before these."""

    items: Sequence[CompactionInfo]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReport:
    """The tokens that a model is sent of a session before and after a compaction, their limit, and why they exceed it.

    `log_tokens` are those of all messages of the session.
    """

    tokens_before: int
    tokens_after: int
    max_tokens: int
    reached: bool
    obstacles: Sequence[CompactionObstacle]
    log_tokens: int

    @property
    def exit_status(self) -> int:
        return int(not self.reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredCompactions:
    """The number of compactions that were undone: the named one, and those that covered the same messages."""

    restored: int


def _to_info(status: EntryStatus) -> CompactionInfo:
    entry = status.entry
    return CompactionInfo(
        compaction_id=entry.entry_id,
        kind=entry.kind,
        first_position=entry.first,
        last_position=entry.last,
        text=entry.text,
        tokens=entry.tokens,
        tokens_before=entry.before,
        strategy=entry.strategy,
        prompt=entry.prompt,
        model=entry.model,
        created_at=entry.made_at,
        restored_at=status.restored_at,
    )


def _format_list(compactions: CompactionList) -> str:
    return "\n".join(_draw_list(compactions.items)) or "No messages of this session have been compacted."


def _draw_list(items: Sequence[CompactionInfo]) -> Iterator[str]:
    """Yield the lines of each compaction, indented below those in use that cover its messages."""
    over: list[CompactionInfo] = []
    for one in items:
        over = [outer for outer in over if outer.last_position >= one.last_position]
        indent, text = "   " * len(over), one_line(one.text)
        expanded = f"  expanded {one.restored_at:%Y-%m-%d %H:%M}" if one.restored_at else ""
        yield (
            f"{indent}{short_id(one.compaction_id)}  messages {one.first_position}-{one.last_position}"
            f"  {one.strategy} ({one.model or 'no model'}, {one.prompt})"
            f"  {one.tokens_before:,} → {one.tokens:,} tokens{expanded}"
        )
        yield f"{indent}          {text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + ' …'}"
        if one.restored_at is None:
            over.append(one)


def _format_report(report: CompactionReport) -> str:
    tokens, lines = report.tokens_after, list[str]()
    if saved := report.tokens_before - tokens:
        lines.append(f"A model now receives {tokens:,} tokens of the session, {saved:,} fewer.")
    elif report.reached:
        lines.append(f"No compaction is due: a model receives {tokens:,} tokens of the session.")
    if not report.reached:
        lines.append(f"{tokens:,} tokens are more than the {report.max_tokens:,} requested, because:")
        lines += [f"  {one.reason} ({one.tokens:,} tokens)" for one in report.obstacles]
    return "\n".join(lines)


def _format_restored(result: RestoredCompactions) -> str:
    if not result.restored:
        return "The compaction is expanded already; nothing changed."
    return f"{pluralize(result.restored, 'compaction')} expanded. A model receives the messages in full again."


def format_runs(stats: CompactionStats) -> str:
    """Format the runs of one strategy as a line: how many, what they saved, and how long they took."""
    failed = f", {stats.failed} failed" if stats.failed else ""
    runs = pluralize(stats.runs, "run") + (f" in {stats.sessions} sessions" if stats.sessions > 1 else "")
    duration = f"{stats.mean_ms:,.0f} ms on average, {stats.most_ms:,.0f} ms at most"
    wrong = f"; {stats.restored} undone and {stats.reread} read again" if stats.restored or stats.reread else ""
    last = f"last {stats.last_at:%Y-%m-%d %H:%M}"
    return f"{stats.strategy:<14}{runs}{failed}; {stats.saved:,} tokens saved; {duration}; {last}{wrong}"


async def _compact(
    caller: "OperationCaller", *, session: str, max_tokens: int | None, strategy: str | None
) -> CompactionReport:
    """Compact a session, and return the report. Runs outside of a transaction, because a model may write summaries."""
    outcome = await caller.sessions.compact(session, max_tokens=max_tokens, strategy=strategy)
    return CompactionReport(
        tokens_before=outcome.before.tokens,
        tokens_after=outcome.after.tokens,
        max_tokens=outcome.max_tokens,
        reached=outcome.is_reached,
        obstacles=outcome.obstacles,
        log_tokens=outcome.after.logged,
    )


@operation(
    "POST /v1/sessions/{session:path}/compact",
    "changes",
    act="work",
    name="compact",
    command="sessions compact",
    text=_format_report,
    is_idempotent=True,
    prepare=_compact,
)
async def compact_session(
    caller: "OperationCaller",
    report: CompactionReport,
    session: SessionName,
    *,
    max_tokens: ViewTokens = None,
    strategy: RequestStrategy = None,
) -> CompactionReport:
    """Replace older messages of a session by shorter texts in what a model receives, down to a limit if possible.

    The stored messages do not change, and `restore_compaction` undoes it. If the limit is not reached, the result says
    why, and the exit status of the command is 1.

    Example: newton sessions compact s --max-tokens 40
    """
    return report


@operation(
    "GET /v1/sessions/{session:path}/compactions",
    "reads",
    name="compactions",
    command="sessions compactions",
    text=_format_list,
)
async def list_compactions(caller: "OperationCaller", session: SessionName) -> CompactionList:
    """List the compactions of a session: texts that a model receives in place of older messages.

    Those that were undone are listed too.

    Example: newton sessions compactions s
    """
    return CompactionList(items=[_to_info(one) for one in await caller.sessions.list_entries(session)])


@operation(
    "GET /v1/compaction-stats",
    "reads",
    command="sessions compaction-stats",
    text=format_runs,
    empty="No compactions yet.",
)
async def compaction_stats(
    caller: "OperationCaller",
    session: Annotated[Ref | None, Field(description="Only those of this session.", examples=["default"])] = None,
) -> ItemList[CompactionStats]:
    """Show the compactions of a session, or of all, by strategy: runs, tokens saved and spent, times, wrong cuts.

    Example: newton sessions compaction-stats s
    """
    return ItemList(items=await caller.sessions.get_compaction_stats(session))


@operation(
    "POST /v1/sessions/{session:path}/restore",
    "changes",
    act="work",
    command="sessions expand",
    text=_format_restored,
    is_idempotent=True,
)
async def restore_compaction(
    caller: "OperationCaller", session: SessionName, compaction_id: Annotated[str, describe_id("compaction")]
) -> RestoredCompactions:
    """Undo a compaction: a model receives its messages in full again, and they are never compacted again.

    Example: newton sessions expand s 3f9c2a71
    """
    return RestoredCompactions(restored=await caller.sessions.restore(session, compaction_id))
