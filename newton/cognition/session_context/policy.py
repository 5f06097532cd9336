"""Rules that decide whether a session's context is reused, updated or rebuilt for an input. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from newton.cognition.bundles.bundle import RefreshMethod
from newton.cognition.bundles.cache import CoverageThresholds
from newton.cognition.questions.question_kinds import QuestionKind

DECISION_FRAME = "decision"  # frame of inputs that ask for a choice
CLOSE_COSINE = 0.4  # to a memory that says something of the input
MIN_NEW_WORDS = 3  # content words of an input on another topic; a follow-up has fewer that were not said before


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCoverage:
    """Coverage of an input by the current context and the last inputs.

    `cosine` is the highest cosine similarity of the input to an item of the context, `topic_cosine` to one of the last
    inputs; None without an embedder. `word_share` is the share of the input's content words that occur in the context
    or the last inputs, `new_word_count` the number of those that do not. `missing_cosine` is the highest cosine
    similarity to a memory that is not in the context. `refers_back` is True for an input with a pronoun or the like. A
    follow-up is always covered.
    """

    cosine: float | None
    word_share: float
    is_follow_up: bool
    topic_cosine: float | None = None
    new_word_count: int = 0
    missing_cosine: float = 0.0
    refers_back: bool = False

    @property
    def is_nearest_shown(self) -> bool:
        """Return True when no memory outside of the context is more similar to the input than the context's items."""
        return self.cosine is not None and self.cosine >= self.missing_cosine

    @property
    def is_close_missing(self) -> bool:
        """Return True when a memory outside of the context is similar to the input, and more so than each item."""
        return self.missing_cosine >= CLOSE_COSINE and not self.is_nearest_shown

    def is_new_topic(self, thresholds: CoverageThresholds) -> bool:
        """Return True when the input is on another topic than the last inputs.

        It must be unlike the last inputs and have at least `MIN_NEW_WORDS` new content words, or one less if a memory
        outside of the context is similar to it. It is not a new topic if the context has an item that is similar to it,
        more so than any memory outside; or if it refers back, and no memory outside is similar to it.
        """
        if self.is_follow_up or self.cosine is None or self.topic_cosine is None:
            return False
        if self.cosine >= thresholds.min_cosine and self.is_nearest_shown:
            return False
        if self.refers_back and not self.is_close_missing:
            return False
        min_words = MIN_NEW_WORDS - 1 if self.is_close_missing else MIN_NEW_WORDS
        return self.topic_cosine < thresholds.min_topic_cosine and self.new_word_count >= min_words


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshInput:
    """The data from which `decide_refresh` decides.

    `stale_reasons` say which parts of the context are out of date. `used_tokens` of `max_tokens` are in use.
    `added_count` is the number of items to add: messages that are no longer sent, and new memories that match.
    `overflow_reason` says why the context must be rebuilt to add them, None if it need not. `broad_kind` is
    the kind of question if it asks for many memories, which a context for another input does not have. A follow-up asks
    about memories that the context has.
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
    broad_kind: QuestionKind | None = None


class RefreshVerdict(NamedTuple):
    """The decision whether a session's context is reused, updated, reduced or rebuilt, with the reason."""

    method: RefreshMethod
    reason: str


def decide_refresh(refresh_input: RefreshInput, thresholds: CoverageThresholds) -> RefreshVerdict:
    """Decide whether the context is reused (`stood`), updated, reduced (`evicted`) or rebuilt (`built`).

    It is rebuilt when it is stale, the frame changed, the input asks for a choice, or it does not cover the input.
    """
    if reason := _find_rebuild_reason(refresh_input, thresholds):
        return RefreshVerdict("built", reason)
    used, limit, added = refresh_input.used_tokens, refresh_input.max_tokens, refresh_input.added_count
    if used > limit:
        return RefreshVerdict("evicted", f"the context has {used:,} tokens, and its budget is {limit:,}")
    coverage = _describe_coverage(refresh_input.coverage)
    return (
        RefreshVerdict("updated", f"{coverage}; items to add: {added}") if added else RefreshVerdict("stood", coverage)
    )


def _find_rebuild_reason(refresh_input: RefreshInput, thresholds: CoverageThresholds) -> str | None:
    if refresh_input.stale_reasons:
        return f"stale: {', '.join(refresh_input.stale_reasons)}"
    gap = find_coverage_gap(refresh_input.coverage, thresholds)
    # a follow-up has too few words to select a frame
    is_frame_reliable = refresh_input.is_frame_forced or not refresh_input.coverage.is_follow_up
    if not gap and is_frame_reliable and refresh_input.frame != refresh_input.previous_frame:
        return f"the frame changed from {refresh_input.previous_frame} to {refresh_input.frame}"
    if refresh_input.is_choice_due:
        return "the input asks for a choice"
    if refresh_input.broad_kind and not refresh_input.coverage.is_follow_up:
        return f"the input asks for a {refresh_input.broad_kind}"
    return gap or refresh_input.overflow_reason


def find_coverage_gap(coverage: InputCoverage, thresholds: CoverageThresholds) -> str | None:
    """Return why the context does not cover the input, or None.

    Without an embedder, the share of the input's words in the context decides.
    """
    if coverage.is_follow_up:
        return None
    if coverage.is_new_topic(thresholds):
        cosine, minimum = coverage.topic_cosine, thresholds.min_topic_cosine
        return f"the input is on another topic (cosine {cosine:.2f} to the last inputs, minimum {minimum:.2f})"
    if coverage.cosine is None and coverage.word_share < thresholds.min_word_overlap:
        return (
            f"the context has {coverage.word_share:.0%} of the input's words, minimum {thresholds.min_word_overlap:.0%}"
        )
    return None


def _describe_coverage(coverage: InputCoverage) -> str:
    if coverage.is_follow_up:
        return "the input is a follow-up"
    near = "" if coverage.cosine is None else f" (cosine {coverage.cosine:.2f})"
    return f"the context covers the input{near}"
