"""A conversation in a real terminal: Ctrl-C, and a terminal that is closed."""

import asyncio
import json
import os
import pty
import sys
from asyncio.subprocess import DEVNULL, Process
from dataclasses import dataclass
from pathlib import Path

from tests.endpoint import Wire, chunk, endpoint
from tests.system.typed import ok, typed

ROOT = Path(__file__).parents[2]
IN_TERMINAL = """
import os, sys
terminal = os.open(sys.argv.pop(1), os.O_RDWR)  # the first that a session opens is its own
for number in range(3):
    os.dup2(terminal, number)
from newton.runtime.cli import main
main()
"""


@dataclass(slots=True)
class Terminal:
    """What a person sees and types."""

    screen: int
    shown: str = ""

    async def types(self, words: str) -> None:
        await asyncio.to_thread(os.write, self.screen, words.encode())

    async def shows(self, words: str) -> None:
        async with asyncio.timeout(30):
            while words not in self.shown:
                self.shown += (await asyncio.to_thread(os.read, self.screen, 4_096)).decode(errors="replace")
        self.shown = self.shown.partition(words)[2]


async def chat(home: Path, url: str, tty: str) -> Process:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    own = {"OPENAI_BASE_URL": url, "NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING": "none", "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", IN_TERMINAL, tty, "chat", "--session", "t"),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        cwd=home,
        env={**plain, **own, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
        start_new_session=True,
    )


async def begins(wire: Wire) -> None:
    """A reply that never ends."""
    await wire.begin_stream()
    await wire.event(chunk({"choices": [{"index": 0, "delta": {"content": "It is Artemis"}, "finish_reason": None}]}))
    await asyncio.Event().wait()


async def test_an_answer_is_stopped_by_ctrl_c_and_by_closing_the_terminal_and_kept_as_far_as_it_went(
    home: Path,
) -> None:
    screen, line = pty.openpty()
    terminal = Terminal(screen)
    async with endpoint(begins) as server:
        child = await chat(home, server.url, os.ttyname(line))
        await terminal.shows("›")
        os.close(line)
        for question in ("Which ferry?", "And the other?"):
            await terminal.types(f"{question}\r")
            await terminal.shows("It is Artemis")
            await terminal.types("\x03\x03")
            await terminal.shows("›")
        await terminal.types("And the last?\r")
        await terminal.shows("It is Artemis")
        os.close(screen)
        async with asyncio.timeout(30):
            assert await child.wait() == 130
    logged = json.loads(ok(await asyncio.to_thread(typed, home, "sessions", "log", "t", "--json")))
    answer = ("assistant", "It is Artemis")
    asked = [("user", text) for text in ("Which ferry?", "And the other?", "And the last?")]
    assert [(one["role"], one["content"]) for one in logged] == [one for user in asked for one in (user, answer)]
