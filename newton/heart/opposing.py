"""Whether two lines of an identity say the same, or cannot both be followed. Pure.

Both are told only where the words leave little doubt: of the rest a person is asked as of anything new. That a line
goes against another is a question to them too, never an answer.
"""

import re
from itertools import pairwise
from typing import Literal, NamedTuple

from newton.heart.statements.stems import lemma
from newton.heart.tenets import plain

Stance = Literal["same", "against"]

# What only says that it holds, and for whom.
_MADE = r"(?:answers?|repl(?:y|ies)|responses?|messages?)"
_LASTING = re.compile(
    r"\bfrom (?:now|here|today|this point)(?: on)?(?: out)?\b|\bstarting (?:now|today)\b|\bgoing forward\b"
    r"|\bhenceforth\b|\bin (?:the )?future\b|\bby default\b|\bunless i (?:say|tell you|ask)(?: otherwise)?\b"
    rf"|\b(?:in|to|for|with) (?:all|every|each)(?: of)?(?: your| my)? {_MADE}\b"
)
# What carries the grammar, and whatever an answer and making one are called.
_PLAIN_WORDS = """
a all always an and answer are as at be do ever every explanation for give i in is it its just keep kindly like make me
measure message more much must my need of on only our please prefer really reply remember respond response should so
speak spelling sure talk text that the them things to unit units use very want we when whenever with write you your
"""
_PASSING = frozenset(_PLAIN_WORDS.split())
_NOT = frozenset(["never", "not", "no", "don't", "dont", "without", "avoid", "stop", "skip", "hate", "dislike", "omit"])
_PLEASE = re.compile(r",? please\b")
_INSTEAD = re.compile(r"(?:,|,? and|,? but) (?:never|not)\b.*|,? (?:over|rather than|instead of)\b.*")
# Of each row one side excludes the others; words of one side mean the same.
_ROWS = (
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
_SIDES = [[frozenset(map(lemma, side.split())) for side in row.split("|")] for row in _ROWS]
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
# Only what is said of the person: "always call functions by their full name" calls nobody anything.
_ASKING = r"(?:(?:please|kindly|just|always|only|you|can|may|should|must|i|want|would|like|to|prefer|really),? )*"
_CALLED = re.compile(
    rf"{_ASKING}(?P<never>(?:(?:never|not|don't|dont|do not|stop)(?: ever)? )?)(?:to )?"
    r"(?:(?:call(?:ing)?|address(?:ing)?|refer(?:ring)? to) me|be (?:called|addressed|referred to))(?: as| by)? "
    r"(?P<name>.+)"
    r"|my (?P<pronouns>pronouns) are (?P<are>.+)"
)


class _Read(NamedTuple):
    """A line as it is compared: whether it forbids, its words that say something, whose they are, and what it wants
    said for whom."""

    forbids: bool = False
    words: tuple[str, ...] = ()
    whose: frozenset[str] = frozenset()
    called: tuple[str | None, str] | None = None


def stance(one: str, other: str) -> Stance | None:
    """
    >>> stance("Always answer in metric units", "From now on use imperial units, please")
    'against'
    >>> stance("Always answer in French", "Answer in French from now on")
    'same'
    >>> stance("Never suggest meat", "Never suggest fish")
    """
    if plain(one) == plain(other):
        return "same"
    a, b = _read(one), _read(other)
    if a.called and b.called and a.called[0] == b.called[0]:
        return _naming(a, b)
    if not (a.words and b.words) or (a.whose and b.whose and a.whose.isdisjoint(b.whose)):
        return None
    if a.words == b.words:
        return "same" if a.forbids == b.forbids else "against"
    return None if a.forbids or b.forbids or not _exclude(a.words, b.words) else "against"


def _naming(one: _Read, other: _Read) -> Stance | None:
    """Who is called one thing is not called another; who is not called one thing may be called whatever else."""
    alike = one.called == other.called
    if one.forbids == other.forbids:
        return "same" if alike else None if one.forbids else "against"
    return "against" if alike else None


def _exclude(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether they differ by what excludes each other and by nothing else."""
    for sides in _SIDES:
        ours, theirs = ([side for side in sides if side.intersection(words)] for words in (one, other))
        if len(ours) == len(theirs) == 1 and ours != theirs:
            return [w for w in one if w not in ours[0]] == [w for w in other if w not in theirs[0]]
    return False


def _read(line: str) -> _Read:
    said = _LASTING.sub(" ", line.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")).strip(" ,")
    if called := _CALLED.match(said):
        name = plain(_PLEASE.sub("", _INSTEAD.sub("", called["name"] or called["are"])))
        return _Read(forbids=bool(called["never"]), called=(called["pronouns"], name))
    words = _WORD.findall(_INSTEAD.sub("", said))
    telling = [word for word in words if word not in _NOT | _PASSING and lemma(word) not in _PASSING]
    owners = frozenset(word for word, owned in pairwise(words) if word in ("my", "your") and owned in telling)
    return _Read(forbids=not _NOT.isdisjoint(words), words=tuple(map(lemma, telling)), whose=owners)
