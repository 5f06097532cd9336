"""Content words of a text, and follow-up detection."""

import re
from functools import lru_cache

from newton.cognition.greetings import is_small_talk
from newton.dialogue.sentence_centrality import STOP_WORDS
from newton.heart.statements.lemmas import lemmatize

FOLLOW_UP_WORDS = 1  # so many words of its own has an input that leans on what was said before

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")

_MIN_LETTERS = 3

# Words that no input is about, beside those that no conversation is about.
_FREQUENT_WORDS = """
again another around because between both could each else even explain far first give happen happened here how last
least let long lot many maybe mean mind next often ok okay old other please possible right same second soon sure take
taken takes tell these third those though too try understand use used where whether which while why yet
"""

_STOPWORDS = STOP_WORDS.union(_FREQUENT_WORDS.split())

# What points back to something said before.
_POINTING_WORDS = """
it its it's that that's this these those them they their he him his she her hers one ones there then same such
"""

_POINTING_SET = frozenset(_POINTING_WORDS.split())


@lru_cache(maxsize=64)
def extract_content_words(text: str) -> frozenset[str]:
    """What a text is about: its words without endings, but for those that every text has.

    Remembered, because a context that stands is asked for its words at every turn.

    >>> sorted(extract_content_words("Why did the deployments fail?"))
    ['deploy', 'fail']
    """
    return frozenset(_lemmatize(word) for word in _filter_content_words(text))


def is_follow_up(text: str) -> bool:
    """Whether an input says so little of its own that only what was said before tells what it is about.

    >>> [is_follow_up(text) for text in ("Why?", "When does it leave?", "Who is Ana?", "Is the ferry late?")]
    [True, True, False, False]
    """
    own = {_lemmatize(word) for word in _filter_content_words(text)}
    pointing = not _POINTING_SET.isdisjoint(_split_words(text))
    return not own or (pointing and len(own) <= FOLLOW_UP_WORDS) or is_small_talk(text)


def _filter_content_words(text: str) -> set[str]:
    return {
        word
        for word in set(_split_words(text)) - _STOPWORDS
        if len(word) >= _MIN_LETTERS or any(c.isdigit() for c in word)
    }


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("’", "'"))


@lru_cache(maxsize=20_000)
def _lemmatize(word: str) -> str:
    """Remembered, because a context has thousands of words, and most of them in common with the next one."""
    return lemmatize(word.removesuffix("'s"))
