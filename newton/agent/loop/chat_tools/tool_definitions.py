"""Short definitions of tools from their input models, without the titles, defaults and limits of the fields."""

from collections.abc import Mapping
from typing import Any, cast

from newton.agent.inputs import ToolInput
from newton.providers.chat import ToolDefinition

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
