"""Names: found where they stand, compared by their keys, and known again."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.ids import new_id
from newton.text.names import MAX_NAME_WORDS, NamedEntity, NameIndex, compute_salience, find_names, normalize_name
from tests.cases import load_cases
from tests.timing import assert_near_linear

CASES = load_cases(__file__)


def known(name: str, *aliases: str) -> NamedEntity:
    return NamedEntity(new_id(), name, aliases)


ANA = known("Ana Berg", "Annie")
BANK, FIX, WILL, ROSE = known("Bank of Norway"), known("Fix"), known("Will"), known("Rose Holm")
YORK, SMITH, CPP = known("New York"), known("Dr. Smith"), known("C++")
PARTS = st.sampled_from(
    ["Ana", "ana", "Berg", "THE", "Of", "of", "New", "'s", "’s", ".", ",", "\n", " ", "-", "@", "3"]
)
PIECES = st.lists(PARTS | st.text(max_size=4), max_size=40).map("".join)


@pytest.mark.parametrize(("text", "names"), CASES["names_are_found_where_they_stand"])
def test_names_are_found_where_they_stand(text: str, names: list[str]) -> None:
    # S001-20
    found = find_names(text)
    assert [name.text for name in found] == names
    assert all(text[name.start :].startswith(name.text) for name in found)


@pytest.mark.parametrize(
    "text",
    [
        "I'm fine. It's Monday. Thanks, and see you in May!",
        "Great! Looks good. Hey, don't worry. Wooow, T-shirts at 10AM.",
        "HELLO EVERYBODY THIS IS LOUD",
        "HELLO ANA",
        "oh, WE WON THE GAME today",
        "How To Build A Great Memory System",
        "# Building Great Memory Systems",
        "Quarterly Revenue Report Shows Growth",
        "see https://GitHub.com/Foo/Bar or mail Ana.Berg@Example.com",
        "```\nclass Foo(Bar)\n```",
        "we saw Ana Berg Ben Holm Cy Dole there",
        "call getUserName with MAX_LINES at 2023-05-08T13:56",
        "it is a " + "Very" * 20,
    ],
)
def test_what_only_looks_like_a_name_is_none(text: str) -> None:
    assert find_names(text) == []


@pytest.mark.parametrize(("text", "names"), CASES["a_word_is_sure_only_where_its_capital_says_something"])
def test_a_word_is_sure_only_where_its_capital_says_something(text: str, names: list[list[object]]) -> None:
    found = [[n.text, n.is_certain] for n in find_names(text)]
    assert found[: len(names)] == names
    assert bool(found) is bool(names)


@pytest.mark.parametrize(
    "name", ["The Bank of Norway", " bank of norway's ", "BANK OF  NORWAY", "“the Bank of Norway”"]
)
def test_a_name_is_the_same_in_any_dress(name: str) -> None:
    assert normalize_name(name) == "bank of norway"


@given(PIECES | st.lists(st.sampled_from(["the", "a", "'s", "’", "*", " ", "x", "THE "]), max_size=12).map("".join))
def test_a_key_is_its_own_key(name: str) -> None:
    assert normalize_name(normalize_name(name)) == normalize_name(name)


def test_what_a_name_names() -> None:
    # S001-15
    index = NameIndex([ANA, BANK])
    assert index.resolve("ana") is index.resolve("Berg's") is index.resolve("annie") is ANA
    index.add(known("Ana Holm"))
    assert index.resolve("Ana") is None, "of two nobody is meant"
    assert index.resolve("Ana Berg") is ANA
    index.add(ANA)
    assert index.resolve("Berg") is ANA, "the same one again is no other"
    index = NameIndex([BANK, YORK, SMITH, known("Finding Home")])
    assert [index.resolve(name) for name in ("Norway", "Bank", "New", "Dr.", "Finding")] == [None] * 5
    assert index.resolve("Smith") is SMITH
    # a name goes before an alias and an alias of two is of nobody
    rex, max_ = known("Rex", "Max", "Boy"), known("Max", "Boy")
    for index in (NameIndex([rex, max_]), NameIndex([max_, rex])):
        assert index.resolve("max") is max_
        assert index.resolve("boy") is None
        assert index.find_mentions("did boy see Max?") == [max_.entity_id]
    # of names that overlap the longest is meant
    short, long, beside = known("Memory"), known("Memory Systems of Oslo"), known("Oslo Harbor")
    assert NameIndex([short, long, beside]).find_mentions("memory systems of oslo harbor") == [long.entity_id]
    assert NameIndex([short, long]).find_mentions("our memory systems of oslo") == [long.entity_id]
    assert NameIndex([short, long]).find_mentions("our memory systems of bergen") == [short.entity_id]


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("did annie call?", [ANA]),
        ("ana berg went to the bank of norway", [ANA, BANK]),
        ("Ana's with Rose", [ANA, ROSE]),
        ("ana berg, ANA BERG and Annie", [ANA]),
        ("ana, berg", []),
        ("is dr. smith in new york's C++ group", [SMITH, YORK, CPP]),
        ("the prefix of it", []),  # S001-15: whole words
        ("we fix it with a rose", []),
        ("is Fix down?", [FIX]),
        ("Fix it!", []),
        ("Will you come?", []),
        ("did Will come?", [WILL]),
        ("the bank is closed", []),
        ("Norway is cold", []),
        ("", []),
    ],
)
def test_the_known_are_recognised_in_whole_words(text: str, who: list[NamedEntity]) -> None:
    # S001-15
    index = NameIndex([ANA, BANK, FIX, WILL, ROSE, YORK, SMITH, CPP])
    assert index.find_mentions(text) == [entity.entity_id for entity in who]


@given(st.integers(0, 10_000), st.floats(0, 10_000))
def test_salience_grows_with_mentions_and_fades(mentions: int, days: float) -> None:
    # S001-20
    age, day = timedelta(days=days), timedelta(days=1)
    later = compute_salience(mentions, age + day)
    assert 0 <= later <= compute_salience(mentions, age) <= compute_salience(mentions + 1, age) <= 1
    assert compute_salience(mentions, age + 90 * day) == pytest.approx(compute_salience(mentions, age) / 2)


@given(PIECES)
def test_any_text_can_be_read(text: str) -> None:
    names = find_names(text)
    assert names == find_names(text)
    assert [name.start for name in names] == sorted({name.start for name in names})
    for name in names:
        assert text[name.start :].startswith(name.text)
        assert name.text == name.text.strip()
        assert any(map(str.isupper, name.text))
    NameIndex([ANA]).find_mentions(text)


@given(st.lists(st.sampled_from(["Ana Berg", "Oslo", "Priya", "OpenAI", "Bank of Norway"]), min_size=1, max_size=6))
def test_a_name_found_within_a_sentence_is_recognised_once_it_is_known(names: list[str]) -> None:
    text = "we saw " + ", and then ".join(names) + " there"
    assert [name.text for name in find_names(text)] == names
    entities = {name: known(name) for name in dict.fromkeys(names)}
    assert NameIndex(entities.values()).find_mentions(text) == [entity.entity_id for entity in entities.values()]


@pytest.mark.slow
@pytest.mark.parametrize("unit", CASES["a_long_text_takes_no_quadratic_time"])
def test_a_long_text_takes_no_quadratic_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    index = NameIndex([ANA, known(" ".join("ana" for _ in range(2 * MAX_NAME_WORDS)))])

    def read(size: int) -> None:
        find_names(f"{text[:size]}@ :// '")
        index.find_mentions(f"{text[:size]}@ :// '")

    assert_near_linear(read, len(text))
