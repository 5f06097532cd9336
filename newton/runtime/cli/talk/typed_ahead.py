"""Keys that are typed while an answer runs: they are kept for the next input and not shown within the answer."""

import signal
import sys
import termios
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from prompt_toolkit.application.current import get_app_session
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from newton.environment import is_dumb_terminal
from newton.runtime.cli.printing import say

MARK_PASTES, DO_NOT_MARK_PASTES = "\x1b[?2004h", "\x1b[?2004l"
_IFLAG, _LFLAG = 0, 3  # places in the attributes of a terminal


@dataclass(slots=True)
class TypedAhead:
    """Holds the keys of the terminal while no prompt reads them.

    Without it, the terminal would print them into the answer, cut a line after 4,096 characters, and each line of a
    text that is pasted meanwhile would be an input of its own.
    """

    is_holding: bool = False
    keys: list[KeyPress] = field(default_factory=list[KeyPress])

    @contextmanager
    def hold(self) -> Generator[None]:
        """Hold the keys within the block, and give them to the next prompt. Ctrl-C still sends a signal."""
        if self.is_holding or not (sys.stdin.isatty() and sys.stdout.isatty()) or is_dumb_terminal():
            yield
            return
        source = get_app_session().input
        descriptor = source.fileno()
        before = termios.tcgetattr(descriptor)
        self.is_holding = True
        try:
            _hide_keys(descriptor)
            self.mark_pastes()
            self._take(get_typeahead(source))
            with source.attach(lambda: self._take(source.read_keys())):
                yield
        finally:
            self.is_holding = False
            with suppress(OSError, termios.error):  # the terminal is closed
                _write(DO_NOT_MARK_PASTES)
                termios.tcsetattr(descriptor, termios.TCSANOW, before)
            self._pass_on(source)

    def mark_pastes(self) -> None:
        """Let the terminal mark the begin and end of pasted texts again: the prompt of a question turns that off."""
        if self.is_holding:
            _write(MARK_PASTES)

    def _take(self, keys: Sequence[KeyPress]) -> None:
        """Hold keys. Ctrl-C that was pressed before the terminal made signals of it is a signal now."""
        self.keys += [one for one in keys if one.key != Keys.ControlC]
        if any(one.key == Keys.ControlC for one in keys):
            signal.raise_signal(signal.SIGINT)

    def _pass_on(self, source: Input) -> None:
        store_typeahead(source, self.keys)
        self.keys = []


def _hide_keys(descriptor: int) -> None:
    """Let a terminal neither show keys nor wait for the end of a line. Ctrl-C does not discard the keys before it."""
    attributes = termios.tcgetattr(descriptor)
    attributes[_LFLAG] = attributes[_LFLAG] & ~(termios.ICANON | termios.ECHO) | termios.NOFLSH
    attributes[_IFLAG] &= ~termios.ICRNL
    termios.tcsetattr(descriptor, termios.TCSANOW, attributes)


def _write(sequence: str) -> None:
    say(start=sequence, end="", flush=True)
