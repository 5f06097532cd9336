"""A reply is put together from whatever chunks come, and read no further than was asked."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.providers.chat import ToolCall
from newton.providers.stream_accumulator import MIN_CHAR_LIMIT, StreamAccumulator


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": finish}]}


def calling(parts: Sequence[dict[str, Any]]) -> StreamAccumulator:
    heard = StreamAccumulator([], 100)
    for part in parts:
        heard.add_chunk(chunk({"tool_calls": [part]}))
    heard.add_chunk(chunk({}, "tool_calls"))
    return heard


@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_a_call_is_whole_however_its_arguments_are_cut(word: str, cuts: list[int]) -> None:
    arguments = json.dumps({"q": word})
    places = [0, *sorted(min(cut, len(arguments)) for cut in cuts), len(arguments)]
    pieces = [arguments[a:b] for a, b in pairwise(places)]
    parts = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    heard = calling([{"index": 0, "id": "c1", "function": {"name": "recall"}}, *parts])
    assert heard.calls == (ToolCall("c1", "recall", arguments),)
    assert heard.to_reply(model="m").finish == "stop"


def test_calls_without_a_number_or_with_one_id_are_calls_of_their_own() -> None:
    whole = {"id": "same", "function": {"name": "recall", "arguments": "{}"}}
    calls = calling([whole, whole, {"function": {"name": "expand"}}, {"index": 9, "id": "nameless"}]).calls
    assert [call.name for call in calls] == ["recall", "recall", "expand"]
    assert len({call.id for call in calls}) == 3
    assert calls[2].arguments == "{}"


@pytest.mark.parametrize("field", ["content", "tool_calls"])
def test_what_is_far_longer_than_was_asked_is_not_read(field: str) -> None:
    # R8: a reply of 1 MB
    heard, long = StreamAccumulator([], 100), "x" * (MIN_CHAR_LIMIT + 1)
    said: Any = long if field == "content" else [{"index": 0, "function": {"name": "f", "arguments": long}}]
    with pytest.raises(ValueError):
        heard.add_chunk(chunk({field: said}))
    assert heard.pieces == []
