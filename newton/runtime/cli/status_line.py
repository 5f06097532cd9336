"""The status line of a terminal: a line of standard error that says what a command waits for, and is replaced."""

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import TypeVar

from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.printing import say

T = TypeVar("T")

_release: ContextVar[Callable[[], None] | None] = ContextVar("release", default=None)


def is_interactive() -> bool:
    """Return True if standard error is a terminal."""
    return current_terminal().shows_progress()


@contextmanager
def use_release(release: Callable[[], None]) -> Generator[None]:
    """Within the block, call `release` before a line of output is ended: it prints the held-back end of a reply."""
    token = _release.set(release)
    try:
        yield
    finally:
        _release.reset(token)


def end_line() -> None:
    """Print what is held back of a reply, and end the open line of standard output, if there is one."""
    if release := _release.get():
        release()
    if current_terminal().has_open_line():
        say(flush=True)


def print_status(text: str) -> None:
    """Replace the current line of standard error by `text`, if standard error is a terminal.

    A text that is too long is cut, because a second line would stay.
    """
    if is_interactive():
        end_line()  # a terminal shows both streams, and a part of the reply is not replaced
        replace_status(text)


def replace_status(text: str) -> None:
    """Replace the status line (on standard error) by `text`. Standard output must have no open line."""
    if is_interactive():
        columns = current_terminal().columns()
        say(text if columns is None else text[: columns - 1], start="\r\x1b[K", end="", to_stderr=True, flush=True)


async def clear_status(pieces: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Yield the pieces of a reply. Remove the status line before the first one, or at the end if there is none."""
    has_begun = False
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                if not has_begun:
                    print_status("")
                has_begun = True
                yield piece
    finally:
        if not has_begun:
            print_status("")
