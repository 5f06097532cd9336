"""The operation that moves memories between a person and projects, after a preview."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.services.memory_moves import MovedMemories, MovePlan
from newton.memory.lookup import short_id
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption, MemoryRef, PlanToken

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_MOVED = 100


def _format_move(result: MovePlan | MovedMemories) -> str:
    if isinstance(result, MovedMemories):
        return f"Moved to {result.target}: {', '.join(map(short_id, result.items))}."
    lines = [f"  {short_id(one.memory_id)} {one.kind}: {one.text}" for one in result.items]
    return "\n".join([f"To be moved to {result.target}:", *lines])


@operation(
    "POST /v1/memories/move",
    "destroys",
    act="govern",
    name="move_memories",
    command="move",
    text=_format_move,
    absent={
        "mcp": "Only a person may move a memory to where other projects see it.",
        "chat": "A line of a chat takes no list of ids; `newton move` does.",
    },
)
async def move_memories(
    caller: "OperationCaller",
    target: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            description="`person`, so that it holds in all projects, or the name of a project.",
            examples=["person"],
        ),
    ],
    *,
    memory_ids: Annotated[
        tuple[MemoryRef, ...],
        CommandOption("id"),
        Field(min_length=1, max_length=MAX_MOVED, description="The ids of the memories, or of lines of the identity."),
    ],
    token: PlanToken = None,
) -> MovePlan | MovedMemories:
    """Move facts, episodes, procedures, decisions, censors and lines of the identity to the person or to a project.

    They keep origin, trust and times, and end in the scope in use. Without a token, the result is what would be moved,
    and the token that moves it.

    Example: newton move shop --id 3f9c2a71
    """
    if token is None:
        return await caller.moves.plan(memory_ids, target)
    return await caller.moves.move(memory_ids, target, token=token)
