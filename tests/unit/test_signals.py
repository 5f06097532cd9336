"""What an input is for, and which events may help with it."""

import pytest

from newton.cognition.sources.signals import EVENT_TYPES_BY_INTENT, classify_intent


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Fix the login", "fix"),
        ("There is an error in the log, what is it?", "fix"),
        ("a BUG!", "fix"),
        ("Explain the fix", "fix"),  # the rules hold in their order
        ("Explain closures", "explain"),
        ("How does the cache work?", "explain"),
        ("What is a monad?", "explain"),
        ("Who wrote this?", "question"),
        ("Add a prefix to the names", "action"),
        ("Debug mode on", "action"),
        ("Whatever is left, delete it", "action"),
        ("Is the suffix affixed?", "question"),
        ("Hi there!", "other"),
        ("Thanks a lot.", "other"),
        ("...", "other"),
        ("", "other"),
        ("Hi, sort these", "action"),
    ],
)
def test_what_an_input_is_for_is_told_by_whole_words_in_order(text: str, wanted: str) -> None:
    assert classify_intent(text) == wanted  # S001-13


def test_each_intent_has_its_events() -> None:
    # S001-14
    assert EVENT_TYPES_BY_INTENT["fix"][0] == "error"
    assert EVENT_TYPES_BY_INTENT["other"] == ()
