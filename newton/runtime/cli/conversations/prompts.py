"""Command `newton prompt`: show what was sent to the model in a turn."""

import json as json_module
from typing import Annotated, Any

from cyclopts import Parameter

from newton.agent.prompt_records.prompt_store import LATEST
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.prompt_views import (
    LogRangeInfo,
    PromptInfo,
    PromptMessageInfo,
    TurnPromptsInfo,
    to_turn_prompts_info,
)


async def show_prompt(
    turn: Annotated[
        str,
        Parameter(
            help="Turn: `latest`, `previous`, the position of one of its messages as `newton sessions log` prints it,"
            " or the id of a prompt."
        ),
    ] = LATEST,
    /,
    *,
    session: Annotated[str | None, Parameter(help="Session (default: that of the latest prompt).")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show exactly what the model received in a turn: messages and tools; and what of the log was left out, and why.

    A text that was forgotten or erased since is replaced by a note. `verified` means that the request is reproduced
    byte for byte. `newton why` explains the memories of the context.

    Example: newton prompt 12 --session planning
    """
    async with open_agent(load_settings(agent)) as newton:
        shown = to_turn_prompts_info(await newton.prompts().show(turn, session=session))
    if json:
        formatting.print_json(shown.model_dump(mode="json"))
    else:
        say(format_turn_prompts(shown))


def format_turn_prompts(shown: TurnPromptsInfo) -> str:
    """Format the prompts of a turn: each with its messages, its tools, and its account of the log."""
    title = f"Session {shown.session}, turn of the message {shown.input_position}: "
    parts = [title + formatting.pluralize(len(shown.calls), "model call")]
    for number, call in enumerate(shown.calls, start=1):
        parts += ["", _format_head(number, call), ""]
        parts += [_format_message(index, message, call) for index, message in enumerate(call.messages)]
        parts += [_format_tools(call), _format_log(call.log)]
    return "\n".join(parts)


def _format_head(number: int, call: PromptInfo) -> str:
    tokens, context = call.tokens, f", context {short_id(call.bundle_id)}" if call.bundle_id else ""
    failure = f" ({call.error})" if call.error else ""
    cost = "tokens not reported"
    if call.input_tokens is not None and call.output_tokens is not None:
        unit = "tokens (estimated)" if call.estimated else "tokens"
        cost = f"{call.input_tokens:,} + {call.output_tokens:,} {unit}"
    attached = f"; of {formatting.pluralize(call.attachments, 'attachment')} only the hash" if call.attachments else ""
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


def _format_prefix(call: PromptInfo) -> str:
    """Format which share of the messages the prompt before it had too, and why not more of that prompt was repeated."""
    if not call.message_chars or call.identical_chars is None:
        return "no earlier prompt to compare with"
    difference = f"; not repeated to its end: {call.difference}" if call.difference else ""
    return f"{call.identical_chars / call.message_chars:.0%} identical with the prompt before it{difference}"


def _format_message(index: int, message: PromptMessageInfo, call: PromptInfo) -> str:
    sources = f" ({'; '.join(message.sources)})" if message.sources else ""
    lines = [f"--- {message.role}{sources}"]
    if isinstance(message.content, str):
        lines.append(message.content)
    else:
        lines += [_format_part(part) for part in message.content or ()]
    lines += [f"→ {_format_call(one)}" for one in message.tool_calls]
    lines += [f"! {gap.reason}" for gap in call.gaps if gap.message == index]
    return "\n".join(lines)


def _format_part(part: dict[str, Any]) -> str:
    if part.get("type") == "text":
        return str(part["text"])
    return f"[{part.get('type')}, {part.get('bytes', 0):,} bytes, SHA-256 {part.get('sha256')}]"


def _format_call(call: dict[str, Any]) -> str:
    return f"{call['function']['name']} {call['function']['arguments']}"


def _format_tools(call: PromptInfo) -> str:
    lines = [f"--- tools ({len(call.tools)})"]
    lines += [json_module.dumps(tool, ensure_ascii=False) for tool in call.tools]
    lines += [f"--- options\n{json_module.dumps(call.options, ensure_ascii=False)}"] if call.options else []
    lines += [f"! {gap.reason}" for gap in call.gaps if gap.message is None]
    return "\n".join(lines)


def _format_log(log: list[LogRangeInfo]) -> str:
    lines = ["--- the log of this stretch"]
    for one in log:
        place = f"{one.first}" if one.first == one.last else f"{one.first}-{one.last}"
        entry = f" {short_id(one.compaction_id)}" if one.compaction_id else ""
        detail = f" ({one.detail})" if one.detail else ""
        lines.append(f"{place}: {one.reason}{entry}{detail}")
        lines += [f"    {line.position} {line.role}: {line.text}" for line in one.messages]
    return "\n".join(lines)
