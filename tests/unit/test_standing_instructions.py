"""Wishes of a person for later requests, by patterns and by the vector of a message."""

import re
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from newton.content.yaml_files import parse_trusted
from newton.heart.identity.standing_wishes import (
    MAX_MESSAGE_CHARACTERS,
    MAX_SENTENCE_CHARACTERS,
    detect_instructions,
    find_standing_type,
)
from newton.heart.identity.tenets import IdentityPart
from newton.heart.identity.wish_models import find_standing_by_vector
from newton.heart.statements.change_detection import read_change
from newton.providers.minilm import MiniLM
from tests.cases import load_cases
from tests.unit.local_models import load_minilm

CASES = load_cases(__file__)

Half = Literal["dev", "held"]


class Meant(BaseModel, frozen=True, extra="forbid"):
    part: IdentityPart
    text: str


class Messages(BaseModel, frozen=True, extra="forbid"):
    standing: dict[Half, list[Meant]]
    passing: dict[Half, list[str]]


DATA = Messages.model_validate(
    parse_trusted((Path(__file__).parents[1] / "data" / "wishes.yaml").read_text(encoding="utf-8"))
)
MEANT = [meant.text for half in DATA.standing.values() for meant in half]
SINGLE = [text for text in MEANT if not re.search(r"[.!] \w", text)]


def figures(half: Half) -> tuple[float, float]:
    """Precision and recall."""
    hits = sum(bool(detect_instructions(meant.text)) for meant in DATA.standing[half])
    false = sum(bool(detect_instructions(text)) for text in DATA.passing[half])
    return hits / (hits + false), hits / len(DATA.standing[half])


@pytest.mark.parametrize(("half", "precision", "recall"), [("dev", 1.0, 1.0), ("held", 0.95, 0.95)])
def test_hardly_anything_is_taken_for_a_wish_that_is_none(half: Half, precision: float, recall: float) -> None:
    found = figures(half)
    assert found >= (precision, recall) and found[1] >= recall, found


@pytest.mark.parametrize("half", ["dev", "held"])
def test_a_wish_is_found_once_and_in_its_part(half: Half) -> None:
    found = {meant.text: [wish.part for wish in detect_instructions(meant.text)] for meant in DATA.standing[half]}
    assert found == {meant.text: [meant.part] for meant in DATA.standing[half]}


@pytest.mark.parametrize(("said", "kept"), CASES["it_is_kept_in_the_words_of_the_person"])
def test_it_is_kept_in_the_words_of_the_person(said: str, kept: list[str]) -> None:
    assert [wish.text for wish in detect_instructions(said)] == kept


@pytest.mark.slow
@pytest.mark.parametrize("text", SINGLE)
def test_what_is_quoted_pasted_or_reported_is_no_wish(text: str) -> None:
    others = [
        f'"{text}"',
        f"“{text}”",
        f"> {text}",
        f"```\n{text}\n```",
        f"- [2026-11-21] User: {text}",
        f"Ana: {text}",
        f"She said: {text}",
        f"He wrote that {text}",
        f"What does it mean when somebody says {text}",
        f"Translate this:\n\n{text}",
        f"Summarise the following text.\n{text}",
    ]
    assert [other for other in others if detect_instructions(other)] == []


def test_what_is_too_long_to_be_said_is_no_wish() -> None:
    assert detect_instructions("Always answer in French. " + "word " * (MAX_MESSAGE_CHARACTERS // 5)) == []
    assert detect_instructions("Always answer in " + "w" * MAX_SENTENCE_CHARACTERS) == []


@given(st.text(max_size=200) | st.lists(st.sampled_from(MEANT), max_size=4).map("\n".join))
def test_whatever_is_said_a_wish_is_one_line_of_it(text: str) -> None:
    for wish in detect_instructions(text):
        assert wish.text and "\n" not in wish.text
        assert wish.text.casefold() in text.casefold()


HELD = parse_trusted((Path(__file__).parents[1] / "data" / "everyday_wishes.yaml").read_text(encoding="utf-8"))["held"]


def count_marked(texts: list[str]) -> int:
    embedded = [f"User: {text}" for text in texts]
    vectors = load_minilm().embed_now(embedded)
    found = [
        find_standing_type(text) or find_standing_by_vector(line, vector, vector_model=MiniLM.identity)
        for text, line, vector in zip(texts, embedded, vectors, strict=True)
    ]
    return sum(standing is not None for standing in found)


def test_wishes_in_words_that_no_example_has_are_marked() -> None:
    found, false = count_marked(HELD["standing"]), count_marked(HELD["passing"])
    assert found >= 0.6 * len(HELD["standing"]) and found / (found + false) >= 0.85, (found, false)


@pytest.mark.parametrize(("text", "standing"), CASES["a_wish_on_answers_is_told_from_others"])
def test_a_wish_on_answers_is_told_from_others(text: str, standing: str | None) -> None:
    assert find_standing_type(text) == standing


@pytest.mark.parametrize(
    ("older", "newer", "is_event"),
    [
        ("Our backup runs every night.", "The backup failed on Friday night.", True),
        ("Rent is paid monthly.", "In March the rent was paid late.", True),
        ("The review is on Mondays.", "The review this week went on until the late afternoon.", True),
        ("The review is on Mondays.", "This month the review lasted until 11:30.", True),
        ("The review is on Mondays.", "This month the review is on Friday, until June.", False),
        ("The gym is open every day.", "The gym closed down on 3 July.", False),
        ("The rota changes every week.", "On 3 July the rota moved to two weeks.", False),
    ],
)
def test_a_single_event_changes_no_habit(older: str, newer: str, is_event: bool) -> None:
    older_vector, newer_vector = load_minilm().embed_now([older, newer])
    verdict = read_change(older, newer, cosine=float(older_vector @ newer_vector))
    assert (verdict.kind == "compatible") is is_event
