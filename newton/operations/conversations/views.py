"""Operations on what a model is sent of a session: its messages and summaries, and their tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from newton.agent.loop.prompt import count_message_tokens, to_chat_messages
from newton.agent.services.sessions import ViewPreview
from newton.agent.session_data.session_stats import SessionStats
from newton.dialogue.view import ViewMessage
from newton.memory.lookup import short_id
from newton.operations.conversations.compactions import format_runs
from newton.operations.declaration import operation
from newton.operations.fields import RequestStrategy, SessionName, ViewTokens
from newton.operations.text_format import pluralize
from newton.providers.chat import to_openai_message

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class SentView:
    """The messages that a model would be sent, in OpenAI's format, with the tokens of each.

    `tokens` counts these messages, `log_tokens` all of the session. To fit into `max_tokens`, so many messages are
    `summarized`, `omitted` and `truncated`.
    """

    tokens: int
    log_tokens: int
    max_tokens: int
    summarized: int
    omitted: int
    truncated: int
    messages: Sequence[dict[str, Any]]
    message_tokens: Sequence[int]
    text: Annotated[str, Field(exclude=True)] = ""  # with the positions of the messages, for the command only


@operation(
    "GET /v1/sessions/{session:path}/view",
    "reads",
    name="view",
    command="sessions view",
    text=attrgetter("text"),
    absent={
        "mcp": "The MCP client has its own conversation.",
        "chat": "Run the command in a terminal beside the chat.",
    },
)
async def show_view(
    caller: "OperationCaller", session: SessionName, *, max_tokens: ViewTokens = None, strategy: RequestStrategy = None
) -> SentView:
    """Show what a model would now be sent of a session: recent messages, and summaries of older ones.

    Nothing is stored. Notices that Newton wrote itself are left out. Tool calls and their results go only to a client
    of the OpenAI protocol; for a turn of Newton, the context has the results that matter.

    Example: newton sessions view s --max-tokens 8000
    """
    preview = await caller.sessions.preview(session, max_tokens=max_tokens, strategy=strategy)
    messages = to_chat_messages(preview.view)
    return SentView(
        tokens=preview.tokens,
        log_tokens=preview.logged,
        max_tokens=preview.room,
        summarized=preview.shorter,
        omitted=preview.left_out,
        truncated=preview.cut,
        messages=list(map(to_openai_message, messages)),
        message_tokens=count_message_tokens(messages, count_tokens=caller.scope.count_tokens),
        text="\n".join(_format_view(preview)),
    )


def _format_view(preview: ViewPreview) -> Iterator[str]:
    for item in preview.view:
        positions = f"{item.first}" if item.first == item.last else f"{item.first}-{item.last}"
        calls = "".join(f" → {call.name} {call.arguments}" for call in item.calls)
        yield f"{positions:>9}  {item.tokens:>6,}  {_format_speaker(item)}{item.text}{calls}"
    yield f"\n{preview.tokens:,} of {preview.room:,} tokens; all stored messages have {preview.logged:,} tokens."
    counts = {"summarized": preview.shorter, "omitted": preview.left_out, "truncated": preview.cut}
    if parts := [f"{pluralize(number, 'message')} {how}" for how, number in counts.items() if number]:
        yield f"To fit into the tokens: {', '.join(parts)}."


def _format_speaker(item: ViewMessage) -> str:
    return "" if item.kind not in ("line", "mask") else f"{item.name or item.role}: "


def _format_stats(stats: SessionStats) -> str:
    return "\n".join(_list_stats(stats))


def _list_stats(stats: SessionStats) -> Iterator[str]:
    yield f"{pluralize(stats.messages, 'message')}, {stats.log_tokens:,} tokens."
    yield f"A model receives {stats.view_tokens:,} of at most {stats.max_tokens:,} tokens:"
    for part, size in sorted(stats.parts.items(), key=lambda pair: -pair[1].tokens):
        yield f"  {part:<12}{size.tokens:>8,} tokens in {pluralize(size.messages, 'message')}"
    if stats.injected_tokens:
        yield f"Texts in every context: {stats.injected_tokens:,} tokens."
    for one in stats.compactions:
        restored = f", {one.restored} undone" if one.restored else ""
        yield f"Compactions of kind {one.kind}: {one.in_use} ({one.tokens_before:,} -> {one.tokens:,} tokens{restored})"
    if stats.masked.messages:
        masked = pluralize(stats.masked.messages, "tool output")
        yield f"Masked: {masked}, {stats.masked.tokens_saved:,} tokens saved."
    yield from map(format_runs, stats.runs)
    if context := stats.context:
        layers = ", ".join(f"{name} {tokens:,}" for name, tokens in context.layers.items())
        yield f"Latest context {short_id(context.bundle_id)}: {context.tokens:,} of {context.budget:,} tokens"
        yield f"  {layers}"


@operation("GET /v1/sessions/{session:path}/stats", "reads", command="sessions stats", text=_format_stats)
async def session_stats(caller: "OperationCaller", session: SessionName) -> SessionStats:
    """Show the tokens of a session by part, its compactions, what is masked, and its latest context.

    Example: newton sessions stats s
    """
    return await caller.newton.session_stats().read(session)
