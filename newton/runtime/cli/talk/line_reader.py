"""Input lines of a chat: from a terminal, with editing and a history, or from a pipe."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory

from newton.memory.hygiene import clean_model_text
from newton.settings import Settings

LineReader = Callable[[], Awaitable[str]]


class RedactingFileHistory(FileHistory):
    """History of the inputs of a chat, with secrets redacted, in a file that only its owner can read.

    While `is_paused` returns true, inputs are not written.
    """

    def __init__(self, filename: str, is_paused: Callable[[], bool] = lambda: False) -> None:
        super().__init__(filename)
        self.is_paused = is_paused

    def store_string(self, string: str) -> None:
        if self.is_paused():
            return
        Path(str(self.filename)).touch(mode=0o600)
        super().store_string(clean_model_text(string))


def create_reader(settings: Settings, is_private: Callable[[], bool]) -> LineReader:
    """Return a function that reads one line of input; in a terminal, with editing and a history."""
    if not sys.stdin.isatty():
        return _read_piped_line
    history = RedactingFileHistory(str(settings.home / "history"), is_private)
    prompt: PromptSession[str] = PromptSession(history=history)
    # handle_sigint would replace the handler of Ctrl-C and not restore it for the answer
    return lambda: prompt.prompt_async("private › " if is_private() else "› ", handle_sigint=False)


async def _read_piped_line() -> str:
    line = await asyncio.to_thread(sys.stdin.buffer.readline)
    if not line:
        raise EOFError
    return line.decode("utf-8", "surrogateescape")  # invalid UTF-8 is rejected later, as one message
