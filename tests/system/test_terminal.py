"""`newton chat` in a real terminal: streaming, Ctrl-C, resizing, pasting, permissions, resuming (issue 22, figure 3)."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.endpoint import calls_tools, hangs, says
from tests.system.talking_model import TalkingModel, begins, talking_model, types
from tests.system.typed import ok, typed
from tests.terminal import CTRL_C, CTRL_D, ENTER, Command, Terminal, in_terminal

SERVER = Path(__file__).parents[1] / "mcp_stdio_server.py"


@pytest.fixture
async def model() -> AsyncIterator[TalkingModel]:
    async with talking_model() as made:
        yield made


@asynccontextmanager
async def chatting(home: Path, model: TalkingModel, *words: str, **settings: str) -> AsyncGenerator[Terminal]:
    """A chat at its first prompt, which is left with Ctrl-D at the end, and leaves the terminal as it was."""
    async with in_terminal(home, "chat", *words, **model.settings, **settings) as chat:
        before = chat.terminal.attributes()
        yield chat.terminal
        await chat.terminal.prompts()
        chat.terminal.type(CTRL_D)
        assert await chat.ends() == 0
        assert_restored(chat, before)


def assert_restored(chat: Command, before: object) -> None:
    """The terminal shows keys and the cursor, and marks no pastes, as before the chat."""
    assert chat.terminal.attributes() == before
    raw = bytes(chat.terminal.raw)
    assert raw.rfind(b"\x1b[?2004l") > raw.rfind(b"\x1b[?2004h")
    assert raw.rfind(b"\x1b[?25h") >= raw.rfind(b"\x1b[?25l")


async def listed(home: Path, *words: str) -> Any:
    return json.loads(ok(await asyncio.to_thread(typed, home, *words, "--json")))


async def logged(home: Path, session: str) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in await listed(home, "sessions", "log", session)]


async def fetch(dsn: str, sql: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(dsn)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def add_server(home: Path, name: str, mode: str, file: Path) -> None:
    command = (sys.executable, str(SERVER), mode, str(file))
    ok(await asyncio.to_thread(typed, home, "mcp", "add", name, "--trust", "--", *command))


async def stop(terminal: Terminal, text: str, shown: str, keys: str = CTRL_C) -> None:
    """Type a text, wait until something is shown, press Ctrl-C, and wait for the next prompt."""
    await terminal.prompts()
    stopped = terminal.text.count("(Stopped.)")
    terminal.type(text)
    await terminal.shows(shown)
    terminal.type(keys)
    await terminal.until(lambda: terminal.text.count("(Stopped.)") > stopped, f"(Stopped.) after {text}")
    await terminal.prompts()


@pytest.mark.slow
async def test_after_ctrl_c_at_any_moment_the_next_message_is_answered_and_nothing_is_half_written(
    home: Path, behind: str, model: TalkingModel
) -> None:
    await add_server(home, "post", "good", home / "sent.txt")
    await add_server(home, "stall", "stall", home / "stalled.txt")
    (home / "long.txt").write_text("A line of the long file.\n" * 2_000, encoding="utf-8")
    model.answer("the first byte", hangs)
    model.answer("a stream", begins("It", "is", "Artemis"))
    model.answer("twice", begins("It", "is", "Hermes"))
    model.answer("a tool that stalls", calls_tools(("c1", "stall__send", {"text": "x"})), says(["Never."]))
    model.answer("a question", calls_tools(("c2", "post__send", {"text": "hello"})), says(["Never."]))
    model.answer("Tell me everything", types(*(f"word{number}." for number in range(800)), pause=0))
    async with chatting(home, model, "--session", "ten") as terminal:
        for number in range(4):
            await terminal.says(f"Tell me everything, part {number}.")
        terminal.type(CTRL_C)
        await terminal.shows("(/quit or Ctrl-D leaves.)")
        await terminal.prompts()
        terminal.type("half a line")
        await terminal.shows("half a line")
        terminal.type(CTRL_C)
        await stop(terminal, f"Wait for the first byte.{ENTER}", "Waiting")
        await stop(terminal, f"Give me a stream.{ENTER}", "It is Artemis")
        await stop(terminal, f"Stop me twice.{ENTER}", "It is Hermes", CTRL_C * 2)
        await stop(terminal, f"Call what asks a question.{ENTER}", "Allow?")
        await terminal.prompts()
        terminal.type(f"Call a tool that stalls.{ENTER}")
        await terminal.shows("of the server stall")
        await terminal.until(lambda: "Allow?" in terminal.rows[terminal.screen.cursor.y])
        await stop_held(terminal, "o" + ENTER, "Running stall__send")
        async with locked(behind, "heart.documents"):
            await stop(terminal, f"Read @long.txt please.{ENTER}", "Read @long.txt please.")
        async with locked(behind, "memory.memories"):
            await stop(terminal, f"/recall ferry{ENTER}", "/recall ferry")
        model.background = hangs
        await stop(terminal, f"/compact 2000{ENTER}", "/compact 2000")
        model.background = says(["{}"])
        await terminal.says("Still there?", "Fine.")
        print(terminal.text)


async def stop_held(terminal: Terminal, text: str, shown: str) -> None:
    """Answer a question, wait until something is shown, and press Ctrl-C."""
    stopped = terminal.text.count("(Stopped.)")
    terminal.type(text)
    await terminal.shows(shown)
    terminal.type(CTRL_C)
    await terminal.until(lambda: terminal.text.count("(Stopped.)") > stopped, "(Stopped.)")
    await terminal.prompts()


@asynccontextmanager
async def locked(dsn: str, table: str) -> AsyncGenerator[None]:
    """Whoever uses the table waits."""
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            await connection.execute(f"lock table {table} in access exclusive mode")
            yield
    finally:
        await connection.close()
