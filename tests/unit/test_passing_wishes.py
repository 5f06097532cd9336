"""Wishes on how to answer or address the person that are said in passing, in a message on something else."""

from datetime import date
from pathlib import Path
from typing import Literal

import pytest

from newton.content.yaml_files import parse_trusted
from newton.heart.identity.rule_plan import list_rule_texts, plan_rules
from tests.unit.local_models import embed

Half = Literal["dev", "held"]
DATA = parse_trusted((Path(__file__).parents[1] / "data" / "passing_wishes.yaml").read_text(encoding="utf-8"))


def put_in_force(message: str, *, has_reader: bool = False, has_vectors: bool = True) -> list[str]:
    texts = list_rule_texts(message) if has_vectors else []
    plan = plan_rules(message, [], embed(*texts), said_on=date(2026, 11, 27), has_reader=has_reader)
    return [one.text for one in plan.stated]


@pytest.mark.parametrize("has_reader", [False, True])
@pytest.mark.parametrize(("half", "most_missed", "most_wrong"), [("dev", 1, 1), ("held", 4, 2)])
def test_a_wish_said_in_passing_holds_at_once(half: Half, most_missed: int, most_wrong: int, has_reader: bool) -> None:
    missed = [text for text in DATA["stating"][half] if not put_in_force(text, has_reader=has_reader)]
    wrong = [text for text in DATA["passing"][half] if put_in_force(text, has_reader=has_reader)]
    assert len(missed) <= most_missed, missed
    assert len(wrong) <= most_wrong, wrong


@pytest.mark.parametrize(
    ("message", "wish"),
    [
        ("I have the plumber here soon, so call me Ciru please. What's for tea?", "Call me Ciru"),
        ("Only my mother says Ignacio. Nacho will do nicely.", "Nacho will do nicely"),
        ("and its Hamish not Mr MacLeod", "Its Hamish not Mr MacLeod"),
        ("It rains, and hey, lay off the exclamation marks, would you?", "Lay off the exclamation marks"),
        ("Is it far? Celsius please, if you can.", "Celsius please, if you can"),
    ],
)
def test_it_is_kept_in_the_words_of_its_clause(message: str, wish: str) -> None:
    assert put_in_force(message, has_vectors=False) == [wish]


@pytest.mark.parametrize(
    "message",
    [
        "Tuesday will do nicely.",
        "The doctor said my name. Ten will do nicely.",
        "She wrote to the club, so call me Ciru please.",
        "Shall I write: no emojis please?",
        "The letter is for the bank, no emojis please in this one.",
        'He said "no emojis please" and left.',
        "My boss says no exclamation marks please.",
        "Could you call me a taxi?",
    ],
)
def test_what_others_say_or_what_is_for_one_case_is_no_wish(message: str) -> None:
    assert put_in_force(message, has_vectors=False) == []
