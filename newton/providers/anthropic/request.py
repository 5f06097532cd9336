"""Translation of requests from OpenAI's format into that of Anthropic's Messages API. Pure functions.

As the API requires, roles alternate, tool results follow their calls, and no text is empty.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, cast

from newton.errors import RefusedRequestError
from newton.providers.chat import ChatMessage, RequestOptions, ToolCall, ToolDefinition

Block: TypeAlias = dict[str, Any]
FindBlocks: TypeAlias = Callable[[ToolCall], Sequence[Block]]  # the reasoning that led to a call

MAX_DEFAULT_TOKENS, UNKNOWN_MODEL_TOKENS = 32_000, 8_192  # of a reply, where nobody limits it
CACHE_MARK = {"type": "ephemeral"}
START_TEXT, EMPTY_TEXT = "(The conversation begins.)", "(no text)"
CONTINUE_TEXT = "(Continue your last message where it ends.)"  # newer models do not accept a reply to continue
JSON_INSTRUCTION = "Answer with one JSON object and nothing else."
# Reasoning budgets by effort, for models that do not choose one themselves. The smallest is the API's minimum.
REASONING_BUDGETS = {"low": 1_024, "medium": 4_096, "high": 16_384, "xhigh": 24_576, "max": 24_576}
EFFORTS = {"minimal": "low"}  # other names of efforts
MIN_REPLY_TOKENS = 1_024  # beside a reasoning budget

# Fields of OpenAI's format that only make a reply cheaper, faster or repeatable.
_HINTS = frozenset(
    {"seed", "prediction", "prompt_cache_key", "prompt_cache_retention", "verbosity", "metadata", "store", "user"}
    | {"safety_identifier", "stream", "stream_options", "prompt_cache_options"}
)
# Fields that the API lacks, with the values at which they change nothing.
_LACKING: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "modalities": (["text"],),
    "audio": (),
    "functions": (),
    "function_call": (),
    "web_search_options": (),
}
_TRANSLATED = frozenset(
    {"messages", "model", "max_tokens", "max_completion_tokens", "stop", "tools", "tool_choice", "parallel_tool_calls"}
    | {"response_format", "reasoning_effort", "service_tier"}
)
_SERVICE_TIERS = {"auto": "auto", "default": "standard_only"}
_NOT_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")
_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)
# What a schema for structured output may not have, besides what the API ignores.
_SCHEMA_LIMITS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"}
    | {"uniqueItems", "minProperties", "maxProperties", "default", "examples"}
)
_KEPT_MIN_ITEMS = (0, 1)
_NO_PARAMETERS: Block = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Known properties of a model.

    `max_tokens` is its maximum length of a reply; None if the server does not report it. `is_adaptive` means that the
    model itself decides how much to reason, `can_disable` that reasoning can be turned off.
    """

    max_tokens: int | None = None
    is_adaptive: bool = True
    can_disable: bool = False

    @property
    def default_tokens(self) -> int:
        """Return the maximum tokens of a reply to a request that sets no limit."""
        return min(self.max_tokens or UNKNOWN_MODEL_TOKENS, MAX_DEFAULT_TOKENS)


def build_body(
    model: str,
    messages: Sequence[ChatMessage],
    options: RequestOptions,
    *,
    max_tokens: int | None,
    facts: ModelFacts,
    find_reasoning: FindBlocks = lambda call: (),
) -> Block:
    """Return the body of a request to the Messages API.

    `find_reasoning` returns the reasoning blocks of an earlier call. The unchanging beginning of the prompt is marked
    for the prompt cache. Raises RefusedRequestError for an option or a part of a message that the API does not support.
    """
    fields = options.extra_body
    _check_options(fields)
    default = min(facts.default_tokens, options.reply_room or facts.default_tokens)  # a limit is required
    limit = fields.get("max_completion_tokens") or fields.get("max_tokens") or max_tokens or default
    turns = _build_turns(messages, find_reasoning)
    body: Block = {"model": model, "max_tokens": limit, "messages": turns, "stream": True}
    if system := _build_system(messages, fields):
        body["system"] = system
    body |= _build_tools(options, turns)
    body |= _build_sampling(fields)
    body |= _build_output(fields, facts, limit=limit if isinstance(limit, int) else default)
    if len(turns) > 1 or _format_type(fields) is None:  # a single structured call is not continued
        _mark_conversation(turns)
    return body


def _check_options(fields: Mapping[str, object]) -> None:
    for name, neutral in _LACKING.items():
        value = fields.get(name)
        if value is not None and value not in neutral:
            _refuse(f"Anthropic's Messages API does not support {name}.", "Omit the field, or use another model.", name)


def _refuse(what: str, hint: str, param: str) -> NoReturn:
    raise RefusedRequestError(what, hint=hint, param=param, server_code="unsupported_parameter")


def _build_system(messages: Sequence[ChatMessage], fields: Mapping[str, object]) -> list[Block]:
    texts = [message.text for message in messages if message.role == "system"]
    texts += [JSON_INSTRUCTION] if _format_type(fields) == "json_object" else []
    blocks = [_text_block(text) for text in texts if text.strip()]
    if blocks:
        blocks[-1]["cache_control"] = CACHE_MARK
    return blocks


def _build_turns(messages: Sequence[ChatMessage], find_reasoning: FindBlocks) -> list[Block]:
    """Return the messages with alternating roles; the first and the last have the role user."""
    turns: list[Block] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = list(_build_blocks(message.move_name_to_text(), find_reasoning))
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [_text_block(START_TEXT)]})
    if turns[-1]["role"] == "assistant":
        turns.append({"role": "user", "content": [_text_block(CONTINUE_TEXT)]})
    for turn in turns:
        turn["content"] = turn["content"] or [_text_block(EMPTY_TEXT)]
    return turns


def _build_blocks(message: ChatMessage, find_reasoning: FindBlocks) -> Iterable[Block]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": _clean_id(message.tool_call_id or "")}
        content = list(_build_content(message))
        yield {**result, "content": content} if content else result
        return
    for call in message.calls:
        yield from find_reasoning(call)
    yield from _build_content(message)
    for call in message.calls:
        yield {"type": "tool_use", "id": _clean_id(call.id), "name": call.name, "input": _parse_arguments(call)}


def _build_content(message: ChatMessage) -> Iterable[Block]:
    parts = message.parts or ({"type": "text", "text": message.text},)
    for part in parts:
        if part.get("type") != "text":
            yield _build_attachment(part)
        elif str(part.get("text") or "").strip():
            yield _text_block(str(part["text"]))


def _build_attachment(part: Mapping[str, Any]) -> Block:
    """Return the block for an image or a file in OpenAI's format. Raises RefusedRequestError for another part."""
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            found = _DATA_URL.fullmatch(url)
            return {"type": "image", "source": _base64_source(found) if found else {"type": "url", "url": url}}
        case {"type": "file", "file": {"file_data": str(data)} as file} if found := _DATA_URL.fullmatch(data):
            title = {"title": file["filename"]} if file.get("filename") else {}
            return {"type": "document", "source": _base64_source(found), **title}
        case _:
            kind = part.get("type")
            _refuse(
                f"Anthropic's Messages API does not accept a message part of the type {kind}.",
                "Send text, images, or PDF files with their data in base64.",
                "messages",
            )


def _base64_source(found: re.Match[str]) -> Block:
    return {"type": "base64", "media_type": found[1], "data": found[2]}


def _text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def _clean_id(call_id: str) -> str:
    """Replace the characters of a call id that the API does not allow. Ids of other servers may contain them."""
    return _NOT_IN_ID.sub("_", call_id) or "_"


def _parse_arguments(call: ToolCall) -> object:
    """Return the arguments of a call as an object; arguments that are no JSON object are put into one as text."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = None
    return cast("object", arguments) if isinstance(arguments, dict) else {"arguments": call.arguments}


def _build_tools(options: RequestOptions, turns: Sequence[Block]) -> Block:
    """Return the definitions of tools and the tool choice.

    The API requires definitions for tools in earlier messages, even if the model must not call any.
    """
    if options.all_tools:
        choice = _build_tool_choice(options.extra_body)
        return {
            "tools": [_build_tool(tool) for tool in options.all_tools],
            **({"tool_choice": choice} if choice else {}),
        }
    names = {one["name"]: None for turn in turns for one in turn["content"] if one["type"] == "tool_use"}
    if not names:
        return {}
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return {"tools": tools, "tool_choice": {"type": "none"}}


def _build_tool(tool: ToolDefinition) -> Block:
    function = tool.function
    schema: object = function.get("parameters") or _NO_PARAMETERS
    kept = {name: function[name] for name in ("description", "strict") if function.get(name)}
    return {"name": tool.name, "input_schema": schema, **kept}


def _build_tool_choice(fields: Mapping[str, Any]) -> Block | None:
    """Return the field `tool_choice` for the same field of OpenAI's format; None to omit it."""
    match fields.get("tool_choice"):
        case None:
            choice = {}
        case "auto" | "none" as kind:
            choice = {"type": kind}
        case "required":
            choice = {"type": "any"}
        case {"type": "function", "function": {"name": str(name)}}:
            choice = {"type": "tool", "name": name}
        case _:
            _refuse(
                "Anthropic's Messages API does not support this value of tool_choice.",
                "Use auto, none, required or the name of one tool.",
                "tool_choice",
            )
    if fields.get("parallel_tool_calls") is False and choice.get("type") != "none":
        return {"type": "auto", **choice, "disable_parallel_tool_use": True}
    return choice or None


def _build_sampling(fields: Mapping[str, object]) -> Block:
    """Return the fields that control sampling, and unchanged all fields that Newton does not know."""
    other = fields.keys() - _TRANSLATED - _HINTS - _LACKING.keys()
    body = {name: fields[name] for name in fields if name in other and fields[name] is not None}
    stop = fields.get("stop")
    if stop:
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if tier := _SERVICE_TIERS.get(str(fields.get("service_tier"))):
        body["service_tier"] = tier
    return body


def _build_output(fields: Mapping[str, object], facts: ModelFacts, *, limit: int) -> Block:
    """Return the fields for the format of the reply and the effort of reasoning.

    Fields of the Messages API that the request already has take precedence.
    """
    own = fields.get("output_config")
    config: Block = dict(cast("Block", own)) if isinstance(own, dict) else {}
    if _format_type(fields) == "json_schema":
        described: Block = cast("Block", fields["response_format"]).get("json_schema") or Block()
        config["format"] = {"type": "json_schema", "schema": close_schema(described.get("schema"))}
    thinking = None
    if effort := fields.get("reasoning_effort"):
        thinking = _build_thinking(str(effort), config, facts, limit=limit)
    body: Block = {"output_config": config} if config else {}
    return body | ({"thinking": thinking} if thinking and "thinking" not in fields else {})


def _build_thinking(effort: str, config: Block, facts: ModelFacts, *, limit: int) -> Block | None:
    """Return the field `thinking` for an effort of reasoning; None to omit it.

    For a model that decides itself how much to reason, the effort is also set in `config`.
    """
    effort = EFFORTS.get(effort, effort)
    if effort == "none":
        if facts.can_disable:
            return {"type": "disabled"}
        effort = "low"
    if facts.is_adaptive:
        config.setdefault("effort", effort)
        return {"type": "adaptive", "display": "summarized"}
    budget = min(REASONING_BUDGETS.get(effort, 0), limit - MIN_REPLY_TOKENS)
    return {"type": "enabled", "budget_tokens": budget} if budget >= REASONING_BUDGETS["low"] else None


def _format_type(fields: Mapping[str, object]) -> object:
    wanted = fields.get("response_format")
    return cast("Block", wanted).get("type") if isinstance(wanted, dict) else None


def close_schema(schema: object) -> Any:
    """Convert a JSON Schema to the subset that the API accepts: closed objects, no limits of numbers and lengths.

    Limits are moved to the description. The caller must check them in the reply.

    >>> close_schema({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}})["properties"]["n"]
    {'type': 'integer', 'description': 'minimum: 1'}
    """
    if isinstance(schema, list):
        return [close_schema(one) for one in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    fields = cast("Block", schema)
    closed: Block = {}
    for name, value in fields.items():
        if name in ("properties", "$defs", "definitions") and isinstance(value, dict):
            closed[name] = {key: close_schema(one) for key, one in cast("Block", value).items()}
        elif not _is_limit(name, value):
            closed[name] = value if name in ("enum", "const", "required") else close_schema(value)
    if fields.get("type") == "object":
        closed["additionalProperties"] = False
    if limits := [f"{name}: {value}" for name, value in fields.items() if _is_limit(name, value)]:
        closed["description"] = ". ".join(filter(None, (str(fields.get("description") or ""), ", ".join(limits))))
    return closed


def _is_limit(name: str, value: object) -> bool:
    return name in _SCHEMA_LIMITS or (name == "minItems" and value not in _KEPT_MIN_ITEMS)


def _mark_conversation(turns: Sequence[Block]) -> None:
    """Mark for the prompt cache the message of the user that begins the turn, and the last message.

    The next request repeats the first, and within the turn also the second. With the mark of the system message, which
    includes the tools, these are three of the four that the API accepts.
    """
    asked = [
        n for n, turn in enumerate(turns) if turn["role"] == "user" and turn["content"][-1]["type"] != "tool_result"
    ]
    for index in {*asked[-1:], len(turns) - 1}:
        last: Block = turns[index]["content"][-1]
        if not last["type"].endswith("thinking"):
            last["cache_control"] = CACHE_MARK
