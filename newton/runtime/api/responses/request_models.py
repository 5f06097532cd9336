"""The request of the Responses API: its input items, their ids and its options."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, cast
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from newton.agent.services.responses import ResponseService
from newton.dialogue.response_store import StoredResponse
from newton.errors import InputError
from newton.memory.hygiene import MAX_MESSAGE_CHARACTERS
from newton.runtime.api.chat_completions.request_models import OWN_MODEL, OpenAIRequestModel, UserName

ItemKind = Literal["msg", "fc", "rs"]  # message, function call, reasoning

_RESPONSE_ID = re.compile("resp_([0-9a-f]{32})")
_ITEM_ID = re.compile("(msg|fc|rs)_([0-9a-f]{32})([0-9a-f]{4})")


class ItemPlace(NamedTuple):
    """The place of an output item: the kind of item, its response, and its number among the items of this kind."""

    kind: str
    response_id: UUID
    number: int


def format_response_id(response_id: UUID) -> str:
    return f"resp_{response_id.hex}"


def parse_response_id(text: str) -> UUID | None:
    """Return the UUID in the id of a response; None if the text is not such an id."""
    match = _RESPONSE_ID.fullmatch(text)
    return UUID(match[1]) if match else None


def format_item_id(kind: ItemKind, response_id: UUID, number: int) -> str:
    """Return the id of an output item.

    >>> format_item_id("fc", UUID(int=10), 1)
    'fc_0000000000000000000000000000000a0001'
    """
    return f"{kind}_{response_id.hex}{number:04x}"


def parse_item_id(text: str, *, param: str) -> ItemPlace:
    """Return the place of the output item with this id. Raises InputError if the text is not such an id."""
    match = _ITEM_ID.fullmatch(text)
    if match is None:
        what = f"There is no item {text[:80]!r}."
        raise InputError(what, hint="Send the item itself in place of a reference to it.", param=param)
    return ItemPlace(match[1], UUID(match[2]), int(match[3], 16))


MAX_ITEMS = 10_000
MAX_TOOLS = 128
ContentParts = tuple[dict[str, Any], ...]


class ResponseMessageItem(OpenAIRequestModel):
    """A message; one of the assistant may be the output of an earlier response."""

    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | ContentParts
    name: str | None = Field(
        None, max_length=200, description="Who speaks, if several persons do, as in chat completions."
    )


class FunctionCallItem(OpenAIRequestModel):
    """A function call that the model made."""

    type: Literal["function_call"]
    call_id: str = Field(min_length=1, max_length=200)
    name: str = Field(min_length=1, max_length=200)
    arguments: str = Field("{}", max_length=MAX_MESSAGE_CHARACTERS)


class FunctionOutputItem(OpenAIRequestModel):
    """The result of a function call."""

    type: Literal["function_call_output"]
    call_id: str = Field(min_length=1, max_length=200)
    output: str | ContentParts


class ReasoningItem(OpenAIRequestModel):
    """The reasoning of an earlier response. It is accepted and ignored."""

    type: Literal["reasoning"]


class ReferenceItem(OpenAIRequestModel):
    """A reference to an output item of a stored response, by its id."""

    type: Literal["item_reference"] | None = None
    id: str = Field(min_length=1, max_length=200)


def _to_fields(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else dict[str, object]()


def _name_item_type(item: object) -> str:
    """Return the type of an input item, followed by " item", so that errors do not show it as a field name."""
    fields = _to_fields(item)
    kind = fields.get("type") or ("message" if "role" in fields else "item_reference")
    return f"{kind} item"


InputItem = Annotated[
    Annotated[ResponseMessageItem, Tag("message item")]
    | Annotated[FunctionCallItem, Tag("function_call item")]
    | Annotated[FunctionOutputItem, Tag("function_call_output item")]
    | Annotated[ReasoningItem, Tag("reasoning item")]
    | Annotated[ReferenceItem, Tag("item_reference item")],
    Discriminator(
        _name_item_type,
        custom_error_type="unsupported_item",
        custom_error_message="An item is a message, function_call, function_call_output, reasoning or item_reference;"
        " other types are not supported",
    ),
]


class FunctionToolParam(BaseModel):
    """A function that the model may call. Further fields are passed to the model unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: Literal["function"]
    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


def _require_function(tool: object) -> object:
    """Return the tool unchanged. Raises PydanticCustomError for a built-in tool, such as a web search."""
    if _to_fields(tool).get("type") != "function":
        raise PydanticCustomError(
            "unsupported_tool",
            "Only tools of the type function are supported; offer a function in place of a built-in tool such as"
            " web_search",
        )
    return tool


ToolParam = Annotated[FunctionToolParam, BeforeValidator(_require_function)]


class ReasoningOptions(OpenAIRequestModel):
    effort: str | None = None
    summary: str | None = None


class TextOptions(OpenAIRequestModel):
    """The format of the reply: plain text, JSON, or JSON that matches a schema."""

    format: dict[str, Any] | None = None
    verbosity: str | None = None


class ResponseRequest(BaseModel):
    """An input to answer: a whole conversation, or messages that follow a stored response.

    Fields that are not listed here, such as `seed`, are passed to the model unchanged.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    input: Annotated[
        Annotated[str, Field(min_length=1), Tag("str")]
        | Annotated[tuple[InputItem, ...], Field(min_length=1, max_length=MAX_ITEMS), Tag("list")],
        Discriminator(lambda value: "str" if isinstance(value, str) else "list"),
    ] = Field(
        description="The text of a user message, or a list of input items.", examples=["Who reviews my migration?"]
    )
    model: str = Field(
        OWN_MODEL,
        min_length=1,
        max_length=400,
        description="The name of a model, or AGENT/MODEL for a model of an agent. The name of an agent alone stands for"
        " its default model, and `newton` for the default model of the caller's agent.",
        examples=[OWN_MODEL],
    )
    instructions: str | None = Field(None, description="A system message for this response only.")
    previous_response_id: str | None = Field(
        None, description="The id of the stored response that the new response continues."
    )
    store: bool | None = Field(
        default=True,
        description="Whether to store the response, so that it can be continued and retrieved by its id. If `false`,"
        " nothing of this request is stored.",
    )
    stream: bool | None = False
    max_output_tokens: int | None = Field(None, ge=1)
    metadata: dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]] | None = Field(
        None, max_length=16, description="Labels that are stored with the response."
    )
    tools: tuple[ToolParam, ...] | None = Field(None, max_length=MAX_TOOLS)
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    include: tuple[str, ...] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    user: UserName = Field(None, description="The user whose memory is used, if the token serves several users.")
    truncation: str | None = Field(None, description="Accepted and ignored: Newton shortens long conversations itself.")
    stream_options: dict[str, Any] | None = None
    background: bool | None = Field(None, description="Only `false` is supported.")
    conversation: str | dict[str, Any] | None = Field(None, description="Not supported.")
    prompt: dict[str, Any] | None = Field(None, description="Not supported.")
    max_tool_calls: int | None = Field(
        None, description="Accepted and ignored: it limits built-in tools, which Newton does not have."
    )
    context_management: tuple[dict[str, Any], ...] | None = Field(
        None, description="Accepted and ignored: Newton shortens long conversations itself."
    )

    @property
    def items(self) -> tuple[InputItem, ...]:
        """Return the input items; a text becomes one user message."""
        return (ResponseMessageItem(role="user", content=self.input),) if isinstance(self.input, str) else self.input


async def resolve_references(items: Sequence[InputItem], responses: ResponseService) -> list[InputItem]:
    """Return the items, with each reference replaced by the stored item. Raises InputError for an unknown reference."""
    places = {
        index: parse_item_id(item.id, param=_param(index))
        for index, item in enumerate(items)
        if isinstance(item, ReferenceItem)
    }
    stored = await responses.find(list({place.response_id for place in places.values()}))
    return [
        _find_item(places[index], stored, param=_param(index)) if index in places else item
        for index, item in enumerate(items)
    ]


def _find_item(place: ItemPlace, stored: Mapping[UUID, StoredResponse], *, param: str) -> InputItem:
    response = stored.get(place.response_id)
    if response and place.kind == "rs":
        return ReasoningItem(type="reasoning")
    if response and place.kind == "msg" and response.text:
        return ResponseMessageItem(role="assistant", content=response.text)
    if response and place.kind == "fc" and place.number < len(response.calls):
        call = response.calls[place.number]
        return FunctionCallItem(type="function_call", call_id=call.id, name=call.name, arguments=call.arguments)
    raise InputError(
        "The referenced item is not stored.", hint="Send the item itself in place of a reference to it.", param=param
    )


def _param(index: int) -> str:
    return f"input[{index}].id"
