"""Changes of the editable fields of memories, each recorded with its author."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory.memory import Kind, WriteContext

SQL = load("newton.memory.inventory", "edits.sql")

EditableField = Literal["importance", "core", "subject"]


class EditableMemory(NamedTuple):
    """A memory that is locked for an edit. `importance` is in [0, 1], or None if no person set it."""

    memory_id: UUID
    kind: Kind
    state: str
    importance: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEdit:
    """A recorded change of one field by `author`. A value of None means that the field was not set."""

    edited_at: datetime
    field: EditableField
    old_value: str | None
    new_value: str | None
    origin: str
    author: str


async def lock_memories(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> list[EditableMemory]:
    """Lock memories until the transaction ends, and return them; unknown ids are skipped."""
    rows = await SQL["lock_rows"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids)
    return [EditableMemory(**row) for row in rows]


async def set_importance(tx: Tx, memory_ids: Sequence[UUID], importance: float | None, *, agent_id: UUID) -> None:
    """Set the importance of memories, in [0, 1]; None derives it again from kind, state, outcome and use count."""
    await SQL["set_importance"].execute(tx, agent_id=agent_id, memory_ids=memory_ids, importance=importance)


async def record_edits(
    tx: Tx,
    field: EditableField,
    old_values: Mapping[UUID, str | None],
    new_value: str | None,
    *,
    author: str,
    ctx: WriteContext,
) -> None:
    """Record that a field of several memories has a new value. `old_values` holds the old value of each memory."""
    await SQL["insert_edits"].execute(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=list(old_values),
        edit_ids=[new_id() for _ in old_values],
        field=field,
        old_values=list(old_values.values()),
        new_value=new_value,
        now=ctx.now,
        origin=ctx.origin,
        author=author,
    )


async def list_edits(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> list[MemoryEdit]:
    """Return the recorded changes of a memory's fields, the oldest first."""
    rows = await SQL["list_edits"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id)
    return [MemoryEdit(**row) for row in rows]
