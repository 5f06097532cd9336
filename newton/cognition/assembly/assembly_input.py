"""Everything besides the candidates that determines a context."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from newton.cognition.assembly.artifact_selection import DEFAULT_ARTIFACT_SELECTOR, ArtifactSelector
from newton.cognition.assembly.budget import ContextBudget
from newton.cognition.assembly.fact_labels import FactLabel
from newton.cognition.assembly.relevance_floor import NO_FLOOR, RelevanceFloor
from newton.cognition.assembly.render import DayTokens, TextBlock
from newton.cognition.assembly.sections import NO_TASKS, BriefSection, CensorSection, IdentitySection, TaskSection
from newton.cognition.pending_approvals import PendingApproval
from newton.cognition.questions.question_rules import NO_GATHERING, QuestionGathering
from newton.cognition.request import SentMessages
from newton.cognition.sources.observations import ObservationVerdict
from newton.content.profiles import Profile
from newton.memory.search_types import RetrievedMemory
from newton.text.time_expressions import TimeRange


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyInput:
    """Everything besides the candidates that determines a context. It is stored with the bundle for replay.

    Minimums: `min_evidence` applies to derived memories; `relevance_floor` to the probability of being relevant, but
    not to messages of `session_id` except those of its ended tasks (`ended_ranges` of positions); without it, the whole
    budget is used. `is_adaptive` leaves out weak matches. `triggered` are procedures that the input asks for;
    `unranked` are memories found without a search, and those nearest to a question, which need no evidence. Lines:
    `focus` are the session's messages that are not sent, best first; `open_decisions` are pending decisions that are
    not candidates; `extra` are lines of the caller. `time_ranges` are the times that the input asks for.
    `empty_range_note` says that memory has nothing from them, `nothing_known_note` that it has nothing on a question,
    `uncertain_note` that it may not answer it; `incomplete_note` names what was not searched, so that neither of them
    is shown; `approval_notes` say that `approvals` wait for the user's approval. `about_note` counts the facts on a
    person. `item_id_tokens` are the tokens of an id in a line, 0 without ids, and `cut_id_tokens` those in the line of
    a long text that is cut, which always has its id. `renewals` maps facts to the time of their last repetition, by
    which they are ordered. `relation_evidence` maps relations to candidate facts that state them. `injected` memories
    were put into the session and are placed first. `observations` maps events to the decision whether they are shown;
    other events are judged like other memories. `gathering` describes how memories were gathered for the kind of
    question. Messages of `related_sessions` rank higher, even above facts extracted from them.
    """

    input: str
    budget: ContextBudget
    profile: Profile
    identity: IdentitySection
    min_evidence: float
    is_adaptive: bool
    frame_section: TextBlock
    censors: CensorSection
    focus: Sequence[RetrievedMemory]
    open_decisions: Sequence[RetrievedMemory]
    calibration_note: TextBlock | None
    triggered: frozenset[UUID]
    unranked: frozenset[UUID]
    sent_messages: SentMessages | None
    extra: Sequence[TextBlock]
    header_tokens: Mapping[str, int]
    day_tokens: DayTokens
    relevance_floor: RelevanceFloor = NO_FLOOR
    session_id: UUID | None = None
    related_sessions: frozenset[UUID] = frozenset()
    ended_ranges: tuple[tuple[int, int], ...] = ()
    artifact_selector: ArtifactSelector = DEFAULT_ARTIFACT_SELECTOR
    time_ranges: Sequence[TimeRange] = ()
    tasks: TaskSection = NO_TASKS
    brief: BriefSection = field(default_factory=BriefSection)
    empty_range_note: TextBlock | None = None
    nothing_known_note: TextBlock | None = None
    uncertain_note: TextBlock | None = None
    incomplete_note: TextBlock | None = None
    approval_notes: Sequence[TextBlock] = ()
    approvals: Sequence[PendingApproval] = ()
    about_note: TextBlock | None = None
    item_id_tokens: int = 0
    cut_id_tokens: int = 0
    fact_labels: Mapping[UUID, FactLabel] = field(default_factory=dict[UUID, FactLabel])
    renewals: Mapping[UUID, datetime] = field(default_factory=dict[UUID, datetime])
    relation_evidence: Mapping[UUID, Sequence[UUID]] = field(default_factory=dict[UUID, Sequence[UUID]])
    injected: frozenset[UUID] = frozenset()
    gathering: QuestionGathering = NO_GATHERING
    observations: Mapping[UUID, ObservationVerdict] = field(default_factory=dict[UUID, ObservationVerdict])

    @property
    def section_profile(self) -> Profile:
        """The profile that orders items within a section; by time for a question for a timeline or a summary."""
        return self.profile.model_copy(update={"order": "chronological"} if self.gathering.is_chronological else {})
