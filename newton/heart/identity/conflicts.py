"""Detection of identity lines that say the same or contradict each other; a doubtful pair counts as neither. Pure."""

import re
from itertools import pairwise
from typing import Literal, NamedTuple

from newton.heart.identity.tenets import normalize_line
from newton.text.english import lemmatize

LineRelation = Literal["same", "against"]

# Words that only express permanence or the addressee.
_REPLY_NOUNS = r"(?:answers?|repl(?:y|ies)|responses?|messages?)"
_LASTING = re.compile(
    r"\bfrom (?:now|here|today|this point)(?: on)?(?: out)?\b|\bstarting (?:now|today)\b|\bgoing forward\b"
    r"|\bhenceforth\b|\bin (?:the )?future\b|\bby default\b|\bunless i (?:say|tell you|ask)(?: otherwise)?\b"
    rf"|\b(?:in|to|for|with) (?:all|every|each)(?: of)?(?: your| my)? {_REPLY_NOUNS}\b"
)
# Function words, and synonyms of answer and answering.
_FILLER_WORDS = """
a all always an and answer are as at be do ever every explanation for give i in is it its just keep kindly like make me
measure message more much must my need of on only our please prefer really reply remember respond response should so
speak spelling sure talk text that the them things to unit units use very want we when whenever with write you your
"""
_FILLERS = frozenset(_FILLER_WORDS.split())
_NEGATION_WORDS = "never not no don't dont without avoid stop skip hate dislike omit"
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
_PLEASE = re.compile(r",? please\b")
_INSTEAD = re.compile(r"(?:,|,? and|,? but) (?:never|not)\b.*|,? (?:over|rather than|instead of)\b.*")
# In each row the sides, separated by |, exclude each other; the words of one side are synonyms.
_EXCLUSIVE_ROWS = (
    "metric | imperial",
    "celsius | fahrenheit",
    "kilometre kilometer | mile",
    "short brief concise terse | long detailed lengthy thorough verbose",
    "formal | informal casual",
    "polite gentle | blunt",
    "tab | space",
    "british | american",
    "lowercase | uppercase",
    "plain | markdown",
    "euro | dollar | franc | yen | sterling",
    "24-hour | 12-hour",
    "arabic | chinese | czech | danish | dutch | english | finnish | french | german | greek | hebrew | hindi"
    " | hungarian | italian | japanese | korean | norwegian | polish | portuguese | romanian | russian | spanish"
    " | swedish | turkish | ukrainian",
)
_EXCLUSIVE_SIDES = [[frozenset(map(lemmatize, side.split())) for side in row.split("|")] for row in _EXCLUSIVE_ROWS]
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
# Only the person's own name: "always call functions by their full name" names nobody.
_REQUEST_PREFIX = (
    r"(?:(?:please|kindly|just|always|only|you|can|may|should|must|i|want|would|like|to|prefer|really),? )*"
)
_NAMING_REQUEST = re.compile(
    rf"{_REQUEST_PREFIX}(?P<never>(?:(?:never|not|don't|dont|do not|stop)(?: ever)? )?)(?:to )?"
    r"(?:(?:call(?:ing)?|address(?:ing)?|refer(?:ring)? to) me|be (?:called|addressed|referred to))(?: as| by)? "
    r"(?P<name>.+)"
    r"|my (?P<pronouns>pronouns) are (?P<are>.+)"
)


class _ParsedLine(NamedTuple):
    """An identity line, prepared for comparison.

    `forbids` means that the line contains a negation. `words` are its content words, `owners` its words "my" and
    "your", and `naming` the pronouns or the name by which the person wants to be called.
    """

    forbids: bool = False
    words: tuple[str, ...] = ()
    owners: frozenset[str] = frozenset()
    naming: tuple[str | None, str] | None = None


def compare_lines(first: str, second: str) -> LineRelation | None:
    """Return `same` if two lines say the same, `against` if they contradict each other, and None otherwise.

    >>> compare_lines("Always answer in metric units", "From now on use imperial units, please")
    'against'
    >>> compare_lines("Always answer in French", "Answer in French from now on")
    'same'
    >>> compare_lines("Never suggest meat", "Never suggest fish")
    """
    if normalize_line(first) == normalize_line(second):
        return "same"
    a, b = _parse_line(first), _parse_line(second)
    if a.naming and b.naming and a.naming[0] == b.naming[0]:
        return _compare_naming(a, b)
    if not (a.words and b.words) or (a.owners and b.owners and a.owners.isdisjoint(b.owners)):
        return None
    if a.words == b.words:
        return "same" if a.forbids == b.forbids else "against"
    return None if a.forbids or b.forbids or not _are_exclusive(a.words, b.words) else "against"


def _compare_naming(first: _ParsedLine, second: _ParsedLine) -> LineRelation | None:
    """Compare two lines on how to call the person: two names exclude each other, a forbidden name only itself."""
    equal = first.naming == second.naming
    if first.forbids == second.forbids:
        return "same" if equal else None if first.forbids else "against"
    return "against" if equal else None


def _are_exclusive(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether two lines differ only in words that exclude each other, such as "metric" and "imperial"."""
    for sides in _EXCLUSIVE_SIDES:
        ours, theirs = ([side for side in sides if side.intersection(words)] for words in (first, second))
        if len(ours) == len(theirs) == 1 and ours != theirs:
            return [w for w in first if w not in ours[0]] == [w for w in second if w not in theirs[0]]
    return False


def _parse_line(line: str) -> _ParsedLine:
    text = _LASTING.sub(" ", line.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")).strip(" ,")
    if request := _NAMING_REQUEST.match(text):
        name = normalize_line(_PLEASE.sub("", _INSTEAD.sub("", request["name"] or request["are"])))
        return _ParsedLine(forbids=bool(request["never"]), naming=(request["pronouns"], name))
    words = _WORD.findall(_INSTEAD.sub("", text))
    content = [word for word in words if word not in _NEGATIONS | _FILLERS and lemmatize(word) not in _FILLERS]
    owners = frozenset(word for word, following in pairwise(words) if word in ("my", "your") and following in content)
    return _ParsedLine(forbids=not _NEGATIONS.isdisjoint(words), words=tuple(map(lemmatize, content)), owners=owners)
