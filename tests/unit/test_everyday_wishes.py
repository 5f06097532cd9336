"""Wishes in everyday words, which hold for later requests, by patterns and by the vector of a message."""

from pathlib import Path

import pytest

from newton.content.yaml_source import parse_trusted
from newton.heart.statements.habits import is_single_event
from newton.heart.statements.standing_detection import find_standing_type
from newton.heart.statements.standing_model import find_standing_by_vector
from newton.providers.minilm import MiniLM
from tests.unit.local_models import load_minilm

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


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        ("Please keep answers short.", "manner"),
        ("Answer in short sentences, please.", "manner"),
        ("Please don't use emojis.", "manner"),
        ("Ask before you book anything.", "instruction"),
        ("Never write to my boss in English.", "instruction"),
        ("Keep the answer short this time.", None),
        ("He asked me not to use emojis in the report.", None),
    ],
)
def test_a_wish_on_answers_is_told_from_others(text: str, standing: str | None) -> None:
    assert find_standing_type(text) == standing


@pytest.mark.parametrize(
    ("older", "newer", "is_event"),
    [
        ("Our backup runs every night.", "The backup failed on Friday night.", True),
        ("Rent is paid monthly.", "In March the rent was paid late.", True),
        ("The gym is open every day.", "The gym closed down on 3 July.", False),
        ("The rota changes every week.", "On 3 July the rota moved to two weeks.", False),
    ],
)
def test_a_single_event_changes_no_habit(older: str, newer: str, is_event: bool) -> None:
    assert is_single_event(older, newer) is is_event
