"""The input, the caller's options and the result of a turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from newton.agent.actions.external_tools import ApprovalCallback
from newton.agent.loop.prompt import MessageParts
from newton.agent.reconciliation.line_changes import NO_RECEIPT, LearningReceipt
from newton.agent.session_data.user_rules import NOTHING_HEARD, HeardRules
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.bundle_store import AnsweredBy
from newton.cognition.session_context.service import SessionContext
from newton.deadline import RequestDeadline
from newton.dialogue.messages import Message
from newton.dialogue.view import ViewMessage
from newton.memory.redaction.tally import Redactions
from newton.providers.chat import ChatReply, FinishReason, RequestOptions, ToolCall

CENSOR_MESSAGE = "A censor forbids this input."


class QuoteObstacle(NamedTuple):
    """A clause that says why quotes of memory cannot replace the reply of a model.

    `param` is the field of the request that its caller can change, and `remedy` how; both are None if only a model can
    answer the request.
    """

    reason: str
    param: str | None = None
    remedy: str | None = None


NO_USER_MESSAGE = QuoteObstacle(
    "there is no message of the role user to search memory for", "messages", "Send a message of the role user"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerOptions:
    """Options of an API caller for one turn.

    `instructions` are sent before the context. `fingerprint` computes the id (ref) under which the reply is stored.
    `max_reply_tokens` is reserved in the context window. `offers_own_tools` says whether the model may call Newton's
    tools. `quote_obstacle` is why the caller cannot use quotes of memory in place of a reply, None if it can.
    `attachments` maps the ref of a message to its content if that is more than text; `input_parts` is the same for the
    input.
    """

    request_options: RequestOptions = field(default_factory=RequestOptions)
    instructions: str = ""
    max_reply_tokens: int | None = None
    fingerprint: Callable[[str, Sequence[ToolCall]], str] | None = None
    offers_own_tools: bool = True
    quote_obstacle: QuoteObstacle | None = None
    attachments: Mapping[str, MessageParts] = field(default_factory=dict[str, MessageParts])
    input_parts: MessageParts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateConversation:
    """A conversation of which nothing is stored except the number of tokens that it used.

    `view` are its messages, oldest first. If `session_id` is set, the messages of that session up to `last_position`
    come before them. `question` is the text for which memory is searched; if it is None, the model gets the identity,
    the constraints and the messages. `ui_task` names the kind of request if a program sent it on its own, such as a
    request for a title. `purpose` is recorded with the tokens used.
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

    `earlier` are messages to store before the input, or after it if `already_stored`. `private` is set for a turn that
    is not stored and has no session: its conversation, which ends with the input or with tool results. `on_debug`
    receives debug lines before the reply: what the model is sent. `strategy` is the compaction preset, or list of
    strategies, for this turn; None means the setting. `approve` asks a person whether a tool of a server may be called;
    without it, only those are called that were permitted before. `input_parts` is the content of the input if that is
    more than text, such as an image. `deadline` is the moment until which the turn waits for its session and for
    memory; None gives memory the default time. `speaker` is the name of who said it, if the caller names several. If
    `already_stored`, an empty `text` means that there is no input: the model continues the conversation, without
    memory. `sent` returns the whole conversation as the caller sent it, for a turn that is off the record.
    """

    session_id: UUID | None
    text: str
    speaker: str | None = None
    private: PrivateConversation | None = None
    frame: str | None = None
    ref: str | None = None
    earlier: Sequence[Message] = ()
    already_stored: bool = False
    strategy: str | None = None
    caller_options: CallerOptions | None = None
    on_debug: Callable[[Sequence[str]], None] | None = None
    approve: ApprovalCallback | None = None
    input_parts: MessageParts | None = None
    deadline: RequestDeadline | None = None
    sent: Callable[[], Sequence[ViewMessage]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """The result of a turn.

    `degraded` is why there is no complete reply of the model, and `images_refused` why it answered without the images
    of the input. `calls` are tool calls that the caller must run. `replies` are the model's replies, one for each round
    of tool calls. `context` is None if memory was not used. If `private` is set, nothing was stored, not even the
    context. `redacted` counts the secrets removed from the input, by kind. `rules` is what the input changed in the
    user's rules, `receipt` what in the facts, and `wills` what was done about a will over memory. `answered_by` is None
    if the text only says what failed. `missing` maps parts of the turn that failed, and sources that its context lacks,
    to reasons.
    """

    text: str
    context: SessionContext | None
    private: PrivateConversation | None = None
    degraded: str | None = None
    images_refused: str | None = None
    answered_by: AnsweredBy | None = "model"
    failed: bool = False
    calls: Sequence[ToolCall] = ()
    finish: FinishReason = "stop"
    replies: Sequence[ChatReply] = ()
    rules: HeardRules = NOTHING_HEARD
    wills: Sequence[str] = ()
    receipt: LearningReceipt = NO_RECEIPT
    redacted: Redactions = field(default_factory=dict[str, int])
    missing: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def tokens(self) -> tuple[int, int]:
        """Return the number of input tokens and of output tokens, each summed over all replies."""
        return sum(reply.input_tokens for reply in self.replies), sum(reply.output_tokens for reply in self.replies)

    @property
    def quoted(self) -> bool:
        """Return whether the reply quotes memory instead of coming from a model."""
        return self.answered_by == "memory"

    @property
    def forbidden(self) -> bool:
        """Return whether the reply is the message of a censor."""
        return self.answered_by == "censor"

    @property
    def is_stored(self) -> bool:
        return self.private is None

    @property
    def pending_approvals(self) -> list[str]:
        """Return a line for each proposal that waits for the user's approval, unless the context is reused."""
        context = self.context
        return context.bundle.pending_approvals if context and context.method != "stood" else []

    @property
    def bundle(self) -> Bundle:
        """Return the context of the turn. The turn must have used memory."""
        assert self.context is not None, "the turn used no memory"
        return self.context.bundle

    @property
    def caveat(self) -> str | None:
        """Return a warning about the reply for the person, such as why it is incomplete; None without one."""
        found = [] if self.degraded in (None, CENSOR_MESSAGE) else [f"{self.degraded} {self.shortcoming}"]
        if self.images_refused:
            found.append(
                f"The model got no image, because its server refused the request with it: {self.images_refused}"
            )
        return " ".join(found) or None

    @property
    def shortcoming(self) -> str:
        """Return a sentence that says what the reply is instead of a complete one of a model."""
        if self.answered_by is None:
            return "No model answered."
        return "This answer only quotes memory." if self.quoted else "The answer is incomplete."
