"""Whether the context of a session may stand for the next input, and the reason. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from newton.cognition.opening import is_courtesy
from newton.dialogue.gist import COMMON
from newton.heart.statements.stems import lemma

How = Literal["built", "updated", "evicted", "stood"]

CHOOSING = "decision"  # the frame in which a choice is to be made
BRIEF = 1  # so many words of its own has an input that leans on what was said before

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_FEWEST_LETTERS = 3
# Words that no input is about, beside those that no conversation is about.
_ASKED = """
again another around because between both could each else even explain far first give happen happened here how last
least let long lot many maybe mean mind next often ok okay old other please possible right same second soon sure take
taken takes tell these third those though too try understand use used where whether which while why yet
"""
_PLAIN = COMMON.union(_ASKED.split())
# What points back to something said before.
_BACK = """
it its it's that that's this these those them they their he him his she her hers one ones there then same such
"""
_POINTING = frozenset(_BACK.split())


class Covering(NamedTuple):
    """From which cosine on to what a context holds, and from which share of its words on, an input is covered."""

    cosine: float = 0.5
    words: float = 0.8


ENOUGH = Covering()


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How far the context holds what an input is about: the highest cosine to anything in it, None when nobody can
    embed, and the share of the input's own words that it says. What leans on what was said before has none to look for.
    """

    cosine: float | None
    words: float
    leaning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is known, cheaply, of an input and of the context that its session has.

    `frame` is the one chosen for the input, `before` the context's own; `forced` says that a person has chosen it.
    `stale` says what the context states that is not so any more. `tokens` is what the context may cost now, `cost` what
    it costs. `entering` counts what is new beside it: lines that have left the view, and what was learnt since; `much`
    says why that is more than can be added.
    """

    frame: str
    before: str
    forced: bool
    choosing: bool
    coverage: Coverage
    tokens: int
    cost: int
    stale: Sequence[str] = ()
    entering: int = 0
    much: str | None = None


class Verdict(NamedTuple):
    """What is to become of the context for this input, and why."""

    how: How
    because: str


def judged(outlook: Outlook, covering: Covering) -> Verdict:
    """The context is made anew when it is wrong, when the frame is another, when a choice is to be made, or when it
    does not cover the input. Else it stands, made smaller if it costs too much, with what is new beside it."""
    if why := _wanting(outlook, covering):
        return Verdict("built", why)
    if outlook.cost > outlook.tokens:
        return Verdict("evicted", f"it costs {outlook.cost:,} tokens, and {outlook.tokens:,} are left for it")
    if outlook.entering:
        return Verdict("updated", f"{_covered(outlook.coverage)}, and {outlook.entering} more belong beside it")
    return Verdict("stood", _covered(outlook.coverage))


def _wanting(outlook: Outlook, covering: Covering) -> str | None:
    if outlook.stale:
        return f"not so any more: {', '.join(outlook.stale)}"
    # what leans on what was said before says too little to tell a frame by
    if outlook.frame != outlook.before and (outlook.forced or not outlook.coverage.leaning):
        return f"the frame is {outlook.frame} now, not {outlook.before}"
    if outlook.choosing:
        return "a choice is to be made"
    return _uncovered(outlook.coverage, covering) or outlook.much


def _uncovered(coverage: Coverage, covering: Covering) -> str | None:
    if coverage.leaning:
        return None
    if coverage.cosine is not None and coverage.cosine < covering.cosine:
        return f"nothing in it is close to the input ({coverage.cosine:.2f}, not {covering.cosine:.2f})"
    if coverage.words < covering.words:
        return f"it says {coverage.words:.0%} of what the input speaks of, not {covering.words:.0%}"
    return None


def _covered(coverage: Coverage) -> str:
    if coverage.leaning:
        return "the input leans on what was said before"
    near = "" if coverage.cosine is None else f" ({coverage.cosine:.2f})"
    return f"it covers the input{near}"


@lru_cache(maxsize=64)
def own_words(text: str) -> frozenset[str]:
    """What a text is about: its words without endings, but for those that every text has.

    Remembered, because a context that stands is asked for its words at every turn.

    >>> sorted(own_words("Why did the deployments fail?"))
    ['deploy', 'fail']
    """
    return frozenset(_lemma(word) for word in _own(text))


def leans(text: str) -> bool:
    """Whether an input says so little of its own that only what was said before tells what it is about.

    >>> [leans(text) for text in ("Why?", "When does it leave?", "Who is Ana?", "Is the ferry late?")]
    [True, True, False, False]
    """
    own = {_lemma(word) for word in _own(text)}
    pointing = not _POINTING.isdisjoint(_words(text))
    return not own or (pointing and len(own) <= BRIEF) or is_courtesy(text)


def _own(text: str) -> set[str]:
    return {
        word for word in set(_words(text)) - _PLAIN if len(word) >= _FEWEST_LETTERS or any(c.isdigit() for c in word)
    }


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("’", "'"))


@lru_cache(maxsize=20_000)
def _lemma(word: str) -> str:
    """Remembered, because a context has thousands of words, and most of them in common with the next one."""
    return lemma(word.removesuffix("'s"))
