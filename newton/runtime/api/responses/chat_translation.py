"""Translation of a request of the Responses API to a request of chat completions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from newton.errors import InputError
from newton.runtime.api.chat_completions.request_models import ChatCompletionRequest
from newton.runtime.api.responses.request_models import (
    ContentParts,
    FunctionCallItem,
    FunctionOutputItem,
    FunctionToolParam,
    InputItem,
    ResponseMessageItem,
    ResponseRequest,
)

ChatMessageFields = dict[str, Any]

TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
# Fields with the same name and meaning in both protocols.
SHARED_FIELDS = (
    *("temperature", "top_p", "top_logprobs", "service_tier", "safety_identifier", "prompt_cache_key"),
    *("store", "user"),
)
IGNORED_FIELDS = frozenset({"n", "messages"})  # not of this protocol, and of a meaning that would break the reply
UNSUPPORTED_FIELDS = {
    "background": "Omit `background`, and read the reply as a stream.",
    "conversation": "Send `previous_response_id`, or the header X-Newton-Session.",
    "prompt": "Send `instructions` and `input`.",
}
LOGPROBS = "message.output_text.logprobs"


def to_chat_request(body: ResponseRequest, items: Sequence[InputItem]) -> ChatCompletionRequest:
    """Return the equivalent request of chat completions.

    `items` are the input items of the body, with references already replaced. Raises InputError for options that chat
    completions do not have.
    """
    for name, hint in UNSUPPORTED_FIELDS.items():
        if getattr(body, name):
            raise InputError(f"`{name}` is not supported.", hint=hint, param=name)
    instructions = [{"role": "system", "content": body.instructions}] if body.instructions else []
    messages = [*instructions, *to_chat_messages(items)]
    if len(messages) == len(instructions):
        raise InputError("The input is empty.", hint="Send at least one message.", param="input")
    fields = {
        **{name: value for name, value in (body.model_extra or {}).items() if name not in IGNORED_FIELDS},
        **{name: getattr(body, name) for name in SHARED_FIELDS},
        **_to_tool_fields(body),
        "messages": messages,
        "model": body.model,
        "max_completion_tokens": body.max_output_tokens,
        "reasoning_effort": body.reasoning and body.reasoning.effort,
        "response_format": _to_response_format(body),
        "verbosity": body.text and body.text.verbosity,
        "logprobs": True if body.top_logprobs or LOGPROBS in (body.include or ()) else None,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return ChatCompletionRequest.model_validate(given)


def to_chat_messages(items: Iterable[InputItem]) -> list[ChatMessageFields]:
    """Return the input items as chat messages. Consecutive texts and calls of the assistant become one message."""
    messages: list[ChatMessageFields] = []
    for index, item in enumerate(items):
        match item:
            case ResponseMessageItem(role="assistant"):
                _merge_into_reply(messages, text=_join_texts(item.content, f"input[{index}].content"))
            case FunctionCallItem():
                function = {"name": item.name, "arguments": item.arguments}
                _merge_into_reply(messages, call={"id": item.call_id, "type": "function", "function": function})
            case ResponseMessageItem():
                content = _to_chat_content(item.content, f"input[{index}].content")
                messages.append({"role": item.role, "content": content, "name": item.name})
            case FunctionOutputItem():
                content = _to_chat_content(item.output, f"input[{index}].output")
                messages.append({"role": "tool", "tool_call_id": item.call_id, "content": content})
            case _:  # reasoning is not sent back to the model
                pass
    return messages


def _merge_into_reply(
    messages: list[ChatMessageFields], *, text: str = "", call: Mapping[str, object] | None = None
) -> None:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": "", "tool_calls": []})
    reply = messages[-1]
    reply["content"] = "\n\n".join(filter(None, (reply["content"], text)))
    reply["tool_calls"] += [call] if call else []


def _join_texts(content: str | ContentParts, param: str) -> str:
    """Return the texts of an assistant message as one text. Raises InputError for content other than text."""
    if isinstance(content, str):
        return content
    kinds = {str(part.get("type")) for part in content} - TEXT_TYPES - {"refusal"}
    if kinds:
        raise InputError(
            f"An assistant message cannot have content of the type {min(kinds)}.",
            hint="Send content of the type output_text or refusal.",
            param=param,
        )
    return "\n".join(str(part.get("text") or part.get("refusal") or "") for part in content)


def _to_chat_content(content: str | ContentParts, param: str) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts = [_to_chat_part(part, f"{param}[{index}]") for index, part in enumerate(content)]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _to_chat_part(part: Mapping[str, Any], param: str) -> dict[str, Any]:
    match part.get("type"):
        case kind if kind in TEXT_TYPES:
            return {"type": "text", "text": str(part.get("text") or "")}
        case "input_image" if part.get("image_url"):
            image = {"url": part["image_url"], **({"detail": part["detail"]} if part.get("detail") else {})}
            return {"type": "image_url", "image_url": image}
        case "input_file" if part.get("file_data") or part.get("file_id"):
            file = {name: part[name] for name in ("file_data", "file_id", "filename") if part.get(name)}
            return {"type": "file", "file": file}
        case "input_audio" if part.get("input_audio"):
            return {"type": "input_audio", "input_audio": part["input_audio"]}
        case kind:
            hint = "Send the type input_text, input_image with an image_url, input_file with file_data, or input_audio."
            raise InputError(
                f"Content of the type {kind} is not supported here or is incomplete.", hint=hint, param=param
            )


def _to_tool_fields(body: ResponseRequest) -> dict[str, Any]:
    if not body.tools:  # without tools, servers refuse these options
        return {}
    return {
        "tools": [{"type": "function", "function": _to_function(tool)} for tool in body.tools],
        "tool_choice": _to_tool_choice(body.tool_choice),
        "parallel_tool_calls": body.parallel_tool_calls,
    }


def _to_function(tool: FunctionToolParam) -> dict[str, Any]:
    return tool.model_dump(exclude={"type"}, exclude_none=True)


def _to_tool_choice(choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    match choice:
        case None | str():
            return choice
        case {"type": "function", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}
        case {"type": "allowed_tools", "mode": str(mode), "tools": [*tools]}:
            allowed = {"mode": mode, "tools": [_to_tool_choice(tool) for tool in tools]}
            return {"type": "allowed_tools", "allowed_tools": allowed}
        case _:
            hint = 'Send as `tool_choice` "auto", "none", "required", or a tool of the type function.'
            raise InputError("This tool choice is not supported.", hint=hint, param="tool_choice")


def _to_response_format(body: ResponseRequest) -> dict[str, Any] | None:
    match body.text and body.text.format:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return {"type": "json_object"}
        case {"type": "json_schema", "name": str(), "schema": dict()} as given:
            schema = {name: given[name] for name in ("name", "description", "schema", "strict") if name in given}
            return {"type": "json_schema", "json_schema": schema}
        case _:
            hint = "Send a format of the type text, json_object, or json_schema with `name` and `schema`."
            raise InputError("This format of the reply is not supported.", hint=hint, param="text.format")
