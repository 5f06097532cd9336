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

FEWEST_LETTERS = 6  # of the end of an id; its beginning is the time, which neighbours share
SHOWN_LETTERS, ALL_LETTERS = 8, 32


class Relative(NamedTuple):
    """What the memory is to another one: 'supersedes', 'was made from', …"""

    link: str
    other_id: UUID
    kind: Kind
    state: str
    micro: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
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
    relatives: tuple[Relative, ...]


def short(memory_id: UUID) -> str:
    """The end of an id, as people are shown it and may give it back."""
    return memory_id.hex[-SHOWN_LETTERS:]


async def resolve(tx: Tx, given: str, *, agent_id: UUID, kind: Kind | None = None) -> UUID:
    """The memory, of that kind if one is named, that is meant by an id or by at least six letters of its end.

    Raises InputError for what is neither, NotFoundError, and ConflictError when several end like that.
    """
    letters = given.strip().lower().replace("-", "")
    if len(letters) < FEWEST_LETTERS or not set(letters) <= set("0123456789abcdef"):
        raise InputError(
            f"{given!r} is no id of a memory.",
            hint=f"Give the whole id or at least the last {FEWEST_LETTERS} letters of it; `newton recall` shows them.",
        )
    rows = await _meant(tx, letters, agent_id=agent_id, kind=kind)
    if not rows:
        if gone := await SQL["find_forgotten"].one(tx, agent_id=agent_id, id_suffix=letters):
            raise NotFoundError(
                f"The {gone['kind']} {given} was forgotten on {gone['at']:%Y-%m-%d}: {gone['because']}.",
                hint="Only this note is left of it.",
            )
        raise NotFoundError(f"There is no {kind or 'memory'} {given}.", hint="`newton recall` shows ids.")
    if len(rows) > 1:
        raise ConflictError(f"Several memories end in {given}.", hint="Give more letters of the id.")
    return rows[0]["memory_id"]


async def _meant(tx: Tx, letters: str, *, agent_id: UUID, kind: Kind | None) -> Sequence[Row]:
    if len(letters) == ALL_LETTERS:  # at most one, and found without reading the ids of all
        return await SQL["find_by_id"].all(tx, agent_id=agent_id, memory_id=UUID(letters), kind=kind)
    return await SQL["find_by_id_suffix"].all(tx, agent_id=agent_id, id_suffix=letters, kind=kind, max_rows=2)


async def record(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> Record:
    """Raises NotFoundError."""
    row = await SQL["get_record"].one(tx, agent_id=agent_id, memory_id=memory_id)
    if row is None:
        raise NotFoundError(f"There is no memory {memory_id}.", hint="`newton recall` shows ids.")
    fields: dict[str, Any] = dict(row)
    packed = fields.pop("packed")
    fields["full_text"] = zlib.decompress(packed).decode() if packed else fields["full_text"] or fields["summary"]
    relatives = await SQL["list_related"].all(tx, agent_id=agent_id, memory_id=memory_id)
    return Record(**fields, relatives=tuple(Relative(*row) for row in relatives))
