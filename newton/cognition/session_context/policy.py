"""Whether the context of a session may stand for the next input, and the reason. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from newton.cognition.greetings import is_small_talk
from newton.dialogue.sentence_centrality import STOP_WORDS
from newton.heart.statements.lemmas import lemmatize

RefreshMethod = Literal["built", "updated", "evicted", "stood"]

DECISION_FRAME = "decision"  # the frame in which a choice is to be made
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


class CoverageThresholds(NamedTuple):
    """From which cosine on to what a context holds, and from which share of its words on, an input is covered."""

    min_cosine: float = 0.5
    min_word_share: float = 0.8


DEFAULT_COVERAGE_THRESHOLDS = CoverageThresholds()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCoverage:
    """How far the context holds what an input is about: the highest cosine to anything in it, None when nobody can
    embed, and the share of the input's own words that it says. What leans on what was said before has none to look for.
    """

    cosine: float | None
    word_share: float
    is_follow_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshInput:
    """What is known, cheaply, of an input and of the context that its session has.

    `frame` is the one chosen for the input, `before` the context's own; `forced` says that a person has chosen it.
    `stale` says what the context states that is not so any more. `tokens` is what the context may cost now, `cost` what
    it costs. `entering` counts what is new beside it: lines that have left the view, and what was learnt since; `much`
    says why that is more than can be added.
    """

    frame: str
    previous_frame: str
    is_frame_forced: bool
    is_choice_due: bool
    coverage: InputCoverage
    max_tokens: int
    used_tokens: int
    stale_reasons: Sequence[str] = ()
    added_count: int = 0
    overflow_reason: str | None = None


class RefreshVerdict(NamedTuple):
    """What is to become of the context for this input, and why."""

    method: RefreshMethod
    reason: str


def decide_refresh(refresh_input: RefreshInput, thresholds: CoverageThresholds) -> RefreshVerdict:
    """The context is made anew when it is wrong, when the frame is another, when a choice is to be made, or when it
    does not cover the input. Else it stands, made smaller if it costs too much, with what is new beside it."""
    if why := _find_rebuild_reason(refresh_input, thresholds):
        return RefreshVerdict("built", why)
    if refresh_input.used_tokens > refresh_input.max_tokens:
        return RefreshVerdict(
            "evicted",
            f"it costs {refresh_input.used_tokens:,} tokens, and {refresh_input.max_tokens:,} are left for it",
        )
    if refresh_input.added_count:
        return RefreshVerdict(
            "updated",
            f"{_describe_coverage(refresh_input.coverage)}, and {refresh_input.added_count} more belong beside it",
        )
    return RefreshVerdict("stood", _describe_coverage(refresh_input.coverage))


def _find_rebuild_reason(refresh_input: RefreshInput, thresholds: CoverageThresholds) -> str | None:
    if refresh_input.stale_reasons:
        return f"not so any more: {', '.join(refresh_input.stale_reasons)}"
    # what leans on what was said before says too little to tell a frame by
    if refresh_input.frame != refresh_input.previous_frame and (
        refresh_input.is_frame_forced or not refresh_input.coverage.is_follow_up
    ):
        return f"the frame is {refresh_input.frame} now, not {refresh_input.previous_frame}"
    if refresh_input.is_choice_due:
        return "a choice is to be made"
    return _find_coverage_gap(refresh_input.coverage, thresholds) or refresh_input.overflow_reason


def _find_coverage_gap(coverage: InputCoverage, thresholds: CoverageThresholds) -> str | None:
    if coverage.is_follow_up:
        return None
    if coverage.cosine is not None and coverage.cosine < thresholds.min_cosine:
        return f"nothing in it is close to the input ({coverage.cosine:.2f}, not {thresholds.min_cosine:.2f})"
    if coverage.word_share < thresholds.min_word_share:
        return f"it says {coverage.word_share:.0%} of what the input speaks of, not {thresholds.min_word_share:.0%}"
    return None


def _describe_coverage(coverage: InputCoverage) -> str:
    if coverage.is_follow_up:
        return "the input leans on what was said before"
    near = "" if coverage.cosine is None else f" ({coverage.cosine:.2f})"
    return f"it covers the input{near}"


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
