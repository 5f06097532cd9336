"""Division of a person's line into their own words and what they quote or paste. Pure."""

import re
from functools import lru_cache
from typing import NamedTuple

from newton.heart.identity.standing_instructions import mask_foreign_text
from newton.heart.pasted_text import MASK

MAX_QUOTED_NAME = 3  # words of a quotation that is a name or a term of the person's own sentence

_QUOTATION = re.compile(rf"{MASK}+(?:\s*{MASK}+)*")
# A passage in Chinese or Japanese script in a line of another language.
_PASSAGE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff][\u3000-\u30ff\u3400-\u9fff\uff00-\uffef\d]{5,}")
# A list, with the line before it. Its items are the person's own if they are short and that line presents no text.
_LIST = re.compile(
    r"(?P<head>^(?![ \t]*(?:[-*•]|\d+[.)])[ \t])[^\n]*\n)?(?P<items>(?:^[ \t]*(?:[-*•]|\d+[.)])[ \t][^\n]*(?:\n|\Z))+)",
    re.MULTILINE,
)
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])(?=[ \t])", re.MULTILINE)
_PRESENTING = re.compile(
    r"\b(?:this|these|following|below|here|according|says?|said|wrote|writes?|sent|from|page|site|e?mails?|messages?|texts?"
    r"|articles?|notice|contract|letter|terms|translate|summari[sz]e|rewrite|proofread|review|check)\b",
    re.IGNORECASE,
)
MAX_ITEM_WORDS = 16
_LATIN_WORD = re.compile(r"\b[A-Za-zÀ-ɏ]{2,}\b")


class OwnWords(NamedTuple):
    """The words of a person, and the text of others in the same line."""

    own: str
    foreign: str


@lru_cache(maxsize=1_024)
def split_own_words(text: str) -> OwnWords:
    r"""Return a line without what it quotes or pastes, and that. A quoted name or term belongs to the person's words.

    >>> split_own_words('Scale this: "I have three kids, and Pia adores mushrooms." It is for "Erik".')
    OwnWords(own='Scale this:   It is for "Erik".', foreign='"I have three kids, and Pia adores mushrooms."')
    >>> split_own_words("Done, last night:\n- prod moved to OVH").foreign
    ''
    >>> split_own_words("From the terms:\n- Guests pay in cash").foreign
    '- Guests pay in cash'
    """
    masked = _mask(text)
    foreign = [text[len(masked) :]]
    parts, start = list[str](), 0
    for match in _QUOTATION.finditer(masked):
        quoted = text[match.start() : match.end()]
        is_name = len(quoted.split()) <= MAX_QUOTED_NAME and "\n" not in quoted
        parts += [masked[start : match.start()], quoted if is_name else " "]
        foreign += [] if is_name else [quoted]
        start = match.end()
    own = "".join([*parts, masked[start:]])
    if len(_LATIN_WORD.findall(own)) >= MAX_QUOTED_NAME:
        foreign += _PASSAGE.findall(own)
        own = _PASSAGE.sub(" ", own)
    return OwnWords(own, "\n".join(filter(str.strip, foreign)))


def mask_quotations(text: str) -> str:
    """Return a text without its quotations, code and pasted parts, which are not the person's own words."""
    return _mask(text).replace(MASK, " ")


def is_quoted(part: str, text: str) -> bool:
    """Return whether a part of a text is, for the most part, a quotation, code or pasted.

    >>> said = "I am Ana, please, 'doctora Ibarra' is for the College. My boss says: 'Never mention prices to him.'"
    >>> is_quoted("I am Ana, please, 'doctora Ibarra' is for the College.", said)
    False
    >>> is_quoted("Never mention prices", said)
    True
    """
    found = re.search(r"\s+".join(map(re.escape, part.split())), text) if part.strip() else None
    masked = _mask(text)[found.start() : found.end()] if found else ""
    return masked.count(MASK) * 2 > len(masked)


def _mask(text: str) -> str:
    # a single line is no transcript, though it begins with a word and a colon: "Gdansk: registered and paid."
    mark = "" if "\n" in text.strip() else "· "
    return mask_foreign_text(mark + _LIST.sub(_unmark_own_list, text))[len(mark) :]


def _unmark_own_list(match: "re.Match[str]") -> str:
    """Return a list without its marks and the colon before it if it is the person's own, at the same offsets."""
    head, items = match["head"] or "", match["items"]
    if _PRESENTING.search(head) or any(len(one.split()) > MAX_ITEM_WORDS for one in items.splitlines()):
        return match[0]
    return head.replace(":\n", ".\n") + _LIST_MARK.sub(lambda mark: " " * len(mark[0]), items)
