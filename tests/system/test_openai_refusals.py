"""Requests of OpenAI's clients that no model answers, or that must be changed: what they are told, and what is kept."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.endpoint import says
from tests.system.scripted import Talk, talking_within
from tests.system.test_openai import WEATHER

KNOWN = {"role": "user", "content": "What is the ferry called?"}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
EMPTY: list[Any] = [
    None, "", "   ", "\n\t", "\u200b", "\u200b \ufeff", [], [{"type": "text", "text": ""}], [{"type": "text"}],
    [{"type": "text", "text": " "}, {"type": "text", "text": "\u2060"}],
]  # fmt: skip
UNQUOTABLE: list[tuple[str, dict[str, Any]]] = [
    ("n", {"n": 3}),
    ("response_format", {"response_format": {"type": "json_object"}}),
    ("tools", {"tools": [WEATHER]}),
    ("tool_choice", {"tools": [WEATHER], "tool_choice": "required"}),
    ("functions", {"functions": [{"name": "f"}]}),
    ("prediction", {"prediction": {"type": "content", "content": "x"}}),
    ("messages", {"messages": [{"role": "system", "content": "Be nice."}]}),
    ("messages", {"messages": [{"role": "assistant", "content": "It is"}]}),
]


@pytest.fixture(scope="module")
async def silent(home: Path, behind: str) -> AsyncIterator[Talk]:
    async with talking_within(home, behind, openai_base_url=None, openai_model=None) as made:
        yield made


@pytest.fixture(scope="module")
async def quoting(home: Path, silent: Talk) -> AsyncIterator[Talk]:
    without: dict[str, Any] = {"openai_base_url": None, "openai_model": None}
    async with talking_within(home, silent.dsn, quote_without_model=True, **without) as made:
        yield made


async def asked(talk: Talk, path: str, body: dict[str, Any], session: str = "") -> tuple[int, dict[str, Any]]:
    """The status of a request, and its error; an empty one if it was answered."""
    headers = {"X-Newton-Session": session or f"refused-{uuid4().hex[:6]}"}
    answer = await talk.post(path, {"model": "newton", **body}, **headers)
    return answer.status_code, answer.json().get("error") or {}


async def count_stored(talk: Talk) -> list[int]:
    rows = await talk.fetch(
        "select (select count(*) from dialogue.sessions), (select count(*) from dialogue.messages),"
        " (select count(*) from memory.memories)"
    )
    return list(rows[0])


async def test_without_a_model_the_error_names_both_settings_once(silent: Talk) -> None:
    # R8
    for path, body in ((CHAT, {"messages": [KNOWN]}), (RESPONSES, {"input": "What is the ferry called?"})):
        status, error = await asked(silent, path, body)
        assert (status, error["type"]) == (503, "server_error")
        for setting in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "quote_without_model"):
            assert error["message"].count(setting) == 1, error


@pytest.mark.parametrize("content", EMPTY)
async def test_an_empty_message_is_refused_whether_or_not_a_model_is_set(
    silent: Talk, quoting: Talk, content: Any
) -> None:
    # R8, R11
    before = await count_stored(silent)
    earlier = [KNOWN, {"role": "assistant", "content": "Artemis."}]
    for talk in (silent, quoting):
        for messages in ([], earlier):
            body = {"messages": [*messages, {"role": "user", "content": content}]}
            status, error = await asked(talk, CHAT, body)
            assert (status, error["type"]) == (400, "invalid_request_error")
            assert error["param"] == f"messages[{len(messages)}].content" and "no content" in error["message"]
        if content is not None:
            parts = content if isinstance(content, str) else [{**one, "type": "input_text"} for one in content]
            status, error = await asked(talk, RESPONSES, {"input": [{"role": "user", "content": parts}]})
            assert (status, error["type"], error["param"]) == (400, "invalid_request_error", "input")
    assert await count_stored(silent) == before


async def test_an_empty_message_is_refused_before_a_model_is_asked(home: Path, behind: str) -> None:
    # R11
    async with talking_within(home, behind) as talk:
        talk.plays(says(["Well."]))
        before = await count_stored(talk)
        for body in ({"messages": [{"role": "user"}]}, {"messages": [{"role": "user", "content": ""}], "store": False}):
            assert (await asked(talk, CHAT, body))[0] == 400
        assert not talk.behind.asked and await count_stored(talk) == before
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        assert await asked(talk, CHAT, {"messages": [{"role": "user", "content": [image]}]}) == (200, {})


@pytest.mark.parametrize(("field", "body"), UNQUOTABLE)
async def test_a_request_that_quotes_cannot_answer_is_told_which_field_is_the_reason(
    silent: Talk, quoting: Talk, field: str, body: dict[str, Any]
) -> None:
    # R8
    before = await count_stored(quoting)
    for options in ({}, {"store": False}, {"stream": True}):
        status, error = await asked(quoting, CHAT, {"messages": [KNOWN], **options, **body})
        assert (status, error["type"], error["param"]) == (400, "invalid_request_error", field)
        assert (f"`{field}`" in error["message"]) == (field != "messages") and "No model is set" in error["message"]
    assert await count_stored(quoting) == before
    status, error = await asked(silent, CHAT, {"messages": [KNOWN], **body})
    assert status == 503 and "quote_without_model" not in error["message"], "it would not help"


async def test_a_response_names_its_own_field(quoting: Talk) -> None:
    body = {"input": "Which ferry?", "text": {"format": {"type": "json_object"}}}
    status, error = await asked(quoting, RESPONSES, body)
    assert (status, error["param"]) == (400, "text.format") and "`text.format`" in error["message"]
    assert "response_format" not in error["message"]


async def test_the_result_of_a_tool_needs_a_model(quoting: Talk) -> None:
    # R8
    answered = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    messages = [KNOWN, answered, {"role": "tool", "tool_call_id": "a", "content": "42"}]
    status, error = await asked(quoting, CHAT, {"messages": messages})
    assert status == 503 and "result of a tool" in error["message"]


async def test_a_repeated_failure_is_stored_once_and_never_without_a_message(silent: Talk) -> None:
    # R8, R11
    session = f"again-{uuid4().hex[:6]}"
    for path, body in ((CHAT, {"messages": [KNOWN]}), (RESPONSES, {"input": "Which pier?"})):
        for _ in range(3):
            assert (await asked(silent, path, body, f"{session}{len(path)}"))[0] == 503
        ((_, (question, *reasons)),) = (await silent.lines(f"{session}{len(path)}")).items()
        assert question in ("What is the ferry called?", "Which pier?")
        assert len(reasons) == 1 and reasons[0].startswith("No model is set")
    assert (await asked(silent, CHAT, {"messages": [{"role": "system", "content": "Be nice."}]}, f"{session}-s"))[
        0
    ] == 503
    assert await silent.lines(f"{session}-s") == {}
