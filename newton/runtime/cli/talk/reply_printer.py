"""Printing of a reply while it is received: rendered in a terminal, and exactly as it is elsewhere."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.printing import say, visible
from newton.runtime.cli.status_line import replace_status, use_release

if TYPE_CHECKING:
    from newton.runtime.cli.markdown.reply_streams import MarkdownStream, WrappedStream

DEFAULT_COLUMNS = 80


@dataclass(slots=True, kw_only=True)
class ReplyPrinter:
    """Prints the pieces of one reply. Control characters in them are escaped.

    With `is_markdown`, a terminal that shows styles gets rendered Markdown. Otherwise a terminal gets the text with its
    lines broken between words. Without a terminal, the text is printed as it is.
    """

    is_markdown: bool
    _stream: "MarkdownStream | WrappedStream | None" = field(init=False)
    _held_return: str = ""  # a carriage return at the end of a piece, which may be a part of a line break
    _is_interrupted: bool = False  # by a status line
    _shown: str = ""  # the row that is not complete

    def __post_init__(self) -> None:
        terminal = current_terminal()
        style = terminal.style()
        if terminal.columns() is None:
            self._stream = None
            return
        streams = import_module("newton.runtime.cli.markdown.reply_streams")  # loads rich
        if self.is_markdown and style != "text":
            self._stream = streams.MarkdownStream(count_columns=_count_columns, has_colors=style == "colors")
        else:
            self._stream = streams.WrappedStream(count_columns=_count_columns)

    @contextmanager
    def open(self) -> Generator[None]:
        """Print the held-back end of the reply at the end of the block, and before a status line within it."""
        with use_release(self.release):
            try:
                yield
            finally:
                self.release()

    def write(self, piece: str) -> None:
        """Print a piece of the reply, and hold back an incomplete row or word at its end."""
        if self._stream is None:
            say(piece, end="", flush=True)
            return
        if self._is_interrupted:
            replace_status("")
            self._is_interrupted = False
        text = self._held_return + piece
        self._held_return = "\r" if text.endswith("\r") else ""
        self._print(self._stream.add(visible(text.removesuffix("\r"))), self._stream.pending)

    def release(self) -> None:
        """Print what is held back of the reply, such as a word that may go on."""
        if self._stream is not None:
            self._print(self._stream.release())
            self._is_interrupted = True

    def finish(self) -> None:
        """Print the rest of the reply and end its line."""
        if self._stream is not None:
            self._print(self._stream.finish())
        if self._stream is None or current_terminal().has_open_line():
            say(flush=True)

    def _print(self, rows: str, pending: str = "") -> None:
        """Print complete rows in place of the pending row, and then the new one."""
        if rows or pending != self._shown:
            erased = "\r\x1b[K" if self._shown else ""
            say(start=erased + rows + pending, end="", flush=True)
            self._shown = pending


def _count_columns() -> int:
    return current_terminal().columns() or DEFAULT_COLUMNS
