"""Lists of the memories of an agent, in pages and with filters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import Field

from newton.agent.field_types import CleanText, Name, Ref, Timestamp
from newton.agent.inputs import ToolInput
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.heart.entities.entity_lookup import list_subject_keys
from newton.memory.lookup import resolve_id
from newton.memory.memory import Kind, Trust
from newton.memory.memory_list import (
    DEFAULT_KINDS,
    DEFAULT_STATES,
    ListedMemory,
    ListOrder,
    ListPosition,
    MemoryFilter,
    count_memories,
    list_positions,
    parse_states,
    read_rows,
)


class MemoryFilterInput(ToolInput):
    """The conditions on the memories to select. An omitted field sets no condition, except that `states` and `kinds`
    have defaults."""

    kinds: tuple[Kind, ...] = Field(
        (), description="Only memories of these kinds. Default: all but procedures, entities, relations and artifacts."
    )
    states: tuple[str, ...] = Field(
        (),
        max_length=20,
        description="Only memories in these states, such as NEW or CORE, or in a group: current (valid now; the "
        "default), past (superseded, retracted, retired, archived), quarantined, all.",
    )
    subject: Name | None = Field(None, description="Only facts about this person or thing.")
    text: CleanText | None = Field(None, max_length=500, description="Only memories that contain all these words.")
    session: Ref | None = Field(None, description="Only messages of this session, and memories derived from them.")
    source: str | None = Field(None, max_length=64, description="Only memories derived from the memory with this id.")
    origins: tuple[Name, ...] = Field(
        (), max_length=20, description="Only memories that came through these interfaces, such as cli, http, import."
    )
    trusts: tuple[Trust, ...] = Field((), description="Only memories of authors with these trust tiers.")
    since: Timestamp | None = Field(None, description="Only memories of what occurred at or after this time.")
    until: Timestamp | None = Field(None, description="Only memories of what occurred before this time.")
    created_since: Timestamp | None = Field(None, description="Only memories stored at or after this time.")
    created_until: Timestamp | None = Field(None, description="Only memories stored before this time.")

    @property
    def is_empty(self) -> bool:
        """Return whether the filter has no condition."""
        return not any(getattr(self, name) for name in MemoryFilterInput.model_fields)


class MemoryPage(NamedTuple):
    """One page of a list. `following` is the position after which the next page begins; None on the last page.

    `total` is the number of memories on all pages; it is None except on the first page.
    """

    memories: Sequence[ListedMemory]
    following: ListPosition | None
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryListService:
    """Filtered lists of the memories of one agent."""

    scope: AgentScope

    async def list_memories(
        self, conditions: MemoryFilterInput, ordered: ListOrder, *, after: ListPosition | None = None, limit: int = 20
    ) -> MemoryPage:
        """Return up to `limit` memories that meet the conditions: those after the position `after`, or the first ones.

        Raises InputError for an unknown state, and NotFoundError for an unknown session or source.
        """
        agent_id = self.scope.agent_id
        async with self.scope.transaction(snapshot=True) as tx:
            wanted = await resolve_filter(tx, conditions, scope=self.scope)
            found = await list_positions(tx, wanted, ordered, after=after, limit=limit + 1, agent_id=agent_id)
            page = found[:limit]
            memories = await read_rows(tx, [one.memory_id for one in page], agent_id=agent_id)
            total = None if after else await count_memories(tx, wanted, agent_id=agent_id)
        return MemoryPage(memories, page[-1] if len(found) > limit else None, total)


async def resolve_filter(tx: Tx, conditions: MemoryFilterInput, *, scope: AgentScope) -> MemoryFilter:
    """Convert the conditions of a caller to a filter of the database: names become ids, and defaults are filled in.

    Raises InputError for an unknown state, and NotFoundError for an unknown session or source.
    """
    agent_id, session, source = scope.agent_id, conditions.session, conditions.source
    return MemoryFilter(
        kinds=conditions.kinds or DEFAULT_KINDS,
        states=parse_states(conditions.states) or DEFAULT_STATES,
        origins=conditions.origins or None,
        trusts=conditions.trusts or None,
        since=conditions.since,
        until=conditions.until,
        created_since=conditions.created_since,
        created_until=conditions.created_until,
        subject_keys=await list_subject_keys(tx, conditions.subject, agent_id=agent_id) if conditions.subject else None,
        text=conditions.text,
        session_id=await sessions.get_session_id(tx, agent_id=agent_id, ref=session) if session else None,
        source_id=await resolve_id(tx, source, agent_id=agent_id) if source else None,
    )
