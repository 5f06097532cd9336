"""Whether the context of a session may stand for the next input, and the reason. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from newton.cognition.bundles.bundle import RefreshMethod
from newton.cognition.bundles.cache import CoverageThresholds

DECISION_FRAME = "decision"  # the frame in which a choice is to be made


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
