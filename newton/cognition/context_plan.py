"""The steps of one context: the measured stages, what was selected for the input, and the assembled result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.clock import monotonic_ms
from newton.cognition.assembly.always_on import AlwaysOnSections
from newton.cognition.assembly.assembler import AssemblyResult
from newton.cognition.assembly.assembly_input import AssemblyInput
from newton.cognition.assembly.budget import ContextBudget
from newton.cognition.assembly.render import TextBlock
from newton.cognition.assembly.sections import ExtraSection
from newton.cognition.frames.selection import FrameChoice
from newton.content.frames import Frame
from newton.content.profiles import Profile


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


class AssembledContext(NamedTuple):
    """An assembled context that is not yet a bundle. `missing` maps unavailable sources to reasons."""

    plan: ContextPlan
    assembly_input: AssemblyInput
    assembly: AssemblyResult
    missing: Mapping[str, str]
    recent_ids: frozenset[UUID]
