"""Debug lines of a turn, which say before its reply what the model is sent. Pure."""

import json
from collections.abc import Mapping

from newton.agent.loop.prompt import PromptBuilder
from newton.agent.loop.turn_state import PreparedTurn
from newton.cognition.bundles.debug import format_debug_lines
from newton.dialogue.view import count_view_tokens


def format_turn_debug(prepared: PreparedTurn, missing: Mapping[str, str]) -> list[str]:
    """Return the debug lines of a turn as SSE comments: frame, tasks, items of the context, and compaction.

    `missing` maps the parts of the turn that failed so far to reasons; those of the context are added.
    """
    lines = format_debug_lines(prepared.context.bundle) if prepared.context else []
    missing = {**prepared.missing, **missing}
    failed = [f": MISSING_DEBUG {json.dumps(missing)}"] if missing else []
    return [*lines, *([_format_compaction(prepared.tool_loop.prompt)] if prepared.tool_loop else []), *failed]


def _format_compaction(prompt: PromptBuilder) -> str:
    """Return how many messages are sent as they are, summarized, shortened, and not at all, as an SSE comment.

    Messages that this kind of turn never sends are not counted.
    """
    summaries = [item for item in prompt.view if item.entry_id and item.is_history]
    shown = {place for item in prompt.view if item.kind != "left_out" for place in range(item.first, item.last + 1)}
    loaded = prompt.origin.loaded if prompt.origin else ()
    before = [item for item in loaded if prompt.origin and item.last < prompt.origin.input_position]
    places = {place for item in before for place in range(item.first, item.last + 1)}
    fields = {
        "messages": sum(item.kind == "line" for item in prompt.view),
        "summaries": len(summaries),
        "summarized_messages": sum(item.last - item.first + 1 for item in summaries),
        "shortened_messages": sum(item.kind == "mask" for item in prompt.view),
        "left_out_messages": len(places - shown - (prompt.origin.filtered if prompt.origin else frozenset())),
        "tokens": count_view_tokens(prompt.view),
    }
    return f": COMPACTION_DEBUG {json.dumps(fields)}"
