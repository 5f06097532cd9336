"""Events in one line, whatever their payload holds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.errors import InputError
from newton.heart.happenings import DEEPEST, Event, carries_output, checked, entity_line, relation_line, told
from tests.support import NOON

AT = "[2026-11-21T12:00:00+00:00] "
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["path", "lines", "command", "stdout", "stderr", "outcome", "message", "stack", "x"])
TYPES = st.sampled_from(["file_read", "file_write", "shell_exec", "error", "deploy"])


@pytest.mark.parametrize(
    ("type", "payload", "line"),
    [
        ("file_read", {"path": "a.py", "lines": "1-9"}, "read a.py · lines 1-9"),
        ("file_write", {"path": "a.py", "outcome": "ok"}, "wrote a.py · ok"),
        ("shell_exec", {"command": "ls", "exit_code": 0, "stdout": "a\nb"}, "ran ls · exit 0 · a b"),
        ("shell_exec", {"command": "ls", "exit_code": 2, "stderr": "no such\nfile"}, "ran ls · exit 2 · no such file"),
        ("error", {"message": "boom", "stack": "a\nb\nc\nd"}, "error: boom · a | b | c"),
        ("deploy", {"to": "prod", "by": "Ana"}, 'deploy {"by":"Ana","to":"prod"}'),
        ("file_read", {"file": "a.py"}, 'file_read {"file":"a.py"}'),
    ],
)
def test_each_type_is_told_in_its_own_way(type: str, payload: dict[str, Any], line: str) -> None:
    # S001-28
    assert told(Event(type=type, at=NOON, payload=payload)) == AT + line


def test_entities_and_relations_are_told_in_a_line() -> None:
    # S001-29
    assert entity_line("Ana", "person", {"born": 1990, "job": "nurse"}) == "Ana (person): born 1990, job nurse"
    assert relation_line("Ana", "works_with", "Ben") == "Ana works with Ben"


@given(TYPES, st.dictionaries(FIELDS, JSON, max_size=5))
def test_any_payload_is_told_in_one_bounded_line(type: str, payload: dict[str, Any]) -> None:
    event = Event(type=type, at=NOON, payload=payload)
    line = told(event)
    assert line == told(event)
    assert len(line.splitlines()) == 1
    assert len(line) <= 440


@pytest.mark.parametrize(
    ("payload", "carries"),
    [({"path": "a"}, False), ({"path": "a", "content": "x"}, True), ({"stdout": ""}, False), ({"stderr": "x"}, True)],
)
def test_what_carries_words_from_outside_is_known(payload: dict[str, Any], carries: bool) -> None:
    assert carries_output(Event(type="shell_exec", at=NOON, payload=payload)) is carries


@pytest.mark.parametrize(
    ("type", "payload"),
    [
        ("File Read", {}),
        ("", {}),
        ("x" * 61, {}),
        ("x", {"a": float("nan")}),
        ("x", {"a": "b" * 70_000}),
    ],
)
def test_what_cannot_be_kept_is_refused_with_a_remedy(type: str, payload: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        checked(type, NOON, payload)


def test_a_payload_nested_too_deep_is_refused_and_secrets_and_nuls_go() -> None:
    deep: Any = "x"
    for _ in range(DEEPEST + 2):
        deep = [deep]
    with pytest.raises(InputError, match="nested"):
        checked("x", NOON, {"a": deep})
    kept = checked("x", NOON, {"key": "AKIAIOSFODNN7EXAMPLE", "a": ["b\0c"]})
    assert kept.payload == {"key": "[REDACTED:aws-key]", "a": ["bc"]}
