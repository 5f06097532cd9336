"""Read one memory by its id or the end of its id, with its relations to other memories."""

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

MIN_ID_DIGITS = 6  # of the end of an id, because ids of the same time begin alike
SHORT_ID_DIGITS, FULL_ID_DIGITS = 8, 32
LIST_COMMANDS: dict[Kind | None, str] = {
    "decision": "newton decisions",
    "censor": "newton censors",
    "procedure": "newton procedures",
    "entity": "newton entities",
}  # the commands that show ids; of other kinds, `newton recall` does


class RelatedMemory(NamedTuple):
    """A related memory. `link` is the relation as a phrase, such as 'supersedes' or 'was made from'."""

    link: str
    other_id: UUID
    kind: Kind
    state: str
    micro: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDetail:
    """The full record of a memory. `full_text` is decompressed if it was archived."""

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
    """Return the end of an id, the form shown to people and accepted from them."""
    return memory_id.hex[-SHORT_ID_DIGITS:]


async def resolve_id(tx: Tx, memory_ref: str, *, agent_id: UUID, kind: Kind | None = None) -> UUID:
    """Return the id of the memory (of `kind`, if given) from its id or at least six hex digits of its end.

    Raises InputError for another format, NotFoundError, and ConflictError if several ids match."""
    command = LIST_COMMANDS.get(kind, "newton recall")
    digits = memory_ref.strip().lower().replace("-", "")
    if len(digits) < MIN_ID_DIGITS or not set(digits) <= set("0123456789abcdef"):
        hint = f"Give the whole id or at least its last {MIN_ID_DIGITS} digits; `{command}` shows them."
        raise InputError(f"{memory_ref!r} is not the id of a {kind or 'memory'}.", hint=hint)
    rows = await _find_by_suffix(tx, digits, agent_id=agent_id, kind=kind)
    if not rows:
        if row := await SQL["find_forgotten"].fetch_one(tx, agent_id=agent_id, id_suffix=digits):
            message = (
                f"The {row['kind']} {memory_ref} was forgotten on {row['forgotten_at']:%Y-%m-%d}: {row['reason']}."
            )
            raise NotFoundError(message, hint="It cannot be restored.")
        raise NotFoundError(f"There is no {kind or 'memory'} {memory_ref}.", hint=f"`{command}` shows ids.")
    if len(rows) > 1:
        raise ConflictError(f"Several memory ids end in {memory_ref}.", hint="Give more digits of the id.")
    return rows[0]["memory_id"]


async def _find_by_suffix(tx: Tx, suffix: str, *, agent_id: UUID, kind: Kind | None) -> Sequence[Row]:
    if len(suffix) == FULL_ID_DIGITS:  # the index on the whole id is used
        return await SQL["find_by_id"].fetch_all(tx, agent_id=agent_id, memory_id=UUID(suffix), kind=kind)
    return await SQL["find_by_id_suffix"].fetch_all(tx, agent_id=agent_id, id_suffix=suffix, kind=kind, max_rows=2)


async def read_memory(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> MemoryDetail:
    """Return the full record. Raises NotFoundError."""
    row = await SQL["get_record"].fetch_one(tx, agent_id=agent_id, memory_id=memory_id)
    if row is None:
        raise NotFoundError(f"There is no memory {memory_id}.", hint="`newton recall` shows ids.")
    fields: dict[str, Any] = dict(row)
    if compressed := fields.pop("packed"):
        fields["full_text"] = zlib.decompress(compressed).decode()
    fields["full_text"] = fields["full_text"] or fields["summary"]
    relatives = await SQL["list_related"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id)
    return MemoryDetail(**fields, relatives=tuple(RelatedMemory(*row) for row in relatives))
