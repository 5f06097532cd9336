"""Commands `newton sessions`: messages of conversations, their summaries for a model (compaction), and branches."""

import shlex
from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from newton.agent.loop.prompt import count_message_tokens, to_chat_messages
from newton.agent.services.sessions import ViewPreview
from newton.dialogue.branches import BranchSummary
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import ViewMessage
from newton.memory.hygiene import clean_ref
from newton.providers.chat import to_openai_message
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, StrategyOption, load_settings
from newton.runtime.cli.printing import say

MAX_TEXT_CHARS = 100
MAX_TITLE_CHARS = 60

MaxTokensOption = Annotated[int | None, Parameter(help="Maximum tokens (default: the setting conversation_tokens).")]
SessionArgument = Annotated[str, Parameter(help="Name of the session.")]


async def list_sessions(*, agent: AgentOption = None, json: JsonOption = False) -> None:
    """List the sessions (conversations), the last used one last, with the number of messages and the first input.

    Example: newton sessions
    """
    async with open_agent(load_settings(agent)) as newton:
        sessions = await newton.sessions("cli").list_sessions()
    if json:
        formatting.print_json(list(map(_session_to_json, sessions)))
    else:
        say("\n".join(map(_format_session, sessions)) or "No sessions yet. `newton chat` starts one.")


async def show_log(session: SessionArgument, *, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show all messages of a session in full, with their positions.

    Example: newton sessions log planning
    """
    async with open_agent(load_settings(agent)) as newton:
        messages = await newton.sessions("cli").read_log(clean_ref(session, what="session"))
    if json:
        formatting.print_json(list(map(_message_to_json, messages)))
        return
    for stored in messages:
        say(f"{stored.position:>5}  {stored.message.said_at:%Y-%m-%d %H:%M}  {_format_message(stored.message)}")


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


async def branch_session(
    session: SessionArgument,
    branch: Annotated[str, Parameter(help="Name of the new session.")],
    *,
    at: Annotated[str | None, Parameter(help="Number of the message to continue from (default: the last one).")] = None,
    agent: AgentOption = None,
) -> None:
    """Create a session that continues from an existing session. The existing session does not change.

    Example: newton sessions branch planning planning-with-redis --at 12
    """
    async with open_agent(load_settings(agent)) as newton:
        refs = clean_ref(session, what="session"), clean_ref(branch, what="session")
        await newton.sessions("cli").create_branch(*refs, at=at)
    say(f"{branch} continues from {session}. Open it with `newton chat --session {shlex.quote(branch)}`.")


def _format_session(branch: BranchSummary) -> str:
    parent = f" (continues {branch.parent} from message {branch.parent_position})" if branch.parent else ""
    first = f"  {formatting.truncate(branch.began, MAX_TITLE_CHARS)}" if branch.began else ""
    many = formatting.pluralize(branch.lines, "message")
    return f"{branch.used_at:%Y-%m-%d %H:%M}  {many:>14}  {branch.ref}{parent}{first}"


def _session_to_json(branch: BranchSummary) -> dict[str, object]:
    return {
        "session_id": str(branch.session_id),
        "session": branch.ref,
        "created_at": branch.created_at.isoformat(),
        "parent_session": branch.parent,
        "parent_position": branch.parent_position,
        "messages": branch.lines,
        "last_used_at": branch.used_at.isoformat(),
        "first_input": branch.began,
    }


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


def _format_tool_calls(item: ViewMessage | Message) -> str:
    return "".join(f" → {call.name} {call.arguments}" for call in item.calls)


def _format_message(message: Message) -> str:
    notice = "  (notice of Newton; not sent to a model)" if message.is_notice else ""
    return f"{message.speaker}: {message.content}{_format_tool_calls(message)}{notice}"


def _message_to_json(stored: StoredMessage) -> dict[str, object]:
    message = stored.message
    return {
        "position": stored.position,
        "ref": message.ref,
        "role": message.role,
        "name": message.name,
        "content": message.content,
        "calls": [call._asdict() for call in message.calls],
        "answers": message.tool_call_id,
        "is_notice": message.is_notice,
        "tokens": stored.tokens,
        "at": message.said_at.isoformat(),
    }
