"""Events in one line, whatever their payload holds."""

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.errors import InputError
from newton.heart.events.event_types import (
    MAX_LINE_CHARACTERS,
    MAX_PAYLOAD_DEPTH,
    OUTPUT_FIELDS,
    EventData,
    has_output,
    render_entity_line,
    render_line,
    render_relation_line,
    validate_event,
)
from tests.cases import load_cases
from tests.support import NOON

CASES = load_cases(__file__)

AT = "[2026-11-21T12:00:00+00:00] "
LONG = "word " * 200
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.text(alphabet="a \n\r\x85\u2028\x1b|·"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["path", "lines", "command", "exit_code", "stdout", "stderr", "outcome", "message", "stack"])
TYPES = st.sampled_from(["file_read", "file_write", "shell_exec", "error", "deploy"])
PAYLOADS = st.dictionaries(FIELDS | st.text(max_size=8), JSON, max_size=5)


def event(type: str, payload: dict[str, Any]) -> EventData:
    return EventData(type=type, occurred_at=NOON, payload=payload)


@pytest.mark.parametrize(("type", "payload", "line"), CASES["each_type_is_told_in_its_own_way"])
def test_each_type_is_told_in_its_own_way(type: str, payload: dict[str, Any], line: str) -> None:
    # S001-28
    assert render_line(event(type, payload)) == AT + line


@pytest.mark.parametrize(
    ("type", "payload", "line"),
    [
        ("file_read", {"file": "a.py"}, 'file_read {"file":"a.py"}'),
        ("file_read", {"path": ["a"], "lines": "1"}, 'file_read {"lines":"1","path":["a"]}'),
        ("file_read", {"path": "a", "lines": "as you like"}, 'file_read {"lines":"as you like","path":"a"}'),
        ("file_write", {"path": "a", "outcome": 3}, 'file_write {"outcome":3,"path":"a"}'),
        ("shell_exec", {"command": "ls", "exit_code": True}, 'shell_exec {"command":"ls","exit_code":true}'),
        ("shell_exec", {"command": "ls", "exit_code": 10**5000}, "shell_exec command, exit_code"),
        ("shell_exec", {"command": "ls", "stdout": {}}, 'shell_exec {"command":"ls","stdout":{}}'),
        ("error", {"message": "", "stack": "a"}, 'error {"message":"","stack":"a"}'),
        ("deploy", {"big": 10**5000, "a": 1}, "deploy a, big"),
    ],
)
def test_a_payload_of_another_shape_is_told_as_it_is(type: str, payload: dict[str, Any], line: str) -> None:
    # S001-28
    assert render_line(event(type, payload)) == AT + line


def test_what_is_long_is_told_in_part() -> None:
    # S001-29
    run = render_line(
        event("shell_exec", {"command": LONG, "exit_code": 1, "stdout": f"first line\nsecond line\n{LONG}"})
    )
    assert " · exit 1 · first line … word word" in run and "second line" not in run
    run = render_line(
        event("shell_exec", {"command": "make", "exit_code": 2, "stdout": f"cc a.c\n{LONG}\nmake: *** [a]"})
    )
    assert run.startswith(f"{AT}ran make · exit 2 · cc a.c … ")
    assert run.endswith("make: *** [a]"), "the end of an output says how it went"
    run = render_line(event("shell_exec", {"command": "ls", "exit_code": 1, "stdout": LONG}))
    assert run.endswith(" word …")
    assert len(run) > 300
    assert len(render_line(event("deploy", {"key": "x" * 1_000}))) > MAX_LINE_CHARACTERS - 9
    assert render_entity_line("Ana", "person", {"born": 1990, "job": "nurse"}) == "Ana (person): born 1990, job nurse"
    assert render_relation_line("Ana", "works_with", "Ben") == "Ana works with Ben"


@given(TYPES, PAYLOADS)
def test_any_payload_is_told_in_one_bounded_line(type: str, payload: dict[str, Any]) -> None:
    line = render_line(event(type, payload))
    assert line == render_line(event(type, dict(reversed(payload.items()))))
    assert line == render_line(event(type, {name: payload[name] for name in sorted(payload)}))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert len(line) <= MAX_LINE_CHARACTERS


@given(st.text(max_size=500), st.text(max_size=20), PAYLOADS)
def test_any_entity_and_relation_is_told_in_one_bounded_line(name: str, type: str, payload: dict[str, Any]) -> None:
    for line in (render_entity_line(name, type, payload), render_relation_line(name, type, name)):
        assert len(line.splitlines()) <= 1
        assert len(line) <= MAX_LINE_CHARACTERS


@pytest.mark.parametrize(("payload", "carries"), CASES["what_carries_words_from_outside_is_known"])
def test_what_carries_words_from_outside_is_known(payload: dict[str, Any], carries: bool) -> None:
    assert has_output(event("shell_exec", payload)) is carries


@given(PAYLOADS, st.sampled_from(sorted(OUTPUT_FIELDS)), st.integers(0, MAX_PAYLOAD_DEPTH))
def test_words_from_outside_are_found_at_any_depth(payload: dict[str, Any], name: str, depth: int) -> None:
    inner: Any = {**payload, name: "said by a tool"}
    for _ in range(depth):
        inner = {"a": [inner]}
    assert has_output(event("x", inner))


def nested(depth: int) -> dict[str, Any]:
    """A payload of so many objects and lists, one in the other."""
    inner: Any = "x"
    for _ in range(depth - 1):
        inner = [inner]
    return {"a": inner}


@pytest.mark.parametrize(
    ("type", "payload", "what"),
    [
        ("File Read", {}, "Invalid event type"),
        ("", {}, "Invalid event type"),
        ("x\n", {}, "Invalid event type"),
        ("1x", {}, "Invalid event type"),
        ("x" * 61, {}, "Invalid event type"),
        ("x", {"a": float("nan")}, "not valid JSON"),
        ("x", {"a": float("-inf")}, "not valid JSON"),
        ("x", {"a": NOON}, "not valid JSON"),
        ("x", {"a": b"bytes"}, "not valid JSON"),
        ("x", {"a": {("b",): 1}}, "not valid JSON"),
        ("x", nested(100_000), "not valid JSON"),
        ("x", [1], "not a JSON object"),
        ("x", {"a": "b" * 65_530}, "larger than"),
        ("x", {"a": "é" * 40_000}, "larger than"),
        ("x", nested(MAX_PAYLOAD_DEPTH + 1), "nested deeper"),
        ("x", {"a": ["b\0c"]}, "NUL"),
        ("x", {"a\0": 1}, "NUL"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_a_remedy(type: str, payload: Any, what: str) -> None:
    with pytest.raises(InputError, match=what) as refused:
        validate_event(type, NOON, payload)
    assert refused.value.hint


def test_a_payload_is_kept_as_plain_json_without_its_secrets() -> None:
    kept = validate_event(
        "x", NOON, {"key": ["AKIAIOSFODNN7EXAMPLE"], "AKIAIOSFODNN7EXAMPLE": 1, "of": MappingProxyType({})}
    )
    assert kept.payload == {"key": ["[REDACTED:aws-key]"], "[REDACTED:aws-key]": 1, "of": {}}
    assert validate_event("x", NOON, {"half": "a\ud800"}).payload == {"half": "a?"}


@pytest.mark.parametrize(
    ("type", "payload"), [("x", {}), ("x" * 60, nested(MAX_PAYLOAD_DEPTH)), ("a.b-c_9", {"a": "b" * 65_000})]
)
def test_what_is_just_within_the_bounds_is_kept(type: str, payload: dict[str, Any]) -> None:
    assert validate_event(type, NOON, payload) == event(type, payload)


@given(TYPES, st.dictionaries(st.text(max_size=8), JSON, max_size=5))
def test_a_payload_is_either_kept_or_refused(type: str, payload: dict[str, Any]) -> None:
    try:
        kept = validate_event(type, NOON, payload)
    except InputError:
        return
    assert validate_event(type, NOON, kept.payload) == kept
