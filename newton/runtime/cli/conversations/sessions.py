"""Command `newton sessions view`: the messages and summaries that a model would receive."""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from newton.agent.loop.prompt import count_message_tokens, to_chat_messages
from newton.agent.services.sessions import ViewPreview
from newton.dialogue.view import ViewMessage
from newton.memory.hygiene import clean_ref
from newton.providers.chat import to_openai_message
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, StrategyOption, load_settings
from newton.runtime.cli.printing import say

MaxTokensOption = Annotated[int | None, Parameter(help="Maximum tokens (default: the setting conversation_tokens).")]
SessionArgument = Annotated[str, Parameter(help="Name of the session.")]


async def show_view(
    session: SessionArgument,
    *,
    max_tokens: MaxTokensOption = None,
    strategy: StrategyOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a model would now receive of a session: recent messages, and summaries of older ones.

    Nothing is stored. Notices that Newton wrote itself are left out. Tool calls and their results go only to a client
    of the OpenAI protocol; in `chat` and `ask` the context has the results that matter. With --json, the messages have
    the format of the OpenAI chat API and are followed by their token counts.

    Example: newton sessions view planning --max-tokens 8000
    """
    async with open_agent(load_settings(agent)) as newton:
        ref = clean_ref(session, what="session")
        preview = await newton.sessions("cli").preview(ref, max_tokens=max_tokens, strategy=strategy)
    if not json:
        say("\n".join(_format_view(preview)))
        return
    messages = to_chat_messages(preview.view)
    formatting.print_json(
        {
            "tokens": preview.tokens,
            "log_tokens": preview.logged,
            "max_tokens": preview.room,
            "summarized": preview.shorter,
            "omitted": preview.left_out,
            "truncated": preview.cut,
            "messages": list(map(to_openai_message, messages)),
            "message_tokens": count_message_tokens(messages, count_tokens=newton.scope.count_tokens),
        }
    )


def _format_view(preview: ViewPreview) -> Iterator[str]:
    for item in preview.view:
        positions = f"{item.first}" if item.first == item.last else f"{item.first}-{item.last}"
        yield f"{positions:>9}  {item.tokens:>6,}  {_format_speaker(item)}{item.text}{_format_tool_calls(item)}"
    yield f"\n{preview.tokens:,} of {preview.room:,} tokens; all stored messages have {preview.logged:,} tokens."
    counts = {"summarized": preview.shorter, "omitted": preview.left_out, "truncated": preview.cut}
    if parts := [f"{formatting.pluralize(number, 'message')} {how}" for how, number in counts.items() if number]:
        yield f"To fit into the tokens: {', '.join(parts)}."


def _format_speaker(item: ViewMessage) -> str:
    return "" if item.kind not in ("line", "mask") else f"{item.name or item.role}: "


def _format_tool_calls(item: ViewMessage) -> str:
    return "".join(f" → {call.name} {call.arguments}" for call in item.calls)
