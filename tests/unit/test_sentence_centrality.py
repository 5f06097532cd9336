"""The gist of a conversation: sentences of it, nearest to what it keeps coming back to."""

from hypothesis import given
from hypothesis import strategies as st

from newton.dialogue.sentence_centrality import MAX_WORDS, MIN_WORDS, central_sentences

TALK = [
    "Hello! How are you today?",
    "The ferry to Oslo was late again this morning.",
    "Oh no. My cat sleeps.",
    "The ferry company says that the ferry will be late all week because of the ice.",
    "Take the train to Oslo instead of the ferry then.",
    "Fine, thanks a lot, bye.",
]


def test_it_is_what_the_talk_was_about_told_once_in_order() -> None:
    assert "Hello!" not in central_sentences(TALK, limit=3)
    assert all("ferry" in sentence for sentence in central_sentences(TALK, limit=2))
    assert central_sentences([TALK[1], TALK[1], TALK[1]], limit=3) == [TALK[1]]
    assert central_sentences([], limit=3) == central_sentences(["Yes.", "日本語。", "…"], limit=3) == []


@given(st.lists(st.text(max_size=200), max_size=12), st.integers(0, 4))
def test_it_only_quotes_and_keeps_its_bounds(texts: list[str], most: int) -> None:
    told = central_sentences(texts, limit=most)
    assert len(told) <= most
    assert all(any(sentence in text for text in texts) for sentence in told)
    assert all(MIN_WORDS <= len(sentence.split()) <= MAX_WORDS for sentence in told)
    assert told == central_sentences(texts, limit=most)
