"""`newton chat` in a real terminal: streaming, Ctrl-C, resizing, pasting, permissions, resuming (issue 22, figure 3)."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.endpoint import calls_tools, hangs, says
from tests.system.talking_model import TalkingModel, begins, talking_model, types
from tests.system.typed import ok, typed
from tests.terminal import CTRL_C, CTRL_D, ENTER, Command, in_terminal

SERVER = Path(__file__).parents[1] / "mcp_stdio_server.py"


@pytest.fixture
async def model() -> AsyncIterator[TalkingModel]:
    async with talking_model() as made:
        yield made


async def listed(home: Path, *words: str) -> Any:
    return json.loads(ok(await asyncio.to_thread(typed, home, *words, "--json")))


async def logged(home: Path, session: str) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in await listed(home, "sessions", "log", session)]


@pytest.mark.slow
async def test_after_ctrl_c_at_any_moment_the_next_message_is_answered_and_nothing_is_half_written(
    home: Path, behind: str, model: TalkingModel
) -> None:
    sent = home / "sent.txt"
    for name, mode in (("post", "good"), ("slow", "hang")):
        command = (sys.executable, str(SERVER), mode, str(sent))
        ok(await asyncio.to_thread(typed, home, "mcp", "add", name, "--trust", "--", *command))
    (home / "long.txt").write_text("A line of the long file.\n" * 100_000, encoding="utf-8")
    model.answer("the first byte", hangs)
    model.answer("a stream", begins("It", "is", "Artemis"))
    model.answer("twice", begins("It", "is", "Hermes"))
    model.answer("a hanging tool", calls_tools(("c1", "slow__look", {"text": "x"})), says(["Never."]))
    model.answer("a question", calls_tools(("c1", "post__send", {"text": "hello"})), says(["Never."]))
    model.answer("Still there?", says(["Alive."]))
    async with in_terminal(home, "chat", "--session", "ten", **model.settings) as chat:
        terminal = chat.terminal
        before = terminal.attributes()
        await terminal.prompts()
        for typed_text, shown in [
            ("", ""),
            ("half a line", "half a line"),
            ("Wait for the first byte." + ENTER, "Waiting"),
            ("Give me a stream." + ENTER, "It is Artemis"),
            ("Call a hanging tool." + ENTER, "Running slow__look"),
            ("Call what asks a question." + ENTER, "Allow?"),
        ]:
            terminal.type(typed_text)
            await terminal.shows(shown)
            terminal.type(CTRL_C)
            if shown:
                await terminal.until(lambda: terminal.at_prompt, f"prompt after {typed_text}")
            print(typed_text, "OK")
        print(terminal.text)
        await terminal.says("Still there?", "Alive.")
        terminal.type(CTRL_D)
        assert await chat.ends() == 0
