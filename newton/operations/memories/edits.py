"""The operation that edits the importance, the core mark or the subject of a memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import Importance, Name
from newton.agent.inventory.memory_edits import FieldChanges
from newton.memory.lookup import short_id
from newton.memory.memory_list import EditableField
from newton.operations.declaration import operation
from newton.operations.fields import MemoryRef

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedMemory:
    """The state of a memory after an edit, and the fields that have a new value. The importance is from 0 to 10."""

    memory_id: UUID
    state: str
    importance: float
    is_importance_set: bool
    is_core: bool
    changed: Sequence[EditableField]


def _format_edited(memory: EditedMemory) -> str:
    if not memory.changed:
        return f"{short_id(memory.memory_id)} has these values already; nothing changed."
    values: dict[EditableField, str] = {
        "importance": f"importance {memory.importance:g}" + ("" if memory.is_importance_set else " (derived)"),
        "core": f"core {'yes' if memory.is_core else 'no'} (state {memory.state})",
        "subject": "subject",
    }
    return f"Edited {short_id(memory.memory_id)}: {', '.join(values[name] for name in memory.changed)}."


@operation(
    "PATCH /v1/memories/{memory_id}",
    "changes",
    act="govern",
    inner_acts=["end"],
    command="edit",
    text=_format_edited,
    is_idempotent=True,
    field_scopes={"core": "admin"},
    absent={"mcp": "Only a person may do this; a model may confirm, supersede or retract facts."},
)
async def edit_memory(
    caller: "OperationCaller",
    memory_id: MemoryRef,
    *,
    importance: Annotated[
        Importance | None, Field(description="Importance from 0 to 10, instead of the computed one.", examples=[8])
    ] = None,
    derive_importance: Annotated[
        bool, Field(description="Compute the importance from confirmations and use again.")
    ] = False,
    core: Annotated[bool | None, Field(description="Mark the fact as core (established), or remove the mark.")] = None,
    subject: Annotated[Name | None, Field(description="Person or thing that the fact is about.")] = None,
    remove_subject: Annotated[bool, Field(description="Remove the subject.")] = False,
) -> EditedMemory:
    """Set the importance or the subject of a memory, or mark a fact as core. All edits are recorded.

    Nothing else can be edited: a fact is superseded, retracted or confirmed instead, and trust and origin never change.
    No later statement of a program supersedes a core fact, so the mark needs a token with the scope admin.

    Example: newton edit 3f9c2a71 --importance 9
    """
    changes = FieldChanges(
        importance=importance,
        derive_importance=derive_importance,
        core=core,
        subject=subject,
        remove_subject=remove_subject,
    )
    if core is False or subject or remove_subject:
        await caller.authorize("end", [memory_id], line=None)
    memory, changed = await caller.memory_editor.edit(memory_id, changes)
    return EditedMemory(
        memory_id=memory.memory_id,
        state=memory.state,
        importance=memory.importance,
        is_importance_set=memory.is_importance_set,
        is_core=memory.is_core,
        changed=changed,
    )
