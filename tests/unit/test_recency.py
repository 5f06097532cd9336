"""Which inputs ask for what is of these days, and which only look so."""

import pytest

from newton.cognition.recency import asks_for_news
from tests.support import NOON


@pytest.mark.parametrize(
    "text",
    [
        "What is the latest version of PostgreSQL?",
        "What happened in Lisbon today?",
        "Any news about the rail strike?",
        "Who is the current prime minister of Portugal?",
        "What is this week's exchange rate of the yen?",
        "Which films won prizes in 2026?",
        "What is planned for the 2027 elections?",
        "What is the most recent release of ruff?",
    ],
)
def test_it_asks_for_what_is_of_these_days(text: str) -> None:
    # S004-11
    assert asks_for_news(text, now=NOON)


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_it_only_looks_as_if(text: str) -> None:
    # S004-11
    assert not asks_for_news(text, now=NOON)
