"""Types of the data that the sources of a context return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.questions.question_rules import NO_GATHERING, QuestionGathering
from newton.cognition.request import NO_FILTERS, ContextFilters, TaskScope
from newton.cognition.sources.observations import FoundObservation
from newton.cognition.sources.session_artifacts import FoundArtifacts
from newton.cognition.sources.session_state import SessionState
from newton.dialogue.task_tree import EMPTY_STACK, TaskStack
from newton.heart.censors import Censor
from newton.heart.entities.entity_lookup import EntityMatches
from newton.heart.events.event_store import RecentEvents
from newton.heart.identity.tenets import EMPTY_IDENTITY, Identity
from newton.heart.procedure_matching import ProcedureTriggers
from newton.memory.search_types import RecallResult, RetrievedMemory
from newton.memory.time_expressions import TimeRange

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

NO_ARTIFACTS = FoundArtifacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysOn:
    """The identity and the censors, which do not depend on the input."""

    identity: Identity = EMPTY_IDENTITY
    censors: Sequence[Censor] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMatches:
    """The entities that the input names, and the triggers of all procedures, to be matched with the input."""

    entity_matches: EntityMatches = field(default_factory=EntityMatches)
    procedure_triggers: Sequence[ProcedureTriggers] = ()


class TaskData(NamedTuple):
    """The task stack of a session, and the scope of its current task with the ids of the memories of this task.

    The messages of the task are not among `memory_ids`.
    """

    stack: TaskStack = EMPTY_STACK
    scope: TaskScope | None = None
    memory_ids: frozenset[UUID] = frozenset()

    def contains(self, found: RetrievedMemory) -> bool:
        """Return True if a memory belongs to the current task."""
        return found.memory_id in self.memory_ids or bool(self.scope and self.scope.contains_message(found))


NO_TASK = TaskData()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContextData:
    """Data that needs no search. `missing` maps sources that could not be read to reasons."""

    always_on: AlwaysOn
    session_state: SessionState
    missing: Mapping[str, str]
    task_stack: TaskStack = EMPTY_STACK


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredSources:
    """The results of all sources.

    `core_vector` is the embedding of the input without its greeting, None if it has no greeting. `procedures` were
    triggered by the input and not found by the search, `injected` the memories that a caller has put into the context
    of the session. `observations` are events, of this session and of others. `task` is the current task of the
    session, whose memories rank higher. `gathering` says how the memories were ranked for the question.
    `time_ranges` are the times that the input asks for. `missing` maps unavailable or incomplete sources to reasons.
    """

    recall_result: RecallResult
    session_data: SessionContextData
    core_vector: "Vector | None"
    missing: Mapping[str, str]
    input_matches: InputMatches = field(default_factory=InputMatches)
    recent_events: RecentEvents = field(default_factory=RecentEvents)
    procedures: Sequence[RetrievedMemory] = ()
    injected: Sequence[RetrievedMemory] = ()
    artifacts: FoundArtifacts = NO_ARTIFACTS
    observations: Sequence[FoundObservation] = ()
    gathering: QuestionGathering = NO_GATHERING
    filters: ContextFilters = NO_FILTERS
    task: TaskData = NO_TASK
    time_ranges: Sequence[TimeRange] = ()

    @property
    def always_on(self) -> AlwaysOn:
        return self.session_data.always_on

    @property
    def session_state(self) -> SessionState:
        return self.session_data.session_state

    @property
    def injected_ids(self) -> frozenset[UUID]:
        """Return the ids of the memories that a caller has put into the context of the session."""
        return frozenset(one.memory_id for one in self.session_state.injections if one.memory_id)
