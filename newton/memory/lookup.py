"""One memory, looked up by its id or the end of it: the whole record, with what it is to others."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from asyncpg import Record as Row

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError
from newton.memory.memory import Kind, Outcome, Trust

SQL = load("newton.memory", "lookup.sql")

MIN_ID_DIGITS = 6  # of the end of an id; its beginning is the time, which neighbours share
SHORT_ID_DIGITS, FULL_ID_DIGITS = 8, 32


class RelatedMemory(NamedTuple):
    """What the memory is to another one: 'supersedes', 'was made from', …"""

    link: str
    other_id: UUID
    kind: Kind
    state: str
    micro: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDetail:
    """All there is to a memory. `full_text` is whole, wherever it is kept."""

    memory_id: UUID
    kind: Kind
    state: str
    micro: str
    summary: str
    full_text: str
    confidence: float | None
    importance: float | None
    outcome: Outcome | None
    confirmations: int
    uses: int
    occurred_at: datetime
    created_at: datetime
    confirmed_at: datetime | None
    origin: str
    trust: Trust
    quarantined: bool
    ref: str | None
    relatives: tuple[RelatedMemory, ...]


def short_id(memory_id: UUID) -> str:
    """The end of an id, as people are shown it and may give it back."""
    return memory_id.hex[-SHORT_ID_DIGITS:]


async def resolve_id(tx: Tx, memory_ref: str, *, agent_id: UUID, kind: Kind | None = None) -> UUID:
    """The memory, of that kind if one is named, that is meant by an id or by at least six letters of its end.

    Raises InputError for what is neither, NotFoundError, and ConflictError when several end like that.
    """
    letters = memory_ref.strip().lower().replace("-", "")
    if len(letters) < MIN_ID_DIGITS or not set(letters) <= set("0123456789abcdef"):
        raise InputError(
            f"{memory_ref!r} is no id of a memory.",
            hint=f"Give the whole id or at least the last {MIN_ID_DIGITS} letters of it; `newton recall` shows them.",
        )
    rows = await _find_by_suffix(tx, letters, agent_id=agent_id, kind=kind)
    if not rows:
        if gone := await SQL["find_forgotten"].fetch_one(tx, agent_id=agent_id, id_suffix=letters):
            raise NotFoundError(
                f"The {gone['kind']} {memory_ref} was forgotten on {gone['at']:%Y-%m-%d}: {gone['because']}.",
                hint="Only this note is left of it.",
            )
        raise NotFoundError(f"There is no {kind or 'memory'} {memory_ref}.", hint="`newton recall` shows ids.")
    if len(rows) > 1:
        raise ConflictError(f"Several memories end in {memory_ref}.", hint="Give more letters of the id.")
    return rows[0]["memory_id"]


async def _find_by_suffix(tx: Tx, suffix: str, *, agent_id: UUID, kind: Kind | None) -> Sequence[Row]:
    if len(suffix) == FULL_ID_DIGITS:  # at most one, and found without reading the ids of all
        return await SQL["find_by_id"].fetch_all(tx, agent_id=agent_id, memory_id=UUID(suffix), kind=kind)
    return await SQL["find_by_id_suffix"].fetch_all(tx, agent_id=agent_id, id_suffix=suffix, kind=kind, max_rows=2)


async def read_memory(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> MemoryDetail:
    """Raises NotFoundError."""
    row = await SQL["get_record"].fetch_one(tx, agent_id=agent_id, memory_id=memory_id)
    if row is None:
        raise NotFoundError(f"There is no memory {memory_id}.", hint="`newton recall` shows ids.")
    fields: dict[str, Any] = dict(row)
    packed = fields.pop("packed")
    fields["full_text"] = zlib.decompress(packed).decode() if packed else fields["full_text"] or fields["summary"]
    relatives = await SQL["list_related"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id)
    return MemoryDetail(**fields, relatives=tuple(RelatedMemory(*row) for row in relatives))
