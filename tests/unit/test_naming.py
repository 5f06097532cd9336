"""Names: found where they stand, compared by their keys, and known again."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.heart.naming import Index, Known, key, names_in, salience
from newton.ids import new_id

ANA = Known(new_id(), "Ana Berg", ("Annie",))
BANK, FIX = Known(new_id(), "Bank of Norway", ()), Known(new_id(), "Fix", ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ana Berg lives in San Francisco.", ["Ana Berg", "San Francisco"]),
        (
            "The Bank of Norway's boss met Priya in OpenAI's office; GPT-4 was there.",
            ["Bank of Norway", "Priya", "OpenAI", "GPT-4"],
        ),
        ("I'm fine. It's Monday. Thanks, and see you in May!", []),
        ("Newton keeps it in PostgreSQL with HNSW off", ["Newton", "PostgreSQL", "HNSW"]),
        ("HELLO EVERYBODY THIS IS LOUD", []),
        ("we met Ana and Ben", ["Ana", "Ben"]),
        ("日本語のテキスト", []),
        ("", []),
    ],
)
def test_names_are_found_where_they_stand(text: str, names: list[str]) -> None:
    # S001-20
    found = names_in(text)
    assert [name.text for name in found] == names
    assert all(text[name.start :].startswith(name.text) for name in found)


def test_a_word_that_only_begins_a_sentence_is_not_sure() -> None:
    assert [(n.text, n.sure) for n in names_in("Seeing is believing. We saw Rex.")] == [
        ("Seeing", False),
        ("Rex", True),
    ]


@pytest.mark.parametrize("name", ["The Bank of Norway", " bank of norway's ", "BANK OF  NORWAY", "“Bank of Norway”"])
def test_a_name_is_the_same_in_any_dress(name: str) -> None:
    assert key(name) == "bank of norway"


def test_a_part_of_a_name_is_enough_when_only_one_is_meant() -> None:
    index = Index([ANA, BANK])
    assert index.resolve("ana") is index.resolve("Berg") is index.resolve("annie") is ANA
    index.add(Known(new_id(), "Ana Holm", ()))
    assert index.resolve("Ana") is None, "of two nobody is meant"
    assert index.resolve("Ana Berg") is ANA


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("did annie call?", [ANA]),
        ("ana berg went to the bank of norway", [ANA, BANK]),
        ("the prefix of it", []),  # S001-15: whole words
        ("the bank is closed", []),
        ("", []),
    ],
)
def test_the_known_are_recognised_in_whole_words(text: str, who: list[Known]) -> None:
    assert Index([ANA, BANK, FIX]).mentioned(text) == [known.entity_id for known in who]


@given(st.integers(0, 10_000), st.floats(0, 10_000))
def test_salience_grows_with_mentions_and_fades(mentions: int, days: float) -> None:
    assert 0 <= salience(mentions, days + 1) <= salience(mentions, days) <= salience(mentions + 1, days) <= 1


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    for name in names_in(text):
        assert text[name.start :].startswith(name.text[:1])
    Index([ANA]).mentioned(text)
    assert key(key(text)) == key(text)


def test_a_long_text_takes_no_quadratic_time() -> None:
    started = time.process_time()
    names_in("Ana " * 50_000)
    Index([ANA]).mentioned("ana berg " * 20_000)
    assert time.process_time() - started < 5
