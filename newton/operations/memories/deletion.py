"""The operation that deletes a memory permanently, after a preview."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText
from newton.memory.forgetting import ForgetPlan
from newton.memory.lookup import RelatedMemory, short_id
from newton.memory.representations import one_line
from newton.operations.declaration import operation
from newton.operations.fields import CitedLine, MemoryRef, PlanToken

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_SHOWN = 20  # derived memories in a text


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgottenMemories:
    """The ids of all deleted memories. `sources` are those that the memory was made from, which remain."""

    items: Sequence[UUID]
    sources: Sequence[UUID]


def _format_forgotten(result: ForgetPlan | ForgottenMemories) -> str:
    if isinstance(result, ForgottenMemories):
        remaining = [
            f"\nThe memory {one}, from which it was made, remains; `newton forget {one}` deletes that too."
            for one in map(short_id, result.sources)
        ]
        return f"Forgotten: {', '.join(map(short_id, result.items))}.{''.join(remaining)}"
    derived = _format_related("Derived from it, and deleted too with `include_derived`", result.derived)
    sources = _format_related("It was made from these, which remain", result.sources)
    deleted = f"{short_id(result.memory_id)} {result.kind}: {one_line(result.text)}"
    return f"To be deleted permanently:\n{deleted}{derived}{sources}"


def _format_related(head: str, memories: Sequence[RelatedMemory]) -> str:
    lines = [f"\n  {short_id(one.memory_id)} {one.kind}: {one_line(one.micro)}" for one in memories[:MAX_SHOWN]]
    more = [f"\n  and {len(memories) - MAX_SHOWN:,} more"] if len(memories) > MAX_SHOWN else []
    return "".join([f"\n{head}:", *lines, *more]) if memories else ""


async def _list_deleted(caller: "OperationCaller", memory_id: str, *, include_derived: bool, **_: object) -> list[str]:
    derived = (await caller.curation.plan_forget(memory_id)).derived if include_derived else ()
    return [memory_id, *(one.memory_id.hex for one in derived)]


@operation(
    "DELETE /v1/memories/{memory_id}",
    "destroys",
    act="delete",
    name="forget",
    command="forget",
    text=_format_forgotten,
    core=("memory_id", "include_derived", "reason", "token", "line"),
    list_targets=_list_deleted,
)
async def forget_memory(
    caller: "OperationCaller",
    memory_id: MemoryRef,
    *,
    include_derived: Annotated[bool, Field(description="Also delete the memories derived from this one.")] = False,
    reason: Annotated[
        CleanText, Field(max_length=1_000, description="Why the memory is deleted. The reason stays stored.")
    ] = "requested",
    token: PlanToken = None,
    line: CitedLine = None,
) -> ForgetPlan | ForgottenMemories:
    """Permanently delete a memory. Only the ids, the time and the reason are kept.

    Without a token, the result is what would be deleted, and the token that deletes it. A fact that has changed is
    superseded instead, and a fact that was never true is retracted.

    Example: newton forget 3f9c2a71 --reason "it is about somebody else"
    """
    if token is None:
        return await caller.curation.plan_forget(memory_id)
    plan, deleted = await caller.curation.forget_confirmed(
        memory_id, token=token, include_derived=include_derived, reason=reason
    )
    sources = [one.memory_id for one in plan.sources if one.memory_id not in deleted]
    return ForgottenMemories(items=deleted, sources=sources)
