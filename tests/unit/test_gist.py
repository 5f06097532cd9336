"""The gist of a conversation: sentences of it, nearest to what it keeps coming back to."""

from hypothesis import given
from hypothesis import strategies as st

from newton.dialogue.gist import FEWEST_WORDS, MOST_WORDS, central

TALK = [
    "Hello! How are you today?",
    "The ferry to Oslo was late again this morning.",
    "Oh no. My cat sleeps.",
    "The ferry company says that the ferry will be late all week because of the ice.",
    "Take the train to Oslo instead of the ferry then.",
    "Fine, thanks a lot, bye.",
]


def test_it_is_what_the_talk_was_about_in_the_order_of_the_talk() -> None:
    assert "Hello!" not in central(TALK, most=3)
    assert all("ferry" in sentence for sentence in central(TALK, most=2))


def test_what_was_said_twice_is_told_once() -> None:
    assert central([TALK[1], TALK[1], TALK[1]], most=3) == [TALK[1]]


def test_nothing_to_tell_is_told_as_nothing() -> None:
    assert central([], most=3) == central(["Yes.", "日本語。", "…"], most=3) == []


@given(st.lists(st.text(max_size=200), max_size=12), st.integers(0, 4))
def test_it_only_quotes_and_keeps_its_bounds(texts: list[str], most: int) -> None:
    told = central(texts, most=most)
    assert len(told) <= most
    assert all(any(sentence in text for text in texts) for sentence in told)
    assert all(FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS for sentence in told)
    assert told == central(texts, most=most)
