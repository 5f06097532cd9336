"""Which tools a model is offered in a turn, and their definitions.

The set of a session only grows: the definitions are the first part of a request, so a change of them invalidates the
prompt cache of the model's server.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, cast
from uuid import UUID

from newton.agent.actions.external_tools import ExternalTool
from newton.agent.inputs import ToolInput
from newton.agent.loop.chat_tools.tool_table import OFFERED_TOOLS
from newton.agent.loop.prompt import count_tool_tokens
from newton.agent.scope import AgentScope
from newton.cognition.session_context.service import SessionContext
from newton.db.queries import load
from newton.memory.memory import TokenCounter
from newton.providers.chat import RequestOptions, ToolDefinition

SQL = load("newton.agent.loop.chat_tools", "tool_offer.sql")

KEPT_FIELDS = ("type", "enum", "description", "items")


def define_tool(name: str, model: type[ToolInput]) -> ToolDefinition:
    """Return the definition of a tool with the docstring of its input model as the description."""
    schema = model.model_json_schema()
    properties = {field: _shorten(one) for field, one in schema.get("properties", {}).items()}
    parameters: dict[str, object] = {"type": "object", "properties": properties}
    if required := schema.get("required"):
        parameters["required"] = required
    description = " ".join((model.__doc__ or "").split())
    return ToolDefinition(name, {"name": name, "description": description, "parameters": parameters})


def _shorten(schema: Mapping[str, Any]) -> dict[str, object]:
    """Return the schema of a field without what a model does not need, such as that it may be null."""
    options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    merged: dict[str, Any] = {**(options[0] if len(options) == 1 else {}), **schema}
    kept: dict[str, object] = {key: merged[key] for key in KEPT_FIELDS if key in merged}
    if isinstance(items := kept.get("items"), Mapping):
        kept["items"] = _shorten(cast("Mapping[str, Any]", items))
    return kept


DECISION_FRAME = "decision"
PLAN_FRAMES = frozenset({"planning"})
WORK_FRAMES = PLAN_FRAMES | {"task", "debug"}  # with tools that act
WINDOW_DIVISOR = 8  # the definitions are offered as far as they fit into this part of the window


class SessionContents(NamedTuple):
    """The contents of a session, as far as they decide which tools the model needs.

    `frames` are the kinds of input of its contexts. `can_act` means that there are tools of servers.
    """

    has_artifacts: bool = False
    has_tasks: bool = False
    has_decisions: bool = False
    frames: Collection[str] = ()
    can_act: bool = False

    def add_context(self, context: SessionContext) -> "SessionContents":
        """Return these contents with those of a new context."""
        bundle = context.bundle
        has_decisions = any(item.kind == "decision" for item in bundle.items)
        frames = {*self.frames, bundle.frame_choice.frame}
        return self._replace(has_decisions=self.has_decisions or has_decisions, frames=frames)

    def choose_tools(self) -> frozenset[str]:
        """Return the names of the tools that the session needs."""
        frames = WORK_FRAMES if self.can_act else PLAN_FRAMES
        needed = {
            "read_artifact": self.has_artifacts,
            "decide": self.has_decisions or DECISION_FRAME in self.frames,
            "review": self.has_decisions,
            "task": self.has_tasks or not frames.isdisjoint(self.frames),
        }
        return frozenset(name for name in OFFERED_TOOLS if needed.get(name, True))


ALL_CONTENTS = SessionContents(has_artifacts=True, has_tasks=True, has_decisions=True)


async def find_contents(scope: AgentScope, session_id: UUID | None, context: SessionContext | None) -> SessionContents:
    """Return the contents of a session, including those of its parent sessions and of the new context."""
    contents = SessionContents()
    if session_id is not None:
        async with scope.transaction() as tx:
            row = await SQL["find_contents"].fetch_one(tx, agent_id=scope.agent_id, session_id=session_id)
        contents = SessionContents(**row) if row else contents
    return contents.add_context(context) if context else contents


@lru_cache(maxsize=64)  # of the sets of names that sessions need
def list_tools(names: frozenset[str]) -> tuple[ToolDefinition, ...]:
    """Return the definitions of the named tools, the most useful first."""
    return tuple(define_tool(name, spec.input_model) for name, spec in OFFERED_TOOLS.items() if name in names)


def add_own_tools(
    options: RequestOptions, external: Sequence[ExternalTool], *, max_tokens: int, count_tokens: TokenCounter
) -> RequestOptions:
    """Return the request options with as many of Newton's tools as fit beside the caller's, and all `external` tools.

    A tool that has the name of one of the caller's is left out.
    """
    taken = frozenset(tool.name for tool in options.tools)
    left = (max_tokens - count_tool_tokens(options, count_tokens=count_tokens)) // WINDOW_DIVISOR
    chosen: list[ToolDefinition] = []
    for tool in list_tools(ALL_CONTENTS.choose_tools() - taken):
        if count_tool_tokens(RequestOptions(own_tools=(*chosen, tool)), count_tokens=count_tokens) > left:
            break
        chosen.append(tool)
    return replace(options, own_tools=(*chosen, *(tool.definition for tool in external)))


def omit_unneeded(options: RequestOptions, contents: SessionContents) -> RequestOptions:
    """Return the request options without the tools of Newton that a session with these contents does not need."""
    omitted = OFFERED_TOOLS.keys() - contents.choose_tools()
    return replace(options, own_tools=tuple(one for one in options.own_tools if one.name not in omitted))
