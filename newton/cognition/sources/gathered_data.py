"""Types of the data that the sources of a context return."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.questions.question_rules import NO_GATHERING, QuestionGathering
from newton.cognition.request import NO_FILTERS, ContextBuildRequest, ContextFilters, TaskScope
from newton.cognition.sources.observations import FoundObservation
from newton.cognition.sources.person import FoundPerson
from newton.cognition.sources.session_artifacts import FoundArtifacts
from newton.cognition.sources.session_state import SessionState
from newton.dialogue.task_tree import EMPTY_STACK, TaskStack, is_in_ranges, subtract_ranges
from newton.heart.censors import Censor
from newton.heart.entities.entity_lookup import EntityMatches
from newton.heart.events.event_store import RecentEvents
from newton.heart.identity.tenets import EMPTY_IDENTITY, Identity
from newton.heart.procedures import ProcedureTriggers
from newton.memory.search_types import RecallQuery, RecallResult, RetrievedMemory
from newton.text.time_expressions import TimeRange

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
    """The entities that the input names, and the triggers of all procedures, to be matched with the input.

    `person` are facts on the person whom it concerns, `inherited_ids` the procedures of the agent above the project.
    """

    entity_matches: EntityMatches = field(default_factory=EntityMatches)
    procedure_triggers: Sequence[ProcedureTriggers] = ()
    person: FoundPerson = field(default_factory=FoundPerson)
    inherited_ids: frozenset[UUID] = frozenset()


class TaskData(NamedTuple):
    """The task stack of a session, and the scope of its current task with the ids of the memories of this task.

    The messages of the task are not among `memory_ids`. `ended_ranges` are the messages of the session's ended tasks:
    a context shows the results of these tasks instead, unless the caller asks for the memories of a task.
    """

    stack: TaskStack = EMPTY_STACK
    scope: TaskScope | None = None
    memory_ids: frozenset[UUID] = frozenset()
    ended_ranges: tuple[tuple[int, int], ...] = ()

    @property
    def message_ranges(self) -> list[tuple[UUID, int, int]]:
        """Return the session, first and last position of the messages of the current task, without ended subtasks."""
        if self.scope is None:
            return []
        return [
            (session_id, *part)
            for session_id, first, last in self.scope.message_ranges
            for part in subtract_ranges((first, last), self.ended_ranges)
        ]

    def contains(self, found: RetrievedMemory) -> bool:
        """Return True if a memory belongs to the current task."""
        if found.memory_id in self.memory_ids:
            return True
        is_message = self.scope is not None and self.scope.contains_message(found)
        return is_message and not is_in_ranges(found.position, self.ended_ranges)


NO_TASK = TaskData()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContextData:
    """Data that needs no search. `missing` maps sources that could not be read to reasons.

    `ended_ranges` are the positions of the messages of ended tasks.
    """

    always_on: AlwaysOn = field(default_factory=AlwaysOn)
    session_state: SessionState = field(default_factory=SessionState)
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    task_stack: TaskStack = EMPTY_STACK
    ended_ranges: tuple[tuple[int, int], ...] = ()

    def with_task(self, task: TaskData) -> "SessionContextData":
        """Return the data with the tasks of the session, without the messages of those that have ended."""
        focus = [found for found in self.session_state.focus if not is_in_ranges(found.position, task.ended_ranges)]
        session_state = replace(self.session_state, focus=focus)
        return replace(self, session_state=session_state, task_stack=task.stack, ended_ranges=task.ended_ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredSources:
    """The results of all sources.

    `core_vector` is the embedding of the input without its greeting, None if it has no greeting. `procedures` were
    triggered by the input and not found by the search, `injected` the memories that a caller has put into the context
    of the session. `observations` are events, of this session
    and of others. `task` is the current task of the session, whose memories rank higher. `gathering` says how the
    memories were ranked for the question. `time_ranges` are the times that the input asks for. `missing` maps
    unavailable or incomplete sources to reasons.
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
    def person(self) -> FoundPerson:
        return self.input_matches.person

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

    def without_found(self) -> "GatheredSources":
        """Return a copy with only the identity, the censors and the data of the session, without search results."""
        return GatheredSources(
            recall_result=RecallResult(query=self.recall_result.query, memories=(), missing={}),
            session_data=self.session_data,
            core_vector=self.core_vector,
            missing=self.missing,
            filters=self.filters,
        )

    def only_always_on(self) -> "GatheredSources":
        """Return a copy with only the identity and the censors; session and tasks are entered as missing."""
        session_data = SessionContextData(always_on=self.always_on)
        missing = {**self.missing, **dict.fromkeys(("session", "tasks"), "the context could not be built with it")}
        return replace(self.without_found(), session_data=session_data, missing=missing)


def gather_nothing(request: ContextBuildRequest) -> GatheredSources:
    """Return the sources of a context that is built without memory, because nothing could be read."""
    names = ("memories", "identity and constraints", "session", "tasks")
    recall_result = RecallResult(query=RecallQuery(text=request.input), memories=(), missing={})
    missing: dict[str, str] = dict.fromkeys(names, "the sources could not be read")
    return GatheredSources(
        recall_result=recall_result,
        session_data=SessionContextData(),
        core_vector=None,
        missing=missing,
        filters=request.filters,
    )
