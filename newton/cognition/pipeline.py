"""Pipeline that builds a context: gather memories, select a frame, budget, score, place, render, store the bundle."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import UUID

from newton.brain.pack_hooks import NO_HOOKS, HookRunner
from newton.clock import Clock
from newton.cognition.assembly.about_section import select_about
from newton.cognition.assembly.always_on import AlwaysOnSections, list_applicable, select_always_on
from newton.cognition.assembly.assembler import assemble
from newton.cognition.assembly.budget import (
    allocate_budget,
    estimate_complexity,
    reserve_always_on,
    reserve_note,
)
from newton.cognition.assembly.sections import (
    count_reserved_tokens,
    describe_omissions,
    fit_extra_lines,
    render_approval_notes,
    render_extra_lines,
    render_incomplete_note,
)
from newton.cognition.assembly.working_context import rank_focus
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle import Bundle, apply_hook_effects, run_after_assembly, run_before_assembly
from newton.cognition.bundles.cache import DEFAULT_COVERAGE_THRESHOLDS, CachedContext, ContextCache, CoverageThresholds
from newton.cognition.context_plan import (
    AssembledContext,
    AssemblyInputBuilder,
    ContextPlan,
    StageTimer,
    create_artifact_selector,
)
from newton.cognition.frames import selection
from newton.cognition.frames.classifier import FrameClassifier
from newton.cognition.frames.selection import FrameChoice
from newton.cognition.relevance_model import RelevanceModel, load_relevance_model
from newton.cognition.request import ContextBuildRequest, validate_request
from newton.cognition.scoring.candidates import collect_candidates, score_candidates
from newton.cognition.sources.gather import ContextSources
from newton.cognition.sources.gathered_data import GatheredSources, gather_nothing
from newton.cognition.sources.question_memories import find_widest_reach
from newton.cognition.sources.session_artifacts import DEFAULT_ARTIFACT_POLICY, ArtifactPolicy
from newton.cognition.sources.web import WebSource
from newton.concurrency import with_timeout
from newton.content.frames import Frame, get_frame
from newton.content.profiles import Profile, select_profile
from newton.db.pool import Database
from newton.deadline import DEFAULT_TIMEOUT_SECONDS
from newton.fault_isolation import compute_part, run_part
from newton.heart.censors import find_matching
from newton.ids import new_id
from newton.memory.memory import TokenCounter
from newton.memory.ranking import DEFAULT_WEIGHTS, RankingWeights
from newton.memory.search_types import RetrievedMemory
from newton.telemetry import span

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

FOCUS_STRATEGY = "auto"  # the profile that ranks the messages of Current Focus
NOTHING_FAILED: Mapping[str, str] = MappingProxyType({})
TIEBREAK_SECONDS = 5.0  # for the model that selects between two frames


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuilder:
    """Builds contexts from memory, of a project also from that of `parent_id`. Of its fields only `cache` changes."""

    db: Database
    clock: Clock
    count_tokens: TokenCounter
    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    embedder: "Embedder | None"
    classifier: FrameClassifier | None
    header_tokens: Mapping[str, int]
    tiebreak: Callable[[str, Sequence[Frame]], Awaitable[str | None]] | None = None
    coverage_thresholds: CoverageThresholds = DEFAULT_COVERAGE_THRESHOLDS
    cache: ContextCache = field(default_factory=ContextCache)
    ranking_weights: RankingWeights = DEFAULT_WEIGHTS
    artifact_policy: ArtifactPolicy = DEFAULT_ARTIFACT_POLICY
    web: WebSource | None = None
    relevance_model: RelevanceModel = field(default_factory=load_relevance_model)
    hooks: HookRunner = NO_HOOKS
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    parent_id: UUID | None = None

    async def build(self, request: ContextBuildRequest, *, records_access: bool = False) -> Bundle:
        """Build the best context for the input of the request, within its maximum tokens.

        The bundle is stored unless the request is private. With `records_access`, the access to its memories is
        recorded in the same transaction. Outside of a session, an identical request gets the same context for
        `REPEAT_LIFETIME`, unless its agent writes anything later. Raises InputError for a budget out of range or
        `since` not before `until`, NotFoundError for an unknown frame or profile.
        """
        request = validate_request(request).start_deadline(self.timeout_seconds)
        if request.session_id or request.is_private or self.parent_id:
            return (await self.build_for_session(request, records_access=records_access)).bundle
        snapshot, log = await self.db.current_snapshot(request.agent_id), self.db.transaction_log
        if repeat := self.cache.find_repeat(request, log, snapshot=snapshot, now=self.clock.now()):
            return repeat
        bundle = (await self._build_in_span(request, self.create_sources(request))).bundle
        async with self.db.transaction(request.agent_id) as tx:
            await bundle_store.insert_bundle(tx, bundle, records_access=records_access)
        if not bundle.missing:  # an unavailable source may be back for the next request
            self.cache.store_repeat(request, bundle, snapshot=snapshot)
        return bundle

    async def build_for_session(
        self,
        request: ContextBuildRequest,
        sources: ContextSources | None = None,
        *,
        frame_choice: FrameChoice | None = None,
        records_access: bool = False,
        failed: Mapping[str, str] = NOTHING_FAILED,
        revise: Callable[[Bundle], Bundle] | None = None,
    ) -> CachedContext:
        """Build a context, store it unless the request is private, and return it with the data from which it was built.

        The frame is selected by the input unless `frame_choice` is given. `failed` are parts of the request that failed
        before, with the reasons. `revise` changes the bundle before it is stored.
        """
        request = request.start_deadline(self.timeout_seconds)
        snapshot = await self.db.current_snapshot(self.parent_id) if self.parent_id else None
        built = await self._build_in_span(request, sources or self.create_sources(request), frame_choice, failed)
        bundle = revise(built.bundle) if revise else built.bundle
        if not request.is_private:
            async with self.db.transaction(request.agent_id) as tx:
                await bundle_store.insert_bundle(tx, bundle, records_access=records_access, parent_id=self.parent_id)
        return replace(built, bundle=bundle, parent_snapshot=snapshot)

    def create_sources(self, request: ContextBuildRequest) -> ContextSources:
        return ContextSources(
            db=self.db,
            embedder=self.embedder,
            deadline=request.find_deadline(self.timeout_seconds),
            ranking_weights=self.ranking_weights,
            artifact_policy=self.artifact_policy,
            web=self.web,
            parent_id=self.parent_id,
        )

    async def _build_in_span(
        self,
        request: ContextBuildRequest,
        sources: ContextSources,
        frame_choice: FrameChoice | None = None,
        earlier_failed: Mapping[str, str] = NOTHING_FAILED,
    ) -> CachedContext:
        with span("context") as recorder:
            built = await self._run_stages(request, sources, frame_choice, dict(earlier_failed))
            bundle, frame = built.bundle, built.bundle.frame_choice.frame
            recorder.set_attributes(bundle_id=str(bundle.bundle_id), frame=frame, tokens=bundle.tokens)
            recorder.set_attributes(**{f"{stage}_ms": ms for stage, ms in bundle.timings_ms.items()})
            return built

    async def _run_stages(
        self,
        request: ContextBuildRequest,
        sources: ContextSources,
        frame_choice: FrameChoice | None,
        failed: dict[str, str],
    ) -> CachedContext:
        """Build a context, from the request alone if no source can be read. Parts that fail are entered in `failed`."""
        timer, now = StageTimer(), request.as_of or self.clock.now()
        hooks_before = await run_before_assembly(self.hooks, request)
        request = apply_hook_effects(request, hooks_before, self.frames)
        reach = find_widest_reach(request, self.frames, self.profiles)
        gathering = sources.gather(request, reach=reach, now=now)
        gathered = await run_part("context", gathering, default=None, missing=failed) or gather_nothing(request)
        timer.end_stage("recall")
        vector = gathered.recall_result.query.vector if gathered.core_vector is None else gathered.core_vector
        if frame_choice is None:
            choosing = self._choose_frame(request, vector, gathered.session_state.frame)
            frame_choice = await run_part("frame", choosing, default=selection.UNSELECTED_FRAME, missing=failed)
        assembled = self._assemble_possible(request, frame_choice, now, gathered, failed)
        timer.end_stage("think")
        bundle = self._create_bundle(request, assembled, timings_ms=timer.stages)
        bundle = replace(bundle, hooks=(*hooks_before, *await run_after_assembly(self.hooks, bundle)))
        return CachedContext(
            bundle=bundle,
            built_bundle_id=bundle.bundle_id,
            search_request=request,
            cue=gathered.recall_result.query,
            sent_messages=request.sent_messages,
            session_data=gathered.session_data,
        )

    def _assemble_possible(
        self,
        request: ContextBuildRequest,
        frame_choice: FrameChoice,
        now: datetime,
        gathered: GatheredSources,
        failed: dict[str, str],
    ) -> AssembledContext:
        """Assemble a context from all sources, else without search results, else from identity and censors only."""
        for available in (gathered, gathered.without_found()):
            work = partial(self._assemble, request, frame_choice, now, available, failed)
            if assembled := compute_part("context", work, default=None, missing=failed):
                return assembled
        return self._assemble(request, frame_choice, now, gathered.only_always_on(), failed)

    def _assemble(
        self,
        request: ContextBuildRequest,
        frame_choice: FrameChoice,
        now: datetime,
        gathered: GatheredSources,
        failed: dict[str, str],
    ) -> AssembledContext:
        plan = self._create_plan(request, frame_choice, now, gathered, failed)
        gathered = replace(gathered, input_matches=replace(gathered.input_matches, person=plan.about.person))
        candidate_set = collect_candidates(
            gathered,
            request,
            reach=plan.profile.reach,
            frame=plan.frame.name,
            relevance_model=self.relevance_model,
            missing=failed,
        )
        builder = self._input_builder
        inputs = builder.build(request, gathered, plan, candidate_set, missing=failed)
        scored = score_candidates(candidate_set, plan.frame, plan.profile, now=plan.now, missing=failed)
        inputs = builder.update_incomplete_note(inputs, {**gathered.missing, **failed})
        assembly = compute_part("selection", partial(assemble, scored, inputs), default=None, missing=failed)
        if assembly is None:
            inputs = builder.update_incomplete_note(inputs, {**gathered.missing, **failed})
            assembly = assemble((), inputs)
        missing = {**gathered.missing, **failed, **describe_omissions(plan.extra, inputs.tasks, inputs.brief)}
        return AssembledContext(plan, inputs, assembly, missing, candidate_set.recent_ids)

    def _create_plan(
        self,
        request: ContextBuildRequest,
        frame_choice: FrameChoice,
        now: datetime,
        gathered: GatheredSources,
        failed: dict[str, str],
    ) -> ContextPlan:
        frame = get_frame(self.frames, frame_choice.frame)
        selected = select_profile(self.profiles, request.profile or frame.profile, frame=frame.name)
        state, headers, is_asked = gathered.session_state, self.header_tokens, gathered.person.question.is_complete
        extra_lines = render_extra_lines(request.additional or "", state.injections, count_tokens=self.count_tokens)
        budget = allocate_budget(
            request.tokens,
            shares=request.overrides.select_shares(frame.budget).shares,
            complexity=estimate_complexity(request.input) if request.adaptive_budget and not is_asked else None,
            stakes=frame.default_stakes,
            has_tasks=bool(gathered.session_data.task_stack.path),
            reserved=count_reserved_tokens(extra_lines, state.brief, headers),
        )
        always_on = self._select_always_on(request, gathered, frame, failed)
        incomplete_note = render_incomplete_note({**gathered.missing, **failed}, self.count_tokens)
        approval_notes = render_approval_notes(state.pending_approvals, self.count_tokens)
        reserved = sum(note.tokens for note in (incomplete_note, *approval_notes) if note)
        budget = reserve_note(budget, reserved and reserved + headers["note"])  # no heading without notes
        budget = reserve_always_on(budget, always_on.tokens, max_tokens=request.tokens)
        about = select_about(
            gathered.person, budget, self.artifact_policy.max_profile_tokens, headers, self.count_tokens
        )
        return ContextPlan(
            now=now,
            frame_choice=frame_choice,
            frame=frame,
            profile=request.overrides.apply_to_profile(selected),
            budget=create_artifact_selector(self.artifact_policy, gathered).reserve_layers(
                about.reserve(budget), gathered.artifacts.found, gathered.recall_result.memories, request.sent_messages
            ),
            extra=fit_extra_lines(extra_lines, max_tokens=budget.layers.get("additional", 0) - headers["additional"]),
            always_on=always_on,
            incomplete_note=incomplete_note,
            approval_notes=approval_notes,
            about=about,
        )

    def _select_always_on(
        self, request: ContextBuildRequest, gathered: GatheredSources, frame: Frame, failed: dict[str, str]
    ) -> AlwaysOnSections:
        """Return the identity and the censors of the context. Triggers are matched without a database query.

        If they cannot be matched, each censor counts as triggered.
        """
        in_force = gathered.always_on.censors
        vectors = () if (vector := gathered.recall_result.query.vector) is None else (vector,)
        match = partial(find_matching, in_force, request.censored_text, vectors)
        matching = compute_part("censors of the context", match, default=in_force, missing=failed)
        triggered = {one.memory_id for one in matching}
        return select_always_on(
            gathered.always_on.identity,
            list_applicable(in_force, domains=frame.domains, triggered=triggered),
            triggered=triggered,
            max_tokens=request.tokens,
            header_tokens=self.header_tokens,
            count_tokens=self.count_tokens,
        )

    def choose_frame(
        self, request: ContextBuildRequest, vector: "Vector | None", *, previous_frame: str | None
    ) -> FrameChoice:
        """Return the frame for the input. `previous_frame` is the last frame of the session, None without one."""
        if request.frame:
            return selection.force_frame(request.frame)
        return selection.choose_frame(
            self.frames, request.input, vector=vector, classifier=self.classifier, session_frame=previous_frame
        )

    async def _choose_frame(
        self, request: ContextBuildRequest, vector: "Vector | None", previous_frame: str | None
    ) -> FrameChoice:
        return await self._break_tie(request, self.choose_frame(request, vector, previous_frame=previous_frame))

    async def _break_tie(self, request: ContextBuildRequest, choice: FrameChoice) -> FrameChoice:
        """Ask a model for the frame if the choice is unsure and a model is configured.

        After `TIEBREAK_SECONDS`, or half of the time that is left, return the choice unchanged.
        """
        if self.tiebreak is None or not choice.unsure or request.deadline is None:
            return choice
        frames, seconds = [self.frames[name] for name in choice.top_frames], request.deadline.limit(TIEBREAK_SECONDS)
        with suppress(TimeoutError):
            name = await with_timeout(self.tiebreak(request.input, frames), seconds=seconds)
            return selection.apply_tiebreak(choice, name or "")
        return choice

    @property
    def _input_builder(self) -> AssemblyInputBuilder:
        return AssemblyInputBuilder(
            header_tokens=self.header_tokens,
            count_tokens=self.count_tokens,
            relevance_model=self.relevance_model,
            artifact_policy=self.artifact_policy,
            rank_focus=self.rank_focus,
        )

    def rank_focus(
        self, memories: Sequence[RetrievedMemory], *, frame: str, max_tokens: int
    ) -> Sequence[RetrievedMemory]:
        """Rank messages for the section Current Focus with the profile `auto`, best first."""
        profile = select_profile(self.profiles, FOCUS_STRATEGY, frame=frame)
        return rank_focus(memories, profile, now=self.clock.now(), max_tokens=max_tokens)

    def _create_bundle(
        self,
        request: ContextBuildRequest,
        assembled: AssembledContext,
        *,
        timings_ms: Mapping[str, float],
    ) -> Bundle:
        plan, assembly = assembled.plan, assembled.assembly
        return Bundle(
            bundle_id=new_id(),
            agent_id=request.agent_id,
            session_id=request.session_id,
            created_at=self.clock.now(),
            as_of=request.as_of,
            input=request.input,
            identity=assembly.identity,
            text=assembly.block.text,
            tokens=assembly.block.tokens,
            budget=plan.budget.total,
            frame_choice=plan.frame_choice,
            frame_edition=plan.frame.version_hash,
            profile=plan.profile,
            assembly_input=assembled.assembly_input,
            layers=assembly.layers,
            candidates=assembly.candidates,
            focus=assembly.focus,
            recent_ids=assembled.recent_ids,
            filters=request.filters,
            overrides=request.overrides,
            missing=assembled.missing,
            timings_ms=timings_ms,
        )
