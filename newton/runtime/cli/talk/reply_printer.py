"""Printing of a reply while it is received: rendered in a terminal, and exactly as it is elsewhere."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.formatting import pluralize
from newton.runtime.cli.markdown.markdown_stream import MarkdownStream
from newton.runtime.cli.markdown.wrapped_stream import WrappedStream
from newton.runtime.cli.printing import say, visible
from newton.runtime.cli.status_line import replace_status, use_release

TABLE_HEAD_ROWS = 2
DEFAULT_COLUMNS = 80


@dataclass(slots=True, kw_only=True)
class ReplyPrinter:
    """Prints the pieces of one reply. Control characters in them are escaped.

    With `is_markdown`, a terminal that shows styles gets rendered Markdown. Otherwise a terminal gets the text with its
    lines broken between words. Without a terminal, the text is printed as it is.
    """

    is_markdown: bool
    _stream: MarkdownStream | WrappedStream | None = field(init=False)
    _held_return: str = ""  # a carriage return at the end of a piece, which may be a part of a line break
    _is_interrupted: bool = False  # by a status line
    _shown_rows: int = 0  # on the status line

    def __post_init__(self) -> None:
        terminal = current_terminal()
        style = terminal.style()
        if terminal.columns() is None:
            self._stream = None
        elif self.is_markdown and style != "text":
            self._stream = MarkdownStream(count_columns=_count_columns, has_colors=style == "colors")
        else:
            self._stream = WrappedStream(count_columns=_count_columns)

    @contextmanager
    def open(self) -> Generator[None]:
        """Print what is held back at the end of the block, and before a status line within it."""
        with use_release(self.release):
            try:
                yield
            finally:
                self.release()

    def write(self, piece: str) -> None:
        """Print a piece of the reply, as far as it is complete."""
        if self._stream is None:
            say(piece, end="", flush=True)
            return
        if self._is_interrupted:
            replace_status("")
            self._stream.begin_new_line()
            self._is_interrupted = False
        text = self._held_return + piece
        self._held_return = "\r" if text.endswith("\r") else ""
        output = self._stream.add(visible(text.removesuffix("\r")))
        self._show_rows(self._stream.held_rows - TABLE_HEAD_ROWS)
        say(start=output, end="", flush=True)

    def release(self) -> None:
        """Print what is held back of the reply, such as a word that may go on."""
        if self._stream is not None:
            self._show_rows(0)
            say(start=self._stream.release(), end="", flush=True)
            self._is_interrupted = True

    def finish(self) -> None:
        """Print the rest of the reply and end its line."""
        if self._stream is None:
            say(flush=True)
        else:
            self._show_rows(0)
            say(start=self._stream.finish(), end="", flush=True)

    def _show_rows(self, rows: int) -> None:
        """Show on the status line how many rows of a table were received; remove it for 0."""
        if max(rows, 0) != self._shown_rows:
            self._shown_rows = max(rows, 0)
            replace_status(f"Receiving a table: {pluralize(rows, 'row')} …" if rows > 0 else "")


def _count_columns() -> int:
    return current_terminal().columns() or DEFAULT_COLUMNS
