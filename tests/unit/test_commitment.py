"""Who asserts what a message says: readings by a phrase and its reach, and what becomes a statement."""

import pytest

from newton.heart.statements.change_detection import detect_change
from newton.heart.statements.commitment import (
    find_plan,
    is_denial,
    is_in_role,
    list_denials,
    read_commitment,
    takes_back,
)
from newton.heart.statements.slots import explain_slot_change
from newton.heart.statements.statement_selection import MessageContext, select_statements
from newton.text.languages import LANGUAGES, detect_language
from tests.cases import load_cases

CASES = load_cases(__file__)


@pytest.mark.parametrize(("kind", "text"), CASES["what_is_not_asserted_is_no_statement"])
def test_what_is_not_asserted_is_no_statement(kind: str, text: str) -> None:
    # S002-16: what nobody asserts replaces nothing
    assert kind in {one.commitment.value for one in read_commitment(text)}
    assert select_statements(text) == []


@pytest.mark.parametrize(("text", "kept"), CASES["what_a_phrase_does_not_reach_is_stated"])
def test_what_a_phrase_does_not_reach_is_stated(text: str, kept: list[str]) -> None:
    # S002-17
    assert [one.content for one in select_statements(text)] == kept


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_dream_is_read_in_each_language(code: str) -> None:
    dreamt, said = CASES["DREAMS"][code]
    assert detect_language(dreamt) == code
    assert [one.commitment.value for one in read_commitment(dreamt)] == ["imagined"]
    assert read_commitment(said) == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_what_only_denies_is_no_fact_and_a_limit_is_one(code: str) -> None:
    # S002-16
    denied, kept = CASES["DENIALS"][code]
    assert [one for one in denied if not list_denials(one) or select_statements(one)] == []
    assert [one for one in kept if is_denial(one, code)] == []


def test_a_denial_leaves_the_rest_of_its_sentence() -> None:
    # S002-16
    assert [one.content for one in select_statements("I don't live in Graz, I live in Linz.")] == ["I live in Linz."]
    assert select_statements("My car isn't blue.", changing="My car isn't blue") == []
    assert [one.content for one in select_statements("The car isn't blue, it's green.")] == [
        "The car isn't blue, it's green."
    ]


def test_a_role_play_reaches_the_next_messages_until_it_is_left() -> None:
    played = ["Act as Dr. House. I am your patient and I have lupus."]
    assert is_in_role(played)
    assert select_statements("I live in Graz and I have a cat.", context=MessageContext(is_framed=True)) == []
    ended = "In real life I live in Graz."
    assert not is_in_role([*played, ended])
    assert [one.content for one in select_statements(ended, context=MessageContext(is_framed=True))] == [
        "In real life I live in Graz."
    ]


def test_a_message_may_take_back_the_one_before() -> None:
    assert takes_back("haha, just kidding!") is not None
    assert takes_back("just kidding about the weather, the boat is sold and the money is spent") is None


def test_a_plan_replaces_nothing() -> None:
    plan = "Next year I want to work at Siemens."
    assert find_plan(plan) is not None
    assert detect_change("I work at Bosch.", plan, cosine=0.7).kind == "compatible"
    assert detect_change("I work at Bosch.", "I work at Siemens now.", cosine=0.7).kind == "update"


@pytest.mark.parametrize(("older", "newer", "is_changed"), CASES["a_slot_has_one_value"])
def test_a_slot_has_one_value(older: str, newer: str, is_changed: bool) -> None:
    # S002-16
    assert bool(explain_slot_change(older, newer, detect_language(newer))) is is_changed
