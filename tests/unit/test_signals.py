"""What an input is for, and which events may help with it."""

import pytest

from newton.cognition.sources.signals import EVENT_TYPES_BY_INTENT, classify_intent
from tests.cases import load_cases

CASES = load_cases(__file__)


@pytest.mark.parametrize(("text", "wanted"), CASES["what_an_input_is_for_is_told_by_whole_words_in_order"])
def test_what_an_input_is_for_is_told_by_whole_words_in_order(text: str, wanted: str) -> None:
    assert classify_intent(text) == wanted  # S001-13


def test_each_intent_has_its_events() -> None:
    # S001-14
    assert EVENT_TYPES_BY_INTENT["fix"][0] == "error"
    assert EVENT_TYPES_BY_INTENT["other"] == ()
