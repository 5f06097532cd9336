"""Results of tools as the slash commands of the chat print them: as the commands do, or else as indented fields."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from newton.runtime.cli.talk.tool_commands import format_result

Fields = Mapping[str, object]


def format_tool_result(tool: str, arguments: Fields, result: Fields) -> str:
    """Return the result of a tool that was called with these arguments, as text for the terminal."""
    if "error" not in result and (formatter := RESULT_FORMATS.get(tool)):
        return formatter(arguments, result)
    return format_result(result)


def _format_recall(arguments: Fields, result: Fields) -> str:
    """Format what a search found: of each memory the id, the probability that it answers, the kind and the text."""
    items = cast("Sequence[dict[str, Any]]", result["items"])
    lines = [
        f"{one['memory_id']}  {_format_probability(one.get('probability'))}  {one['kind']:<9}  {one['text']}"
        for one in items
    ]
    missing = cast("Mapping[str, str]", result.get("missing", {}))
    lines += [f"({source} not available: {reason})" for source, reason in missing.items()]
    if items:
        return "\n".join(lines)
    hint = " To see the nearest memories, write /recall --min-relevance 0 and the query." if "note" in result else ""
    return "\n".join([f"Nothing known answers this.{hint}" if hint else "No matching memory.", *lines])


def _format_probability(probability: float | None) -> str:
    return "   -" if probability is None else f"{probability:4.0%}"


RESULT_FORMATS: Mapping[str, Callable[[Fields, Fields], str]] = {
    "recall": _format_recall,
}
