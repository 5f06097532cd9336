"""Words of a text: terms for the search index, content words and stems, and tests of inputs by their words. Pure.

Words are stemmed in the language of the text. Names in other languages than English are also stemmed as in English, so
that texts in two languages share them. Chinese and Japanese have no spaces: runs of their characters become single
characters and pairs, which need no dictionary and find parts of compounds.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Set
from functools import cache, lru_cache

from newton.text.english import lemmatize
from newton.text.greetings import is_small_talk
from newton.text.languages import ENGLISH, detect_language, load_language, read_data
from newton.text.sentences import STOP_WORDS
from newton.text.stems import TERM, WORD, stem_word, strip_ending


def split_words(text: str) -> frozenset[str]:
    """Return the words in a text that white space separates."""
    return frozenset(text.split())


_NAME_WORDS: Mapping[str, str] = read_data("english_name_words.yaml")
NEVER_NAMES = split_words(_NAME_WORDS["never_names"])
SENTENCE_STARTERS = split_words(_NAME_WORDS["sentence_starters"])
COMMON_WORDS = NEVER_NAMES | SENTENCE_STARTERS
AMBIGUOUS_NAMES = COMMON_WORDS | split_words(_NAME_WORDS["ambiguous_names"])
TITLES = split_words("dr mr mrs ms prof st sir jr sr mt")
SHARED_NAME_PARTS = (COMMON_WORDS - split_words("will hope")) | TITLES | split_words(_NAME_WORDS["shared_name_parts"])


MAX_INPUT_CHARACTERS = 20_000  # of an input
MAX_TEXT_CHARACTERS = 200_000  # of a memory: PostgreSQL limits a tsvector to 1 MiB

_UNSPACED = re.compile(
    r"(?P<han>[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々]+)|(?P<hiragana>[\u3040-\u309f]+)"
    r"|(?P<katakana>[\u30a0-\u30ff]+)"
)
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_NAME = re.compile(r"\b(?:[^\W\d_a-z]\w*|\w*\d\w*)")  # begins with a capital, or has a digit


def prepare_words(text: str, *, max_characters: int = MAX_INPUT_CHARACTERS, language: str | None = None) -> list[str]:
    """Return the arguments of the SQL function `memory.search_words`: text search configuration, text, and names.

    Without a `language` it is detected.

    >>> prepare_words("Which trees does Clara like?"), prepare_words("wo wohnt Clara Vogel?")
    (['english', 'Which trees does Clara like?', ''], ['german', 'wo wohnt Clara Vogel?', 'Clara Vogel'])
    >>> prepare_words("狗叫什么")
    ['english', '狗 叫 狗叫 ', '']
    """
    text = text[:max_characters]
    code = language or detect_language(text)
    if not text.isascii():
        text = _segment(unicodedata.normalize("NFKC", text))
    search = load_language(code).search
    names = " ".join(_NAME.findall(text)) if code not in (ENGLISH, "zh", "ja", "ru") else ""
    return [search, text, names]


def list_terms(text: str) -> list[str]:
    """Return the words of a text in lower case, those of Chinese and Japanese as single characters and pairs.

    >>> list_terms("Der Zug nach 東京")
    ['der', 'zug', 'nach', '東', '京', '東京']
    """
    return TERM.findall(_segment(unicodedata.normalize("NFKC", text)).casefold())


def _segment(text: str) -> str:
    """Return the text with runs of Chinese and Japanese characters in terms, which spaces separate."""
    return _UNSPACED.sub(_split_run, text) if _HAN.search(text) else text


def _split_run(run: "re.Match[str]") -> str:
    return "".join(f"{term} " for term in _iter_terms(run))


def _iter_terms(run: "re.Match[str]") -> Iterator[str]:
    """Yield the terms of a run of characters.

    Katakana are whole foreign words. Hiragana are mostly endings; a run that is only function words has no term.
    """
    text = run[0]
    if run["katakana"]:
        yield text
    elif run["hiragana"]:
        rest = _function_words("ja").sub(" ", text)
        for part in rest.split():
            yield from _pairs(part) if len(part) > 1 else ()
    else:
        for part in filter(None, _function_words("zh").split(text)):
            yield from part
            yield from _pairs(part)


def _pairs(text: str) -> Iterator[str]:
    return (text[n : n + 2] for n in range(len(text) - 1))


@cache
def _function_words(code: str) -> re.Pattern[str]:
    words = sorted(load_language(code).words, key=lambda word: (-len(word), word))
    return re.compile("|".join(map(re.escape, words)))


MAX_REMARK_CHARS = 60
FOLLOW_UP_WORDS = 1  # maximum of content words in an input that refers back to an earlier message

_SPOKEN_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
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
    """Return the lemmas (base forms) of the words in a text, without stop words.

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
    """Return True for a lower-case word that is no stop word (such as "the") and not very short.

    Numbers may be short.
    """
    return word not in _STOPWORDS and (len(word) >= _MIN_LETTERS or any(c.isdigit() for c in word))


def _filter_content_words(text: str) -> set[str]:
    return {word for word in set(_split_words(text)) if is_content_word(word)}


def _split_words(text: str) -> list[str]:
    return _SPOKEN_WORD.findall(text.casefold().replace("’", "'"))


@lru_cache(maxsize=20_000)
def _lemmatize(word: str) -> str:
    """Return the lemma of a word. Cached, because consecutive contexts share most of their words."""
    return lemmatize(word.removesuffix("'s"))


MAX_COMPARED_CHARACTERS = 2_000  # of an input; the rest is not compared by stems
CACHED_TEXTS = 8_192


@lru_cache(maxsize=CACHED_TEXTS)
def extract_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text.

    Results are cached, because every input is compared with every trigger.

    >>> sorted(extract_stems("Where does Ana work? Ana works at Acme."))
    ['acm', 'ana', 'work']
    """
    words = WORD.findall(text[:MAX_COMPARED_CHARACTERS].casefold())
    return frozenset(strip_ending(word) for word in words if word not in NEVER_NAMES)


def stem_overlap(stems: Set[str], line: str) -> float:
    """Return the share of `stems`, in [0, 1], that are also stems of the line; 0 without stems."""
    return len(stems & extract_stems(line)) / len(stems) if stems else 0.0
