"""The verbs that MCP clients are offered: a form, a hint of what it changes, and one call."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from newton.agent.loop import tools
from newton.agent.loop.tools import MAX_TEXT_CHARS, ToolInput, ToolResult, parse_input
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration as computed
from newton.cognition.request import ContextBuildRequest
from newton.content.frames import get_frame
from newton.errors import DatabaseError, InputError, NewtonError, NotFoundError
from newton.memory.lookup import short_id
from newton.runtime.access.tokens import TokenScope
from newton.runtime.wiring import AgentServices

ORIGIN = "mcp"
MAX_TOKENS = 100_000

ToolEffect = Literal["nothing", "adds", "destroys"]
EFFECT_SCOPES: Mapping[ToolEffect, TokenScope] = {"nothing": "read", "adds": "write", "destroys": "admin"}


class ContextInput(ToolInput):
    """The context for an input: what the memory holds that matters for it, chosen and ordered within a budget of
    tokens, with what must not be done first. Ask for it before you answer or begin work."""

    input: str = Field(max_length=MAX_TEXT_CHARS, description="What the person said, or what is to be done.")
    budget: int | None = Field(
        None,
        ge=50,
        le=MAX_TOKENS,
        description="Tokens it may have at most; all that fits comes in then. Left out, it gets what the input needs.",
    )
    frame: str | None = Field(None, description="How to look at it, e.g. debug or planning; chosen when left out.")


class ForgetInput(ToolInput):
    """Take one memory away for good. It cannot be undone; of a fact that is no longer so, remember the new one instead,
    which takes its place."""

    memory_id: str = Field(description="The id that a result shows, or its last letters.")
    because: str = Field(max_length=1_000, description="Why; only this stays.")


class CalibrationInput(ToolInput):
    """How far the confidence stated in decisions can be trusted, from those whose outcome is known: Brier score, bias,
    reliability, and what to state instead."""

    category: str | None = Field(None, description="Only decisions of this category.")


class McpTool(NamedTuple):
    """What it takes, what it changes, and what it does. Saying the same again changes nothing when it `repeats`."""

    input_model: type[ToolInput]
    effect: ToolEffect
    run: Callable[[AgentServices, Any], Awaitable[ToolResult]]
    is_idempotent: bool = False

    @property
    def description(self) -> str:
        return " ".join((self.input_model.__doc__ or "").split())

    @property
    def schema(self) -> dict[str, Any]:
        return {name: one for name, one in self.input_model.model_json_schema().items() if name != "description"}


async def run_tool(newton: AgentServices, name: str, arguments: Mapping[str, object]) -> ToolResult:
    """What came of it, or why nothing did, with what to do. Raises DatabaseError."""
    try:
        verb = TOOLS.get(name)
        if verb is None:
            raise NotFoundError(f"There is no tool {name!r}.", hint=f"There are: {', '.join(TOOLS)}.")
        return await verb.run(newton, parse_input(verb.input_model, json.dumps(arguments)))
    except DatabaseError:
        raise
    except NewtonError as error:
        return to_error_result(error)


def to_error_result(error: NewtonError) -> ToolResult:
    return ToolResult({"error": error.what, "hint": error.hint, "code": error.code}, is_error=True)


def _agent_tool(name: str) -> Callable[[AgentServices, ToolInput], Awaitable[ToolResult]]:
    async def act(newton: AgentServices, form: ToolInput) -> ToolResult:
        return await newton.toolbox(ORIGIN).execute(name, form.model_dump_json())

    return act


async def _build_context(newton: AgentServices, tool_input: ContextInput) -> ToolResult:
    if tool_input.frame:
        get_frame(newton.frames, tool_input.frame)
    request = ContextBuildRequest(
        agent_id=newton.scope.agent_id,
        input=tool_input.input,
        tokens=tool_input.budget or newton.settings.context_tokens,
        adaptive_budget=tool_input.budget is None,
        frame=tool_input.frame,
    )
    bundle = await newton.context_builder.build(request)
    fields = {
        "bundle_id": str(bundle.bundle_id),
        "frame": bundle.frame_choice.frame,
        "tokens": bundle.tokens,
        "text": bundle.text,
        **({"missing": dict(bundle.missing)} if bundle.missing else {}),
    }
    return ToolResult(fields)


async def _forget(newton: AgentServices, tool_input: ForgetInput) -> ToolResult:
    gone = await newton.curation(ORIGIN).forget(
        [tool_input.memory_id], include_derived=False, reason=tool_input.because
    )
    return ToolResult({"forgotten": [short_id(one) for one in gone]})


async def _compute_calibration(newton: AgentServices, tool_input: CalibrationInput) -> ToolResult:
    judged = await newton.decisions(ORIGIN).list_reviewed_decisions()
    known = sorted({one.category for one in judged})
    if tool_input.category is not None and tool_input.category not in known:
        listed = ", ".join(known) or "none"
        raise InputError(f"No judged decision is of category {tool_input.category!r}.", hint=f"There are: {listed}.")
    return ToolResult(to_json(computed(one for one in judged if tool_input.category in (None, one.category))))


TOOLS: Mapping[str, McpTool] = {
    "remember": McpTool(tools.RememberInput, "adds", _agent_tool("remember"), is_idempotent=True),
    "recall": McpTool(tools.RecallInput, "nothing", _agent_tool("recall"), is_idempotent=True),
    "context": McpTool(ContextInput, "nothing", _build_context, is_idempotent=True),
    "expand": McpTool(tools.ExpandInput, "nothing", _agent_tool("expand"), is_idempotent=True),
    "decide": McpTool(tools.DecideInput, "adds", _agent_tool("decide")),
    "review": McpTool(tools.ReviewInput, "adds", _agent_tool("review")),
    "calibration": McpTool(CalibrationInput, "nothing", _compute_calibration, is_idempotent=True),
    "forget": McpTool(ForgetInput, "destroys", _forget),
}
