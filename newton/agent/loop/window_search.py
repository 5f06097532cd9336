"""Search for the context window of a model that refuses a prompt as too long. Pure, except that the model keeps it."""

from dataclasses import dataclass, replace

from newton.agent.llm.usage import ModelUsage
from newton.agent.loop.completion import ChatService
from newton.agent.loop.prompt import ModelRequest
from newton.errors import RefusedSize
from newton.providers.chat import ChatModel
from newton.providers.context_windows import MIN_WINDOW, WindowedModel
from newton.providers.token_calibration import UsageSample

MAX_REFUSALS = 8  # of prompts of one turn
FIRST_SHRINK, NEXT_SHRINK = 0.9, 0.5  # of the refused prompt, if the server names no window
# If the prompt should have fit, the model's tokenizer counts more than estimated: of the window if the server says how
# many, else of the estimate.
SAME_WINDOW_SHRINK, ESTIMATE_SHRINK = 0.9, 0.7
EXCESS_MARGIN = 0.95  # of a window that is computed from an estimated prompt


@dataclass(slots=True)
class WindowSearch:
    """The refusals of one turn. `learnt` is the window to keep once a prompt is accepted; None if there is none.

    It is a guess if the server did not name it.
    """

    refusals: int = 0
    learnt: int | None = None
    is_guess: bool = False

    def shrink(
        self, size: RefusedSize, request: ModelRequest, chat: ChatService, usage: ModelUsage
    ) -> tuple[ChatService, ModelUsage]:
        """Return the service with a smaller window, and the usage with the tokens that the server counted.

        The window is the one that the server names. If it names none, it is less than the refused prompt.
        """
        found = self._find_window(size, request, chat)
        window, estimated = found or chat.limits.window, chat.estimate_tokens(request)
        if size.prompt:
            window = window if found else max(int(window * SAME_WINDOW_SHRINK), MIN_WINDOW)
        elif estimated + chat.requested_reply(request) <= window:
            window = max(int(estimated * ESTIMATE_SHRINK), MIN_WINDOW)  # for this turn only
        self.refusals += 1
        if size.prompt and not any(message.attachment_count for message in request.messages):
            sample = UsageSample(request.tokens, len(request.messages), size.prompt)
            usage = usage._replace(samples=(*usage.samples, sample))
        return replace(chat, limits=replace(chat.limits, window=window)), usage

    def _find_window(self, size: RefusedSize, request: ModelRequest, chat: ChatService) -> int | None:
        """Return the window that a refusal shows, and note it; None if it is not smaller than the known one."""
        known, is_guess = chat.limits.window, False
        counted = size.prompt or chat.estimate_tokens(request)
        if size.window and size.window >= MIN_WINDOW:
            found = size.window
        elif size.excess and size.excess < counted:
            found = int((counted - size.excess) * EXCESS_MARGIN)
        else:
            found, is_guess = int(min(counted, known) * (NEXT_SHRINK if self.refusals else FIRST_SHRINK)), True
        if found >= known:
            return None
        self.learnt, self.is_guess = max(found, MIN_WINDOW), is_guess
        return self.learnt

    async def keep(self, model: ChatModel | None) -> None:
        """Let the model keep the window that was learnt, now that a prompt was accepted."""
        if self.learnt and isinstance(model, WindowedModel):
            await model.learn_window(self.learnt, is_guess=self.is_guess)
        self.learnt = None
