"""Lookup of one memory by its id or the end of its id, with its relations to other memories."""

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
from newton.memory.memory import MAX_IMPORTANCE, Kind, Outcome, Trust, past_reason

SQL = load("newton.memory", "lookup.sql")

MIN_ID_DIGITS = 6  # of the end of an id, because ids of the same time begin alike
SHORT_ID_DIGITS, FULL_ID_DIGITS = 8, 32
ITEM_ID_DIGITS, ITEM_ID_HEX_DIGITS = 9, 7  # seven hex digits are below 10**9
PAGE_CHARS, MAX_PAGE_CHARS = 6_000, 10_000
LIST_COMMANDS: dict[Kind | None, str] = {
    "decision": "newton decisions",
    "censor": "newton censors",
    "procedure": "newton procedures",
    "entity": "newton entities",
}  # the commands that show ids; of other kinds, `newton recall` does


@dataclass(frozen=True, slots=True)
class MemoryMention:
    """The id and the text of a memory that the result of a command or tool mentions."""

    memory_id: UUID
    text: str


@dataclass(frozen=True, slots=True)
class RelatedMemory:
    """A memory that is related to another one. `type` is the relation as a phrase, such as 'supersedes'.

    `micro` is its text in about 20 tokens.
    """

    type: str
    memory_id: UUID
    kind: Kind
    state: str
    micro: str

    @property
    def mention(self) -> MemoryMention:
        return MemoryMention(self.memory_id, self.micro)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDetail:
    """The full record of a memory, with the related ones (`links`). `full_text` is decompressed if it was archived.

    `importance` is from 0 to 10 if a person set it; None if it is computed. `micro` and `summary` are the short forms
    of the text, of about 20 and at most about 100 tokens.
    """

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
    links: tuple[RelatedMemory, ...]

    @property
    def is_past(self) -> bool:
        """True if the memory is not current knowledge any more, such as a superseded fact."""
        return past_reason(self.kind, self.state) is not None

    @property
    def replaced(self) -> list[RelatedMemory]:
        """The past facts that this fact replaced; none if this fact is itself past.

        Of two linked facts the one stated last is current, so the link between them may have either direction.
        """
        linked = () if self.is_past else self._list_linked("supersedes", "is superseded by")
        return [one for one in linked if past_reason(one.kind, one.state)]

    @property
    def replaced_by(self) -> list[RelatedMemory]:
        """The facts that replaced this fact; none while it is current.

        A fact that this one had superseded, but that was then stated again, comes first.
        """
        if not self.is_past:
            return []
        restated = [one for one in self._list_linked("supersedes") if not past_reason(one.kind, one.state)]
        return [*restated, *self._list_linked("is superseded by")]

    @property
    def sources(self) -> list[RelatedMemory]:
        """The memories that this one was made from, such as the message that states a fact."""
        return self._list_linked("was made from")

    @property
    def contested(self) -> list[RelatedMemory]:
        """The current facts that contradict this fact. `newton conflicts` lists such pairs."""
        linked = self._list_linked("contradicts", "is contradicted by")
        return [one for one in linked if not past_reason(one.kind, one.state)]

    def _list_linked(self, *links: str) -> list[RelatedMemory]:
        return [one for one in self.links if one.type in links]


def short_id(memory_id: UUID) -> str:
    """Return the last eight digits of an id. People are shown an id in this form and may enter it."""
    return memory_id.hex[-SHORT_ID_DIGITS:]


def item_id(memory_id: UUID) -> str:
    """Return the id by which a context (text for a model) names a memory: the end of its id as nine decimal digits.

    Tokenizers split digits into groups of three, so every such id costs the same number of tokens.

    >>> item_id(UUID("019a9f7c-0000-7000-8000-0000000000ff"))
    '000000255'
    """
    return f"{int(memory_id.hex[-ITEM_ID_HEX_DIGITS:], 16):0{ITEM_ID_DIGITS}d}"


class TextPage(NamedTuple):
    """A part of a text that begins at the character `offset`, and the number of characters after it."""

    text: str
    offset: int
    remaining_chars: int


def cut_page(text: str, *, offset: int, limit: int) -> TextPage:
    """Return at most `limit` characters of a text from `offset` on. Raises InputError for an offset behind its end."""
    if offset > len(text):
        raise InputError(f"The text has only {len(text):,} characters.", hint="Give a smaller offset.")
    page = text[offset : offset + limit]
    return TextPage(page, offset, len(text) - offset - len(page))


def _to_id_digits(memory_ref: str) -> str:
    """Return the hex digits of an id. It may be a whole id, the end of one, or an id of nine digits from a context."""
    digits = memory_ref.strip().lower().removeprefix("#").replace("-", "")
    is_item_id = len(digits) == ITEM_ID_DIGITS and digits.isascii() and digits.isdecimal()
    return f"{int(digits):0{ITEM_ID_HEX_DIGITS}x}" if is_item_id else digits


async def find_by_suffix(tx: Tx, digits: str, *, agent_id: UUID) -> UUID | None:
    """Return the id of the memory whose id ends in these hex digits; None if there is none, or if there are several."""
    rows = await _find_by_suffix(tx, digits, agent_id=agent_id, kind=None)
    return rows[0]["memory_id"] if len(rows) == 1 else None


async def resolve_id(tx: Tx, memory_ref: str, *, agent_id: UUID, kind: Kind | None = None) -> UUID:
    """Return the full id of a memory from its id, at least six hex digits of the end of it, or its `item_id`.

    `item_id` is the id by which a context names a memory. With `kind`, only memories of this kind match. Raises
    InputError for another format, NotFoundError if no memory matches, and ConflictError if several do.
    """
    digits = _to_id_digits(memory_ref)
    command = LIST_COMMANDS.get(kind, "newton recall")
    if len(digits) < MIN_ID_DIGITS or not set(digits) <= set("0123456789abcdef"):
        hint = f"Give the whole id or at least its last {MIN_ID_DIGITS} digits; `{command}` shows the ids."
        raise InputError(f"{memory_ref!r} is not the id of a {kind or 'memory'}.", hint=hint)
    rows = await _find_by_suffix(tx, digits, agent_id=agent_id, kind=kind)
    if not rows:
        if row := await SQL["find_forgotten"].fetch_one(tx, agent_id=agent_id, id_suffix=digits):
            message = (
                f"The {row['kind']} {memory_ref} was forgotten on {row['forgotten_at']:%Y-%m-%d}: {row['reason']}."
            )
            raise NotFoundError(message, hint="A forgotten memory cannot be restored.")
        raise NotFoundError(f"There is no {kind or 'memory'} {memory_ref}.", hint=f"`{command}` shows the ids.")
    if len(rows) > 1:
        raise ConflictError(f"Several memory ids end in {memory_ref}.", hint="Give more digits of the id.")
    return rows[0]["memory_id"]


async def _find_by_suffix(tx: Tx, suffix: str, *, agent_id: UUID, kind: Kind | None) -> Sequence[Row]:
    if len(suffix) == FULL_ID_DIGITS:  # the index on the whole id is used
        return await SQL["find_by_id"].fetch_all(tx, agent_id=agent_id, memory_id=UUID(suffix), kind=kind)
    return await SQL["find_by_id_suffix"].fetch_all(tx, agent_id=agent_id, id_suffix=suffix, kind=kind, max_rows=2)


async def read_memory(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> MemoryDetail:
    """Return the full record of a memory. Raises NotFoundError for an unknown id."""
    row = await SQL["get_record"].fetch_one(tx, agent_id=agent_id, memory_id=memory_id)
    if row is None:
        raise NotFoundError(f"There is no memory {memory_id}.", hint="`newton recall` shows the ids of memories.")
    fields: dict[str, Any] = dict(row)
    if compressed := fields.pop("packed"):
        fields["full_text"] = zlib.decompress(compressed).decode()
    fields["full_text"] = fields["full_text"] or fields["summary"]
    if fields["importance"] is not None:
        fields["importance"] *= MAX_IMPORTANCE
    related = await SQL["list_related"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id)
    return MemoryDetail(**fields, links=tuple(RelatedMemory(*row) for row in related))
