"""Receipt of the reply of a model, until it is complete, the model fails or a censor blocks it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from newton.agent.loop.tool_loop import ToolLoop
from newton.agent.loop.turn_state import PreparedTurn
from newton.errors import CensorError, NewtonError, ProviderError, RefusedRequestError
from newton.fault_isolation import isolate_failure
from newton.providers.chat import ReplyPiece


@dataclass(slots=True)
class ReceivedReply:
    """The part of a reply that was received so far.

    `degraded` says why there is no complete reply; `reason` is the failure, or the message of the censor, behind it.
    `missing` maps parts of the turn that failed to reasons.
    With `can_omit_images`, a model that refuses the images of the input is asked again without them; then
    `images_refused` is why.
    """

    degraded: str | None
    reason: NewtonError | str | None
    missing: dict[str, str]
    can_omit_images: bool = False
    images_refused: str | None = None
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    async def read(self, prepared: PreparedTurn, find_notice: Callable[[], str]) -> AsyncGenerator[ReplyPiece]:
        """Run the model, and yield the pieces of its reply, up to a failure or a blocking censor; then a notice."""
        if prepared.tool_loop is None:
            return
        try:
            with isolate_failure("reply", self.missing, passed=(NewtonError,)):
                async with aclosing(self._stream(prepared.tool_loop)) as stream:
                    async for piece in stream:
                        self.pieces += [piece] if isinstance(piece, str) else []
                        yield piece
            if self.text and (notice := find_notice()):
                self.pieces.append(notice)
                yield notice
            if problem := self.missing.get("reply"):
                self.reason = create_failure(f"The reply of the model ended early: {problem}.")
                self.degraded = self.reason.what
        except ProviderError as error:
            self.degraded, self.reason = str(error), error
        except CensorError as error:
            self.degraded, self.reason = error.what, str(error)

    async def _stream(self, tool_loop: ToolLoop) -> AsyncGenerator[ReplyPiece]:
        try:
            async with aclosing(tool_loop.stream()) as stream:
                async for piece in stream:
                    yield piece
        except RefusedRequestError as error:
            if not self.can_omit_images or tool_loop.replies or not tool_loop.omit_images():
                raise
            self.images_refused = error.what
            async with aclosing(tool_loop.stream()) as stream:
                async for piece in stream:
                    yield piece


def create_failure(what: str) -> NewtonError:
    """Return the error for a turn in which an essential part, named by `what`, failed."""
    return NewtonError(what, hint="Send the message again, or report the entry `part_failed` of the log.")
