"""A conversation in a real terminal: Ctrl-C, a terminal that is closed, and the permission to call a tool."""

import asyncio
import json
import os
import pty
import sys
from asyncio.subprocess import DEVNULL, Process
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.endpoint import Wire, calls_tools, chunk, endpoint, says
from tests.system.typed import ok, typed

pytestmark = pytest.mark.fault

ROOT = Path(__file__).parents[2]
ASKED = ("Which ferry?", "And the other?", "And the last?")
SAID = [line for text in ASKED for line in (("user", text), ("assistant", "It is Artemis"))]
IN_TERMINAL = """
import os, sys
terminal = os.open(sys.argv.pop(1), os.O_RDWR)  # the first that a session opens is its own
for number in range(3):
    os.dup2(terminal, number)
from newton.runtime.cli import main
main()
"""


@dataclass(slots=True)
class CommandTerminal:
    """What a person sees and types."""

    screen: int
    shown: str = ""

    async def types(self, words: str) -> None:
        await asyncio.to_thread(os.write, self.screen, words.encode())

    async def shows(self, words: str) -> None:
        async with asyncio.timeout(60):
            while words not in self.shown:
                self.shown += (await asyncio.to_thread(os.read, self.screen, 4_096)).decode(errors="replace")
        self.shown = self.shown.partition(words)[2]


async def chat(home: Path, tty: str, *flags: str, **own: str) -> Process:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    own = {"NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING_PROVIDER": "none", "PYTHONPATH": str(ROOT), **own}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", IN_TERMINAL, tty, "chat", *flags),
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
    async with endpoint(begins) as server:
        await stopped(home, "--session", "t", OPENAI_BASE_URL=server.url, OPENAI_MODEL="scripted")
    assert await logged(home, "t") == SAID


async def stopped(home: Path, *flags: str, **own: str) -> None:
    """Two answers stopped by Ctrl-C, and one by closing the terminal."""
    screen, line = pty.openpty()
    terminal = CommandTerminal(screen)
    child = await chat(home, os.ttyname(line), *flags, **own)
    await terminal.shows("›")
    os.close(line)
    for question in ASKED[:2]:
        await terminal.types(f"{question}\r")
        await terminal.shows("It is Artemis")
        await terminal.types("\x03\x03")
        await terminal.shows("›")
    await terminal.types(f"{ASKED[2]}\r")
    await terminal.shows("It is Artemis")
    os.close(screen)
    async with asyncio.timeout(60):
        assert await child.wait() == 130


async def logged(home: Path, session: str) -> list[tuple[str, str]]:
    lines = json.loads(ok(await asyncio.to_thread(typed, home, "sessions", "log", session, "--json")))
    return [(one["role"], one["content"]) for one in lines]


async def follow(terminal: CommandTerminal, steps: list[tuple[str, str]]) -> None:
    """Type the first text of each step, and wait until the second one is shown."""
    for typed_text, shown in steps:
        if typed_text:
            await terminal.types(typed_text)
        await terminal.shows(shown)


SEND = calls_tools(("c1", "post__send", {"text": "hello"}))
SERVER = Path(__file__).parents[1] / "mcp_stdio_server.py"


async def test_a_tool_is_called_after_the_answer_of_the_person_and_ctrl_c_at_the_question_stops_the_answer(
    home: Path,
) -> None:
    """What was typed before the question is not its answer."""
    sent = home / "sent.txt"
    command = (sys.executable, str(SERVER), "good", str(sent))
    assert "Added" in ok(await asyncio.to_thread(typed, home, "mcp", "add", "post", "--", *command))
    async with endpoint(SEND, SEND, says(["It is sent."]), SEND, says(["Fine."])) as server:
        screen, line = pty.openpty()
        terminal = CommandTerminal(screen)
        own = {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "scripted"}
        child = await chat(home, os.ttyname(line), "--session", "tools", **own)
        await terminal.shows("›")
        os.close(line)
        await follow(terminal, [("Send hello.\r", "Allow?"), ("\x03", "›")])
        assert not sent.exists()
        await follow(
            terminal, [("Send hello.\r", '"text": "hello"'), ("", "Allow?"), ("s\r", "It is sent."), ("", "›")]
        )
        await follow(terminal, [("Again.\r", "Fine."), ("", "›")])
        await follow(terminal, [("/permissions\r", "allowed in the session tools"), ("", "›")])
        await terminal.types("/quit\r")
        async with asyncio.timeout(60):
            assert await child.wait() == 0
        os.close(screen)
    assert sent.read_text() == "hello\nhello\n"
    listed = json.loads(ok(await asyncio.to_thread(typed, home, "permissions", "--json")))
    assert [(one["tool"], one["session"]) for one in listed] == [("send", "tools")]
