"""Data of the steps that build one context, and the builder of the input of its assembly."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import NamedTuple
from uuid import UUID

from newton.clock import monotonic_ms
from newton.cognition.assembly.about_section import AboutSelection
from newton.cognition.assembly.always_on import AlwaysOnSections
from newton.cognition.assembly.artifact_selection import ArtifactSelector
from newton.cognition.assembly.assembler import AssemblyResult
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.budget import ContextBudget, limit_other_sessions, reserve_note
from newton.cognition.assembly.fact_labels import FactLabel, count_label_tokens, label_facts
from newton.cognition.assembly.relevance_floor import NO_FLOOR, RelevanceFloor, create_floor
from newton.cognition.assembly.render import TextBlock, count_day_tokens, count_item_id_tokens, render_frame_section
from newton.cognition.assembly.sections import (
    NO_TASKS,
    BriefSection,
    ExtraSection,
    TaskSection,
    build_brief_section,
    build_task_section,
    render_empty_range_note,
    render_incomplete_note,
    render_nothing_known_note,
    render_uncertain_note,
)
from newton.cognition.frames.selection import FrameChoice
from newton.cognition.pending_approvals import select_shown
from newton.cognition.relevance_model import RelevanceModel
from newton.cognition.request import ContextBuildRequest
from newton.cognition.scoring.candidates import CandidateSet
from newton.cognition.sources.gathered_data import GatheredSources
from newton.cognition.sources.session_artifacts import ArtifactPolicy
from newton.cognition.sources.session_state import SessionState
from newton.content.frames import Frame
from newton.content.profiles import Profile
from newton.fault_isolation import compute_part
from newton.memory.memory import TokenCounter
from newton.memory.search_types import RetrievedMemory


@dataclass(slots=True)
class StageTimer:
    """Measures how long each stage takes, in milliseconds. `stages` are in the order in which they ended."""

    started: float = field(default_factory=monotonic_ms)
    stages: dict[str, float] = field(default_factory=dict[str, float])

    def end_stage(self, stage: str) -> None:
        self.stages[stage] = monotonic_ms() - self.started - sum(self.stages.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPlan:
    """The frame, profile and budget selected for an input, and the time for which the context is built.

    `extra` are the lines of the caller that fit, `always_on` the identity lines and the censors.
    `about` is the profile of the person whom the input concerns.
    `incomplete_note` names what could not be searched, None if all was, and `approval_notes` what waits for approval.
    """

    now: datetime
    frame_choice: FrameChoice
    frame: Frame
    profile: Profile
    budget: ContextBudget
    extra: ExtraSection
    always_on: AlwaysOnSections
    incomplete_note: TextBlock | None = None
    approval_notes: Sequence[TextBlock] = ()
    about: AboutSelection = field(default_factory=AboutSelection)


class AssembledContext(NamedTuple):
    """An assembled context before it is stored as a bundle. `missing` maps unavailable sources to reasons."""

    plan: ContextPlan
    assembly_input: AssemblyInput
    assembly: AssemblyResult
    missing: Mapping[str, str]
    recent_ids: frozenset[UUID]


class InputParts(NamedTuple):
    """The fields of the input that are computed, and do not depend on each other."""

    relevance_floor: RelevanceFloor
    focus: Sequence[RetrievedMemory]
    brief: BriefSection
    tasks: TaskSection
    fact_labels: Mapping[UUID, FactLabel]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyInputBuilder:
    """Builds the input of an assembly. `rank_focus` ranks the messages of the section Current Focus."""

    header_tokens: Mapping[str, int]
    count_tokens: TokenCounter
    relevance_model: RelevanceModel
    artifact_policy: ArtifactPolicy
    rank_focus: Callable[..., Sequence[RetrievedMemory]]

    def build(
        self,
        request: ContextBuildRequest,
        gathered: GatheredSources,
        plan: ContextPlan,
        found: CandidateSet,
        *,
        missing: MutableMapping[str, str],
    ) -> AssemblyInput:
        """Return the input of the assembly. A part that fails is left empty, and its reason entered in `missing`."""
        count_tokens, state, ids = self.count_tokens, gathered.session_state, {f.memory_id for f in found.memories}
        parts = self._compute_parts(request, gathered, plan, found, missing)
        return AssemblyInput(
            input=request.input,
            budget=replace(plan.budget, other_sessions=limit_other_sessions(request)),
            profile=plan.profile,
            identity=plan.always_on.identity,
            min_evidence=plan.frame.floor,
            is_adaptive=request.adaptive_budget,
            session_id=request.session_id,
            related_sessions=frozenset(request.related_sessions),
            ended_ranges=gathered.task.ended_ranges,
            frame_section=_render_frame(plan, count_tokens),
            censors=plan.always_on.censors,
            open_decisions=[one for one in state.open_decisions if one.memory_id not in ids],
            calibration_note=_render_calibration_note(state),
            extra=plan.extra.blocks,
            triggered=found.triggered,
            unranked=found.unranked,
            sent_messages=request.sent_messages,
            header_tokens=self.header_tokens,
            day_tokens=count_day_tokens(count_tokens),
            artifact_selector=create_artifact_selector(self.artifact_policy, gathered),
            time_ranges=found.time_ranges,
            empty_range_note=_render_range_note(found, count_tokens),
            nothing_known_note=render_nothing_known_note(count_tokens),
            uncertain_note=render_uncertain_note(count_tokens),
            incomplete_note=plan.incomplete_note,
            approval_notes=plan.approval_notes,
            about_note=plan.about.note,
            approvals=select_shown(state.pending_approvals),
            item_id_tokens=count_item_id_tokens(count_tokens) if request.item_ids else 0,
            cut_id_tokens=count_item_id_tokens(count_tokens),
            **parts._asdict(),
            renewals={f.memory_id: f.renewed_at for f in found.memories if f.renewed_at},
            relation_evidence=found.relation_evidence,
            injected=found.injected,
            observations=found.observations,
            gathering=found.gathering,
        )

    def update_incomplete_note(self, inputs: AssemblyInput, missing: Mapping[str, str]) -> AssemblyInput:
        """Return the input with a note that names everything in `missing`, also what failed after planning."""
        before, note = inputs.incomplete_note, render_incomplete_note(missing, self.count_tokens)
        if note is None or note == before:
            return inputs
        added = note.tokens - (before.tokens if before else -self.header_tokens["note"])
        return replace(inputs, incomplete_note=note, budget=reserve_note(inputs.budget, added))

    def _compute_parts(
        self,
        request: ContextBuildRequest,
        gathered: GatheredSources,
        plan: ContextPlan,
        found: CandidateSet,
        missing: MutableMapping[str, str],
    ) -> InputParts:
        layers, headers, state = plan.budget.layers, self.header_tokens, gathered.session_state
        stack, count_tokens = gathered.session_data.task_stack, self.count_tokens
        floor = partial(create_floor, request, plan.frame, found, gathered, self.relevance_model)
        focus = partial(self.rank_focus, state.focus, frame=plan.frame.name, max_tokens=layers["working"])
        brief = partial(build_brief_section, state.brief, max_tokens=layers.get("brief", 0) - headers["brief"])
        tasks = partial(build_task_section, stack, layers, headers, count_tokens=count_tokens)
        labelled = [*found.memories, *state.focus, *state.open_decisions]
        labels = partial(label_facts, labelled, now=plan.now, tokens=count_label_tokens(count_tokens))
        return InputParts(
            relevance_floor=compute_part("relevance floor", floor, default=NO_FLOOR, missing=missing),
            focus=compute_part("current focus", focus, default=(), missing=missing),
            brief=compute_part("brief", brief, default=BriefSection(), missing=missing),
            tasks=compute_part("tasks", tasks, default=NO_TASKS, missing=missing),
            fact_labels=compute_part("fact labels", labels, default={}, missing=missing),
        )


def create_artifact_selector(policy: ArtifactPolicy, gathered: GatheredSources) -> ArtifactSelector:
    """Return the selector of the artifacts of the session by a policy."""
    return ArtifactSelector(policy=policy, line_ranges=gathered.artifacts.line_ranges)


def _render_calibration_note(state: SessionState) -> TextBlock | None:
    return TextBlock(f"{note.text}\n", note.tokens) if (note := state.calibration_note) else None


def _render_range_note(candidate_set: CandidateSet, count_tokens: TokenCounter) -> TextBlock | None:
    return render_empty_range_note(candidate_set.time_ranges, count_tokens) if candidate_set.is_range_empty else None


def _render_frame(plan: ContextPlan, count_tokens: TokenCounter) -> TextBlock:
    """Return the section of the frame; an empty one for an input that only informs."""
    frame, max_tokens = plan.frame, plan.budget.layers["frame"]
    if plan.frame_choice.is_informing:
        return TextBlock("", 0)
    return render_frame_section(
        frame.name, frame.questions, frame.censors, count_tokens=count_tokens, max_tokens=max_tokens
    )
