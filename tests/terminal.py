"""A terminal emulator with a command in it: what a person sees, types, pastes and resizes."""

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[1]
PATIENCE = 60  # seconds until a test fails because a text was not shown
SCROLLED_LINES = 5_000
CTRL_C, ENTER, CTRL_D = "\x03", "\r", "\x04"
IN_TERMINAL = """
import os, sys
terminal = os.open(sys.argv.pop(1), os.O_RDWR)  # the first that a session opens is its own
for number in range(3):
    os.dup2(terminal, number)
from newton.__main__ import main
main()
"""


def _ignore(_: str) -> None: ...


class Screen(pyte.HistoryScreen):
    """A screen that answers the questions of programs, such as where the cursor is."""

    answers: Callable[[str], None] = staticmethod(_ignore)

    def write_process_input(self, data: str) -> None:
        self.answers(data)


@dataclass(slots=True)
class Terminal:
    """A terminal: `keys` is the end at which the person types, `line` the end of the command."""

    keys: int
    line: int
    screen: Screen = field(default_factory=lambda: Screen(80, 24, history=SCROLLED_LINES))
    raw: bytearray = field(default_factory=bytearray)
    waiting: bytearray = field(default_factory=bytearray)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    is_open: bool = True

    def __post_init__(self) -> None:
        stream = pyte.ByteStream(self.screen)
        self.screen.answers = lambda data: self._send(data.encode())
        os.set_blocking(self.keys, False)
        self._size(self.screen.columns)

        def read() -> None:
            try:
                data = os.read(self.keys, 65_536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                asyncio.get_running_loop().remove_reader(self.keys)
            self.raw += data
            stream.feed(data)
            self.changed.set()

        # it is read all the time: a command that prints waits once a few kilobytes are unread, and then reads no key
        asyncio.get_running_loop().add_reader(self.keys, read)

    def type(self, text: str) -> None:
        """Press the keys of a text."""
        self._send(text.encode())

    def paste(self, text: str) -> None:
        """Paste a text as a terminal does if the program has asked for marks around it."""
        assert b"\x1b[?2004h" in self.raw
        newlines = text.replace("\n", "\r")
        self.type(f"\x1b[200~{newlines}\x1b[201~")

    def _send(self, data: bytes) -> None:
        self.waiting += data
        self._flush()

    def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(BlockingIOError):
            while self.waiting:
                del self.waiting[: os.write(self.keys, self.waiting[:1_024])]
        self.changed.set()
        if self.waiting:
            loop.add_writer(self.keys, self._flush)
        else:
            loop.remove_writer(self.keys)

    def resize(self, columns: int) -> None:
        """Make the window so wide; the command gets SIGWINCH."""
        self.screen.resize(24, columns)
        self._size(columns)

    def _size(self, columns: int) -> None:
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    @property
    def rows(self) -> list[str]:
        """The rows on the screen, without spaces at their ends."""
        return [row.rstrip() for row in self.screen.display]

    @property
    def text(self) -> str:
        """All that was shown, also what was scrolled away."""
        above = ["".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in self.screen.history.top]
        return "\n".join([*above, *self.rows])

    @property
    def at_prompt(self) -> bool:
        """Whether the command waits for an input, and nothing is typed yet."""
        return self.rows[self.screen.cursor.y] in ("›", "private ›")

    def attributes(self) -> Sequence[object]:
        """How the terminal treats keys and output: echo, signals, lines."""
        return termios.tcgetattr(self.line)

    async def until(self, is_true: Callable[[], bool], what: str = "") -> None:
        """Wait until a condition holds. Fails with what the screen shows."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not is_true():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            shown = "\n".join(self.text.rstrip().splitlines()[-40:])
            raise AssertionError(f"not shown: {what}\n{shown}") from None

    async def shows(self, *texts: str) -> None:
        """Wait until all these texts were shown."""
        for text in texts:
            await self.until(lambda text=text: text in self.text, text)

    async def prompts(self) -> None:
        """Wait until the command waits for an input."""
        await self.until(lambda: self.at_prompt, "the prompt")

    async def says(self, text: str, *shown: str) -> None:
        """Type a line at the prompt, and wait until all the texts are shown and the next prompt is."""
        await self.prompts()
        self.type(text + ENTER)
        await self.shows(f"› {text}"[: self.screen.columns - 1], *shown)
        await self.prompts()

    def close(self) -> None:
        """Close the window."""
        if self.is_open:
            self.is_open = False
            loop = asyncio.get_running_loop()
            loop.remove_reader(self.keys)
            loop.remove_writer(self.keys)
            os.close(self.keys)
            os.close(self.line)


@dataclass(slots=True)
class Command:
    """A command that runs in a terminal."""

    terminal: Terminal
    process: Process

    async def ends(self) -> int:
        """Wait for its end and return its exit status."""
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def in_terminal(home: Path, *words: str, **settings: str) -> AsyncGenerator[Command]:
    """`newton …` in a terminal of 80 columns, with its data in `home`; killed if it still runs at the end."""
    keys, line = pty.openpty()
    terminal = Terminal(keys, line)
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    own = {"NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING_PROVIDER": "none", "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", IN_TERMINAL, os.ttyname(line), *words),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        cwd=home,
        env={**plain, **own, "TERM": "xterm-256color", **settings},
        start_new_session=True,
    )
    try:
        yield Command(terminal, process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        terminal.close()
