"""Progress events of a turn: what it waits for until the model begins its reply."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from newton.dialogue.compaction.progress_events import CompactionEvent
from newton.dialogue.task_tree import TaskTree

TurnStage = Literal["retrieving", "waiting", "slow", "retrying", "tool"]
SLOW_SECONDS = 10.0  # after which a model that has not begun its reply is reported, and again after each such time


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStatus:
    """Event: the turn has reached a stage. `text` describes it in one line for a user.

    The stages are `retrieving` (memories are searched), `waiting` (the request is sent to the model), `slow` (the model
    has not begun its reply for some time), `retrying` (the request is sent to the model once more) and `tool` (a tool
    of a server runs).
    """

    stage: TurnStage
    text: str

    @classmethod
    def of_restart(cls, model: str, seconds: float) -> "TurnStatus":
        """Return the event for a request that is sent once more, because the reply did not begin within `seconds`."""
        name = " ".join(model.split())
        text = f"The model {name} has not begun its reply in {seconds:g} s; the request is sent once more …"
        return cls(stage="retrying", text=text)


@dataclass(frozen=True, slots=True)
class TasksChanged:
    """Event: the model has changed the tasks of the session, for example made a plan or finished a step of it."""

    tree: TaskTree


ProgressEvent: TypeAlias = TurnStatus | TasksChanged | CompactionEvent
ProgressCallback: TypeAlias = Callable[[ProgressEvent], None]

RETRIEVING = TurnStatus(stage="retrieving", text="Searching the memory …")


@contextmanager
def report_waiting(
    model: str, on_event: ProgressCallback, *, slow_seconds: float = SLOW_SECONDS
) -> Generator[Callable[[], None]]:
    """Report that the turn waits for the model, and again every `slow_seconds` until the model begins its reply.

    Yield a function to call when the model begins its reply. The end of the block ends the reports, too.
    """
    loop, name = asyncio.get_running_loop(), " ".join(model.split())

    def report_slow(seconds: float) -> None:
        nonlocal timer
        on_event(TurnStatus(stage="slow", text=f"The model {name} has not begun its reply for {seconds:.0f} s …"))
        timer = loop.call_later(slow_seconds, report_slow, seconds + slow_seconds)

    def stop() -> None:
        timer.cancel()  # the latest one

    on_event(TurnStatus(stage="waiting", text=f"Waiting for the model {name} …"))
    timer = loop.call_later(slow_seconds, report_slow, slow_seconds)
    try:
        yield stop
    finally:
        timer.cancel()
