"""What a person says to the memory is read as a will, in ten languages (S002-24)."""

import pytest
import yaml

from newton.heart.wills.will_reader import read_choice, read_will
from tests.unit.source_trees import ROOT

CASES = yaml.safe_load((ROOT / "tests/data/wills.yaml").read_text(encoding="utf-8"))
STATED = [(scope, text, kept) for scope, cases in CASES.items() if scope != "none" for text, kept in cases]


@pytest.mark.parametrize(("scope", "text", "kept"), STATED)
def test_a_will_is_read_with_what_may_be_stored(scope: str, text: str, kept: str) -> None:
    reading = read_will(text)
    assert reading.will is not None and reading.will.scope == scope, reading
    assert scope == "lift" or reading.kept == kept


@pytest.mark.parametrize("text", ["Forget that.", "Vergiss das.", "Oublie ça.", "Olvida eso.", "Esquece isso."])
def test_the_person_is_asked_what_forget_that_means_in_answer_to_a_question(text: str) -> None:
    alone, answer = read_will(text).will, read_will(text, is_answer=True).will
    assert alone and answer and (alone.scope, answer.scope) == ("last", "weak")


def test_what_was_said_is_forgotten_also_in_answer_to_a_question() -> None:
    told = read_will("Forget what I just said.", is_answer=True).will
    assert told and told.scope == "last"


@pytest.mark.parametrize("text", CASES["none"])
def test_what_only_sounds_like_a_will_is_none(text: str) -> None:
    assert read_will(text) == (None, text)


@pytest.mark.parametrize(
    ("text", "count", "chosen"),
    [
        ("yes, all", 3, (0, 1, 2)),
        ("the first", 3, (0,)),
        ("1 and 3, please", 3, (0, 2)),
        ("no, leave them", 2, ()),
        ("ja, alle", 2, (0, 1)),
        ("la primera", 2, (0,)),
        ("What is the weather like?", 2, None),
        ("My first car was a Golf, I bought it in 1998 from my uncle in Graz.", 2, None),
    ],
)
def test_an_answer_chooses_from_a_list(text: str, count: int, chosen: tuple[int, ...] | None) -> None:
    choice = read_choice(text, count)
    assert (choice and choice.indexes) == chosen
