"""The input, the options and the result of a turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from newton.agent.loop.prompt import MessageParts
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.bundle_store import AnsweredBy
from newton.cognition.session_context.service import SessionContext
from newton.dialogue.messages import Message
from newton.dialogue.view import ViewMessage
from newton.heart.identity.identity_store import TenetProposal
from newton.providers.chat import ChatReply, FinishReason, RequestOptions, ToolCall

CENSOR_MESSAGE = "A censor forbids this input."


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerOptions:
    """Options of an API caller.

    `instructions` go before the context; `fingerprint` computes the ref of a reply. `max_reply_tokens` is reserved in
    the window and sent by the `request_options`. `offers_own_tools` is whether the model may call Newton's tools, and
    `accepts_quotes` whether quotes of memory may stand in for a reply. `attachments` are the messages with more than
    text by their ref, and `input_parts` the content of the input, if it has more than text.
    """

    request_options: RequestOptions = field(default_factory=RequestOptions)
    instructions: str = ""
    max_reply_tokens: int | None = None
    fingerprint: Callable[[str, Sequence[ToolCall]], str] | None = None
    offers_own_tools: bool = True
    accepts_quotes: bool = True
    attachments: Mapping[str, MessageParts] = field(default_factory=dict[str, MessageParts])
    input_parts: MessageParts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateConversation:
    """A conversation of which nothing is stored but the number of its tokens.

    `view` are its messages, oldest first. Those of the session `session_id` up to `last_position`, if there is one,
    come before them. `question` is the text for which memory is searched; without one, the model gets the messages as
    they are, and nothing of Newton. `ui_task` is the kind of the request if a program has sent it by itself. `purpose`
    names the turn in the usage of the model.
    """

    view: Sequence[ViewMessage]
    question: str | None
    session_id: UUID | None = None
    last_position: int | None = None
    ui_task: str | None = None

    @property
    def purpose(self) -> str:
        return f"ui task {self.ui_task}" if self.ui_task else "private turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """The input of a turn.

    `earlier` are messages to store before it, or after it if it is `already_stored`. `private` is the conversation of a
    turn that is not stored, which ends with the input or with tool results; it has no session.
    """

    session_id: UUID | None
    text: str
    private: PrivateConversation | None = None
    frame: str | None = None
    ref: str | None = None
    earlier: Sequence[Message] = ()
    already_stored: bool = False
    caller_options: CallerOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """The result of a turn.

    `degraded` is the reason why there is no complete reply of the model. The caller must run `calls`. `replies` are
    those of the model, one for each round of tool calls. `context` is None if memory was not used. Of a `private`
    conversation nothing is stored, the context included. `redacted` secrets were removed from the input.
    """

    text: str
    context: SessionContext | None
    private: PrivateConversation | None = None
    degraded: str | None = None
    answered_by: AnsweredBy = "model"
    failed: bool = False
    calls: Sequence[ToolCall] = ()
    finish: FinishReason = "stop"
    replies: Sequence[ChatReply] = ()
    proposed: Sequence[TenetProposal] = ()
    redacted: int = 0

    @property
    def tokens(self) -> tuple[int, int]:
        """Return the input and output tokens of all replies."""
        return sum(reply.input_tokens for reply in self.replies), sum(reply.output_tokens for reply in self.replies)

    @property
    def quoted(self) -> bool:
        """Return whether the text quotes memory."""
        return self.answered_by == "memory"

    @property
    def forbidden(self) -> bool:
        """Return whether the text is the message of a censor."""
        return self.answered_by == "censor"

    @property
    def is_stored(self) -> bool:
        return self.private is None

    @property
    def bundle(self) -> Bundle:
        """Return the context of a turn that used memory."""
        assert self.context is not None, "the turn used no memory"
        return self.context.bundle

    @property
    def caveat(self) -> str | None:
        return None if self.degraded in (None, CENSOR_MESSAGE) else f"{self.degraded} {self.shortcoming}"

    @property
    def shortcoming(self) -> str:
        return "This answer only quotes memory." if self.quoted else "The answer is incomplete."
