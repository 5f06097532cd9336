"""The context pipeline: gather, select frame, budget, score, fill, render and store the bundle."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from newton.clock import Clock, monotonic_ms
from newton.cognition.assembly.artifact_selection import ArtifactSelector
from newton.cognition.assembly.assembler import AssemblyInput, AssemblyResult, assemble
from newton.cognition.assembly.budget import (
    MAX_CONTEXT_TOKENS,
    ContextBudget,
    allocate_budget,
    estimate_complexity,
    reserve_session_artifacts,
)
from newton.cognition.assembly.render import TextBlock, count_day_tokens, render_frame_section
from newton.cognition.assembly.sections import (
    ExtraSection,
    TaskSection,
    build_task_section,
    compute_identity_tokens,
    fit_extra_lines,
    render_extra_lines,
    select_censor_lines,
    select_identity_lines,
)
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.cache import DEFAULT_COVERAGE_THRESHOLDS, CachedContext, ContextCache, CoverageThresholds
from newton.cognition.frames import selection
from newton.cognition.frames.classifier import FrameClassifier
from newton.cognition.frames.selection import FrameChoice
from newton.cognition.request import ContextBuildRequest
from newton.cognition.scoring.candidates import CandidateSet, collect_candidates
from newton.cognition.scoring.score import create_scorer
from newton.cognition.sources.gather import ContextSources
from newton.cognition.sources.gathered_data import GatheredSources
from newton.cognition.sources.session_artifacts import DEFAULT_ARTIFACT_POLICY, ArtifactPolicy
from newton.cognition.sources.web import WebSource
from newton.concurrency import with_timeout
from newton.content.frames import Frame, get_frame
from newton.content.profiles import GatherOptions, Profile, get_profile, merge_gather_options, select_profile
from newton.db.pool import Database
from newton.errors import InputError
from newton.ids import new_id
from newton.memory.memory import TokenCounter
from newton.memory.ranking import DEFAULT_WEIGHTS, RankingWeights
from newton.memory.representations import to_bullet
from newton.telemetry import SpanHandle, span

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector


@dataclass(slots=True)
class StageTimer:
    """Milliseconds of each stage, in order of completion."""

    started: float = field(default_factory=monotonic_ms)
    stages: dict[str, float] = field(default_factory=dict[str, float])

    def end_stage(self, stage: str) -> None:
        self.stages[stage] = monotonic_ms() - self.started - sum(self.stages.values())


class BuildNotes(NamedTuple):
    """Missing sources and stage timings of a build."""

    missing: Mapping[str, str]
    timings_ms: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPlan:
    """Frame, profile and budget selected for an input, and the moment of the context."""

    now: datetime
    frame_choice: FrameChoice
    frame: Frame
    profile: Profile
    budget: ContextBudget


class AssembledContext(NamedTuple):
    """An assembled context before it becomes a bundle."""

    plan: ContextPlan
    assembly_input: AssemblyInput
    assembly: AssemblyResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuilder:
    """Builds contexts. All fields are constant for the life of the process, except for `cache`."""

    db: Database
    clock: Clock
    count_tokens: TokenCounter
    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    embedder: "Embedder | None"
    classifier: FrameClassifier | None
    header_tokens: Mapping[str, int]
    source_timeout_seconds: float
    tiebreak: Callable[[str, Sequence[Frame]], Awaitable[str | None]] | None = None
    coverage_thresholds: CoverageThresholds = DEFAULT_COVERAGE_THRESHOLDS
    cache: ContextCache = field(default_factory=ContextCache)
    ranking_weights: RankingWeights = DEFAULT_WEIGHTS
    artifact_policy: ArtifactPolicy = DEFAULT_ARTIFACT_POLICY
    web: WebSource | None = None

    async def build(self, request: ContextBuildRequest) -> Bundle:
        """Build and store the best context for the input within its tokens.

        Outside of a session an identical request reuses the context for `REPEAT_LIFETIME`, unless anything is written.
        Raises InputError for a token budget out of range or `since` not before `until`, NotFoundError for an unknown
        frame or profile.
        """
        _validate_request(request)
        if request.session_id:
            return (await self.build_for_session(request)).bundle
        moment = await self.db.current_snapshot()
        if known := self.cache.find_repeat(request, snapshot=moment, now=self.clock.now()):
            return known
        bundle = (await self._build_in_span(request, self.create_sources())).bundle
        async with self.db.transaction(request.agent_id) as tx:
            writer = await bundle_store.insert_bundle(tx, bundle)
        if not bundle.missing:  # an unavailable source may be back for the next request
            self.cache.store_repeat(request, bundle, snapshot=moment, transaction_id=writer)
        return bundle

    async def build_for_session(
        self, request: ContextBuildRequest, sources: ContextSources | None = None
    ) -> CachedContext:
        """Build and store a context; return it with the data it was built from."""
        current = await self._build_in_span(request, sources or self.create_sources())
        async with self.db.transaction(request.agent_id) as tx:
            await bundle_store.insert_bundle(tx, current.bundle)
        return current

    def create_sources(self) -> ContextSources:
        return ContextSources(
            db=self.db,
            embedder=self.embedder,
            timeout_seconds=self.source_timeout_seconds,
            ranking_weights=self.ranking_weights,
            artifact_policy=self.artifact_policy,
            web=self.web,
        )

    async def _build_in_span(self, request: ContextBuildRequest, sources: ContextSources) -> CachedContext:
        with span("context") as noting:
            return _annotate_span(noting, await self._run_stages(request, sources))

    async def _run_stages(self, request: ContextBuildRequest, sources: ContextSources) -> CachedContext:
        laps, now = StageTimer(), request.as_of or self.clock.now()
        gathered = await sources.gather(request, reach=self._find_widest_reach(request), now=now)
        laps.end_stage("recall")
        vector = gathered.recall_result.query.vector if gathered.core_vector is None else gathered.core_vector
        choice = self.choose_frame(request, vector, previous_frame=gathered.session_data.session_state.frame)
        plan = self._create_plan(request, await self._break_tie(request, choice), now, gathered)
        at_hand = collect_candidates(gathered, request.input, reach=plan.profile.reach, frame=plan.frame.name)
        added = self._fit_extra_lines(request, plan.budget)
        setting = self._create_assembly_input(request, gathered, plan, at_hand, added)
        score = create_scorer(frame=plan.frame, profile=plan.profile, now=plan.now, signals=at_hand.signals)
        made = AssembledContext(plan, setting, assemble([score(f) for f in at_hand.memories], setting))
        laps.end_stage("think")
        notes = BuildNotes(
            {**gathered.missing, **describe_omitted_lines(added), **describe_omitted_tasks(setting.tasks)}, laps.stages
        )
        bundle = self._create_bundle(request, made, at_hand, notes)
        return CachedContext(
            bundle=bundle,
            built_bundle_id=bundle.bundle_id,
            search_request=request,
            cue=gathered.recall_result.query,
            sent_messages=request.sent_messages,
            session_data=gathered.session_data,
        )

    def _find_widest_reach(self, request: ContextBuildRequest) -> GatherOptions:
        """Return the widest gather options of all profiles in question: the profile is selected after the search."""
        names = [request.profile] if request.profile else sorted({f.profile for f in self._candidate_frames(request)})
        named = [get_profile(self.profiles, name) for name in names]
        chosen = {one for profile in named for one in (profile.by_frame.values() if profile.by_frame else ())}
        chosen |= {profile.otherwise for profile in named if profile.by_frame}
        return merge_gather_options(one.reach for one in (*named, *(self.profiles[name] for name in chosen)))

    def _candidate_frames(self, request: ContextBuildRequest) -> Iterable[Frame]:
        return [get_frame(self.frames, request.frame)] if request.frame else self.frames.values()

    def _fit_extra_lines(self, request: ContextBuildRequest, budget: ContextBudget) -> ExtraSection:
        most = budget.layers.get("additional", 0) - self.header_tokens["additional"]
        return fit_extra_lines(
            render_extra_lines(request.additional or "", count_tokens=self.count_tokens), max_tokens=most
        )

    def _create_plan(
        self, request: ContextBuildRequest, frame_choice: FrameChoice, now: datetime, gathered: GatheredSources
    ) -> ContextPlan:
        frame = get_frame(self.frames, frame_choice.frame)
        profile = select_profile(self.profiles, request.profile or frame.profile, frame=frame.name)
        added = sum(
            block.tokens for block in render_extra_lines(request.additional or "", count_tokens=self.count_tokens)
        )
        budget = allocate_budget(
            request.tokens,
            shares=frame.budget.shares,
            complexity=estimate_complexity(request.input) if request.adaptive_budget else None,
            stakes=frame.default_stakes,
            has_tasks=bool(gathered.session_data.task_stack.path),
            extra_tokens=added and added + self.header_tokens["additional"],
        )
        most = self._create_artifact_selector(gathered).reserve_tokens(gathered.artifacts.found, request.sent_messages)
        budget = reserve_session_artifacts(budget, most)
        return ContextPlan(now=now, frame_choice=frame_choice, frame=frame, profile=profile, budget=budget)

    def _create_artifact_selector(self, gathered: GatheredSources) -> ArtifactSelector:
        return ArtifactSelector(policy=self.artifact_policy, line_ranges=gathered.artifacts.line_ranges)

    def choose_frame(
        self, request: ContextBuildRequest, vector: "Vector | None", *, previous_frame: str | None
    ) -> FrameChoice:
        """Select the frame of the input. `previous_frame` is the last frame of the session."""
        if request.frame:
            return selection.force_frame(request.frame)
        return selection.choose_frame(
            self.frames, request.input, vector=vector, classifier=self.classifier, session_frame=previous_frame
        )

    async def _break_tie(self, request: ContextBuildRequest, choice: FrameChoice) -> FrameChoice:
        """Ask a model about an unsure choice, if one is configured. A timeout keeps the choice."""
        if self.tiebreak is None or not choice.unsure:
            return choice
        close = [self.frames[name] for name in choice.top_frames]
        try:
            name = await with_timeout(self.tiebreak(request.input, close), seconds=self.source_timeout_seconds)
        except TimeoutError:
            return choice
        return selection.apply_tiebreak(choice, name or "")

    def _create_assembly_input(
        self,
        request: ContextBuildRequest,
        gathered: GatheredSources,
        plan: ContextPlan,
        candidate_set: CandidateSet,
        extra: ExtraSection,
    ) -> AssemblyInput:
        most, headers = plan.budget.layers, self.header_tokens
        situation, standing = gathered.session_state, gathered.always_on
        found = {f.memory_id for f in candidate_set.memories}
        return AssemblyInput(
            input=request.input,
            budget=plan.budget,
            profile=plan.profile,
            identity=select_identity_lines(standing.identity, max_tokens=compute_identity_tokens(most, headers)),
            min_evidence=plan.frame.floor,
            is_adaptive=request.adaptive_budget,
            frame_section=render_frame_section(
                plan.frame.name,
                plan.frame.questions,
                plan.frame.censors,
                count_tokens=self.count_tokens,
                max_tokens=most["frame"],
            ),
            censor_lines=select_censor_lines(
                standing.censors, domains=plan.frame.domains, max_tokens=most["censors"] - headers["censors"]
            ),
            focus=situation.focus,
            open_decisions=[one for one in situation.open_decisions if one.memory_id not in found],
            calibration_note=situation.calibration_note
            and TextBlock(f"{situation.calibration_note.text}\n", situation.calibration_note.tokens),
            extra=extra.blocks,
            triggered=candidate_set.triggered,
            unranked=candidate_set.unranked,
            sent_messages=request.sent_messages,
            header_tokens=headers,
            day_tokens=count_day_tokens(self.count_tokens),
            artifact_selector=self._create_artifact_selector(gathered),
            time_ranges=candidate_set.time_ranges,
            empty_range_note=_render_empty_range_note(candidate_set, self.count_tokens),
            tasks=build_task_section(gathered.session_data.task_stack, most, headers, count_tokens=self.count_tokens),
        )

    def _create_bundle(
        self,
        request: ContextBuildRequest,
        assembled: AssembledContext,
        candidate_set: CandidateSet,
        notes: BuildNotes,
    ) -> Bundle:
        plan, page = assembled.plan, assembled.assembly.block
        return Bundle(
            bundle_id=new_id(),
            agent_id=request.agent_id,
            session_id=request.session_id,
            created_at=self.clock.now(),
            as_of=request.as_of,
            input=request.input,
            identity=assembled.assembly.identity,
            text=page.text,
            tokens=page.tokens,
            budget=plan.budget.total,
            frame_choice=plan.frame_choice,
            frame_edition=plan.frame.version_hash,
            profile=plan.profile,
            assembly_input=assembled.assembly_input,
            layers=assembled.assembly.layers,
            candidates=assembled.assembly.candidates,
            focus=assembled.assembly.focus,
            recent_ids=candidate_set.recent_ids,
            filters=request.filters,
            missing=notes.missing,
            timings_ms=notes.timings_ms,
        )


def _render_empty_range_note(candidate_set: CandidateSet, count_tokens: TokenCounter) -> TextBlock | None:
    if not candidate_set.is_range_empty:
        return None
    said = to_bullet(
        f"Nothing in memory is of the time asked for ({', '.join(span.phrase for span in candidate_set.time_ranges)})."
    )
    return TextBlock(said, count_tokens(said))


def describe_omitted_lines(extra: ExtraSection) -> Mapping[str, str]:
    """Return the `missing` entry for extra lines left out."""
    return {"additional": f"no room for the last {extra.omitted_count} of its lines"} if extra.omitted_count else {}


def describe_omitted_tasks(tasks: TaskSection) -> Mapping[str, str]:
    """Return the `missing` entry for tasks left out."""
    return {"tasks": f"no room for {tasks.omitted_count} of them"} if tasks.omitted_count else {}


def _annotate_span(recorder: SpanHandle, built: CachedContext) -> CachedContext:
    """Set the trace attributes of a build."""
    bundle = built.bundle
    recorder.set_attributes(bundle_id=str(bundle.bundle_id), frame=bundle.frame_choice.frame, tokens=bundle.tokens)
    recorder.set_attributes(**{f"{stage}_ms": ms for stage, ms in bundle.timings_ms.items()})
    return built


def _validate_request(request: ContextBuildRequest) -> None:
    if request.tokens < 1:
        raise InputError(f"A budget of {request.tokens} tokens holds nothing.", hint="Give 1 or more.")
    since, until = request.filters.since, request.filters.until
    if since and until and since >= until:
        raise InputError(
            f"Nothing is both from {since:%Y-%m-%d %H:%M} on and before {until:%Y-%m-%d %H:%M}.",
            hint="Give a since that is earlier than the until.",
        )
    if request.tokens > MAX_CONTEXT_TOKENS:
        raise InputError(f"No model reads {request.tokens:,} tokens.", hint=f"Give at most {MAX_CONTEXT_TOKENS:,}.")
