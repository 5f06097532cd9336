"""The caller of an operation or a tool: who speaks, and the services of its agent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self
from uuid import UUID

from newton.agent.actions.permissions import PermissionService
from newton.agent.inventory.artifacts import ArtifactService
from newton.agent.inventory.bulk_changes import BulkService
from newton.agent.inventory.documents import DocumentService
from newton.agent.inventory.memory_edits import MemoryEditor
from newton.agent.inventory.projects import ProjectService
from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.tools import AgentToolset
from newton.agent.loop.turn_status import ProgressCallback
from newton.agent.reconciliation.rulings import ProposedChange, rule_on
from newton.agent.scope import AgentScope
from newton.agent.services.censors import CensorService
from newton.agent.services.conflicts import ConflictService
from newton.agent.services.curation import CurationService
from newton.agent.services.decisions import DecisionService
from newton.agent.services.entities import EntityService
from newton.agent.services.identity import IdentityService
from newton.agent.services.memory_moves import MoveService
from newton.agent.services.persons import PersonService
from newton.agent.services.procedures import ProcedureService
from newton.agent.services.sessions import BriefService, SessionService
from newton.agent.session_data.injections import InjectionService
from newton.agent.session_data.tasks import TaskService
from newton.db.pool import Tx
from newton.deadline import RequestDeadline
from newton.dialogue.compaction.progress_events import ignore_progress
from newton.dialogue.sessions import get_session_id
from newton.heart.speakers import Act, ActRuling, Speaker, TargetStatement, decide
from newton.memory.memory import Trust

if TYPE_CHECKING:
    from newton.agent.services.guardrails import GuardrailService
    from newton.runtime.wiring import AgentServices


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCaller:
    """The caller of an operation, with the services that operations use for it.

    `ruling` is what the rule of authority has decided on the operation that runs; None outside of one. `read` is the
    lowest trust of texts of others that a model was given. `deadline` is the moment until which the memory is waited
    for; None gives each search the default time. `connection_session` is the session of an MCP connection. `on_event`
    receives the progress of a compaction.
    """

    newton: "AgentServices"
    origin: str
    speaker: Speaker = "model"
    ruling: ActRuling | None = None
    read: Trust | None = None
    deadline: RequestDeadline | None = None
    connection_session: str | None = None
    on_event: ProgressCallback = ignore_progress

    def within(self, tx: Tx) -> Self:
        """Return a copy whose services write in the open transaction `tx`."""
        return replace(self, newton=self.newton.within(tx))

    @property
    def trust(self) -> Trust:
        """Return the highest trust that texts from the caller can get."""
        return (self.ruling or decide("state", self.speaker, read=self.read)).trust

    @property
    def author(self) -> str:
        """Return who is recorded with edits, and with the text of others that a model was given."""
        return self.newton.author

    @property
    def is_person(self) -> bool:
        """Return whether a person speaks, or an app that relays one."""
        return self.speaker != "model"

    @property
    def is_contested(self) -> bool:
        """Return whether a change of a statement is stored beside it, because the caller may not replace it."""
        return self.ruling is not None and self.ruling.verdict == "contested"

    @property
    def counts(self) -> bool:
        """Return whether a report of how something turned out counts, or is only shown."""
        return self.ruling is None or self.ruling.verdict != "noted"

    async def authorize(
        self, act: Act, targets: Sequence[str | TargetStatement] = (), *, line: str | None, text: str = ""
    ) -> Self:
        """Return the caller with the ruling on an act that changes the target memories, in the open transaction.

        `line` is the id of the message that the act cites, `text` what takes the place of a target. Raises
        ForbiddenError if the act is refused, and NotFoundError for an unknown target or message.
        """
        change = ProposedChange(act, self.speaker, self.read, targets, line, text)
        return replace(self, ruling=await rule_on(self.scope, change))

    @property
    def scope(self) -> AgentScope:
        return self.newton.scope.at(self.origin, self.trust)

    @property
    def toolset(self) -> AgentToolset:
        """Return the tools that MCP clients share with the agent's own model, with the caller's trust and deadline."""
        tools = self.newton.toolset(self.origin)
        memories = tools.memories.with_deadline(self.deadline)
        return replace(tools, memories=memories, max_trust=self.trust).with_trust(())

    @property
    def artifacts(self) -> ArtifactService:
        return ArtifactService(scope=self.scope)

    @property
    def briefs(self) -> BriefService:
        return BriefService(scope=self.scope)

    @property
    def decisions(self) -> DecisionService:
        return replace(self.newton.decisions(self.origin), scope=self.scope)

    @property
    def curation(self) -> CurationService:
        return CurationService(scope=self.scope)

    @property
    def memory_editor(self) -> MemoryEditor:
        return MemoryEditor(scope=self.scope, author=self.author)

    @property
    def bulk(self) -> BulkService:
        return BulkService(scope=self.scope, author=self.author)

    @property
    def censors(self) -> CensorService:
        return replace(self.newton.censors(self.origin), scope=self.scope)

    @property
    def gate(self) -> ActionGate:
        return self.newton.action_gate(self.origin)

    @property
    def guardrails(self) -> "GuardrailService":
        return self.newton.guardrails(self.origin)

    @property
    def conflicts(self) -> ConflictService:
        return ConflictService(scope=self.scope)

    @property
    def documents(self) -> DocumentService:
        return DocumentService(scope=self.scope)

    @property
    def entities(self) -> EntityService:
        return EntityService(scope=self.scope)

    @property
    def persons(self) -> PersonService:
        return PersonService(scope=self.scope)

    @property
    def identity(self) -> IdentityService:
        return IdentityService(scope=self.scope)

    @property
    def sessions(self) -> SessionService:
        return self.newton.sessions(self.origin, self.on_event)

    @property
    def permissions(self) -> PermissionService:
        return PermissionService(scope=self.scope)

    @property
    def moves(self) -> MoveService:
        newton = self.newton
        confined = newton.scope.project is not None and not newton.may_leave_project
        return MoveService(scope=self.scope, chain_heads=newton.chain_heads, is_confined=confined)

    @property
    def projects(self) -> ProjectService:
        return ProjectService(scope=self.scope)

    @property
    def procedures(self) -> ProcedureService:
        return ProcedureService(scope=self.scope)

    async def toolset_in(self, session: str | None, *, creates: bool) -> AgentToolset:
        """Return the shared tools for a session. An unknown session is created if `creates`, and otherwise ignored."""
        if session is None:
            return self.toolset
        service = self.sessions
        session_id = await service.begin(session) if creates else await service.find(session)
        return self.toolset.for_session(session_id) if session_id else self.toolset

    @property
    def injections(self) -> InjectionService:
        return self.newton.injections(self.origin, self.trust)

    async def find_session(self, name: str) -> UUID:
        """Return the id of the named session. Raises NotFoundError if it does not exist."""
        async with self.newton.scope.transaction() as tx:
            return await get_session_id(tx, agent_id=self.newton.scope.agent_id, ref=name)

    async def tasks(self, session: str | None, *, creates: bool = False) -> TaskService:
        """Return the task stack of the named session; without a name, of the session of the last started task.

        Raises NotFoundError if the session does not exist, unless it `creates` it.
        """
        tasks = TaskService(scope=self.scope)
        if session is None:
            return tasks
        begin = self.sessions.begin if creates else self.find_session
        return tasks.for_session(await begin(session))
