"""The operation that changes all memories that a filter selects, after a preview."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText, Importance
from newton.agent.inventory.bulk_changes import BulkAction, BulkChange, BulkPlan
from newton.agent.inventory.memory_lists import MemoryFilterInput
from newton.memory.lookup import short_id
from newton.memory.memory import Kind
from newton.memory.representations import one_line
from newton.operations.declaration import operation
from newton.operations.fields import PlanToken
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_SAMPLE = 5  # memories of a preview
VERBS: Mapping[BulkAction, str] = {
    "forget": "Forgotten",
    "retract": "Retracted",
    "set_importance": "Importance set",
    "set_core": "Core mark changed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkSample:
    """One of the memories that a change would affect."""

    memory_id: UUID
    kind: Kind
    state: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """Numbers of memories that a change has affected or, in a preview, would affect, in all and by kind.

    `derived` is the number of memories derived from the selected ones, which `include_derived` deletes too. A preview
    also has the first of the memories, and the `token` that confirms the change.
    """

    action: BulkAction
    is_done: bool
    count: int
    counts: Mapping[str, int]
    derived: int
    sample: Sequence[BulkSample]
    token: str | None


def _format_change(result: BulkResult) -> str:
    many = pluralize(result.count, "memory", "memories")
    if result.is_done:
        return f"{VERBS[result.action]}: {many}."
    lines = [
        f"{many}: {', '.join(f'{number} of kind {kind}' for kind, number in result.counts.items())}",
        *(f"  {short_id(one.memory_id)}  {one_line(one.text)}" for one in result.sample),
        *([f"  … and {result.count - len(result.sample):,} more"] if result.count > len(result.sample) else []),
        *([f"{result.derived:,} derived from these; `include_derived` deletes them too"] if result.derived else []),
    ]
    return "\n".join(lines) if result.count else "No memory matches these filters; `newton list` accepts the same ones."


@operation(
    "POST /v1/memories/bulk",
    "destroys",
    act="delete",
    inner_acts=["end"],
    command="bulk",
    text=_format_change,
    absent={
        "mcp": "Only a person may do this; a model may confirm, supersede or retract facts.",
        "chat": "Run the command in a terminal beside the chat.",
    },
)
async def change_memories(
    caller: "OperationCaller",
    action: Annotated[BulkAction, Field(description="The change to make to each memory.")],
    *,
    filter: Annotated[
        MemoryFilterInput, Field(description="The memories to change; at least one condition is required.")
    ],
    importance: Annotated[
        Importance | None,
        Field(description="For set_importance: a number from 0 to 10. Default: the importance is computed again."),
    ] = None,
    core: Annotated[bool, Field(description="For set_core: whether the facts are marked as core.")] = True,
    include_derived: Annotated[
        bool, Field(description="For forget: also delete the memories derived from the selected ones.")
    ] = False,
    reason: Annotated[
        CleanText, Field(max_length=500, description="For forget: the reason, which stays stored.")
    ] = "requested",
    token: PlanToken = None,
) -> BulkResult:
    """Forget, retract or edit all memories that filters select, at most 1,000, in one transaction.

    Without a token, nothing is changed: the result is a preview with the token that confirms the change. The token is
    refused if one of the memories has changed since.

    Example: newton bulk set_importance --importance 8 --kind fact --text crate
    """
    change = BulkChange(
        action=action,
        filter=filter,
        importance=importance,
        core=core,
        include_derived=include_derived,
        reason=reason,
    )
    ends = action == "retract" or (action == "set_core" and not core)
    if ends and caller.speaker != "person":
        ids = [str(one.memory_id) for one in (await caller.bulk.plan(change)).memories]
        await caller.authorize("end", ids, line=None)
    if token is None:
        return _to_result(await caller.bulk.plan(change), is_done=False)
    return _to_result(await caller.bulk.carry_out(change, token=token), is_done=True)


def _to_result(plan: BulkPlan, *, is_done: bool) -> BulkResult:
    """Return the preview of a change or, if `is_done`, its result, which contains no text of memories."""
    return BulkResult(
        action=plan.change.action,
        is_done=is_done,
        count=len(plan.memories),
        counts=plan.counts,
        derived=len(plan.derived_ids),
        sample=[
            BulkSample(memory_id=one.memory_id, kind=one.kind, state=one.state, text=one.text)
            for one in plan.memories[: 0 if is_done else MAX_SAMPLE]
        ],
        token=None if is_done else plan.token,
    )
