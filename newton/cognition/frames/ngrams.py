"""N-grams of an input: of its words, of its characters, and of its grammar (content words masked). Pure."""

import re
from collections.abc import Iterator, Sequence

MAX_CHARS = 400  # read from the start of an input: the request comes early
MAX_TOKENS = 80
STEM_CHARS = 5


def _parse_word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# All other words are masked to their suffix, so that 'should we sell the barn' and 'should we drop the table' share
# grammar n-grams.
FUNCTION_WORDS = _parse_word_set("""
i me my mine myself we us our ours ourselves you your yours he him his she her it its they them their
this that these those who whom whose which what when where why how a an the some any all both each every no none not
never always again still yet already just only so too very more most less least much many few enough other another
same such and or but if than then because while although though since until before after during between among
through about against for of to in on at by with from into onto over under up down out off as like without per within
am is are was were be been being do does did done has have had having can could may might must shall should will
would ought let lets dont doesnt didnt isnt arent wasnt werent cant cannot couldnt wont wouldnt shouldnt havent hasnt
hadnt im ive id ill were weve wed well youre youve its thats theres whats whos hows heres here there now today
tomorrow yesterday tonight yes no ok okay please thanks sorry maybe perhaps either neither nor whether one two three
four five six seven next last first week weeks month months year years day days time make give get put take set want
need like think know help find keep go come say tell show use look feel
""")
SUFFIXES = ("ing", "tion", "est", "ed", "ly", "er", "s")

_PIECE = re.compile(r"[^\W\d_]+|\d+|[?!.,:;/]")
_CHARACTER = re.compile(r"[a-z]+|\d+|\S")


def extract_english_ngrams(text: str) -> frozenset[str]:
    """Return the words and word pairs of a text, and its grammar n-grams of up to 3 words.

    In grammar n-grams, content words are masked; `^` and `$` mark the start and the end of the text.

    >>> sorted(extract_english_ngrams("Sell it") - {"sell", "it", "sell it"})
    ['$', '*', '* it', '* it $', '^', '^ *', '^ * it', 'it $']
    """
    words = _tokenize(text)
    grammar = ["^", *map(_mask_content_word, words), "$"]
    return frozenset((*words, *_join_ngrams(words, 2), *grammar, *_join_ngrams(grammar, 2), *_join_ngrams(grammar, 3)))


def extract_word_ngrams(text: str) -> frozenset[str]:
    """Return the words, word pairs and first letters of long words, which stand for their stems.

    >>> sorted(extract_word_ngrams("Verkaufen?"))
    ['?', '? $', '^ verkaufen', 'verka-', 'verkaufen', 'verkaufen ?']
    """
    words = _tokenize(text)
    stems = (f"{word[:STEM_CHARS]}-" for word in words if len(word) > STEM_CHARS)
    return frozenset((*words, *_join_ngrams(["^", *words, "$"], 2), *stems))


def extract_character_ngrams(text: str) -> frozenset[str]:
    """Return n-grams of up to 3 characters, for languages that do not separate words.

    >>> sorted(extract_character_ngrams("\u4f60\u597d"))[:3]
    ['$', '^', '^\u4f60']
    """
    characters = ["^", *_CHARACTER.findall(text[:MAX_CHARS].lower()), "$"]
    return frozenset("".join(characters[at : at + n]) for n in (1, 2, 3) for at in range(len(characters) - n + 1))


def _tokenize(text: str) -> list[str]:
    plain = text[:MAX_CHARS].lower().replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    return _PIECE.findall(plain)[:MAX_TOKENS]


def _join_ngrams(tokens: Sequence[str], length: int) -> Iterator[str]:
    return (" ".join(tokens[at : at + length]) for at in range(len(tokens) - length + 1))


def _mask_content_word(word: str) -> str:
    """Return a function word unchanged, and `*` with the suffix for any other word.

    >>> tuple(_mask_content_word(word) for word in ("should", "launched", "2024", "barn"))
    ('should', '*ed', '#', '*')
    """
    if word in FUNCTION_WORDS or not word[0].isalnum():
        return word
    if word[0].isdigit():
        return "#"
    return next((f"*{ending}" for ending in SUFFIXES if word.endswith(ending) and len(word) > len(ending) + 2), "*")
