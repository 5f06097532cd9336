"""Context of each turn of a session: the current one is reused, updated or rebuilt."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from newton.clock import monotonic_ms
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.budget import limit_other_sessions
from newton.cognition.assembly.fact_labels import count_label_tokens, label_facts
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle import Bundle, ContextUpdate, RefreshMethod
from newton.cognition.bundles.cache import NO_INPUTS, CachedContext, TopicInputs
from newton.cognition.frames.selection import keep_session_frame
from newton.cognition.pipeline import NOTHING_FAILED, ContextBuilder
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.scoring.score import create_scorer
from newton.cognition.session_context import staleness
from newton.cognition.session_context.incremental_update import (
    NEW_MEMORY_SCORE,
    ContextAdditions,
    PreviousContext,
    extend_context,
    update_context,
)
from newton.cognition.session_context.policy import (
    DECISION_FRAME,
    CurrentState,
    RefreshVerdict,
    compute_coverage,
    create_refresh_input,
    decide_refresh,
    find_coverage_gap,
)
from newton.cognition.session_context.staleness import ContextChanges
from newton.cognition.sources.gather import ContextSources
from newton.cognition.sources.gathered_data import SessionContextData
from newton.cognition.sources.observations import FoundObservation, choose_observations
from newton.cognition.sources.session_state import SessionState
from newton.cognition.sources.signals import find_asked_times
from newton.concurrency import task_group
from newton.content.frames import get_frame
from newton.errors import ProviderError
from newton.fault_isolation import run_part
from newton.ids import derive_model_id, new_id
from newton.memory.representations import to_bullet
from newton.memory.search_types import RecallQuery, RetrievedMemory

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

NO_CONTEXT_YET = "the session has no context yet"
NEWS_REQUESTED = "the input asks for current events"
REPLACED_ELSEWHERE = "another process built the latest context of the session"
LATE_STATE = "the last context could not be compared with the memory in time"
UPDATE_FAILED = "the last context could not be updated"
PARENT_CHANGED = "something was stored above the project"
INCOMPLETE = "something was not searched for the last context"
ASKS_NOTHING = "no model reads a context, and the input asks nothing of memory"
STATE_SHARE = 0.5  # of the time until the deadline, for the comparison; the rest is for a search if it is late


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """The context for an input, and how it was obtained: reused, updated or rebuilt (`method`), and the reason.

    `decision_ms` is the time that the decision took. `kept_rules` are the lines of all censors in force, also of those
    that do not apply to the input.
    """

    bundle: Bundle
    method: RefreshMethod
    reason: str
    decision_ms: float = 0.0
    kept_rules: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContextService:
    """Returns the context for each turn of a session.

    A cached context is used only while the database still has it as the latest of its session.
    """

    builder: ContextBuilder

    async def get_for_turn(self, request: ContextBuildRequest) -> SessionContext:
        """Return the context for an input of a session. Store it if it is new or changed.

        Raises the same errors as `ContextBuilder.build`.
        """
        request = request.shorten_input().start_deadline(self.builder.timeout_seconds)
        current = self.builder.cache.get_current(request)
        if current is None:
            return await self._build_context(request, NO_CONTEXT_YET, None)
        return await self._try_refresh(current, request)

    async def get_without_model(self, request: ContextBuildRequest, *, tells: bool, reason: str) -> SessionContext:
        """Return a context to quote from, searched for a `reason`; for an input that only `tells`, the last one if any.

        Raises the same errors as `ContextBuilder.build`.
        """
        request = request.shorten_input().start_deadline(self.builder.timeout_seconds)
        current = self.builder.cache.get_current(request)
        if current is None:
            return await self._build_context(request, reason, None)
        if tells:
            async with self.builder.db.transaction(request.agent_id) as tx:
                if await staleness.is_latest(tx, current):
                    return SessionContext(bundle=current.bundle, method="stood", reason=ASKS_NOTHING)
        return await self._try_refresh(current, request, search_reason=reason)

    async def _try_refresh(
        self, current: CachedContext, request: ContextBuildRequest, *, search_reason: str | None = None
    ) -> SessionContext:
        """Return what suits the input, or a new context. With a `search_reason`, all memories are searched anyway."""
        failed, refreshing = dict[str, str](), self._refresh(current, request, search_reason)
        refreshed = await run_part("context update", refreshing, default=None, missing=failed)
        return refreshed or await self._build_context(request, search_reason or UPDATE_FAILED, None, failed=failed)

    async def _refresh(
        self, current: CachedContext, request: ContextBuildRequest, search_reason: str | None
    ) -> SessionContext:
        """Return the cached context, an updated or a new one, whichever suits the input."""
        started, state = monotonic_ms(), await self._find_state(current, request)
        if isinstance(state, str):
            return await self._build_context(request, state, None)
        inputs = create_refresh_input(current, request, state)
        verdict = decide_refresh(inputs, self.builder.coverage_thresholds)
        if search_reason and verdict.method != "built":
            verdict = RefreshVerdict("updated", search_reason, is_searched=True)
            state = replace(state, is_new_topic=True)  # its frame is that of an input on its own
        duration = monotonic_ms() - started
        current = replace(current, topic=_append_input(current.topic, request, state))
        if verdict.method == "built" or verdict.is_searched:
            standing = current.bundle if verdict.is_searched else None
            built = await self._build_context(request, verdict.reason, state, topic=current.topic, standing=standing)
            return replace(built, decision_ms=duration)
        if verdict.method != "stood":
            return await self._update_context(current, request, state, verdict, duration)
        self.builder.cache.set_current(replace(current, sent_messages=request.sent_messages))
        return SessionContext(
            bundle=current.bundle,
            method="stood",
            reason=verdict.reason,
            decision_ms=duration,
            kept_rules=_list_censor_lines(state.session_data),
        )

    async def _find_state(self, cached: CachedContext, request: ContextBuildRequest) -> CurrentState | str:
        """Read the current state, or return why the context must be rebuilt without it."""
        if cached.bundle.is_incomplete:
            return INCOMPLETE
        web = self.builder.web
        if web and web.should_search(request, now=self.builder.clock.now()):
            return NEWS_REQUESTED
        if await self._has_parent_changed(cached):
            return PARENT_CHANGED
        deadline = request.find_deadline(self.builder.timeout_seconds).share(STATE_SHARE)
        try:
            async with deadline.timeout():
                return await self._read_state(cached, replace(request, deadline=deadline)) or REPLACED_ELSEWHERE
        except TimeoutError:
            return LATE_STATE

    async def _has_parent_changed(self, cached: CachedContext) -> bool:
        """Return whether the agent above the project may have written anything since a context was built."""
        db, parent_id, earlier = self.builder.db, self.builder.parent_id, cached.parent_snapshot
        if parent_id is None or earlier is None:
            return parent_id is not None
        return db.transaction_log.has_changed(parent_id, earlier, await db.current_snapshot(parent_id))

    async def _read_state(self, cached: CachedContext, request: ContextBuildRequest) -> CurrentState | None:
        """Read the current state; return None when the cached context is not the latest of its session."""
        builder, moment, sent = self.builder, self.builder.clock.now(), request.sent_messages
        async with task_group() as tasks:
            embedding = tasks.create_task(self._embed_input(request))
            reading = tasks.create_task(builder.create_sources(request).read_session_data(request, now=moment))
            comparing = tasks.create_task(self._read_changes(cached, sent))
        (cue, core), session_data = embedding.result(), reading.result()
        if (changes := comparing.result()) is None:
            return None
        min_cosine = builder.coverage_thresholds.min_cosine
        async with task_group() as tasks:
            reading_observations = tasks.create_task(self._read_observations(request, cue, now=moment))
            async with builder.db.transaction(request.agent_id) as tx:
                new_matches = await staleness.find_new_matches(tx, cached, cue, changes, sent, min_cosine=min_cosine)
        observed, unread = reading_observations.result()
        verdicts = choose_observations(observed, request.input, sent=sent)
        new_ids = {memory_id for memory_id, verdict in verdicts.items() if verdict.is_chosen} - _list_tried(cached)
        coverage = compute_coverage(cached, request.input, new_matches)
        is_new_topic = find_coverage_gap(coverage, builder.coverage_thresholds) is not None
        session_frame = cached.bundle.frame_choice.frame
        suggested = builder.choose_frame(request, core, previous_frame=session_frame)
        is_choice_due = suggested.frame == DECISION_FRAME and _is_choice_input(builder, request.input)
        is_choice_due &= not (coverage.is_follow_up and session_frame == DECISION_FRAME)  # it is about this choice
        return CurrentState(
            cue=cue,
            session_data=session_data,
            changes=changes,
            coverage=coverage,
            is_new_topic=is_new_topic,
            suggested_frame=suggested.frame,
            frame_choice=suggested
            if is_new_topic or is_choice_due
            else keep_session_frame(suggested, session_frame, pending_frame=cached.topic.pending_frame),
            is_choice_due=is_choice_due,
            new_matches=new_matches,
            observations=[one.memory for one in observed if one.memory.memory_id in new_ids],
            unread={**session_data.missing, **unread, **_find_unembedded(builder, cue)},
            verdicts={memory_id: verdicts[memory_id] for memory_id in new_ids},
            lines=_find_unsent_lines(cached, request.sent_messages, session_data.session_state),
            time_ranges=find_asked_times(request.input, now=moment),
            now=moment,
        )

    async def _read_observations(
        self, request: ContextBuildRequest, cue: RecallQuery, *, now: datetime
    ) -> tuple[Sequence[FoundObservation], Mapping[str, str]]:
        vectors = {} if cue.vector is None else {request.input: cue.vector}
        sources = replace(self.builder.create_sources(request), known_vectors=vectors)
        if cue.vector is None:
            sources = replace(sources, embedder=None)
        return await sources.read_observations(request, now=now)

    async def _embed_input(self, request: ContextBuildRequest) -> "tuple[RecallQuery, Vector | None]":
        """Return the recall query for the input, and the vector for selecting its frame; None if not embedded."""
        builder, text = self.builder, request.input
        if builder.embedder is None:
            return RecallQuery(text=text), None
        try:
            vector = (await builder.embedder.embed([text]))[0]
            core = await builder.create_sources(request).embed_core(request)
        except ProviderError:
            return RecallQuery(text=text), None
        cue = RecallQuery(text=text, vector=vector, model_id=derive_model_id(builder.embedder.identity))
        return cue, vector if core is None else core

    async def _read_changes(self, cached: CachedContext, sent: SentMessages | None) -> ContextChanges | None:
        async with self.builder.db.transaction(cached.bundle.agent_id) as tx:
            return await staleness.read_changes(tx, cached, sent) if await staleness.is_latest(tx, cached) else None

    async def _build_context(
        self,
        request: ContextBuildRequest,
        reason: str,
        state: CurrentState | None,
        *,
        topic: TopicInputs = NO_INPUTS,
        standing: Bundle | None = None,
        failed: Mapping[str, str] = NOTHING_FAILED,
    ) -> SessionContext:
        """Build a context for an input. It keeps what a `standing` one shows, unless that takes too many tokens."""
        sources = _create_known_sources(self.builder, request, state)
        frame = state.frame_choice if state and not state.is_new_topic else None
        extend = partial(extend_context, standing, request=request, reason=reason) if standing else None
        built = await self.builder.build_for_session(request, sources, frame_choice=frame, failed=failed, revise=extend)
        self.builder.cache.set_current(replace(built, topic=topic))
        return SessionContext(
            bundle=built.bundle,
            method="updated" if built.bundle.update else "built",
            reason=reason,
            kept_rules=_list_censor_lines(built.session_data),
        )

    async def _update_context(
        self,
        cached: CachedContext,
        request: ContextBuildRequest,
        state: CurrentState,
        verdict: RefreshVerdict,
        decision_ms: float,
    ) -> SessionContext:
        started, previous = monotonic_ms(), cached.bundle
        frame = get_frame(self.builder.frames, previous.frame_choice.frame)
        inputs = self._update_assembly_input(cached, request, state)
        score = create_scorer(frame=frame, profile=previous.profile, now=self.builder.clock.now())
        memories = {found.memory_id: found for found in (*state.new_matches.additions, *state.observations)}
        additions = ContextAdditions(state.lines, [score(found) for found in memories.values()])
        updated = update_context(PreviousContext(previous.candidates, previous.focus), inputs, additions)
        if updated is None:
            reason = f"the sections that are always included exceed the budget of {request.tokens:,} tokens"
            return await self._build_context(request, reason, state, topic=cached.topic)
        assembly = updated.assembly
        bundle = replace(
            previous,
            bundle_id=new_id(),
            created_at=self.builder.clock.now(),
            input=request.input,
            text=assembly.block.text,
            tokens=assembly.block.tokens,
            budget=inputs.budget.total,
            frame_choice=state.frame_choice if state.frame_choice.frame == frame.name else previous.frame_choice,
            assembly_input=inputs,
            layers=assembly.layers,
            candidates=assembly.candidates,
            focus=assembly.focus,
            timings_ms={"judge": decision_ms, "think": monotonic_ms() - started},
            update=ContextUpdate(
                previous_bundle_id=previous.bundle_id,
                reason=verdict.reason,
                added=updated.added,
                evicted=updated.evicted,
            ),
        )
        async with self.builder.db.transaction(request.agent_id) as tx:
            await bundle_store.insert_bundle(tx, bundle)
        self.builder.cache.set_current(replace(cached, bundle=bundle, sent_messages=request.sent_messages))
        return SessionContext(
            bundle=bundle,
            method=verdict.method,
            reason=verdict.reason,
            decision_ms=decision_ms,
            kept_rules=_list_censor_lines(state.session_data),
        )

    def _update_assembly_input(
        self, cached: CachedContext, request: ContextBuildRequest, state: CurrentState
    ) -> AssemblyInput:
        previous, label_tokens = cached.bundle.assembly_input, count_label_tokens(self.builder.count_tokens)
        session_state = state.session_data.session_state
        labelled = [*state.new_matches.memories, *session_state.focus]
        new_labels = label_facts(labelled, now=state.now, tokens=label_tokens)
        focus = self.builder.rank_focus(
            session_state.focus,
            frame=cached.bundle.frame_choice.frame,
            max_tokens=previous.budget.layers["working"],
        )
        return replace(
            previous,
            fact_labels={**previous.fact_labels, **new_labels},
            observations={**previous.observations, **state.verdicts},
            relevance_floor=replace(previous.relevance_floor, question=None),  # judged for an earlier input
            input=request.input,
            focus=focus,
            sent_messages=request.sent_messages,
            approval_notes=(),  # the previous context has told them
            approvals=(),
            budget=replace(
                previous.budget,
                total=min(cached.bundle.budget, request.tokens),
                other_sessions=limit_other_sessions(request),
            ),
        )


def _is_choice_input(builder: ContextBuilder, text: str) -> bool:
    """Return True when the input matches a pattern of the decision frame."""
    frame = builder.frames.get(DECISION_FRAME)
    return frame is not None and bool(frame.matching_patterns(text))


def _create_known_sources(
    builder: ContextBuilder, request: ContextBuildRequest, state: CurrentState | None
) -> ContextSources:
    """Return the sources of a context, without those that the current state has read."""
    sources = builder.create_sources(request)
    if state and state.cue.vector is not None:
        sources = replace(sources, known_vectors={request.input: state.cue.vector})
    if state and not state.session_data.missing:
        sources = replace(sources, known_session_data=state.session_data)
    return sources


def _find_unembedded(builder: ContextBuilder, cue: RecallQuery) -> Mapping[str, str]:
    is_failed = builder.embedder is not None and cue.vector is None
    return {"embeddings": "the input could not be embedded"} if is_failed else {}


def _list_censor_lines(session_data: SessionContextData) -> frozenset[str]:
    return frozenset(to_bullet(censor.context_line) for censor in session_data.always_on.censors)


def _find_unsent_lines(
    cached: CachedContext, sent_messages: SentMessages | None, session_state: SessionState
) -> Sequence[RetrievedMemory]:
    """Return the messages that were sent to the model at the last update and are not sent now, latest first."""
    if sent_messages is None or cached.sent_messages is None:
        return ()
    first = cached.sent_messages.first_position
    return [f for f in session_state.focus if (f.position or 0) >= first and f.memory_id not in cached.shown_memories]


def _list_tried(cached: CachedContext) -> Set[UUID]:
    """Return the memories that are in the context, or were added to it and then evicted or rejected as duplicates."""
    added = {c.memory_id for c in cached.bundle.candidates if c.score >= NEW_MEMORY_SCORE}
    return added | cached.shown_memories.keys()


def _append_input(topic: TopicInputs, request: ContextBuildRequest, state: CurrentState) -> TopicInputs:
    """Return the inputs of the topic with this input added. The frame that a follow-up suggests is ignored."""
    is_kept = state.suggested_frame == state.frame_choice.frame
    suggested = topic.pending_frame if state.coverage.is_follow_up else None if is_kept else state.suggested_frame
    return topic.append(request.input, state.cue.vector, pending_frame=suggested)
