"""The values of items: their text, their limits and secrets, and their filters as conditions."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.errors import InputError
from newton.heart.items.item_value import (
    MAX_CONDITIONS,
    MAX_NAMESPACE_CHARACTERS,
    MAX_NAMESPACE_PARTS,
    MAX_VALUE_CHARACTERS,
    MAX_VALUE_DEPTH,
    clean_fields,
    clean_namespace,
    clean_value,
    flatten_filter,
    render_text,
)

KEY = "sk-4eC39HqLyjWDarjtT1zdp7dc"
AWS_SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab"
NOTE: dict[str, Any] = {
    "title": "Tea",
    "author": {"name": "Ana", "age": 30},
    "tags": ["green", "hot"],
    "parts": [{"text": "Boil water."}, {"text": "Wait."}, {"picture": None}],
    "empty": " ",
    "done": True,
}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (["title"], "Tea"),
        (["author.age"], "author.age: 30"),
        (["author"], "author.name: Ana\nauthor.age: 30"),
        (["author.*"], "author.name: Ana\nauthor.age: 30"),
        (["tags[0]"], "green"),
        (["tags[-1]"], "hot"),
        (["tags[*]"], "tags: green\ntags: hot"),
        (["parts[*].text"], "parts.text: Boil water.\nparts.text: Wait."),
        (["title", "tags[1]"], "title: Tea\ntags: hot"),
        (["title", "title"], "Tea"),
        (["done"], "done: true"),
        (["empty", "nothing", "tags[9]", "tags[-9]", "title.more", "parts[*].picture", "author[0]"], ""),
        ([], ""),
    ],
)
def test_the_text_of_fields_is_that_of_the_values_at_their_paths(fields: list[str], text: str) -> None:
    assert render_text(NOTE, clean_fields(fields)) == text


def test_texts_of_whole_values_are_named_and_secrets_redacted() -> None:
    lines = render_text(NOTE, ["$"]).splitlines()
    assert lines[:3] == ["title: Tea", "author.name: Ana", "author.age: 30"]
    assert lines[-1] == "done: true" and "empty" not in "".join(lines)
    # secrets are redacted also those that only their field gives away
    cleaned = clean_value({"note": f"use {KEY}", "deep": [{"aws_secret_access_key": AWS_SECRET}], "hash": AWS_SECRET})
    assert cleaned["note"] == "use [REDACTED:api-key]"
    assert cleaned["deep"] == [{"aws_secret_access_key": "[REDACTED:aws-secret]"}]
    assert cleaned["hash"] == AWS_SECRET, "nothing says that it is one"


@pytest.mark.parametrize("path", ["", ".", "a.", "a..b", "a[x]", "a[", "{a,b}", "a[0", "[0].", "x" * 500])
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(InputError, match="path of a field"):
        clean_fields([path])


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


def test_values_within_the_limits_are_kept_and_others_refused() -> None:
    assert clean_value(nested(MAX_VALUE_DEPTH)) == nested(MAX_VALUE_DEPTH)
    assert clean_value({"a": "", "b": " ", "": 0, "c": [None, False, -1.5]}) == {
        **{"a": "", "b": " ", "": 0, "c": [None, False, -1.5]}
    }
    refused: list[tuple[dict[str, Any], str]] = [
        (nested(MAX_VALUE_DEPTH + 1), "levels deep"),
        ({"a": [[]] * 3 + [nested(MAX_VALUE_DEPTH - 1)]}, "levels deep"),
        ({"a": "x" * MAX_VALUE_CHARACTERS}, "maximum is 200,000"),
        ({"a": "x\0"}, "NUL"),
        ({"x\0": 1}, "NUL"),
        ({"a": "\ud800"}, "surrogate"),
        ({"\ud800": 1}, "surrogate"),
        ({KEY: 1}, "looks like a secret"),
    ]
    for value, reason in refused:
        with pytest.raises(InputError, match=reason) as raised:
            clean_value(value)
        assert raised.value.hint


def test_namespaces_within_the_limits_are_kept_and_others_refused() -> None:
    longest = ["x" * (MAX_NAMESPACE_CHARACTERS // MAX_NAMESPACE_PARTS)] * MAX_NAMESPACE_PARTS
    assert clean_namespace(longest) == tuple(longest)
    refused = [
        (["x"] * (MAX_NAMESPACE_PARTS + 1), "11 parts"),
        ([*longest[:-1], "x" * 41], "401 characters"),
        (["a", ""], "empty"),
        (["a\nb"], "one line"),
        (["."], "not a valid"),
        ([KEY], "secret"),
    ]
    for parts, reason in refused:
        with pytest.raises(InputError, match=reason) as raised:
            clean_namespace(parts)
        assert raised.value.hint


def test_operators_that_do_not_exist_and_filters_that_are_too_large_are_refused() -> None:
    for fields, reason in (
        ({"a": {"$in": [1]}}, "Unknown filter operator '\\$in'"),
        ({"a": {"$gt": 1, "b": 2}}, "Unknown filter operator 'b'"),
        ({str(n): n for n in range(MAX_CONDITIONS + 1)}, "101 conditions"),
    ):
        with pytest.raises(InputError, match=reason) as raised:
            flatten_filter(fields)
        assert raised.value.hint


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("aü \n", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text("ab", max_size=2), VALUES, max_size=4))
def test_a_value_without_a_secret_stays_as_it_is_and_every_text_of_it_is_found(value: dict[str, Any]) -> None:
    assert clean_value(value) == value
    text = render_text(value)
    assert all(one in text for one in texts_in(value))


def texts_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, dict):
        return [text for one in cast("dict[str, object]", value).values() for text in texts_in(one)]
    return [text for one in cast("list[object]", value) for text in texts_in(one)] if isinstance(value, list) else []
