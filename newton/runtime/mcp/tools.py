"""Tools of the MCP server. A tool has an input model, a declared effect and a handler."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from newton.agent.inputs import (
    CalibrationInput,
    ConflictsInput,
    ContextInput,
    DecisionInput,
    ExpandInput,
    ForgetInput,
    RecallInput,
    RememberInput,
    ReviewInput,
    SettleConflictInput,
    ToolInput,
)
from newton.agent.loop.tools import ToolResult, parse_input
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.cognition.request import ContextBuildRequest
from newton.content.frames import get_frame
from newton.errors import DatabaseError, InputError, NewtonError, NotFoundError
from newton.heart.facts.conflicts import FactPair
from newton.memory.lookup import short_id
from newton.runtime.access.tokens import TokenScope
from newton.runtime.wiring import AgentServices

ORIGIN = "mcp"

ToolEffect = Literal["nothing", "adds", "destroys"]
EFFECT_SCOPES: Mapping[ToolEffect, TokenScope] = {"nothing": "read", "adds": "write", "destroys": "admin"}


class McpTool(NamedTuple):
    """A tool. Its description is the docstring of the input model."""

    input_model: type[ToolInput]
    effect: ToolEffect
    run: Callable[[AgentServices, Any], Awaitable[ToolResult]]
    is_idempotent: bool = False

    @property
    def description(self) -> str:
        return " ".join((self.input_model.__doc__ or "").split())

    @property
    def schema(self) -> dict[str, Any]:
        return {key: value for key, value in self.input_model.model_json_schema().items() if key != "description"}


async def run_tool(newton: AgentServices, name: str, arguments: Mapping[str, object]) -> ToolResult:
    """Run a tool call and return its result or its error. Raises only DatabaseError."""
    try:
        tool = TOOLS.get(name)
        if tool is None:
            raise NotFoundError(f"There is no tool {name!r}.", hint=f"There are: {', '.join(TOOLS)}.")
        return await tool.run(newton, parse_input(tool.input_model, json.dumps(arguments)))
    except DatabaseError:
        raise
    except NewtonError as error:
        return to_error_result(error)


def to_error_result(error: NewtonError) -> ToolResult:
    return ToolResult({"error": error.what, "hint": error.hint, "code": error.code}, is_error=True)


def _agent_tool(name: str) -> Callable[[AgentServices, ToolInput], Awaitable[ToolResult]]:
    async def run(newton: AgentServices, tool_input: ToolInput) -> ToolResult:
        return await newton.toolset(ORIGIN).execute(name, tool_input.model_dump_json())

    return run


async def _build_context(newton: AgentServices, tool_input: ContextInput) -> ToolResult:
    if tool_input.frame:
        get_frame(newton.frames, tool_input.frame)
    request = ContextBuildRequest(
        agent_id=newton.scope.agent_id,
        input=tool_input.input,
        tokens=tool_input.tokens or newton.settings.context_tokens,
        adaptive_budget=tool_input.tokens is None,
        fill=tool_input.fill,
        frame=tool_input.frame,
    )
    bundle = await newton.context_builder.build(request)
    fields = {
        "bundle_id": str(bundle.bundle_id),
        "frame": bundle.frame_choice.frame,
        "tokens": bundle.tokens,
        "nothing_relevant": bundle.has_nothing_relevant,
    }
    missing = {"missing": dict(bundle.missing)} if bundle.missing else {}
    return ToolResult({**fields, "text": bundle.text, **missing})


async def _forget(newton: AgentServices, tool_input: ForgetInput) -> ToolResult:
    ids, reason = [tool_input.memory_id], tool_input.reason
    deleted = await newton.curation(ORIGIN).forget(ids, include_derived=False, reason=reason)
    return ToolResult({"items": [short_id(memory_id) for memory_id in deleted]})


async def _list_conflicts(newton: AgentServices, _: ConflictsInput) -> ToolResult:
    return _describe_conflicts(await newton.conflicts(ORIGIN).list_conflicts())


async def _settle_conflict(newton: AgentServices, tool_input: SettleConflictInput) -> ToolResult:
    conflicts = newton.conflicts(ORIGIN)
    return _describe_conflicts(await conflicts.settle(tool_input.memory_id, tool_input.keep, by_person=False))


def _describe_conflicts(pairs: Sequence[FactPair]) -> ToolResult:
    sides = [{"newer": pair.newer, "older": pair.older} for pair in pairs]
    items = [
        {
            side: {"memory_id": short_id(fact.memory_id), "since": fact.since.isoformat(), "text": fact.text}
            for side, fact in facts.items()
        }
        for facts in sides
    ]
    return ToolResult({"items": items})


async def _compute_calibration(newton: AgentServices, tool_input: CalibrationInput) -> ToolResult:
    reviewed, category = await newton.decisions(ORIGIN).list_reviewed_decisions(), tool_input.category
    categories = sorted({one.category for one in reviewed})
    if category is not None and category not in categories:
        hint = f"Known categories: {', '.join(categories) or 'none'}."
        raise InputError(f"No reviewed decision has the category {category!r}.", hint=hint)
    return ToolResult(to_json(build_calibration(one for one in reviewed if category in (None, one.category))))


TOOLS: Mapping[str, McpTool] = {
    "remember": McpTool(RememberInput, "adds", _agent_tool("remember"), is_idempotent=True),
    "recall": McpTool(RecallInput, "nothing", _agent_tool("recall"), is_idempotent=True),
    "context": McpTool(ContextInput, "nothing", _build_context, is_idempotent=True),
    "expand": McpTool(ExpandInput, "nothing", _agent_tool("expand"), is_idempotent=True),
    "decide": McpTool(DecisionInput, "adds", _agent_tool("decide")),
    "review": McpTool(ReviewInput, "adds", _agent_tool("review")),
    "calibration": McpTool(CalibrationInput, "nothing", _compute_calibration, is_idempotent=True),
    "conflicts": McpTool(ConflictsInput, "nothing", _list_conflicts, is_idempotent=True),
    "settle_conflict": McpTool(SettleConflictInput, "adds", _settle_conflict),
    "forget": McpTool(ForgetInput, "destroys", _forget),
}
