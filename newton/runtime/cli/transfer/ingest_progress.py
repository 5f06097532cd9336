"""Progress of `newton ingest`: a bar on a terminal and plain lines elsewhere, and its interruption by signals."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.formatting import print_notice

LINES_PER_STAGE = 10  # of progress that is not on a terminal
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ProgressReporter(Protocol):
    """Interface that shows the progress of the stages of a command."""

    def begin(self, stage: str, total: int) -> None:
        """Begin a stage of `total` steps."""
        ...

    def advance(self, count: int = 1, *, name: Path | None = None) -> None:
        """Report `count` further steps of the stage; `name` is the file of the last one."""
        ...


@dataclass(slots=True)
class PlainProgress:
    """Progress as lines on standard error: about `LINES_PER_STAGE` for each stage with several steps."""

    _stage: str = ""
    _total: int = 0
    _done: int = 0

    def begin(self, stage: str, total: int) -> None:
        self._stage, self._total, self._done = stage, total, 0

    def advance(self, count: int = 1, *, name: Path | None = None) -> None:
        before, self._done = self._done, self._done + count
        step = max(self._total / LINES_PER_STAGE, 1)
        if self._total > 1 and int(before / step) < int(self._done / step):
            suffix = f" ({name})" if name else ""
            print_notice(f"{self._stage}: {self._done:,} of {self._total:,}{suffix}")


@dataclass(slots=True)
class BarProgress:
    """Progress as a bar on a terminal."""

    bar: Progress
    _task: TaskID | None = None

    def begin(self, stage: str, total: int) -> None:
        if self._task is not None:
            self.bar.remove_task(self._task)
        self._task = self.bar.add_task(stage, total=total)

    def advance(self, count: int = 1, *, name: Path | None = None) -> None:
        if self._task is not None:
            self.bar.advance(self._task, count)


@dataclass(slots=True)
class SilentProgress:
    """Progress that shows nothing."""

    def begin(self, stage: str, total: int) -> None: ...

    def advance(self, count: int = 1, *, name: Path | None = None) -> None: ...


@contextmanager
def open_progress(*, silent: bool) -> Generator[ProgressReporter]:
    """Return a reporter that suits standard error."""
    if silent:
        yield SilentProgress()
    elif not current_terminal().shows_progress():
        yield PlainProgress()
    else:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            yield BarProgress(bar)


@contextmanager
def stop_on_signals() -> Generator[asyncio.Event]:
    """Return an event that the first SIGINT or SIGTERM within the block sets, instead of ending the process."""
    loop, requested = asyncio.get_running_loop(), asyncio.Event()
    previous = {one: signal.getsignal(one) for one in _SIGNALS}

    def restore() -> None:
        for one, handler in previous.items():
            loop.remove_signal_handler(one)
            signal.signal(one, handler)

    def stop() -> None:
        requested.set()
        restore()

    for one in _SIGNALS:
        loop.add_signal_handler(one, stop)
    try:
        yield requested
    finally:
        restore()
