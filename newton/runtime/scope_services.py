"""The services of an agent that need only its scope: the agent's id, database, clock and embedder."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from newton.agent.inventory.agent_overview import ActivityService
from newton.agent.inventory.artifacts import ArtifactService
from newton.agent.inventory.documents import DocumentService
from newton.agent.inventory.memory_lists import MemoryListService
from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.history_match import HistoryMatcher
from newton.agent.scope import AgentScope
from newton.agent.services.conflicts import ConflictService
from newton.agent.services.curation import CurationService
from newton.agent.services.entities import EntityService
from newton.agent.services.identity import IdentityService
from newton.agent.services.memories import MemoryService
from newton.agent.services.procedures import ProcedureService
from newton.agent.services.responses import ResponseService
from newton.agent.session_data.tasks import TaskService
from newton.cognition.metrics.service import MetricsService
from newton.runtime.hint_names import ORIGIN_INTERFACES, rename_commands

T = TypeVar("T")


def _service(build: Callable[..., T]) -> Callable[["ScopeServices", str], T]:
    """Return a method that calls `build` to create a service for calls from the interface named `origin`."""
    return lambda self, origin: build(scope=self.scope.at(origin))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeServices:
    """Factories of the services of one agent. `scope` has the agent's id, database, clock and embedder.

    Each call builds a new service. `origin` names the interface that calls it, which is stored with what it writes.
    """

    scope: AgentScope

    memories = _service(MemoryService)
    curation = _service(CurationService)
    procedures = _service(ProcedureService)
    identity = _service(IdentityService)
    tasks = _service(TaskService)
    entities = _service(EntityService)
    conflicts = _service(ConflictService)
    memory_lists = _service(MemoryListService)
    activity = _service(ActivityService)
    documents = _service(DocumentService)
    artifacts = _service(ArtifactService)
    history_matcher = _service(HistoryMatcher)
    responses = _service(ResponseService)

    def action_gate(self, origin: str) -> ActionGate:
        rename = partial(rename_commands, interface=ORIGIN_INTERFACES.get(origin, "cli"))
        return ActionGate(scope=self.scope.at(origin), name_commands=rename)

    def metrics(self) -> MetricsService:
        return MetricsService(agent_id=self.scope.agent_id, db=self.scope.db, clock=self.scope.clock)
