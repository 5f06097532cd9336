"""What a person says to the memory is read as a will, in ten languages (S002-24)."""

import pytest
import yaml

from newton.heart.wills.meant_statements import MEANT_MIN, rate_statements
from newton.heart.wills.will_reader import read_choice, read_will
from tests.unit.source_trees import ROOT

MAX_FALSE = 2  # sentences of everyday life that are taken for wills
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


def test_what_only_sounds_like_a_will_is_none() -> None:
    assert len([text for text in CASES["none"] if read_will(text) != (None, text)]) <= MAX_FALSE


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I live in Graz.", "Scratch that, I live in Linz."),
        ("The dentist is on Monday at 3.", "delete that, it's at 4"),
        ("Dinner is at half past seven.", "scrap that, twenty past seven"),
    ],
)
def test_a_correction_with_the_words_of_a_will_is_none(said: str, text: str) -> None:
    assert read_will(text, earlier=("My car is blue.", said)) == (None, text)


def test_what_is_off_the_record_may_be_what_was_said_before() -> None:
    earlier = ("Arjun cheated on me with someone from his office.", "I've a shift at 6.")
    for text in ("off the record ok?? that arjun thing", "forget that arjun thing"):
        will = read_will(text, earlier=earlier).will
        assert will and will.forgets, will
        (rated,) = rate_statements([earlier], text)
        assert rated[0].probability > MEANT_MIN > rated[1].probability


def test_a_wish_at_the_end_of_a_long_message_is_found() -> None:
    story = "We went to the lake with the children and had a long lunch at the inn by the water. " * 14
    will = read_will(f"{story}Please don't save any of this.", earlier=("My car is blue.",)).will
    assert will is not None and will.scope == "message"


def test_the_reader_tells_which_of_several_statements_is_meant() -> None:
    said = ("I take candesartan.", "In addition I take lorazepam at night.", "The dentist is on Monday.")
    (rated,) = rate_statements([said], "Kindly do not retain the medicine for the night.")
    assert max(rated) == rated[1]


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
