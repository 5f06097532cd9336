"""The tools of servers for the turns of one agent."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from newton.agent.actions import action_store
from newton.agent.actions.action_runner import ActionRunner, GuardrailCheck
from newton.agent.actions.action_store import ToolAction
from newton.agent.actions.external_tools import ExternalTool, ExternalToolSource
from newton.agent.actions.outbound_guard import OutboundGuard
from newton.agent.actions.permissions import PermissionService
from newton.agent.actions.tool_contracts import hide_texts, keep_contracts
from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.prompt import count_tool_tokens
from newton.agent.loop.turn_status import ProgressCallback
from newton.agent.scope import AgentScope
from newton.dialogue.compaction.progress_events import ignore_progress
from newton.providers.chat import RequestOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionService:
    """Lists the tools of external servers for an agent, and opens runners that call them in one turn.

    `is_user_memory` is True for an agent that is the memory of one user of another agent.
    """

    scope: AgentScope
    agent: str
    source: ExternalToolSource
    gate: ActionGate
    check_guardrails: GuardrailCheck
    is_user_memory: bool = False
    on_event: ProgressCallback = ignore_progress

    @property
    def permissions(self) -> PermissionService:
        return PermissionService(scope=self.scope)

    async def list_tools(self) -> Sequence[ExternalTool]:
        """Return the tools of all servers that the agent may use, and keep how each was when it was first seen."""
        listed = await self.source.list_tools(self.agent, is_user_memory=self.is_user_memory)
        if not listed:
            return listed
        async with self.scope.transaction() as tx:
            return await keep_contracts(tx, listed, agent_id=self.scope.agent_id, now=self.scope.now())

    async def select_tools(
        self, taken: frozenset[str], *, session_id: UUID | None = None, max_tokens: int
    ) -> Sequence[ExternalTool]:
        """Return the first tools whose definitions together fit into `max_tokens`, without names in `taken`.

        Of tools of different servers with the same name, the model gets the first. One that has changed has no texts of
        its server until a person allows it, for all sessions or for this one.
        """
        found: list[ExternalTool] = []
        for listed in await self.list_tools():
            if listed.full_name in taken:
                continue
            taken |= {listed.full_name}
            is_known = not listed.change or await self.permissions.judge(listed, session_id=session_id) == "allowed"
            tool = listed if is_known else hide_texts(listed)
            definition = RequestOptions(own_tools=(tool.definition,))
            max_tokens -= count_tool_tokens(definition, count_tokens=self.scope.count_tokens)
            if max_tokens < 0:
                break
            found.append(tool)
        return found

    def find_offered(self, tools: Sequence[ExternalTool], frames: Collection[str | None]) -> frozenset[str]:
        """Return the names of the tools that at least one of the frames (kinds of input) of a session allows."""
        return frozenset(
            tool.full_name for tool in tools if any(self.source.is_offered(tool, frame) for frame in frames)
        )

    async def list_actions(self, limit: int) -> Sequence[ToolAction]:
        """Return the latest calls, at most `limit`, the latest first."""
        async with self.scope.transaction() as tx:
            return await action_store.list_actions(tx, agent_id=self.scope.agent_id, limit=limit)

    def open(
        self,
        tools: Sequence[ExternalTool],
        *,
        session_id: UUID,
        frame: str | None,
        guard: OutboundGuard,
    ) -> ActionRunner | None:
        """Return a runner for those of the tools that the frame (kind of input) allows; None if it allows none.

        `guard` checks the arguments of calls, and asks a person; if nobody can be asked, only permitted calls are made.
        """
        allowed = {tool.full_name: tool for tool in tools if self.source.is_offered(tool, frame)}
        if not allowed:
            return None
        return ActionRunner(
            scope=self.scope,
            source=self.source,
            gate=self.gate,
            permissions=self.permissions,
            check_guardrails=self.check_guardrails,
            session_id=session_id,
            frame=frame,
            guard=guard,
            on_event=self.on_event,
            tools=allowed,
        )


def omit_tools(options: RequestOptions, tools: Sequence[ExternalTool], offered: Collection[str]) -> RequestOptions:
    """Return the request options without those of `tools` whose names are not in `offered`."""
    omitted = {tool.full_name for tool in tools}.difference(offered)
    if not omitted:
        return options
    return replace(options, own_tools=tuple(one for one in options.own_tools if one.name not in omitted))
