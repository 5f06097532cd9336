"""A conversation in a real terminal: Ctrl-C, pastes, a terminal that is closed or resized, and permissions of tools."""

import asyncio
import fcntl
import json
import os
import pty
import struct
import sys
import termios
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.endpoint import Respond, Wire, calls_tools, chunk, endpoint, says
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


def slow_words(count: int = 20) -> Respond:
    """A reply whose words come one after the other."""

    async def respond(wire: Wire) -> None:
        await wire.begin_stream()
        for number in range(count):
            delta = {"content": f"word{number} "}
            await wire.event(chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
            await asyncio.sleep(0.05)
        await wire.event("[DONE]")

    return respond


def turns_get(*responses: Respond) -> Respond:
    """The next response for a turn, which offers tools; an empty one for what is learnt from sessions meanwhile."""
    left = list(responses)

    async def respond(wire: Wire) -> None:
        await (left.pop(0) if wire.body.get("tools") else says(["{}"]))(wire)

    return respond


@asynccontextmanager
async def chatting(home: Path, session: str, url: str, *flags: str) -> AsyncGenerator[CommandTerminal]:
    """A chat in a terminal, which must be alive at the end and leave when it is told to."""
    screen, line = pty.openpty()
    terminal = CommandTerminal(screen)
    named = flags or ("--session", session)
    child = await chat(home, os.ttyname(line), *named, OPENAI_BASE_URL=url, OPENAI_MODEL="scripted")
    try:
        if not flags:
            await terminal.shows("›")
        os.close(line)
        yield terminal
        await terminal.types("/quit\r")
        async with asyncio.timeout(60):
            assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
        os.close(screen)


async def test_ctrl_c_at_ten_moments_stops_what_runs_and_the_conversation_goes_on(home: Path) -> None:
    sent = home / "ten.txt"
    for name, mode in (("ten", "good"), ("hangs", "hang")):
        command = (sys.executable, str(SERVER), mode, str(sent))
        ok(await asyncio.to_thread(typed, home, "mcp", "add", name, "--trust", "--", *command))
    ask = calls_tools(("c1", "ten__send", {"text": "hello"}))
    hang = calls_tools(("c1", "hangs__look", {"text": "hello"}))
    words = slow_words(200)
    # what Ctrl-C stops, and what is shown by then; an empty text is not sent to the model
    replies = turns_get(words, words, words, ask, ask, hang, says(["Alive."]))
    async with endpoint(replies) as server, chatting(home, "ten", server.url) as terminal:
        for typed_text, shown, keys in [
            ("", "", "\x03"),
            ("half a line", "half a line", "\x03"),
            ("", "", "\x03\x03"),
            ("One.\r", "word3", "\x03"),
            ("Two.\r", "word3", "\x03\x03"),
            ("Three.\r", "word0", "\x03"),
            ("Four.\r", "Allow?", "\x03"),
            ("Five.\r", "Allow?", "\x03\x03"),
            ("Six.\r", "Running hangs__look", "\x03"),
            ("/recall ferry\r", "/recall ferry", "\x03"),
        ]:
            await follow(terminal, [(typed_text, shown)] if shown else [])
            await terminal.types(keys)
            await asyncio.sleep(0.6)  # a Ctrl-C of the next moment is no second one of this
        await follow(terminal, [("Are you there?\r", "Alive."), ("", "›")])
    assert not sent.exists()


async def test_a_paste_of_two_thousand_lines_is_one_input_and_a_resize_does_not_disturb_an_answer(home: Path) -> None:
    async with endpoint(turns_get(slow_words())) as server, chatting(home, "paste", server.url) as terminal:
        pasted = "\n".join(f"pasted line {number}" for number in range(2_000))
        for start in range(0, len(pasted), 4_000):  # the terminal is read meanwhile
            mark = "\x1b[200~" if start == 0 else ""
            await terminal.types(mark + pasted[start : start + 4_000])
        await follow(terminal, [("\x1b[201~", "line 1999"), ("\r", "word2")])
        for columns in (60, 20, 120):
            fcntl.ioctl(terminal.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            await asyncio.sleep(0.1)
        await follow(terminal, [("", "word19"), ("", "›")])
    lines = await logged(home, "paste")
    assert lines == [("user", pasted), ("assistant", " ".join(f"word{number}" for number in range(20)))]


async def test_a_session_is_resumed_from_the_list_and_undo_retracts_what_the_last_input_taught(home: Path) -> None:
    learn = calls_tools(("c1", "remember", {"content": "The ferry to Hydra leaves at nine.", "source": "user"}))
    async with endpoint(turns_get(learn, says(["Noted."]), says(["Again."]))) as server:
        async with chatting(home, "resumed", server.url) as terminal:
            await follow(terminal, [("The ferry to Hydra leaves at nine.\r", "Noted."), ("", "›")])
            await follow(terminal, [("/undo\r", "Retracted: The ferry to Hydra"), ("", "›")])
            await follow(terminal, [("/undo\r", "Nothing was learnt"), ("", "›")])
        async with chatting(home, "resumed", server.url, "--resume") as terminal:
            await follow(terminal, [("", "resumed"), ("", ":"), ("1\r", "›"), ("Hello.\r", "Again."), ("", "›")])
    assert [text for role, text in await logged(home, "resumed") if role == "user"][-1] == "Hello."
