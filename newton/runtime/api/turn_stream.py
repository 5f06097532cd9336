"""Execution of a turn (a message and its reply) in a separate task, and the stream of its reply to the client."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

from fastapi import Request

from newton.concurrency import with_timeout
from newton.errors import DaemonStoppedError, NewtonError
from newton.fault_isolation import isolate_failure
from newton.runtime.api import problems
from newton.runtime.api.auth import AuthenticatedCaller
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.api.idempotency import EMBED_JOB
from newton.runtime.jobs import queue
from newton.runtime.wiring import AgentServices

FIRST_HEARTBEAT_SECONDS = 0.5  # from the start; a stream begins then at the latest, an earlier error has an HTTP status
HEARTBEAT_SECONDS = 5  # interval of the heartbeats that keep the connection open

T = TypeVar("T")


class TurnStream(Generic[T]):
    """The stream of one turn (a message and its reply). If the client disconnects, the turn is cancelled."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[T | NewtonError | None] = asyncio.Queue()
        self._producer: asyncio.Task[None] | None = None

    def put(self, piece: T) -> None:
        self._queue.put_nowait(piece)

    def stop(self) -> None:
        """End the stream with a DaemonStoppedError, because the daemon shuts down. The reply so far is stored."""
        hint = "Send the message again when the daemon runs again."
        self._queue.put_nowait(DaemonStoppedError("The daemon is shutting down.", hint=hint))

    async def wait(self) -> None:
        """Wait until the turn has ended and is stored."""
        if self._producer:
            await asyncio.wait({self._producer})

    async def read_pieces(
        self, pieces: AsyncGenerator[T], caller: AuthenticatedCaller, request: Request, *, is_private: bool = False
    ) -> AsyncGenerator[T | None]:
        """Run the turn: yield its `pieces`, and None as a heartbeat, until it ends or the client disconnects.

        Raises the errors of the turn. After a turn that is not `is_private`, embed its new memories.
        """
        # separate tasks: the cancellation of this request must not interrupt a database operation of the turn
        producer = self._producer = asyncio.create_task(self._produce(pieces, caller.newton, is_private=is_private))
        watcher = asyncio.create_task(_cancel_on_disconnect(request, producer))
        request.app.state.running_turns.add(self)
        producer.add_done_callback(lambda _: request.app.state.running_turns.discard(self))
        clock = asyncio.get_running_loop().time
        first_at = next_at = clock() + FIRST_HEARTBEAT_SECONDS
        try:
            while True:
                try:
                    piece = await with_timeout(self._queue.get(), seconds=max(next_at - clock(), 0.0))
                except TimeoutError:
                    next_at = clock() + HEARTBEAT_SECONDS
                    yield None
                    continue
                # a piece does not delay the first heartbeat, with which a stream begins at the latest
                next_at = next_at if clock() < first_at else clock() + HEARTBEAT_SECONDS
                if piece is None:
                    break
                if isinstance(piece, NewtonError):
                    raise piece
                yield piece
            await asyncio.wait({producer})
            if not producer.cancelled() and isinstance(error := producer.exception(), Exception):
                raise problems.to_internal_error(error) from error
        finally:
            watcher.cancel()
            _cancel_once(producer)
            await asyncio.wait({producer})

    async def _produce(self, pieces: AsyncGenerator[T], newton: AgentServices, *, is_private: bool) -> None:
        try:
            failure = await self._forward(pieces)
            if not is_private:  # the message of the user is stored even if the turn has failed
                with isolate_failure("processing of the turn", {}, passed=()):  # the reply is complete
                    await _process_written(newton)
            if failure:
                raise failure
        except NewtonError as error:
            self._queue.put_nowait(error)
        finally:
            self._queue.put_nowait(None)

    async def _forward(self, pieces: AsyncGenerator[T]) -> NewtonError | None:
        """Put the pieces of the turn into the queue; return the error of the turn, if any."""
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    self._queue.put_nowait(piece)
        except NewtonError as error:
            return error
        return None


async def _process_written(newton: AgentServices) -> None:
    """Embed the new memories and learn from them now, or else in the background."""
    if not await newton.process_written(ORIGIN):
        async with newton.scope.transaction() as tx:
            await queue.enqueue_if_idle(tx, EMBED_JOB, agent_id=newton.scope.agent_id)


async def _cancel_on_disconnect(request: Request, task: "asyncio.Task[None]") -> None:
    """Wait until the client disconnects, and then cancel the turn."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    _cancel_once(task)


def _cancel_once(task: "asyncio.Task[None]") -> None:
    if not task.cancelling():  # a second cancellation would interrupt the storing of the reply so far
        task.cancel()
