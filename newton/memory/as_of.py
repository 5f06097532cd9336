"""Memories as they were at a past moment: their states, short forms, outcomes and confirmations."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import ShortForms

SQL = load("newton.memory", "as_of.sql")


class MemoryAsOf(NamedTuple):
    """The changeable fields of a memory as they were at a moment. Use counts are left out: they have no history."""

    state: str
    quarantined: bool
    micro: str
    summary: str
    micro_tokens: int
    summary_tokens: int
    outcome: str | None
    confirmed_at: datetime | None


async def read_as_of(tx: Tx, *, agent_id: UUID, memory_ids: Sequence[UUID], moment: datetime) -> dict[UUID, MemoryAsOf]:
    """Return the memories as they were at `moment`, by id. Memories created later are left out."""
    rows = await SQL["read_as_of"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids, moment=moment)
    return {row[0]: MemoryAsOf(*row[1:]) for row in rows}


async def read_form_history(tx: Tx, *, agent_id: UUID, memory_ids: Sequence[UUID]) -> dict[UUID, list[ShortForms]]:
    """Return all versions of the short forms of memories by id, the current one last. Deleted memories have none."""
    versions: defaultdict[UUID, list[ShortForms]] = defaultdict(list)
    for memory_id, *forms in await SQL["list_versions"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids):
        versions[memory_id].append(ShortForms(*forms))
    return versions
