"""Which sentences ask for what is of these days, and which only look so: those never leave the machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.sources.web import find_news_questions
from tests.cases import load_cases
from tests.support import NOON

CASES = load_cases(__file__)

ASKING = CASES["ASKING"]
NOT_ASKING = CASES["NOT_ASKING"]


@pytest.mark.parametrize("text", ASKING)
def test_it_asks_for_what_is_of_these_days(text: str) -> None:
    # S004-11
    assert find_news_questions(text, now=NOON) == text


@pytest.mark.parametrize("text", NOT_ASKING)
def test_it_only_looks_as_if(text: str) -> None:
    # S004-11
    assert find_news_questions(text, now=NOON) == ""


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(ASKING), st.sampled_from(NOT_ASKING)), max_size=8))
def test_of_what_is_said_beside_it_nothing_leaves(said: list[tuple[bool, str, str]]) -> None:
    # S004-11
    sentences = [asks if asked else other for asked, asks, other in said]
    assert find_news_questions("\n".join(sentences), now=NOON) == " ".join(asks for asked, asks, _ in said if asked)


def test_only_the_sentence_that_asks_is_sent() -> None:
    # S004-11
    mixed = "My card is 4111 1111. What is the latest on the harbour password? Ana lives in Rome today."
    assert find_news_questions(mixed, now=NOON) == "What is the latest on the harbour password?"
    assert find_news_questions("My card is 4111 1111, what is the latest on it?", now=NOON) == ""
    assert find_news_questions("What is the latest on " + "the harbour " * 20 + "?", now=NOON) == "", (
        "too long for a question"
    )
