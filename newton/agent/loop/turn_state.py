"""The state of a turn: `RunningTurn` from its beginning, `PreparedTurn` once the model can be called."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from newton.agent.actions.action_runner import ActionRunner
from newton.agent.actions.external_tools import ApprovalCallback
from newton.agent.actions.outbound_guard import OutboundGuard
from newton.agent.loop.completion import CallLimits, PromptBudget
from newton.agent.loop.prompt import ModelRequest, PromptBuilder
from newton.agent.loop.tool_loop import ToolLoop
from newton.agent.loop.turn_recorder import PrivateRecorder, RecordedInput, TurnRecorder
from newton.agent.loop.turn_types import CallerOptions, PrivateConversation, TurnInput
from newton.agent.prompting.session_prompt import InputPlace
from newton.cognition.session_context.service import SessionContext
from newton.dialogue.view import ViewMessage
from newton.errors import NewtonError
from newton.memory.memory import Trust, lowest_known_trust
from newton.providers.chat import ChatReply, FinishReason, ToolCall


@dataclass(slots=True, kw_only=True)
class RunningTurn:
    """A turn in progress. Its input is stored, unless the turn is private.

    `is_answered` becomes True when a reply is stored.
    """

    input: TurnInput
    recorder: TurnRecorder | PrivateRecorder
    recorded: RecordedInput
    call_limits: CallLimits
    is_answered: bool = False

    @property
    def missing(self) -> dict[str, str]:
        """Return the parts of the turn that failed so far, with the reasons."""
        return self.recorder.missing

    @property
    def options(self) -> CallerOptions:
        return self.input.caller_options or CallerOptions(input_parts=self.input.input_parts)

    @property
    def is_api_call(self) -> bool:
        """Return whether the input comes from a client of OpenAI's API, which gets failures as errors."""
        return self.input.caller_options is not None

    @property
    def private(self) -> PrivateConversation | None:
        return self.input.private

    @property
    def approve(self) -> ApprovalCallback | None:
        """Return what asks a person; None in a private turn, which stores no answers."""
        return None if self.input.private else self.input.approve

    @property
    def wills(self) -> tuple[str, ...]:
        """Return what to tell the person about a will that the input states."""
        return (str(self.recorded.receipt),) if self.recorded.receipt else ()

    @property
    def question(self) -> str | None:
        """Return the text for which memory is searched; None if memory is not used."""
        return self.recorded.text or None if self.private is None else self.private.question


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledRequest:
    """A request to the model with the parts from which it was assembled.

    `actions` calls the tools of servers that it offers, `outbound` checks what leaves, `position` is that of the input,
    and `min_trust` is the lowest trust tier of its texts.
    """

    prompt: PromptBuilder
    request: ModelRequest
    budget: PromptBudget
    view: Sequence[ViewMessage]
    context: SessionContext | None
    actions: ActionRunner | None
    outbound: OutboundGuard
    position: int
    min_trust: Trust | None


@dataclass(slots=True, kw_only=True)
class PreparedTurn:
    """The context of a turn and the model calls to make (`tool_loop`); `degraded` is the reason if there are none.

    It changes when the model refuses the prompt as too long and the turn is prepared anew. `view` are the messages of
    the conversation, and `budget` limits the prompt; it is None without a tool loop. `failure` is set if the
    preparation itself failed.
    """

    context: SessionContext | None
    view: Sequence[ViewMessage] = ()
    budget: PromptBudget | None = None
    tool_loop: ToolLoop | None = None
    degraded: str | None = None
    failure: NewtonError | None = None

    @property
    def replies(self) -> Sequence[ChatReply]:
        return self.tool_loop.replies if self.tool_loop else ()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.tool_loop.calls if self.tool_loop else ()

    @property
    def min_trust(self) -> Trust | None:
        loop_trust = self.tool_loop.min_trust if self.tool_loop else None
        return lowest_known_trust((loop_trust, *self.external_trusts))

    @property
    def external_trusts(self) -> Collection[Trust]:
        return self.context.bundle.external_trusts if self.context else ()

    def offers(self, tool: str) -> bool:
        """Return whether the model may call the tool of Newton with this name."""
        return self.tool_loop is not None and any(one.name == tool for one in self.tool_loop.request.options.own_tools)

    @property
    def missing(self) -> Mapping[str, str]:
        """Return the sources that the context lacks, with the reasons."""
        return self.context.bundle.missing if self.context else {}

    @property
    def speech(self) -> str:
        """Return what the model said outside of its reply text: a refusal, or the transcript of audio."""
        return self.replies[-1].speech if self.replies else ""

    @property
    def is_filtered(self) -> bool:
        """Return whether a content filter of the model's server has ended the reply."""
        return bool(self.replies) and self.replies[-1].server_finish == "content_filter"

    def finish_reason(self, degraded: str | None) -> FinishReason:
        """Return how the reply ended: as the model reports, "interrupted" if `degraded`, "stop" without a reply."""
        if not self.replies:
            return "stop"
        return "interrupted" if degraded else self.replies[-1].finish


def find_place(turn: RunningTurn, view: Sequence[ViewMessage]) -> InputPlace:
    """Return the session and the position of the input; for a turn without one, the position of the last input.

    `view` are the messages of the session.
    """
    if (session_id := turn.input.session_id) is None:
        stored_in = turn.private.session_id if turn.private else None
        return InputPlace(stored_in, -1, is_stored=False)
    position = turn.recorded.position
    if position is None:
        end = view[-1].last if view else 0
        position = next((item.first for item in reversed(view) if item.is_input), end)
    is_inherited = any(one.first <= position <= one.last for one in turn.recorded.ancestors)
    return InputPlace(session_id, position, is_stored=True, is_inherited=is_inherited)
