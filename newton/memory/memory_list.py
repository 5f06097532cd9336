"""Lists of memories, filtered, sorted and in pages, and recorded changes of the fields that a person may edit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, NamedTuple, get_args
from uuid import UUID

from asyncpg import Record
from pydantic import Field

from newton.db.pool import Tx
from newton.db.queries import SqlQuery, load
from newton.errors import InputError
from newton.ids import new_id
from newton.memory.memory import KINDS, MAX_IMPORTANCE, Kind, Outcome, Trust, WriteContext, derive_importance
from newton.memory.store import ALLOWED_TRANSITIONS, END_OF_TIME
from newton.text.words import prepare_words

SQL = load("newton.memory", "memory_list.sql")

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


SortKey = Literal["created", "occurred", "accessed", "confirmed", "importance", "uses"]
SORT_KEYS: tuple[SortKey, ...] = get_args(SortKey)
SortOrder = Literal["asc", "desc"]

START_OF_TIME = datetime(1, 1, 1, tzinfo=UTC)
LOWEST_ID, HIGHEST_ID = UUID(int=0), UUID(int=2**128 - 1)

STATE_GROUPS = ("current", "past", "quarantined", "all")
STATES = frozenset(
    {state for allowed in ALLOWED_TRANSITIONS for state in (allowed.from_state, allowed.to_state)}
    | {"ACTIVE", "RECORDED"}
)
DEFAULT_STATES = ("current",)
# Artifacts, entities and relations are computed from other memories, and procedures are installed with Newton.
UNLISTED_KINDS: frozenset[Kind] = frozenset({"artifact", "entity", "relation", "procedure"})
DEFAULT_KINDS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind not in UNLISTED_KINDS)

# The orders that an index has.
_INDEXED: Mapping[tuple[SortKey, SortOrder], SqlQuery] = {
    ("created", "desc"): SQL["list_by_created_desc"],
    ("created", "asc"): SQL["list_by_created_asc"],
    ("occurred", "desc"): SQL["list_by_occurred_desc"],
    ("occurred", "asc"): SQL["list_by_occurred_asc"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """The memories to list; a field of None does not restrict them.

    `kinds` and `states` are not empty; a state is one of STATES or STATE_GROUPS. `since` and `until` limit the time at
    which a memory occurred, `created_since` and `created_until` the time of storage; each range excludes its end.
    `text` selects memories that contain all its words, `session_id` the messages of a session and what was derived from
    them, `source_id` what was derived from one memory.
    """

    kinds: Sequence[Kind] = DEFAULT_KINDS
    states: Sequence[str] = DEFAULT_STATES
    origins: Sequence[str] | None = None
    trusts: Sequence[Trust] | None = None
    since: datetime | None = None
    until: datetime | None = None
    created_since: datetime | None = None
    created_until: datetime | None = None
    subject_keys: Sequence[str] | None = None
    text: str | None = None
    session_id: UUID | None = None
    source_id: UUID | None = None

    @property
    def columns(self) -> dict[str, object]:
        """The conditions on the columns of a memory, as parameters of the SQL queries."""
        return {
            "kinds": list(self.kinds),
            "states": list(self.states),
            "origins": list(self.origins) if self.origins else None,
            "trusts": list(self.trusts) if self.trusts else None,
            "since": self.since or START_OF_TIME,
            "until": self.until or END_OF_TIME,
            "created_since": self.created_since or START_OF_TIME,
            "created_until": self.created_until or END_OF_TIME,
        }


class ListOrder(NamedTuple):
    """The sort key of a list and its direction.

    A missing value, such as the time of access of a memory that was never accessed, counts as 0.
    """

    sort: SortKey = "created"
    order: SortOrder = "desc"

    @property
    def is_descending(self) -> bool:
        return self.order == "desc"


class ListPosition(NamedTuple):
    """The place of a memory in a sorted list: the value of the sort key, as text, and the id."""

    key: str
    memory_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMemory:
    """A memory in a list.

    `micro` is its text in about 20 tokens. `importance` is from 0 to 10; `is_importance_set` is true if a person set
    it. `is_core` means that only a person may supersede the fact, `quarantined` that searches leave the memory out
    until it is confirmed. `uses` counts how often it was in a context or a search result, `session` is its source.
    """

    memory_id: UUID
    kind: Kind
    state: str
    quarantined: bool
    micro: str
    text: Annotated[str, Field(description="The text on one line. A long text is replaced by its summary.")]
    subject: str | None
    attribute: str | None
    importance: float
    is_importance_set: bool
    is_core: bool
    confidence: float | None
    outcome: Outcome | None
    confirmations: int
    uses: int
    trust: Trust
    origin: str
    session: str | None
    ref: str | None
    occurred_at: datetime
    created_at: datetime
    accessed_at: datetime | None
    confirmed_at: datetime | None


def parse_states(states: Sequence[str]) -> list[str]:
    """Normalize the names of states and of groups of states. Raises InputError for an unknown name.

    >>> parse_states(["new", "Quarantined"])
    ['NEW', 'quarantined']
    """
    found = [state.lower() if state.lower() in STATE_GROUPS else state.upper() for state in states]
    for state, given in zip(found, states, strict=True):
        if state not in STATES and state not in STATE_GROUPS:
            known = ", ".join([*STATE_GROUPS, *sorted(STATES)])
            raise InputError(f"There is no state {given!r}.", hint=f"The states are: {known}.", param="states")
    return found


async def list_positions(
    tx: Tx, wanted: MemoryFilter, ordered: ListOrder, *, after: ListPosition | None, limit: int, agent_id: UUID
) -> list[ListPosition]:
    """Return the positions of up to `limit` memories that come after the position `after` in the order `ordered`.

    Raises InputError if `after` has another sort key than `ordered`.
    """
    selected = await _select_ids(tx, wanted, agent_id=agent_id)
    if selected is None and (query := _INDEXED.get(ordered)):
        last = (END_OF_TIME, HIGHEST_ID) if ordered.is_descending else (START_OF_TIME, LOWEST_ID)
        key, memory_id = (_parse_key(after.key, datetime.fromisoformat), after.memory_id) if after else last
        bounds = {"after_time": key, "after_id": memory_id, "max_rows": limit}
        rows = await query.fetch_all(tx, agent_id=agent_id, **wanted.columns, **bounds)
        return [ListPosition(row["position"].isoformat(), row["memory_id"]) for row in rows]
    arguments = {
        "sort": ordered.sort,
        "direction": -1 if ordered.is_descending else 1,
        "after_key": _parse_key(after.key, Decimal) if after else None,
        "after_id": after.memory_id if after else None,
        "max_rows": limit,
    }
    if selected is None:
        rows = await SQL["rank_all"].fetch_all(tx, agent_id=agent_id, **wanted.columns, **arguments)
    else:
        rows = await SQL["rank_selected"].fetch_all(
            tx, agent_id=agent_id, memory_ids=selected, **wanted.columns, **arguments
        )
    return [ListPosition(str(row["position"]), row["memory_id"]) for row in rows]


async def count_memories(tx: Tx, wanted: MemoryFilter, *, agent_id: UUID) -> int:
    """Return the number of memories that the filter selects."""
    selected = await _select_ids(tx, wanted, agent_id=agent_id)
    if selected is None:
        row = await SQL["count_all"].fetch_one(tx, agent_id=agent_id, **wanted.columns)
    else:
        row = await SQL["count_selected"].fetch_one(tx, agent_id=agent_id, memory_ids=selected, **wanted.columns)
    assert row is not None
    return row["memories"]


async def read_rows(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> list[ListedMemory]:
    """Return the memories with these ids, in the same order; unknown ids are skipped."""
    rows = await SQL["get_rows"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids)
    found = {row["memory_id"]: _to_memory(row) for row in rows}
    return [found[memory_id] for memory_id in memory_ids if memory_id in found]


async def _select_ids(tx: Tx, wanted: MemoryFilter, *, agent_id: UUID) -> list[UUID] | None:
    """Return the ids that match the conditions on subject, text, session and source; None without such a condition."""
    found: list[list[Record]] = []
    if wanted.subject_keys is not None:
        query = SQL["find_by_subject"]
        found.append(await query.fetch_all(tx, agent_id=agent_id, subject_keys=wanted.subject_keys))
    if wanted.text is not None:
        found.append(await SQL["find_by_words"].fetch_all(tx, agent_id=agent_id, words=prepare_words(wanted.text)))
    if wanted.session_id is not None:
        found.append(await SQL["find_in_session"].fetch_all(tx, agent_id=agent_id, session_id=wanted.session_id))
    if wanted.source_id is not None:
        found.append(await SQL["find_made_from"].fetch_all(tx, agent_id=agent_id, source_id=wanted.source_id))
    if not found:
        return None
    sets: list[set[UUID]] = [{row["memory_id"] for row in rows} for rows in found]
    return sorted(sets[0].intersection(*sets[1:]))


def _parse_key(key: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(key)
    except (ValueError, InvalidOperation):
        raise InputError(
            "The cursor belongs to another list.",
            hint="Use the `sort`, `order` and filters of the page that returned the cursor.",
        ) from None


def _to_memory(row: Record) -> ListedMemory:
    fields = dict(row)
    stored: float | None = fields.pop("importance")
    is_marked = fields.pop("is_marked_core")
    importance = derive_importance(row["kind"], row["state"], row["outcome"], row["uses"]) if stored is None else stored
    return ListedMemory(
        **fields,
        importance=round(MAX_IMPORTANCE * importance, 2),
        is_importance_set=stored is not None,
        is_core=is_marked or row["state"] == "CORE",
    )
