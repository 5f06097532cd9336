"""The current state of memory and session, and what it says about the cached context. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.cache import CachedContext
from newton.cognition.frames.selection import FrameChoice
from newton.cognition.questions.question_rules import find_broad_kind
from newton.cognition.request import NO_FILTERS, ContextBuildRequest
from newton.cognition.scoring.observation_choice import ObservationVerdict
from newton.cognition.session_context import staleness
from newton.cognition.session_context.policy import InputCoverage, RefreshInput
from newton.cognition.session_context.staleness import MAX_ADDED_MEMORIES, MAX_NEW_MEMORIES, ContextChanges, NewMatches
from newton.cognition.sources.gathered_data import SessionContextData
from newton.cognition.sources.session_state import MAX_FOCUS_LINES
from newton.cognition.sources.signals import asks_for_times
from newton.heart.censors import find_matching
from newton.heart.procedures import match_triggers
from newton.memory.search_types import RecallQuery, RetrievedMemory
from newton.text.time_expressions import TimeRange
from newton.text.words import extract_content_words, is_continuation, is_follow_up, refers_back


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
        overflow_reason=_find_overflow_reason(cached, request, state),
        broad_kind=find_broad_kind(request.input),
    )


def compute_coverage(cached: CachedContext, text: str, matches: NewMatches) -> InputCoverage:
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


def _find_overflow_reason(cached: CachedContext, request: ContextBuildRequest, state: CurrentState) -> str | None:
    """Return why the context cannot be updated and must be rebuilt, or None."""
    searched, new_count, matches = cached.search_request, len(state.changes.new_memories), state.new_matches
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
    if not is_time_known and asks_for_times(request.input, state.time_ranges):
        return "the input asks for another time"
    if reason := _find_unshown_trigger(cached, request, state):
        return reason
    if new_count >= MAX_NEW_MEMORIES or len(matches.memories) > MAX_ADDED_MEMORIES or matches.unjudged_count:
        return f"{new_count} memories are new, too many for an update"
    return "too many messages are no longer sent to the model" if len(state.lines) >= MAX_FOCUS_LINES else None


def _find_unshown_trigger(cached: CachedContext, request: ContextBuildRequest, state: CurrentState) -> str | None:
    """Return a reason if the input triggers a procedure or censor that the context does not show, else None."""
    triggered = match_triggers(state.changes.procedure_triggers, request.input, frame=state.frame_choice.frame)
    if not cached.shown_memories.keys() >= {procedure.memory_id for procedure in triggered}:
        return "the input asks for a procedure that is not in the context"
    shown = {line.memory_id for line in cached.bundle.assembly_input.censors.lines}
    vectors = () if state.cue.vector is None else (state.cue.vector,)
    matching = find_matching(state.session_data.always_on.censors, request.censored_text, vectors)
    if not shown.issuperset(censor.memory_id for censor in matching):
        return "the input triggers a censor that is not in the context"
    return None
