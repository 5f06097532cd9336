"""The request of a chat completion: fields that Newton reads, and fields that the model gets unchanged."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from newton.agent.loop.history_match import IncomingMessage
from newton.agent.loop.prompt import MessageParts
from newton.agent.loop.turn_types import QuoteObstacle
from newton.errors import InputError
from newton.memory.hygiene import MAX_MESSAGE_CHARACTERS, clean_model_text
from newton.memory.redaction.redactor import redact_secrets
from newton.memory.representations import one_line
from newton.providers.chat import RequestOptions, ToolCall, ToolDefinition
from newton.runtime.api.chat_completions import content_parts

OWN_MODEL = "newton"
# Fields that Newton owns: it sends its own values, or none. Every other field goes to the model unchanged.
OWNED_FIELDS = frozenset({"messages", "model", "stream", "tools", "store", "user"})
INSTRUCTION_ROLES = ("system", "developer")
# Fields with which a model cannot also call Newton's tools.
FIELDS_WITHOUT_OWN_TOOLS = frozenset({"functions", "function_call", "prediction"})


class OpenAIRequestModel(BaseModel):
    """The base class of request models in OpenAI's format; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FunctionCallParam(OpenAIRequestModel):
    name: str = Field(min_length=1, max_length=200)
    arguments: str = Field("{}", max_length=MAX_MESSAGE_CHARACTERS)


class ToolCallParam(OpenAIRequestModel):
    id: str = Field(min_length=1, max_length=200)
    function: FunctionCallParam


class ChatMessageParam(OpenAIRequestModel):
    """A message of the conversation.

    Images and files of a user are sent to the model, and remembered as short texts.
    """

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | tuple[dict[str, Any], ...] | None = None
    refusal: str | None = None
    name: str | None = Field(None, max_length=200)
    tool_calls: tuple[ToolCallParam, ...] | None = None
    tool_call_id: str | None = Field(None, max_length=200)
    function_call: FunctionCallParam | None = Field(None, description="The only tool call, in the former format.")

    @property
    def text(self) -> str:
        """Return the text of the message, with a short text in place of each image or file."""
        if self.content is None or isinstance(self.content, str):
            return self.content or self.refusal or ""
        return content_parts.describe_parts(self.content)

    def to_incoming_message(self) -> IncomingMessage:
        """Return the message in the form that is compared with stored messages, and stored if it is new.

        Raises InputError for a tool message without `tool_call_id`.
        """
        name = clean_speaker(self.name)
        if self.role == "assistant":
            calls = tuple(ToolCall(one.id, one.function.name, one.function.arguments) for one in self.tool_calls or ())
            return IncomingMessage("assistant", self.text, calls, name=name)
        if self.role == "function":
            return IncomingMessage("tool", self.text, name=name)
        if self.role == "tool":
            if not self.tool_call_id:
                raise InputError(
                    "A tool message has no tool_call_id.",
                    hint="Send as tool_call_id the id of the tool call that the message answers.",
                    param="messages",
                )
            return IncomingMessage("tool", self.text, tool_call_id=self.tool_call_id, name=name)
        if not isinstance(self.content, tuple) or not content_parts.has_attachments(self.content):
            return IncomingMessage("user", self.text, name=name)
        return IncomingMessage(
            "user",
            self.text,
            name=name,
            parts=content_parts.clean_parts(self.content),
            attachment_digest=content_parts.hash_attachments(self.content),
        )


class ToolFunction(BaseModel):
    """The definition of a function of the caller. It is passed to the model unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")


class ToolParam(OpenAIRequestModel):
    type: Literal["function"] = "function"
    function: ToolFunction


def _name_user(value: object) -> object:
    """Return the `id` of a user that a program sends as an object; any other value unchanged."""
    return cast("Mapping[str, object]", value).get("id") if isinstance(value, Mapping) else value


UserName = Annotated[str | None, BeforeValidator(_name_user)]


class ChatCompletionRequest(BaseModel):
    """A conversation, whose last message is to be answered.

    Fields that are not listed here, such as `temperature` or `seed`, are passed to the model unchanged.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    messages: tuple[ChatMessageParam, ...] = Field(
        min_length=1, max_length=10_000, examples=[[{"role": "user", "content": "Who reviews my migration?"}]]
    )
    model: str = Field(
        OWN_MODEL,
        min_length=1,
        max_length=400,
        description="The name of a model, or AGENT/MODEL for a model of an agent. The name of an agent alone stands for"
        " its default model, and `newton` for the default model of the caller's agent.",
        examples=[OWN_MODEL],
    )
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    n: int | None = Field(
        None, ge=1, le=128, description="Number of replies to generate. Only the first one is remembered."
    )
    max_tokens: int | None = Field(
        None, description="Maximum tokens of the reply, for models that do not know `max_completion_tokens`."
    )
    max_completion_tokens: int | None = Field(None, description="Maximum tokens of the reply.")
    response_format: dict[str, Any] | None = None
    tools: tuple[ToolParam, ...] | None = Field(None, max_length=128)
    tool_choice: str | dict[str, Any] | None = None
    store: bool | None = Field(None, description="If `false`, nothing of this request is stored.")
    user: UserName = Field(None, description="The user whose memory is used, if the token serves several users.")
    safety_identifier: str | None = Field(None, description="Used in place of `user` if `user` is omitted.")

    @property
    def request_options(self) -> RequestOptions:
        tools = tuple(ToolDefinition(one.function.name, one.function.model_dump()) for one in self.tools or ())
        return RequestOptions(tools=tools, extra_body=self._passed_fields)

    @property
    def _passed_fields(self) -> Mapping[str, object]:
        fields = {name: getattr(self, name) for name in type(self).model_fields if name not in OWNED_FIELDS}
        given = {name: value for name, value in fields.items() if value is not None}
        return given | {name: value for name, value in (self.model_extra or {}).items() if name not in OWNED_FIELDS}

    @property
    def max_reply_tokens(self) -> int | None:
        limit = self.max_completion_tokens or self.max_tokens or 0
        return limit if limit > 0 else None

    @property
    def wants_plain_text(self) -> bool:
        """Return whether the request asks for one reply in plain text. Only then can the model use Newton's tools."""
        return not self._structured_fields

    @property
    def _structured_fields(self) -> list[str]:
        """Return the fields that ask for more than one reply, or for another one than plain text."""
        is_structured = {
            "n": self.n not in (None, 1),
            "response_format": (self.response_format or {}).get("type", "text") != "text",
            "tool_choice": self.tool_choice not in (None, "auto"),
        }
        fields = FIELDS_WITHOUT_OWN_TOOLS & (self.model_extra or {}).keys()
        return [*(name for name, is_set in is_structured.items() if is_set), *sorted(fields)]

    @property
    def quote_obstacle(self) -> QuoteObstacle | None:
        """Return why a reply cannot consist of quoted memories, if no model answers this request; None if it can."""
        if fields := [*self._structured_fields, *(["tools"] if self.tools else ())]:
            names = " and ".join(f"`{name}`" for name in fields)
            reason = f"{names} {'asks' if len(fields) == 1 else 'ask'} for something other than one plain text"
            return QuoteObstacle(reason, fields[0], f"Leave out {names}")
        if self.messages[-1].role in ("tool", "function"):
            return QuoteObstacle("the last message is the result of a tool, which only a model can use")
        return None

    @property
    def includes_usage(self) -> bool:
        return bool((self.stream_options or {}).get("include_usage"))

    @property
    def instructions(self) -> str:
        return "\n\n".join(one.text for one in self.messages if one.role in INSTRUCTION_ROLES)

    @cached_property
    def incoming_messages(self) -> Sequence[IncomingMessage]:
        return tuple(to_incoming_messages([one for one in self.messages if one.role not in INSTRUCTION_ROLES]))


def to_incoming_messages(messages: Sequence[ChatMessageParam]) -> list[IncomingMessage]:
    """Convert messages, without the system messages, to the form in which they are compared and stored.

    A function call in the former format becomes a tool call. Its id is made of its place in the conversation, so that
    it is the same each time the conversation is sent. A result that is sent twice is taken once.
    """
    incoming: list[IncomingMessage] = []
    open_functions: dict[str, str] = {}
    for place, message in enumerate(messages):
        one = message.to_incoming_message()
        if message.role == "assistant" and (function := message.function_call) and not one.calls:
            open_functions[function.name] = f"function_{place}"
            one = one._replace(calls=(ToolCall(open_functions[function.name], function.name, function.arguments),))
        elif message.role == "function":
            one = one._replace(tool_call_id=open_functions.pop(message.name or "", None))
        if one.role != "tool" or not _is_repeated(one, incoming):
            incoming.append(one)
    return incoming


def _is_repeated(result: IncomingMessage, before: Sequence[IncomingMessage]) -> bool:
    """Return whether the same result of the same call is among the results directly before it."""
    results = takewhile(lambda one: one.role == "tool", reversed(before))
    return any((one.tool_call_id, one.text) == (result.tool_call_id, result.text) for one in results)


def clean_speaker(name: str | None) -> str | None:
    """Return the name of a speaker as it is stored: in one line, without secrets; None if nothing is left."""
    return one_line(clean_model_text(name or "")) or None


def to_message_parts(message: IncomingMessage) -> MessageParts | None:
    """Return the content parts of a message, to be sent to the model; None for a message of text alone."""
    return MessageParts(redact_secrets(message.text), message.parts) if message.parts else None
