"""Tokenizer of statements, which normalizes contractions and phrases."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from newton.text import english
from newton.text.english import VERB_LEMMAS, lemmatize
from newton.text.numerals import CARDINALS, MONTHS, ORDINALS, WordToken, parse_numbers

MAX_PHRASE_WORDS = max(len(words) for words in english.PHRASES)
QUESTION, BREAK, STOP, START = "?", ",", ";", "^"

_TOKEN = re.compile(r"(?:(?<!\w)[-−.](?=\d))?\w*\d\w*(?:[.,:/-]\d\w*)*|[^\W_](?:\w|'(?=\w))*|[^\w\s]|_+")
_CURRENCY = re.compile(r"([$€£¥]) ?(\d(?:[\d.,]*\d)?)")
_APOSTROPHES = str.maketrans("’‘ʼ`´", "'''''")
_STOPS, _BREAKS, _KEPT_SIGNS = frozenset(".!;"), frozenset(",:()–—"), frozenset("%#@&")
_SYMBOLS = {"$": "dollar", "€": "euro", "£": "pound", "%": "percent", START: "caret"}
_MISSING_APOSTROPHES = {
    f"{verb}nt": f"{verb}n't" for verb in ("do", "does", "did", "is", "was", "are", "ca", "wo", "would", "have", "has")
}
_CONTRACTED = {"can't": ("can", "not"), "won't": ("will", "not"), "shan't": ("will", "not"), "cannot": ("can", "not")}
_ENDINGS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'s": "'s"}
_IS_AFTER = frozenset({"it", "he", "she", "that", "there", "what", "who", "here", "where", "this"})
_IS_BEFORE = frozenset({"a", "an", "the", "not", "been", "got", "going"})
_ORDINARY_OPENERS = frozenset({"there", "keep", "just", "right", "prior", "up", "going", "most"})
_CEASING_VERBS = frozenset({"stopped", "quit", "ceased", "quits", "stops"})


@lru_cache(maxsize=1_024)
def fold_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in any language in lower case, without punctuation. Takes linear time."""
    return tuple(word.text for word in _scan_words(text) if word.text not in (BREAK, STOP, START))


def is_latin_script(text: str) -> bool:
    """Return whether all letters of a text are Latin. The rules for statements cover no other script."""
    return text.isascii() or all(not c.isalpha() or "LATIN" in unicodedata.name(c, "") for c in text)


def tokenize(text: str) -> list[WordToken]:
    """Return the words of an English statement. Negations, quantifiers and modal words begin with "~"."""
    words = _resolve_possessives(_sort_joined_names(list(_expand_contractions(_scan_words(text)))))
    return _mark_cessation(parse_numbers(_replace_phrases(words)))


def _scan_words(text: str) -> Iterator[WordToken]:
    plain = _CURRENCY.sub(r"\2 \1", unicodedata.normalize("NFKC", text).translate(_APOSTROPHES))
    all_capitals = plain.upper() == plain
    yield WordToken(START)
    first, last = True, ""
    for match in _TOKEN.finditer(plain):
        if token := _normalize_token(match[0], last=last):
            capital = match[0][0].isupper() and not all_capitals and not (first and _is_ordinary(token))
            yield WordToken(token, capital, starts_sentence=first)
            first = token == STOP or match[0] == ":"
        last = match[0]


def _normalize_token(token: str, *, last: str) -> str:
    """Return the normalized token; "" for a sign to ignore. A full stop after St or Dr does not end a sentence."""
    if token[0].isalnum() or len(token) > 1:
        return token.casefold()
    if token in _STOPS:
        return "" if token == "." and len(last) <= 3 and last.isalpha() else STOP
    if token in _BREAKS:
        return BREAK
    is_word = token in _KEPT_SIGNS or token == QUESTION or not unicodedata.category(token).startswith("P")
    return _SYMBOLS.get(token, token) if is_word else ""


def _is_ordinary(word: str) -> bool:
    """Return whether the word is probably no name, so that it is capitalized only because it begins a sentence."""
    phrase = (word,) in english.PHRASES or (START, word) in english.PHRASES
    return phrase or word in _FUNCTION_WORDS or lemmatize(word) in VERB_LEMMAS


_FUNCTION_WORDS = _ORDINARY_OPENERS.union(
    english.MARKERS, english.PERSONS, english.DETERMINERS, english.AUXILIARIES, CARDINALS, ORDINALS
)


def _expand_contractions(words: Iterator[WordToken]) -> Iterator[WordToken]:
    for word in words:
        text = word.text
        text = _MISSING_APOSTROPHES.get(text, text)
        if text in _CONTRACTED:
            yield from map(WordToken, _CONTRACTED[text])
            continue
        ending = next((e for e in _ENDINGS if len(text) > len(e) and text.endswith(e)), "")
        yield WordToken(text.removesuffix(ending), word.is_capitalized, starts_sentence=word.starts_sentence)
        if ending:
            yield WordToken(_ENDINGS[ending])


def _resolve_possessives(words: list[WordToken]) -> list[WordToken]:
    """Replace "'s" by "is" or "has" where it can only be a verb."""
    resolved = list(words)
    for position, (word, next_word) in enumerate(pairwise(words)):
        if word.text == "'s":
            following = next_word.text
            participle = following in english.PARTICIPLES - english.PAST_FORMS - english.VERBS
            if words[position - 1].text in _IS_AFTER or following in _IS_BEFORE or participle:
                resolved[position] = WordToken("has" if following in ("been", "got") else "is")
    return resolved


def _sort_joined_names(words: list[WordToken]) -> list[WordToken]:
    """Sort two names that "and" joins: "Ben and Ana" becomes "Ana and Ben"."""
    sorted_ = list(words)
    for position in range(1, len(words) - 1):
        one, joint, other = words[position - 1 : position + 2]
        around = [words[n] for n in (position - 2, position + 2) if 0 <= n < len(words)]
        if any(word.is_capitalized or word.text == "'s" for word in around):
            continue
        names = one.is_capitalized and other.is_capitalized
        if names and joint.text in ("and", "&") and other.text < one.text:
            sorted_[position - 1], sorted_[position + 1] = other, one
    return sorted_


def _replace_phrases(words: list[WordToken]) -> list[WordToken]:
    """Replace the phrases of PHRASES, longest first. Capitalized months and names are never part of a phrase."""
    tokens: list[WordToken] = []
    position = 0
    while position < len(words):
        length = next((n for n in range(MAX_PHRASE_WORDS, 0, -1) if _is_phrase(words, position, n)), 0)
        end = position + max(length, 1)
        part = words[position:end]
        tokens += map(WordToken, english.PHRASES[tuple(word.text for word in part)]) if length else part
        position = end
    return tokens


def _is_phrase(words: list[WordToken], position: int, length: int) -> bool:
    part = words[position : position + length]
    if len(part) < length or tuple(word.text for word in part) not in english.PHRASES:
        return False
    if any(word.text in MONTHS for word in part):
        return not _is_beside_date(words, position)
    return not any(word.is_capitalized for word in part)


def _is_beside_date(words: list[WordToken], position: int) -> bool:
    """Return whether a word such as "may" is a month: capitalized within a sentence, or beside a number."""
    sides = [words[n].text for n in (position - 1, position + 1) if 0 <= n < len(words)]
    return words[position].is_capitalized or any(side[:1].isdigit() for side in sides)


def _mark_cessation(words: list[WordToken]) -> list[WordToken]:
    """Replace "stopped doing" and "not anymore" by the token "~ceased", and remove "any" after a negation."""
    texts = [word.text for word in words]
    redundant = {"~anymore", "~any"} if "~not" in texts else {"~anymore"}
    marked: list[WordToken] = []
    for word, following in zip(words, [*texts[1:], ""], strict=False):
        ceases = word.text in _CEASING_VERBS and following.endswith("ing")
        if ceases or (word.text == "~not" and "~anymore" in texts):
            marked.append(WordToken("~ceased"))
        elif word.text not in redundant:
            marked.append(word)
    return marked
