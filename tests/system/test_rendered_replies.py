"""Replies of a model in a real terminal: rendered Markdown, whatever the window, the model and the person do."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.endpoint import Respond, Wire, chunk, hangs
from tests.system.talking_model import TalkingModel, talking_model
from tests.system.typed import piped
from tests.terminal import CTRL_C, CTRL_D, ENTER, in_terminal

REPLY = """\
Take **the early ferry** to Hydra, which leaves at nine in the morning, or else wait for the next one at noon.

| Island | Price |
|:--|--:|
| **Hydra** | 12 |

```python
print("x")
```
\x1b[2J\x1b]52;c;cm0=\x07Done.
"""
UNSEEN = re.compile(r"[^\n]*\r\x1b\[K|\x1b\[[0-9;]*m")  # rows in progress, and styles


@pytest.fixture
async def model() -> AsyncIterator[TalkingModel]:
    async with talking_model() as made:
        yield made


def sends(text: str, *, size: int = 7, pause: float = 0, ends: bool = True) -> Respond:
    """A reply in pieces of so many characters."""

    async def respond(wire: Wire) -> None:
        await wire.begin_stream()
        for place in range(0, len(text), size):
            delta = {"content": text[place : place + size]}
            await wire.event(chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
            await asyncio.sleep(pause)
        if not ends:
            await hangs(wire)
        await wire.event(chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        await wire.event("[DONE]")

    return respond


@pytest.mark.slow
async def test_a_reply_is_rendered_and_ctrl_c_in_a_code_block_leaves_what_was_shown(
    home: Path, model: TalkingModel
) -> None:
    model.answer("Which ferry?", sends(REPLY))
    model.answer("Which code?", sends("So:\n\n```python\nimport os\nprint(", ends=False))
    async with in_terminal(home, "chat", **model.settings) as chat:
        await chat.terminal.says("Which ferry?", r"\x1b[2J\x1b]52;c;cm0=\x07Done.")
        rows = chat.terminal.text.splitlines()
        first = rows.index("Take the early ferry to Hydra, which leaves at nine in the morning, or else wait")
        assert rows[first + 1 : first + 9] == [
            "for the next one at noon.",
            "",
            "Island   Price",
            "──────────────",
            "Hydra       12",
            "",
            "── python ──────────────────────────────────────────────────",
            'print("x")',
        ]
        chat.terminal.type(f"Which code?{ENTER}")
        await chat.terminal.shows("import os")
        chat.terminal.type(CTRL_C)
        await chat.terminal.shows("(Stopped.)")
        await chat.terminal.prompts()
        assert "import os\nprint(\n …\n(Stopped.)\n›" in chat.terminal.text
        assert not chat.terminal.screen.cursor.attrs.bold and chat.terminal.screen.cursor.attrs.fg == "default"
        chat.terminal.type(CTRL_D)
        assert await chat.ends() == 0


@pytest.mark.slow
async def test_a_long_reply_stays_whole_while_the_window_is_resized(home: Path, model: TalkingModel) -> None:
    lines = [f"- item **{number}** of a list that is longer than the screen" for number in range(300)]
    model.answer("a long list", sends("\n".join(lines), size=200, pause=0.005))
    async with in_terminal(home, "chat", **model.settings) as chat:
        await chat.terminal.prompts()
        chat.terminal.type(f"Write a long list.{ENTER}")
        await chat.terminal.shows("item 20 ")
        chat.terminal.resize(30)
        await chat.terminal.shows("item 290")
        await chat.terminal.prompts()
        printed = " ".join(UNSEEN.sub("", chat.terminal.raw.decode()).split())
        for number in range(300):
            assert f"• item {number} of a list that is longer than the screen" in printed
            assert f"• item {number} of a list" in chat.terminal.text  # narrowing cuts what was printed before
        assert "• item 290 of a list that is\n  longer than the screen" in chat.terminal.text
        chat.terminal.type(CTRL_D)
        assert await chat.ends() == 0


@pytest.mark.slow
async def test_a_dumb_terminal_gets_wrapped_text_no_color_gets_styles_and_a_pipe_what_the_model_sent(
    home: Path, model: TalkingModel
) -> None:
    model.usual = sends(REPLY)
    plain = REPLY.replace("\x1b", r"\x1b").replace("\x07", r"\x07")
    async with in_terminal(home, "ask", "Which ferry?", TERM="dumb", **model.settings) as dumb:
        assert await dumb.ends() == 0
        await dumb.terminal.shows("Done.")
    printed, _, notices = dumb.terminal.raw.decode().partition("(embeddings")
    assert "\x1b" not in printed + notices and printed.split() == plain.split()
    async with in_terminal(home, "ask", "Which ferry?", NO_COLOR="1", **model.settings) as colorless:
        assert await colorless.ends() == 0
        await colorless.terminal.shows("Done.")
    assert b"\x1b[1mHydra" in colorless.terminal.raw and b"\x1b[3" not in colorless.terminal.raw
    for words in (("ask",), ("chat",)):
        done = await piped(home, "Which ferry?", *words, **model.settings)
        assert plain.strip() in done.stdout
