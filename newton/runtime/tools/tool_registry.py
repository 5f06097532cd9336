"""The table of the tools of the MCP server, and their execution."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from newton.agent.document_inputs import IngestDocumentInput
from newton.agent.inputs import ToolInput
from newton.agent.loop.tools import ToolResult, parse_input
from newton.content.yaml_files import did_you_mean
from newton.deadline import RequestDeadline
from newton.errors import DatabaseError, NewtonError, NotFoundError
from newton.memory.redaction.tally import redaction_tally
from newton.operations.caller import OperationCaller
from newton.operations.declaration import Operation, load_operations
from newton.operations.plain_schema import to_plain_schema
from newton.operations.runner import run_operation, to_data
from newton.runtime.access.tokens import TokenScope
from newton.runtime.hint_names import rename_commands, rename_in_error
from newton.runtime.interface_matrix import EFFECTS_BY_DECLARATION, Effect
from newton.runtime.tools import handwritten_tools
from newton.runtime.tools.handwritten_tools import NoteExchangeInput
from newton.runtime.wiring import AgentServices

ORIGIN = "mcp"

EFFECT_SCOPES: Mapping[Effect, TokenScope] = {"reads": "read", "adds": "write", "destroys": "admin"}


# In these inputs, the session is a filter.
SESSION_FILTERS: Sequence[type[ToolInput]] = (
    *(load_operations()[name].input_model for name in ("bundles", "compaction_stats", "entities", "list_memories")),
)


class CallOptions(NamedTuple):
    """What the connection gives to a tool call: a default session, and the deadline of the search of memory."""

    session: str | None = None
    deadline: RequestDeadline | None = None


DEFAULT_OPTIONS = CallOptions()


class McpTool(NamedTuple):
    """A tool of the MCP server: its input model, its effect on stored data, its handler, and its group of operations.

    Its description is the docstring of the input model. `core` are the input fields that it has for a client that did
    not ask for its group; a tool without any is not offered to such a client.
    """

    input_model: type[ToolInput]
    effect: Effect
    run: Callable[[OperationCaller, Any], Awaitable[ToolResult]]
    is_idempotent: bool = False
    scope: TokenScope | None = None
    group: str = "memory"
    core: Sequence[str] = ()

    @property
    def description(self) -> str:
        return " ".join((self.input_model.__doc__ or "").split())

    @property
    def takes_session(self) -> bool:
        """Return whether the session of the connection is the default of the tool's field `session`.

        It is not for a field that only filters a list.
        """
        return "session" in self.input_model.model_fields and self.input_model not in SESSION_FILTERS

    @property
    def schema(self) -> dict[str, Any]:
        schema = to_plain_schema(self.input_model.model_json_schema())
        return {key: value for key, value in schema.items() if key != "description"}

    @property
    def required_scope(self) -> TokenScope:
        """Return the scope that the token of a caller needs for this tool."""
        return self.scope or EFFECT_SCOPES[self.effect]


async def run_tool(
    newton: AgentServices,
    name: str,
    arguments: Mapping[str, object],
    *,
    options: CallOptions = DEFAULT_OPTIONS,
) -> ToolResult:
    """Run a tool call of a model, and return its result or, for any error but a DatabaseError, the error as result."""
    try:
        tool = TOOLS.get(name)
        if tool is None:
            hint = f"{did_you_mean(name, TOOLS)} The tools are: {', '.join(TOOLS)}.".strip()
            raise NotFoundError(f"There is no tool {name!r}.", hint=hint)
        if options.session is not None and tool.takes_session and arguments.get("session") is None:
            arguments = {**arguments, "session": options.session}
        caller = OperationCaller(
            newton=newton.with_trust("agent"),
            origin=ORIGIN,
            deadline=options.deadline,
            connection_session=options.session,
        )
        with redaction_tally() as redacted:
            result = await tool.run(caller, parse_input(tool.input_model, json.dumps(arguments)))
        removed = redacted.count()
        return result._replace(fields={**result.fields, "redacted": removed}) if removed else result
    except DatabaseError:
        raise
    except NewtonError as error:
        return to_error_result(error)


def to_error_result(error: NewtonError) -> ToolResult:
    """Return an error as the result of a tool. Its texts name tools in place of commands."""
    error = rename_in_error(error, "mcp")
    return ToolResult({"error": error.what, "hint": error.hint, "code": error.code}, is_error=True)


def _writer(
    input_model: type[ToolInput],
    run: Callable[[OperationCaller, Any], Awaitable[ToolResult]],
    *,
    is_idempotent: bool = False,
) -> McpTool:
    """Return a tool that stores something, unless a censor (a rule that blocks or warns) forbids the text."""

    async def run_checked(caller: OperationCaller, tool_input: ToolInput) -> ToolResult:
        gate = caller.newton.action_gate(caller.origin)
        warning = await gate.check_write(tool_input.all_text())
        result = await run(caller, tool_input)
        return result._replace(fields={**result.fields, "warning": warning}) if warning else result

    return McpTool(input_model, "adds", run_checked, is_idempotent)


def _operation_tool(operation: Operation) -> McpTool:
    """Return the tool of an operation. Its results have the last digits of ids, which suffice to name a memory."""

    async def run(caller: OperationCaller, tool_input: ToolInput) -> ToolResult:
        outcome = await run_operation(operation, tool_input, caller)
        data = to_data(operation, outcome.result, shortens_ids=True)
        if operation.options.get("names_commands"):
            data = json.loads(rename_commands(json.dumps(data), "mcp"))
        return ToolResult({**data, "warning": outcome.warning} if outcome.warning else data)

    effect = EFFECTS_BY_DECLARATION[operation.effect]
    core = operation.options.get("core", ())
    return McpTool(operation.input_model, effect, run, operation.is_idempotent, operation.scope, operation.group, core)


OWN_TOOLS: Mapping[str, McpTool] = {
    "ingest_document": _writer(IngestDocumentInput, handwritten_tools.ingest_document, is_idempotent=True),
    # a record of what was said is no act: it warns of what a censor forbids, and is stored
    "note_exchange": McpTool(NoteExchangeInput, "adds", handwritten_tools.note_exchange),
}
OWN_GROUPS = {"note_exchange": "sessions"}
OWN_CORE = {"note_exchange": ("user", "assistant", "tools", "session")}
TOOLS: Mapping[str, McpTool] = {
    **{
        name: one._replace(group=OWN_GROUPS.get(name, "memory"), core=OWN_CORE.get(name, ()))
        for name, one in OWN_TOOLS.items()
    },
    **{name: _operation_tool(one) for name, one in load_operations().items() if one.is_at("mcp")},
}
