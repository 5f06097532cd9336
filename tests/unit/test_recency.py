"""Which sentences ask for what is of these days, and which only look so: those never leave the machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.sources.needs_web import find_news_questions
from tests.support import NOON

ASKING = [
    "What is the latest version of PostgreSQL?",
    "What happened in Lisbon today?",
    "Any news about the rail strike?",
    "Who is the current prime minister of Portugal?",
    "What is this week's exchange rate of the yen?",
    "Which films won prizes in 2026?",
    "What is planned for the 2027 elections?",
    "What is the most recent release of ruff?",
    "Tell me the latest news from Lisbon.",
    "search for the newest Python release",
    "What's the current weather forecast for Porto?",
]
NOT_ASKING = [
    "List the files in the current directory.",
    "Show the current git branch",
    "What is the latest thing I told you?",
    "What was the most recent decision we made?",
    "What is my current job?",
    "Undo the latest commit.",
    "I met Ana today.",
    "What did we decide this week?",
    "Who won the cup in 2019?",
    "Trim it to 2048 tokens.",
    "Resize it to 2026px.",
    "The currents in the bay are strong.",
    "Is the newsletter template ready?",
    "Todayish is no word.",
    "",
    # days, logs, numbers
    "2026-11-21 10:00:03 ERROR payment failed for customer 4411",
    "What does '2026-11-21 10:00:03 ERROR latest payment failed' mean?",
    "Why is ticket 2028 open?",
    "Is the 2028 ticket closed?",
    "What was the total of 2026?",
    "The deadline is 2026-12-01.",
    "When is the deadline, 2026-12-01?",
    "Is the current price 4111 1111 1111 1111?",
    "What is the latest from ana@harbour.example?",
    # what is only stated, and a day without a word of news
    "What did Ana say yesterday?",
    "Where was Ana yesterday?",
    "Which trips did Ana take in 2026?",
    "Ana currently lives in Rome",
    "The news of her illness came today.",
    "Ana won a prize in 2026.",
    "Where does Ana live currently?",
    "What is Ana's current address?",
    "Did my doctor see the latest news?",
]


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
