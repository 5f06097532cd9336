"""Events made of the results of an agent's tools, as they are stored with the messages of a session."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from newton.dialogue.messages import StoredMessage
from newton.errors import InputError
from newton.heart.events.event_store import NewEvent
from newton.heart.events.tool_results import ToolOutcome, to_event
from newton.providers.chat import ToolCall


def to_observations(
    messages: Sequence[StoredMessage], memory_ids: Mapping[int, UUID], calls: Mapping[str, ToolCall]
) -> list[NewEvent]:
    """Return the events for the results of tools among the messages. Pure.

    `memory_ids` maps positions of messages to memories, `calls` maps call ids to calls. A message without a memory,
    such as one that repeats memories, makes no event.
    """
    kept = [item for item in messages if item.position in memory_ids]
    return [one for item in kept if (one := _to_observation(item, memory_ids[item.position], calls))]


def _to_observation(stored: StoredMessage, memory_id: UUID, calls: Mapping[str, ToolCall]) -> NewEvent | None:
    line = stored.message
    if line.role != "tool":
        return None
    call = calls.get(line.tool_call_id or "") or ToolCall("", line.name or "tool", "")
    try:
        event = to_event(ToolOutcome(call.name, call.arguments, line.content), occurred_at=line.said_at)
    except InputError:  # arguments nested too deep for an event; the message itself is stored
        return None
    return NewEvent(
        ref=f"{stored.session_id} message {stored.position}",
        event=event,
        session_id=stored.session_id,
        position=stored.position,
        source_id=memory_id,
        is_tool_result=True,
    )
