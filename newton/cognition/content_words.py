"""Content words of a text, and detection of inputs that depend on earlier messages."""

import re
from functools import lru_cache

from newton.dialogue.sentence_centrality import STOP_WORDS
from newton.heart.statements.greetings import is_small_talk
from newton.heart.statements.lemmas import lemmatize
from newton.heart.word_stems import stem_word
from newton.languages.detection import detect_language
from newton.languages.language_data import ENGLISH, load_language
from newton.languages.search_words import list_terms

MAX_REMARK_CHARS = 60
FOLLOW_UP_WORDS = 1  # maximum of content words in an input that refers back to an earlier message

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_MIN_LETTERS = 3
_CONTINUATION = re.compile(
    r"\W*(?:and|but|or|because|even|no|nope|yes|yeah|yep|(?:and|so|then|ok|okay|but)?,? ?(?:what|how) about)\b",
    re.IGNORECASE,
)
_IDIOM = re.compile(r"\b(?:that['’]s (?:it|that)|there(?:['’]s| is| are| was| were))\b", re.IGNORECASE)  # no references

# Frequent words of inputs that carry no topic, in addition to STOP_WORDS.
_FREQUENT_WORDS = """
again another around because between both could each else even explain far first give happen happened here how last
least let long lot many maybe mean mind next often ok okay old other please possible right same second soon sure take
taken takes tell these third those though too try understand use used where whether which while why yet
"""

_STOPWORDS = STOP_WORDS.union(_FREQUENT_WORDS.split())

# Words that refer to an earlier message.
_REFERENCE_WORDS = """
it its it's that that's this these those them they their he him his she her hers one ones there then same such
"""


@lru_cache(maxsize=64)
def extract_content_words(text: str) -> frozenset[str]:
    """Return the lemmas of the words in a text, without stop words.

    Cached, because a reused context is compared with the input at every turn.

    >>> sorted(extract_content_words("Why did the deployments fail?"))
    ['deploy', 'fail']
    """
    return frozenset(_filter_lemmas(text))


def is_follow_up(text: str) -> bool:
    """Return True for an input with almost no content words, so that its topic depends on earlier messages.

    >>> [is_follow_up(text) for text in ("Why?", "When does it leave?", "Who is Ana?", "Is the ferry late?")]
    [True, True, False, False]
    """
    words = _filter_lemmas(text)
    return not words or (refers_back(text) and len(words) <= FOLLOW_UP_WORDS) or is_small_talk(text)


@lru_cache(maxsize=4_096)  # hundreds of messages are judged for each context
def is_empty_remark(text: str) -> bool:
    """Return True for a short message that only greets, thanks or agrees.

    >>> [is_empty_remark(text) for text in ("OK.", "Thanks!", "Yes, in May.", "At 9.")]
    [True, True, False, False]
    """
    if len(text) > MAX_REMARK_CHARS or any(map(str.isdigit, text)):
        return False
    return is_small_talk(text) or not _filter_lemmas(text)


def refers_back(text: str) -> bool:
    """Return True for an input with a word that refers to an earlier message, such as a pronoun.

    >>> [refers_back(text) for text in ("Can I glue them?", "Is the ferry late?", "And that's it.")]
    [True, False, False]
    """
    return not set(_split_words(_IDIOM.sub(" ", text))).isdisjoint(_REFERENCE_WORDS.split())


def is_continuation(text: str) -> bool:
    """Return True for an input whose first words continue an earlier message, such as "and" or "what about".

    >>> [is_continuation(text) for text in ("And the pot?", "What about the floor?", "What about it is new, Ana?")]
    [True, True, True]
    >>> is_continuation("Andrea is late")
    False
    """
    return _CONTINUATION.match(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")) is not None


def _filter_lemmas(text: str) -> set[str]:
    """Return the lemmas of the content words; for another language than English, their stems."""
    if (code := detect_language(text)) == ENGLISH:
        return {_lemmatize(word) for word in _filter_content_words(text)}
    data = load_language(code)
    min_letters = _MIN_LETTERS if data.is_spaced else 2
    terms = {term for term in list_terms(text) if len(term) >= min_letters or term.isdigit()} - data.words
    return {stem_word(term) for term in terms} if data.is_spaced else terms


def is_content_word(word: str) -> bool:
    """Return True for a word in lower case that is neither a stop word nor very short. Numbers may be short."""
    return word not in _STOPWORDS and (len(word) >= _MIN_LETTERS or any(c.isdigit() for c in word))


def _filter_content_words(text: str) -> set[str]:
    return {word for word in set(_split_words(text)) if is_content_word(word)}


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("’", "'"))


@lru_cache(maxsize=20_000)
def _lemmatize(word: str) -> str:
    """Return the lemma of a word. Cached, because consecutive contexts share most of their words."""
    return lemmatize(word.removesuffix("'s"))
