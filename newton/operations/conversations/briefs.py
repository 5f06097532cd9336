"""Operations on the brief of a session: goals, deadlines, rules, constraints and open items that a person stated."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.dialogue.brief.brief_items import KIND_LABELS, BriefItem, ClosedStatus
from newton.heart.speakers import TargetStatement
from newton.memory.lookup import short_id
from newton.operations.declaration import operation
from newton.operations.fields import SessionName, describe_id
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedBriefItem:
    """The id of a closed item of a brief, and what became of it."""

    item_id: UUID
    status: ClosedStatus


def _format_item(item: BriefItem) -> str:
    status = "" if item.status == "open" else f"  ({item.status} after message {item.closed_position})"
    return f"{short_id(item.item_id)}  {KIND_LABELS[item.kind] + ':':<12}{item.text}{status}"


def _format_closed(closed: ClosedBriefItem) -> str:
    return f"The item {short_id(closed.item_id)} is {closed.status}."


@operation(
    "GET /v1/sessions/{session:path}/brief",
    "reads",
    name="brief",
    command="sessions brief",
    text=_format_item,
    empty="This session has no goals, deadlines or rules yet.",
)
async def show_brief(
    caller: "OperationCaller",
    session: SessionName,
    *,
    include_closed: Annotated[bool, Field(description="Also list items that are done, replaced or dropped.")] = False,
) -> ItemList[BriefItem]:
    """List the goals, deadlines, rules, constraints and open items of a session (its brief), word for word.

    They are recognized when they are said and stay in every context of the session, whatever is summarized.

    Example: newton sessions brief s
    """
    return ItemList(items=await caller.briefs.list_items(session, only_open=not include_closed))


async def _list_closed(caller: "OperationCaller", session: str, item_id: str, **_: object) -> list[TargetStatement]:
    """Return the item, unless it is an open one of the assistant's work, which a model may close."""
    items, end = await caller.briefs.list_items(session, only_open=True), item_id.replace("-", "").lower()
    found = [one for one in items if one.item_id.hex.endswith(end) and one.kind != "open_item"]
    return [TargetStatement(one.trust) for one in found]


@operation(
    "POST /v1/sessions/{session:path}/brief",
    "changes",
    act="end",
    list_targets=_list_closed,
    command="sessions close-item",
    text=_format_closed,
)
async def close_brief_item(
    caller: "OperationCaller",
    session: SessionName,
    item_id: Annotated[str, describe_id("item")],
    status: Annotated[ClosedStatus, Field(description="What became of the item: done, or dropped.")] = "done",
) -> ClosedBriefItem:
    """Close an open item of the brief of a session, because it is done or no longer holds.

    Example: newton sessions close-item s 3f9c2a71 dropped
    """
    item = await caller.briefs.close(session, item_id, status)
    return ClosedBriefItem(item_id=item.item_id, status=status)
