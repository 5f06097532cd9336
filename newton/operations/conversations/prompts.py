"""Operations on records of prompts: what the model received in a turn."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from newton.agent.prompt_records.prompt_store import LATEST
from newton.agent.prompt_records.reproduction import LogRange, PromptReproduction
from newton.agent.prompt_records.service import TurnPrompts
from newton.memory.lookup import short_id
from newton.operations.declaration import operation
from newton.operations.fields import MAX_ID_CHARS, PromptSession
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


def _format_turn(shown: TurnPrompts) -> str:
    """Format the prompts of a turn: each with its messages, its tools, and its account of the log."""
    title = f"Session {shown.session}, turn of the message {shown.input_position}: "
    parts = [title + pluralize(len(shown.calls), "model call")]
    for number, call in enumerate(shown.calls, start=1):
        parts += ["", _format_head(number, call), ""]
        parts += [_format_message(index, message, call) for index, message in enumerate(call.messages)]
        parts += [_format_tools(call), _format_log(call.log)]
    return "\n".join(parts)


def _format_head(number: int, call: PromptReproduction) -> str:
    tokens, context = call.tokens, f", context {short_id(call.bundle_id)}" if call.bundle_id else ""
    failure = f" ({call.error})" if call.error else ""
    cost = "tokens not reported"
    if call.input_tokens is not None and call.output_tokens is not None:
        unit = "tokens (estimated)" if call.estimated else "tokens"
        cost = f"{call.input_tokens:,} + {call.output_tokens:,} {unit}"
    attached = f"; of {pluralize(call.attachments, 'attachment')} only the hash" if call.attachments else ""
    verified = "verified" if call.is_verified else f"not verified: {call.mismatch}"
    return "\n".join(
        (
            f"Call {number}, {call.created_at:%Y-%m-%d %H:%M:%S}, prompt {short_id(call.prompt_id)}{context}",
            f"  model {call.served_model or call.model}, {cost}, finish {call.finish}{failure}",
            f"  tokens by part: system {tokens.system:,}, conversation {tokens.conversation:,},"
            f" memories {tokens.memories:,}, input {tokens.input:,}, tool work {tokens.tool_work:,},"
            f" tool definitions {tokens.tools:,}",
            f"  {_format_prefix(call)}",
            f"  {verified}{attached}",
        )
    )


def _format_prefix(call: PromptReproduction) -> str:
    """Format which share of the messages the prompt before it had too, and why not more of that prompt was repeated."""
    if not call.message_chars or call.identical_chars is None:
        return "no earlier prompt to compare with"
    difference = f"; not repeated to its end: {call.difference}" if call.difference else ""
    return f"{call.identical_chars / call.message_chars:.0%} identical with the prompt before it{difference}"


def _format_message(index: int, message: dict[str, Any], call: PromptReproduction) -> str:
    sources = f" ({'; '.join(message['sources'])})" if message["sources"] else ""
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or ()
    lines = [f"--- {message['role']}{sources}", *map(_format_part, parts)]
    calls: Iterable[dict[str, Any]] = message.get("tool_calls", ())
    lines += [f"→ {one['function']['name']} {one['function']['arguments']}" for one in calls]
    lines += [f"! {gap.reason}" for gap in call.gaps if gap.message == index]
    return "\n".join(lines)


def _format_part(part: dict[str, Any]) -> str:
    if part.get("type") == "text":
        return str(part["text"])
    return f"[{part.get('type')}, {part.get('bytes', 0):,} bytes, SHA-256 {part.get('sha256')}]"


def _format_tools(call: PromptReproduction) -> str:
    lines = [f"--- tools ({len(call.tools)})"]
    lines += [json.dumps(tool, ensure_ascii=False) for tool in call.tools]
    lines += [f"--- options\n{json.dumps(call.options, ensure_ascii=False)}"] if call.options else []
    lines += [f"! {gap.reason}" for gap in call.gaps if gap.message is None]
    return "\n".join(lines)


def _format_log(log: Iterable[LogRange]) -> str:
    lines = ["--- the log of this stretch"]
    for one in log:
        place = f"{one.first}" if one.first == one.last else f"{one.first}-{one.last}"
        entry = f" {short_id(one.compaction_id)}" if one.compaction_id else ""
        detail = f" ({one.detail})" if one.detail else ""
        lines.append(f"{place}: {one.reason}{entry}{detail}")
        lines += [f"    {line.position} {line.role}: {line.text}" for line in one.messages]
    return "\n".join(lines)


@operation("GET /v1/prompts/{turn}", "reads", command="prompt", text=_format_turn)
async def prompt(
    caller: "OperationCaller",
    turn: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_ID_CHARS,
            description="The turn: `latest`, `previous`, the position of one of its messages, or the id of a prompt.",
        ),
    ] = LATEST,
    *,
    session: PromptSession = None,
) -> TurnPrompts:
    """Show exactly what the model received in a turn, and what of the conversation was left out, and why.

    The messages and tools of each call are reproduced from references to stored texts; `is_verified` says that they are
    the same, byte for byte. A text that was forgotten or erased since is replaced by a note. `why` explains the
    memories of the context.

    Example: newton prompt latest --session s
    """
    return await caller.newton.prompts().show(turn, session=session)
