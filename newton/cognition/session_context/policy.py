"""Rules that decide whether a context is reused, updated or rebuilt for an input. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from newton.cognition.bundles.bundle import Bundle, RefreshMethod
from newton.cognition.bundles.cache import CachedContext, CoverageThresholds
from newton.cognition.frames.selection import FrameChoice
from newton.cognition.questions.question_kinds import QuestionKind
from newton.cognition.questions.question_rules import find_broad_kind
from newton.cognition.request import NO_FILTERS, ContextBuildRequest
from newton.cognition.session_context import staleness
from newton.cognition.session_context.staleness import MAX_ADDED_MEMORIES, MAX_NEW_MEMORIES, ContextChanges, NewMatches
from newton.cognition.sources.gathered_data import SessionContextData
from newton.cognition.sources.observations import ObservationVerdict
from newton.cognition.sources.session_state import MAX_FOCUS_LINES
from newton.cognition.sources.signals import asks_for_times
from newton.heart.censors import find_matching
from newton.heart.persons.person_questions import read_person_question
from newton.heart.procedures import match_triggers
from newton.memory.search_types import RecallQuery, RetrievedMemory
from newton.text.time_expressions import TimeRange
from newton.text.words import extract_content_words, is_continuation, is_follow_up, refers_back

DECISION_FRAME = "decision"  # frame of inputs that ask for a choice
CLOSE_COSINE = 0.4  # to a memory that says something of the input
MIN_NEW_WORDS = 3  # content words of an input on another topic; a follow-up has fewer that were not said before


@dataclass(frozen=True, slots=True, kw_only=True)
class InputCoverage:
    """Coverage of an input by the current context and the last inputs.

    `cosine` is the highest cosine similarity of the input to an item of the context, `topic_cosine` to one of the last
    inputs; None without an embedder. `word_share` is the share of the input's content words that occur in the context
    or the last inputs, `new_word_count` the number of those that do not. `missing_cosine` is the highest cosine
    similarity to a memory that is not in the context. `refers_back` is True for an input that refers to what was said
    before, as by a pronoun. A follow-up is always covered.
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

    `is_choice_due` means that the input asks for a choice. `stale_reasons` say which parts of the context are out of
    date. `used_tokens` of `max_tokens` are in use. `added_count` is the number of items to add: messages that are no
    longer sent, and new memories that match. `rebuild_reason` says why the context cannot be kept, `search_reason` why
    all memories must be searched for what the input needs; None if not. `broad_kind` is the kind of question if it asks
    for many memories, which a context for another input does not have. A follow-up asks about memories that the context
    has.
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
    rebuild_reason: str | None = None
    search_reason: str | None = None
    broad_kind: QuestionKind | None = None


class RefreshVerdict(NamedTuple):
    """The decision whether a session's context is reused, updated, reduced or rebuilt, with the reason.

    If it `is_searched`, all memories are searched, and those that the input needs are added to the context.
    """

    method: RefreshMethod
    reason: str
    is_searched: bool = False


def decide_refresh(refresh_input: RefreshInput, thresholds: CoverageThresholds) -> RefreshVerdict:
    """Decide whether the context is reused (`stood`), updated, reduced (`evicted`) or rebuilt (`built`).

    It is rebuilt when it is stale, the frame changed or the input asks for a choice; if it only does not cover the
    input, it is updated by a search.
    """
    if reason := _find_rebuild_reason(refresh_input, thresholds):
        return RefreshVerdict("built", reason)
    if reason := _find_search_reason(refresh_input, thresholds):
        return RefreshVerdict("updated", reason, is_searched=True)
    used, limit, added = refresh_input.used_tokens, refresh_input.max_tokens, refresh_input.added_count
    if used > limit:
        return RefreshVerdict("evicted", f"the context has {used:,} tokens, and its budget is {limit:,}")
    coverage = _describe_coverage(refresh_input.coverage)
    return (
        RefreshVerdict("updated", f"{coverage}; items to add: {added}") if added else RefreshVerdict("stood", coverage)
    )


def _find_rebuild_reason(refresh_input: RefreshInput, thresholds: CoverageThresholds) -> str | None:
    """Return why the context must be built anew, even if the input is on the same topic, or None."""
    if refresh_input.stale_reasons:
        return f"stale: {', '.join(refresh_input.stale_reasons)}"
    gap = find_coverage_gap(refresh_input.coverage, thresholds)
    # a follow-up has too few words to select a frame
    is_frame_reliable = refresh_input.is_frame_forced or not refresh_input.coverage.is_follow_up
    if not gap and is_frame_reliable and refresh_input.frame != refresh_input.previous_frame:
        return f"the frame changed from {refresh_input.previous_frame} to {refresh_input.frame}"
    return "the input asks for a choice" if refresh_input.is_choice_due else refresh_input.rebuild_reason


def _find_search_reason(refresh_input: RefreshInput, thresholds: CoverageThresholds) -> str | None:
    """Return why the input needs memories that the context may lack, or None."""
    if refresh_input.broad_kind and not refresh_input.coverage.is_follow_up:
        return f"the input asks for a {refresh_input.broad_kind}"
    return find_coverage_gap(refresh_input.coverage, thresholds) or refresh_input.search_reason


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentState:
    """The current state of memory and session, to be compared with the cached context.

    `unread` maps sources that were late or failed to reasons.
    """

    cue: RecallQuery
    session_data: SessionContextData
    changes: ContextChanges
    frame_choice: FrameChoice
    suggested_frame: str
    is_new_topic: bool
    is_choice_due: bool
    coverage: InputCoverage
    new_matches: NewMatches
    observations: Sequence[RetrievedMemory]
    unread: Mapping[str, str]
    verdicts: Mapping[UUID, ObservationVerdict]
    lines: Sequence[RetrievedMemory]
    time_ranges: Sequence[TimeRange]
    now: datetime


def create_refresh_input(cached: CachedContext, request: ContextBuildRequest, state: CurrentState) -> RefreshInput:
    """Compare the cached context with the current state, and return what decides whether it is reused."""
    return RefreshInput(
        frame=state.frame_choice.frame,
        previous_frame=cached.bundle.frame_choice.frame,
        is_frame_forced=state.frame_choice.forced,
        is_choice_due=state.is_choice_due,
        coverage=state.coverage,
        max_tokens=request.tokens,
        used_tokens=cached.bundle.tokens,
        stale_reasons=[
            *state.changes.stale_reasons,
            *staleness.list_changed_sections(cached.session_data, state.session_data),
            *_list_outdated_labels(cached.bundle, state),
        ],
        added_count=len(state.lines) + len(state.new_matches.additions) + len(state.observations),
        rebuild_reason=_find_rebuild_cause(cached, request, state),
        search_reason=_find_search_cause(cached, request, state),
        broad_kind=find_broad_kind(request.input),
    )


def compute_coverage(cached: CachedContext, text: str, matches: NewMatches) -> InputCoverage:
    """Return how well the cached context and the last inputs cover the input `text`."""
    words = extract_content_words(text)
    new_words = words - cached.content_words
    return InputCoverage(
        cosine=matches.cosine,
        word_share=1 - len(new_words) / len(words) if words else 1.0,
        is_follow_up=is_follow_up(text) or is_continuation(text),
        topic_cosine=matches.topic_cosine,
        new_word_count=len(new_words),
        missing_cosine=matches.missing_cosine,
        refers_back=refers_back(text),
    )


def _list_outdated_labels(bundle: Bundle, state: CurrentState) -> list[str]:
    """Return why labels of facts are out of date. Labels depend on the day and on contradicting facts."""
    has_facts = any(c.kind == "fact" for c in bundle.items)
    is_same_day = bundle.created_at.astimezone(UTC).date() == state.now.astimezone(UTC).date()
    reasons = ["the labels of its facts were made on another day"] if has_facts and not is_same_day else []
    is_contested = any(found.contradicted_ids for found in state.new_matches.memories)
    return [*reasons, "a new fact contradicts another one"] if is_contested else reasons


def _find_rebuild_cause(cached: CachedContext, request: ContextBuildRequest, state: CurrentState) -> str | None:
    """Return why the context cannot be kept: a source that was not read, another kind of request or time; or None."""
    searched = cached.search_request
    if state.unread:
        return f"not read: {', '.join(state.unread)}"
    comparable = replace(
        request,
        input=searched.input,
        frame=searched.frame,
        sent_messages=searched.sent_messages,
        input_memory_id=searched.input_memory_id,
        tokens=searched.tokens,
    )
    if request.tokens > searched.tokens or comparable != searched or request.filters != NO_FILTERS:
        return "the request has other parameters than the last one"
    known_times = {(span.phrase, span.start) for span in cached.bundle.assembly_input.time_ranges}
    is_time_known = known_times.issuperset((span.phrase, span.start) for span in state.time_ranges)
    is_other_time = not is_time_known and asks_for_times(request.input, state.time_ranges)
    return "the input asks for another time" if is_other_time else None


def _find_search_cause(cached: CachedContext, request: ContextBuildRequest, state: CurrentState) -> str | None:
    """Return why all memories must be searched although the input is on the topic of the context, or None."""
    new_count, matches = len(state.changes.new_memories), state.new_matches
    if reason := _find_unshown_trigger(cached, request, state):
        return reason
    if new_count >= MAX_NEW_MEMORIES or len(matches.memories) > MAX_ADDED_MEMORIES or matches.unjudged_count:
        return f"{new_count} memories are new, too many for an update"
    return "too many messages are no longer sent to the model" if len(state.lines) >= MAX_FOCUS_LINES else None


def _find_unshown_trigger(cached: CachedContext, request: ContextBuildRequest, state: CurrentState) -> str | None:
    """Return a reason if the input needs a procedure, censor or facts on a person that the context lacks, else None."""
    asked, known = read_person_question(request.input), read_person_question(cached.search_request.input)
    if (asked.is_asked and asked != known) or not {*asked.sections} <= {*known.sections}:
        return "the input concerns other facts on a person"
    triggered = match_triggers(state.changes.procedure_triggers, request.input, frame=state.frame_choice.frame)
    if not cached.shown_memories.keys() >= {procedure.memory_id for procedure in triggered}:
        return "the input asks for a procedure that is not in the context"
    shown = {line.memory_id for line in cached.bundle.assembly_input.censors.lines}
    vectors = () if state.cue.vector is None else (state.cue.vector,)
    matching = find_matching(state.session_data.always_on.censors, request.censored_text, vectors)
    if not shown.issuperset(censor.memory_id for censor in matching):
        return "the input triggers a censor that is not in the context"
    return None
