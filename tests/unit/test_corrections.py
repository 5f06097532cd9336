"""Corrections of earlier messages of a session: which sentence they mean, and how it is written whole."""

import pytest

from newton.heart.statements.corrections import find_correction, repair
from tests.cases import load_cases

CASES = load_cases(__file__)


@pytest.mark.parametrize(("earlier", "message", "text"), CASES["a_correction_rewrites_the_sentence_it_means"])
def test_a_correction_rewrites_the_sentence_it_means(earlier: list[str], message: str, text: str | None) -> None:
    # S002-16
    found = find_correction(message, earlier)
    assert found and found.apply(found.sentence) == text
    assert (found.new is None) is (text is None)


@pytest.mark.parametrize(("earlier", "message"), CASES["other_messages_correct_nothing"])
def test_other_messages_correct_nothing(earlier: list[str], message: str) -> None:
    assert find_correction(message, earlier) is None


@pytest.mark.parametrize("message", CASES["words_of_others_correct_nothing"])
def test_words_of_others_correct_nothing(message: str) -> None:
    # S002-16
    earlier = ["I live in Linz.", "My brother is Otto Brandt.", "Ich wohne in Linz."]
    assert find_correction(message, earlier) is None


def test_what_others_wrote_is_not_corrected() -> None:
    # S002-16
    quoted = ['Tom wrote: "I live in Linz."', "> I live in Linz.", 'Is this right? "Ich wohne in Linz."']
    assert [find_correction("sorry, Graz, not Linz", [one]) for one in quoted] == [None] * 3


def test_a_bare_value_answers_a_question_and_corrects_nothing() -> None:
    assert find_correction("61", ["The cellar had 71 percent humidity."]) is not None
    assert find_correction("61", ["The cellar had 71 percent humidity."], question="Which one?") is None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("I was born in 1981, wait, 1982", "I was born in 1982"),
        ("call Tom on Monday, no, Tuesday at 9", "call Tom on Tuesday at 9"),
        ("Den Grundig für 60 verkauft, nee warte, 80 hat er gegeben", "Den Grundig für 80 verkauft hat er gegeben"),
        ("We have 2 cats, no dogs, and 3 birds", "We have 2 cats, no dogs, and 3 birds"),
    ],
)
def test_a_value_that_is_corrected_at_once_is_replaced(text: str, meant: str) -> None:
    assert repair(text) == meant


@pytest.mark.parametrize(
    "talk", ["ok cool", "Spain!", "tell me a joke", "run the tests", "next", "Is this spam?", "Tea or coffee?"]
)
@pytest.mark.parametrize("said", ["I live in Linz.", "We have a dog called Bruno.", "Dentist on Tuesday at 9:30."])
def test_talk_and_questions_correct_nothing(said: str, talk: str) -> None:
    """S002-16"""
    assert find_correction(talk, [said]) is None
