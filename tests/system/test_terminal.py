"""`newton chat` in a real terminal: streaming, Ctrl-C, sizes, pastes, permissions, resuming (figure 3)."""

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
from tests.system.typed import ok, piped, typed
from tests.terminal import CTRL_C, CTRL_D, ENTER, Command, Terminal, in_terminal

SERVER = Path(__file__).parents[1] / "mcp_stdio_server.py"
ASKED = ("Which ferry?", "And the other?", "And the last?")
SAID = [line for text in ASKED for line in (("user", text), ("assistant", "It is Artemis"))]


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
    return [(one["role"], one["content"]) for one in (await listed(home, "sessions", "log", session))["items"]]


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


async def stop_answers(home: Path, *words: str, **settings: str) -> None:
    """Stop two answers by Ctrl-C, and one by closing the terminal."""
    async with in_terminal(home, "chat", *words, **settings) as chat:
        for number, question in enumerate(ASKED, 1):
            await chat.terminal.prompts()
            chat.terminal.type(question + ENTER)
            await chat.terminal.until(lambda n=number: chat.terminal.text.count("It is Artemis") == n, "the answer")
            chat.terminal.type(CTRL_C) if number < len(ASKED) else chat.terminal.close()
        assert await chat.ends() == 130


@pytest.mark.slow
async def test_answers_are_kept_as_far_as_they_went_when_the_person_stops_them_or_closes_the_terminal(
    home: Path, model: TalkingModel
) -> None:
    for question in ASKED:
        model.answer(question, begins("It is Artemis"))
    await stop_answers(home, "--session", "t", **model.settings)
    assert await logged(home, "t") == SAID


async def prepare_moments(home: Path, model: TalkingModel) -> None:
    """Let the model wait, stream, and call tools, by the words of the question."""
    await add_server(home, "post", "good", home / "sent.txt")
    await add_server(home, "stall", "stall", home / "stalled.txt")
    (home / "long.txt").write_text("A line of the long file.\n" * 2_000, encoding="utf-8")
    model.answer("the first byte", hangs)
    model.answer("a stream", begins("It", "is", "Artemis"))
    model.answer("twice", begins("It", "is", "Hermes"))
    model.answer("a tool that stalls", calls_tools(("c1", "stall__send", {"text": "x"})), says(["Never."]))
    model.answer("a question", calls_tools(("c2", "post__send", {"text": "hello"})), says(["Never."]))
    model.answer("Tell me everything", types(*(f"word{number}." for number in range(800)), pause=0))


@pytest.mark.slow
async def test_after_ctrl_c_at_any_moment_the_next_message_is_answered_and_nothing_is_half_written(
    home: Path, behind: str, model: TalkingModel
) -> None:
    await prepare_moments(home, model)
    async with chatting(home, model, "--session", "ten") as terminal:
        for number in range(4):
            await terminal.says(f"Tell me everything, part {number}.")
        terminal.type(CTRL_C)
        await terminal.shows("(/quit or Ctrl-D leaves.)")
        await terminal.prompts()
        terminal.type("half a line")
        await terminal.shows("half a line")
        terminal.type(CTRL_C)
        for text, shown, keys in (
            ("Wait for the first byte.", "Waiting", CTRL_C),
            ("Give me a stream.", "It is Artemis", CTRL_C),
            ("Stop me twice.", "It is Hermes", CTRL_C * 2),
            ("Call what asks a question.", "Allow?", CTRL_C),
        ):
            await stop(terminal, text + ENTER, shown, keys)
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
    assert not (home / "sent.txt").exists()
    assert [(one["server"], one["outcome"]) for one in (await listed(home, "permissions", "actions"))["items"]] == [
        ("stall", "interrupted")
    ]
    await assert_whole(behind)
    lines = await logged(home, "ten")
    assert ("assistant", "It is Artemis") in [(role, text.strip()) for role, text in lines]
    assert [text for role, text in lines if role == "user"][-1] == "Still there?" and lines[-1][0] == "assistant"


async def assert_whole(dsn: str) -> None:
    """Nothing is stored in part: no call without a result, no document, no lease, no entry of a compaction."""
    calls = "select call->>'id' from dialogue.messages, jsonb_array_elements(tool_calls) as call"
    assert await fetch(dsn, f"{calls} except select tool_call_id from dialogue.messages") == []
    assert await fetch(dsn, "select 1 from heart.documents") == []
    assert await fetch(dsn, "select 1 from dialogue.leases where expires_at > now()") == []
    assert await fetch(dsn, "select 1 from dialogue.compaction_entries") == []


async def press_at_the_prompt(terminal: Terminal) -> None:
    """Press Ctrl-C when nothing is typed, and when something is."""
    await terminal.prompts()
    terminal.type(CTRL_C)
    await terminal.shows("(/quit or Ctrl-D leaves.)")
    await terminal.prompts()
    terminal.type("half a line")
    await terminal.shows("half a line")
    terminal.type(CTRL_C)


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


@pytest.mark.slow
async def test_a_reply_is_shown_while_it_comes_ctrl_c_stops_it_and_what_is_typed_meanwhile_is_the_next_input(
    home: Path, model: TalkingModel
) -> None:
    model.answer("a long one", begins("It", "is", "Artemis"))
    async with chatting(home, model, "--session", "short") as terminal:
        await press_at_the_prompt(terminal)
        await terminal.prompts()
        terminal.type(f"Tell me a long one.{ENTER}")
        await terminal.shows("It is Artemis")
        terminal.type("And a short one?")
        terminal.paste("\n")
        terminal.paste("first line\nsecond line")
        terminal.type(CTRL_C)
        await terminal.shows("(Stopped.)", "second line")
        assert "Artemis And" not in terminal.text  # keys are not shown within the answer
        terminal.type(ENTER)
        await terminal.shows("Fine.")
    lines = [(role, text.strip()) for role, text in await logged(home, "short")]
    assert lines == [
        *(("user", "Tell me a long one."), ("assistant", "It is Artemis")),
        *(("user", "And a short one?\nfirst line\nsecond line"), ("assistant", "Fine.")),
    ]


@pytest.mark.slow
async def test_a_pipe_and_a_dumb_terminal_get_nothing_but_text(home: Path, model: TalkingModel) -> None:
    done = await piped(home, "what is the boat called\n", "ask", "--agent", "pipe", NO_COLOR="1")
    assert done.stdout == "Memory has nothing about this yet.\n" and "\x1b" not in done.stderr
    assert "`newton remember TEXT` stores a fact" in done.stderr
    async with in_terminal(home, "chat", TERM="dumb", **model.settings) as chat:
        await chat.terminal.says("Hello.", "Fine.")
        chat.terminal.type(f"/quit{ENTER}")
        assert await chat.ends() == 0
    assert b"\x1b" not in bytes(chat.terminal.raw).partition("›".encode())[2]


@pytest.mark.slow
@pytest.mark.parametrize("is_answering", [False, True])
async def test_two_thousand_pasted_lines_are_one_message(
    home: Path, model: TalkingModel, *, is_answering: bool
) -> None:
    session = f"paste-{is_answering}"
    pasted = "\n".join(f"pasted line {number}" for number in range(2_000))
    model.answer("a long one", begins("It", "is", "Artemis"))
    async with chatting(home, model, "--session", session) as terminal:
        await terminal.prompts()
        if is_answering:
            terminal.type(f"Tell me a long one.{ENTER}")
            await terminal.shows("It is Artemis")
        terminal.paste(pasted)
        if is_answering:
            await terminal.until(lambda: not terminal.waiting)
            terminal.type(CTRL_C)
        await terminal.shows("pasted line 1999")
        assert len(model.turns) == is_answering
        terminal.type(ENTER)
        await terminal.shows("Fine.")
    assert [text for role, text in await logged(home, session) if role == "user"][-1] == pasted
    assert len(model.turns) == 1 + is_answering


@pytest.mark.slow
async def test_the_input_is_drawn_anew_when_the_window_is_resized(home: Path, model: TalkingModel) -> None:
    typed_text = "A sentence that is rather long for a narrow window, but not for a wide one."
    model.answer("slowly", types(*(f"word{number}" for number in range(40)), pause=0.05))
    async with chatting(home, model, "--session", "sizes") as terminal:
        await terminal.prompts()
        terminal.type(typed_text)
        await terminal.shows(typed_text)
        for columns in (40, 120):
            terminal.resize(columns)
            await terminal.until(lambda: typed_text in "".join(terminal.screen.display).replace("› ", ""), "the input")
        terminal.type(CTRL_C)
        await terminal.prompts()
        terminal.type(f"Answer slowly.{ENTER}")
        await terminal.shows("word2")
        for columns in (40, 80):
            terminal.resize(columns)
        await terminal.shows("word39")
    assert (await logged(home, "sizes"))[-1][1].split() == [f"word{number}" for number in range(40)]


@pytest.mark.slow
async def test_each_answer_to_the_question_of_a_tool_holds_as_long_as_it_says(home: Path, model: TalkingModel) -> None:
    sent = home / "answers.txt"
    await add_server(home, "mail", "good", sent)

    async def send(terminal: Terminal, text: str, answer: str | None) -> None:
        await terminal.prompts()
        model.answer(text, calls_tools(("c1", "mail__send", {"text": text})), says([f"Done: {text}."]))
        asked = terminal.text.count("Allow?")
        terminal.type(f"Send {text}{ENTER}")
        if answer is not None:
            await terminal.until(lambda: terminal.text.count("Allow?") > asked, f"a question for {text}")
            terminal.type(answer + ENTER)
        await terminal.shows(f"Done: {text}.")

    async with chatting(home, model, "--session", "first") as terminal:
        await send(terminal, "none", "n")
        await send(terminal, "once", "o")
        await send(terminal, "session", "s")
        await send(terminal, "unasked", None)
    async with chatting(home, model, "--session", "second") as terminal:
        await send(terminal, "always", "a")
    async with chatting(home, model, "--session", "third") as terminal:
        await send(terminal, "allowed", None)
        await terminal.says("/revoke-permission mail send", "Revoked")
        await send(terminal, "never", "v")
        await send(terminal, "forbidden", None)
        await terminal.says("/permissions", "mail send", "forbidden since")
    assert sent.read_text().split() == ["once", "session", "unasked", "always", "allowed"]


@pytest.mark.slow
async def test_a_session_is_resumed_from_the_list_and_undo_takes_back_what_was_just_learnt(
    home: Path, model: TalkingModel
) -> None:
    said = "The ferry to Hydra leaves at nine."
    model.answer(said, calls_tools(("c1", "remember", {"content": said, "subject": "ferry"})), says(["Noted."]))
    async with chatting(home, model, "--session", "resumed") as terminal:
        await terminal.says("Nothing yet.", "Fine.")
        await terminal.says(said, "Noted.")
        await terminal.says("/undo", f"Retracted: {said}")
        await terminal.says("/recall ferry Hydra")
        await terminal.says("/undo", "Nothing was learnt")
    assert said not in str(await listed(home, "list", "--kind", "fact"))
    assert said in str(await listed(home, "list", "--kind", "fact", "--state", "past"))
    async with in_terminal(home, "chat", "--resume", **model.settings) as chat:
        await chat.terminal.shows("1  resumed", "Number of the session to resume")
        chat.terminal.type(f"1{ENTER}")
        await chat.terminal.says("Again.", "Fine.")
        chat.terminal.type(CTRL_D)
        assert await chat.ends() == 0
    assert [text for role, text in await logged(home, "resumed") if role == "user"] == ["Nothing yet.", said, "Again."]
