"""Operations that move memories between a person and projects: after a preview, or when a proposal is approved."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from newton.agent.services.memory_moves import MovedMemories, MovePlan, ProposedMove
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption, MemoryRef, PlanToken
from newton.operations.results import ItemList, ProposalResult

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_MOVED = 100
TARGET_TEXT = "`person`, so that it holds in all projects, or the name of a project."
MoveTarget = Annotated[str, Field(min_length=1, max_length=100, description=TARGET_TEXT, examples=["person"])]


def _format_move(result: MovePlan | MovedMemories) -> str:
    if isinstance(result, MovedMemories):
        moved = ", ".join(map(short_id, result.items))
        return f"Moved to {result.target}: {moved}." if moved else "Rejected: nothing is moved."
    lines = [f"  {short_id(one.memory_id)} {one.kind}: {one_line(one.text)}" for one in result.items]
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
    target: MoveTarget,
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


@operation(
    "GET /v1/moves",
    "reads",
    name="moves",
    command="moves list",
    text=lambda one: f"{short_id(one.memory_id)}  to {one.target}: {one.kind}: {one_line(one.text)}",
    empty="No proposed moves.",
)
async def list_moves(caller: "OperationCaller") -> ItemList[ProposedMove]:
    """List the moves of memories to the person or to a project that wait for a person's approval.

    Example: newton moves
    """
    return ItemList(items=await caller.moves.list_proposed())


@operation(
    "POST /v1/moves",
    "adds",
    act="propose",
    command="moves propose",
    text=lambda result: "Proposed." if result.is_new else "It was proposed before; nothing changed.",
    is_idempotent=True,
)
async def propose_move(caller: "OperationCaller", memory_id: MemoryRef, target: MoveTarget) -> ProposalResult:
    """Propose to move a memory to the person, so that it holds in all projects, or to a project. A person decides.

    Each memory is proposed once.

    Example: newton moves propose 3f9c2a71 person
    """
    return ProposalResult(is_new=await caller.moves.propose(memory_id, target))


@operation(
    "POST /v1/moves/{memory_id}/settle",
    "destroys",
    act="govern",
    command="moves settle",
    text=_format_move,
    absent={"mcp": "A person decides about this; a model may only propose it."},
)
async def settle_move(
    caller: "OperationCaller",
    memory_id: MemoryRef,
    answer: Annotated[Literal["approve", "reject"], Field(description="Whether the memory is moved.")],
) -> MovedMemories:
    """Approve a proposed move, which makes it, or reject it. It is not proposed again.

    Example: newton moves settle 3f9c2a71 approve
    """
    return await caller.moves.settle(memory_id, approve=answer == "approve")
