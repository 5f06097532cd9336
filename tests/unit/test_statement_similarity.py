"""Whether two statements say the same: what is told again is known again, and what only looks alike is not."""

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from newton.content.yaml_files import parse_trusted
from newton.heart.statements.similarity import MAX_CHARACTERS, compare_statements
from tests.cases import load_cases

CASES = load_cases(__file__)

# The cosine of two statements never makes them the same and never keeps them from it, so what must not merge is
# tried with the cosine that speaks most for it, and what should merge with the one that speaks most against it.
FOR_IT, AGAINST_IT = 1.0, 0.0

Pair = tuple[str, str]
Half = Literal["dev", "held", "later"]


class Fact(BaseModel, frozen=True, extra="forbid"):
    id: str
    half: Half
    subject: str
    tellings: list[tuple[Literal["trivial", "light", "real"], str]]

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.tellings]


class NearMiss(BaseModel, frozen=True, extra="forbid"):
    of: str
    text: str
    kind: str = ""


class Later(BaseModel, frozen=True, extra="forbid"):
    facts: list[Fact]
    near_misses: list[NearMiss]
    unrelated: list[Pair]


class Tellings(BaseModel, frozen=True, extra="forbid"):
    facts: list[Fact]
    near_misses: list[NearMiss]
    unrelated: dict[Half, list[Pair]]
    later: Later
    apart: list[Pair]


DATA = Tellings.model_validate(
    parse_trusted((Path(__file__).parents[1] / "data" / "tellings.yaml").read_text(encoding="utf-8"))
)
FACTS = {fact.id: fact for fact in (*DATA.facts, *DATA.later.facts)}
MISSES = [*DATA.near_misses, *DATA.later.near_misses]
UNRELATED = [pair for pairs in (*DATA.unrelated.values(), DATA.later.unrelated, DATA.apart) for pair in pairs]
TEXTS = [text for fact in FACTS.values() for text in fact.texts]
NAMES = ("Ana", "Jonas", "Lumen", "PostgreSQL", "Priya", "Mateo", "Rex", "Trondheim", "Redis", "Memcached", "Lisbon")


def same(told: str, known: str, *, cosine: float = FOR_IT) -> bool:
    return compare_statements(told, known, cosine=cosine).verdict == "same"


def kept(facts: list[Fact]) -> list[list[str]]:
    """The facts of a store that is told them one after another: each with all its tellings, the first first."""
    store: list[tuple[str, list[str]]] = []
    for subject, told in told_in_turns(facts):
        about = (texts for of, texts in store if of == subject)
        known = next((texts for texts in about if any(same(told, text, cosine=AGAINST_IT) for text in texts)), None)
        if known is None:
            store.append((subject, [told]))
        else:
            known.append(told)
    return [texts for _, texts in store]


def told_in_turns(facts: list[Fact]) -> Iterator[Pair]:
    for place in range(max(len(fact.texts) for fact in facts)):
        yield from ((fact.subject, fact.texts[place]) for fact in facts if place < len(fact.texts))


# Of the tellings that are not the first of their fact, how many join it: the measured recall of each set.
# S002-16
@pytest.mark.parametrize(("half", "joined", "of"), [("dev", 32, 40), ("held", 28, 40), ("later", 20, 30)])
def test_what_is_told_again_joins_what_is_known(half: Half, joined: int, of: int) -> None:
    facts = [fact for fact in FACTS.values() if fact.half == half]
    store = kept(facts)
    tellings = sum(len(fact.texts) for fact in facts)
    assert tellings - len(facts) == of
    assert sum(map(len, store)) == tellings, "no telling is lost"
    assert {fact.texts[0] for fact in facts} <= {texts[0] for texts in store}, "no fact is lost"
    assert tellings - len(store) >= joined


@pytest.mark.parametrize(("level", "joined", "of"), [("trivial", 11, 11), ("light", 33, 33), ("real", 16, 36)])
def test_the_easier_a_telling_the_surer_it_joins(level: str, joined: int, of: int) -> None:
    again = [(f.texts[0], text) for f in DATA.facts for told, text in f.tellings[1:] if told == level]
    assert len(again) == of
    assert sum(same(first, text, cosine=AGAINST_IT) for first, text in again) >= joined


def test_facts_and_their_tellings_stay_apart() -> None:
    facts = {text: fact.id for fact in DATA.facts for text in fact.texts}
    assert (len(DATA.facts), len(facts)) == (20, 100)
    mixed = [texts for texts in kept(DATA.facts) if len({facts[text] for text in texts}) > 1]
    assert mixed == []
    assert (len(DATA.near_misses), sum(map(len, DATA.unrelated.values())), len(DATA.apart)) == (50, 44, 517)
    assert [pair for pair in UNRELATED if same(*pair)] == []
    tellings = [(fact.id, text) for fact in FACTS.values() for text in fact.texts]
    mixed = [(one[1], other[1]) for one, other in combinations(tellings, 2) if one[0] != other[0]]
    assert [pair for pair in mixed if same(*pair)] == []


@pytest.mark.parametrize("miss", MISSES, ids=lambda miss: f"{miss.of}: {miss.text}")
def test_a_near_miss_is_not_the_fact_in_any_of_its_tellings(miss: NearMiss) -> None:
    assert [text for text in FACTS[miss.of].texts if same(miss.text, text)] == []


def test_another_digit_name_or_not_is_another_statement() -> None:
    merged = [(text, other) for text in TEXTS for other in with_other_digits(text) if same(text, other)]
    assert merged == []
    merged = [(text, other) for text in TEXTS for other in with_other_names(text) if same(text, other)]
    assert merged == []
    merged = [(text, denied) for text in TEXTS for denied in with_a_not(text) if same(text, denied)]
    assert merged == []


def with_other_digits(text: str) -> Iterator[str]:
    for place, digit in ((n, c) for n, c in enumerate(text) if c.isdigit()):
        for step in (1, 5, 9):
            yield f"{text[:place]}{(int(digit) + step) % 10}{text[place + 1 :]}"


def with_other_names(text: str) -> Iterator[str]:
    for name in NAMES:
        if re.search(rf"\b{name}\b", text):
            for other in ("Olga", f"{name}a", f"{name}s", name[:-1], NAMES[NAMES.index(name) - 1]):
                yield re.sub(rf"\b{name}\b", other, text)


def with_a_not(text: str) -> Iterator[str]:
    words = text.split(" ")
    for place in range(1, len(words)):
        yield " ".join([*words[:place], "not", *words[place:]])


@pytest.mark.parametrize(("told", "known", "because"), CASES["a_verdict_says_why"])
def test_a_verdict_says_why(told: str, known: str, because: str) -> None:
    assert compare_statements(told, known, cosine=0.9).reason.startswith(because)


# The ways in which the same is told that a reader of English knows without a thought.
@pytest.mark.parametrize(("told", "known"), CASES["the_same_is_told_in_many_ways"])
def test_the_same_is_told_in_many_ways(told: str, known: str) -> None:
    assert same(told, known, cosine=AGAINST_IT)


@pytest.mark.parametrize("text", ["安娜住在奥斯陆", "Анна живёт в Осло", "آنا تعيش في أوسلو", "アナは東京に住んでいる"])
def test_in_another_script_only_the_same_words_are_the_same(text: str) -> None:
    assert same(text, f" {text}。 ", cosine=AGAINST_IT)
    assert compare_statements(text, text[1:], cosine=FOR_IT).verdict == "near"
    assert compare_statements(f"{text} 3", f"{text} 4", cosine=FOR_IT).verdict == "different"


def test_a_long_statement_is_only_the_same_word_for_word_and_near_depends_on_the_bounds() -> None:
    long = "Ana sails. " * MAX_CHARACTERS
    assert same(long, long.upper())
    assert compare_statements(long, f"{long} Ana sails.", cosine=FOR_IT).verdict == "near"
    # what is near depends on the bounds
    told, known = "Ana likes tea", "Ana likes green tea"
    assert [compare_statements(told, known, cosine=0.9, near_min=near).verdict for near in (0.8, 0.95)] == [
        "near",
        "different",
    ]


ANYTHING = st.one_of(
    st.text(), st.text(st.characters()), st.sampled_from(TEXTS), st.text("a1 .,'-:@#~^=?!€", max_size=9)
)


@given(ANYTHING, ANYTHING, st.floats())
def test_any_two_texts_compare_alike_in_both_directions(told: str, known: str, cosine: float) -> None:
    there, back = compare_statements(told, known, cosine=cosine), compare_statements(known, told, cosine=cosine)
    assert (there.verdict, there.similarity) == (back.verdict, back.similarity)
    assert 0 <= there.similarity <= 1


@given(ANYTHING, st.floats())
def test_a_text_says_what_it_says(text: str, cosine: float) -> None:
    assert compare_statements(text, text, cosine=cosine).similarity == 1


@given(st.sampled_from(TEXTS), st.sampled_from(TEXTS), st.floats(0, 1))
def test_the_cosine_alone_decides_nothing(told: str, known: str, cosine: float) -> None:
    assert same(told, known, cosine=cosine) == same(told, known)
