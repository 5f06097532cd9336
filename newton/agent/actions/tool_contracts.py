"""Contracts of tools: each tool of a server as the agent first saw it. For one that has changed a person is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from newton.agent.actions.external_tools import ExternalTool
from newton.db.pool import Tx
from newton.db.queries import load
from newton.providers.chat import ToolDefinition

SQL = load("newton.agent.actions", "tool_contracts.sql")

CHANGED = "Its description, its schema or its server has changed since it was first seen."
UNCONFIRMED = "This tool has changed, and no person has allowed the change. A call of it asks the person."
RELABELLED = "It acted when it was first seen, and now says that it only reads."


class ToolContract(NamedTuple):
    """The fingerprint and the class (whether it only reads) of a tool at first sight."""

    fingerprint: bytes
    is_read: bool

    def compare(self, tool: ExternalTool) -> ExternalTool:
        """Return a tool with its `change` since first sight. One that acted then is no read, whatever it says now."""
        if tool.fingerprint == self.fingerprint:
            return tool
        change = RELABELLED if tool.is_read and not self.is_read else CHANGED
        return replace(tool, is_read=tool.is_read and self.is_read, change=change)


def hide_texts(tool: ExternalTool) -> ExternalTool:
    """Return a tool that has changed without the texts of its server: only the names and types of its arguments."""
    parameters = _hide_schema(cast("Mapping[str, Any]", tool.definition.function["parameters"]))
    function = {"name": tool.full_name, "description": UNCONFIRMED, "parameters": parameters}
    return replace(tool, definition=ToolDefinition(tool.full_name, function))


def _hide_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema without descriptions, listed values, defaults and examples."""
    kept = {name: schema[name] for name in ("type", "required") if name in schema}
    if isinstance(properties := schema.get("properties"), dict):
        described = cast("dict[str, object]", properties)
        kept["properties"] = {
            name: _hide_schema(cast("dict[str, Any]", one)) if isinstance(one, dict) else {}
            for name, one in described.items()
        }
    if isinstance(items := schema.get("items"), dict):
        kept["items"] = _hide_schema(cast("dict[str, Any]", items))
    return kept


async def keep_contracts(
    tx: Tx, tools: Sequence[ExternalTool], *, agent_id: UUID, now: datetime
) -> Sequence[ExternalTool]:
    """Store the contracts of tools that are new to the agent; return all tools, compared with their contracts."""
    names = {"servers": [one.server for one in tools], "tools": [one.name for one in tools]}
    rows = await SQL["list_contracts"].fetch_all(tx, agent_id=agent_id, **names)
    known = {(row["server"], row["tool"]): ToolContract(row["fingerprint"], row["is_read"]) for row in rows}
    for tool in tools:
        if (tool.server, tool.name) not in known:
            contract = {"fingerprint": tool.fingerprint, "is_read": tool.is_read, "now": now}
            key = {"agent_id": agent_id, "server": tool.server, "tool": tool.name}
            await SQL["insert_contract"].execute(tx, **key, **contract)
    return [known[key].compare(tool) if (key := (tool.server, tool.name)) in known else tool for tool in tools]
