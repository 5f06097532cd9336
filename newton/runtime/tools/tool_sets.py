"""The sets of tools that MCP offers: a core by default, and those of groups of operations on request."""

from collections.abc import Iterable, Mapping
from typing import Any

from newton.content.yaml_files import did_you_mean
from newton.errors import InputError, NotFoundError
from newton.operations.groups import GROUPS
from newton.runtime.tools.tool_registry import TOOLS, McpTool

ALL = "all"
TOOL_SETS = tuple(name for name in GROUPS if any(tool.group == name for tool in TOOLS.values()))


def parse_tool_sets(text: str | None) -> frozenset[str]:
    """Return the sets of tools that a client asks for, such as `memory,decisions`; `all` stands for every set.

    The core, which every client gets, is not among them. Raises InputError for an unknown set.
    """
    names = {one.strip() for one in (text or "").split(",") if one.strip()}
    for name in sorted(names.difference(TOOL_SETS, (ALL,))):
        hint = f"{did_you_mean(name, (*TOOL_SETS, ALL))} The sets are: {', '.join(TOOL_SETS)}, {ALL}.".strip()
        raise InputError(f"There is no set of tools {name!r}.", hint=hint)
    return frozenset(TOOL_SETS if ALL in names else names)


def list_offered(sets: Iterable[str]) -> Mapping[str, McpTool]:
    """Return, by name, the tools of the core, which every client gets, and those of the sets in `sets`."""
    return {name: tool for name, tool in TOOLS.items() if tool.core or tool.group in sets}


def require_offered(name: str, sets: Iterable[str]) -> None:
    """Raise NotFoundError, with how to ask for the tool, if it is neither in the core nor in one of `sets`."""
    tool = TOOLS.get(name)
    if tool and name not in list_offered(sets):
        raise NotFoundError(
            f"The tool {name!r} is not offered here: it is in the set {tool.group!r}.",
            hint=f"A client asks for the set with `newton mcp serve --tools {tool.group}`, or at"
            f" `/mcp?tools={tool.group}`.",
        )


def describe_input(tool: McpTool, sets: Iterable[str]) -> dict[str, Any]:
    """Return the JSON schema of the input of a tool; with only its core fields if its group is not in `sets`."""
    schema = tool.schema
    if tool.group in sets or not tool.core:
        return schema
    return {**schema, "properties": {name: schema["properties"][name] for name in tool.core}}
