"""The operation that processes new memories."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import Timestamp
from newton.operations.declaration import operation
from newton.operations.memories.curation import StateChange, list_state_changes
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


async def _process(caller: "OperationCaller", *, since: datetime) -> None:
    await caller.newton.maintenance(caller.origin).process_pending(passages=True)


@operation(
    "POST /v1/memories/process",
    "changes",
    act="work",
    name="process",
    is_idempotent=True,
    absent={
        "cli": "Each command that stores something does it.",
        "mcp": "A model does not need this: Newton does it by itself, or a person does it.",
        "chat": "The chat does this with every message.",
    },
    prepare=_process,
)
async def process_memories(
    caller: "OperationCaller",
    _: None,
    since: Annotated[Timestamp, Field(description="The `started_at` from the response to the write request.")],
) -> ItemList[StateChange]:
    """Index, embed and deduplicate new memories now, without waiting for a job.

    Returns the changes of states since the time `since`.

    Example: {"since": "2026-01-01T00:00:00Z"}
    """
    return ItemList(items=await list_state_changes(caller, since))
