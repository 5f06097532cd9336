"""The operation that undoes what messages changed."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import Timestamp
from newton.agent.reconciliation.line_changes import LineEffect
from newton.operations.declaration import operation
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoneChange:
    """A change that was undone: its effect, and the id, kind and text of the fact or message, or the section of a rule.

    A rule is not undone (`ruled`: it was laid down, `lifted`: it was ended): the operations of the identity do it.
    """

    effect: LineEffect
    target_id: UUID
    kind: str
    text: str = ""


async def _add_texts(
    caller: "OperationCaller", undone: ItemList[UndoneChange], _: str | None, **__: object
) -> ItemList[UndoneChange]:
    """Return the changes with their texts, which are not stored with the response."""
    texts = await caller.curation.read_texts([one.target_id for one in undone.items])
    return ItemList(items=[replace(one, text=texts.get(one.target_id, "")) for one in undone.items])


@operation(
    "POST /v1/memories/undo",
    "changes",
    act="end",
    text=lambda one: f"{one.effect}: {one.text}",
    empty="Nothing was changed.",
    absent={"cli": "`newton retract` takes back one fact.", "mcp": "`retract` takes back one fact."},
    report=_add_texts,
    is_idempotent=True,
)
async def undo(
    caller: "OperationCaller",
    since: Annotated[Timestamp, Field(description="The time before the first message whose changes are undone.")],
) -> ItemList[UndoneChange]:
    """Undo what messages have changed in the facts since a time.

    Facts that they ended or hid hold again, those that a model learnt from them are retracted. Returns these changes,
    and those of the user's rules, which the operations of the identity undo.

    Example: {"since": "2026-01-01T00:00:00Z"}
    """
    changes = await caller.curation.undo_changes(since)
    return ItemList(
        items=[
            UndoneChange(effect=one.change.effect, target_id=one.change.target_id, kind=one.kind)
            for one in changes
            if one.kind and one.text
        ]
    )
