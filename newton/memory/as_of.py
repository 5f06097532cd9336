"""What memories were at a moment that is over: their state, their words, what had become of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import ShortForms

SQL = load("newton.memory", "as_of.sql")


class MemoryAsOf(NamedTuple):
    """All of a memory that may change and of which it is known what it was. How often it was used is not."""

    state: str
    quarantined: bool
    micro: str
    summary: str
    micro_tokens: int
    summary_tokens: int
    outcome: str | None
    confirmed_at: datetime | None


async def read_as_of(tx: Tx, *, agent_id: UUID, memory_ids: Sequence[UUID], moment: datetime) -> dict[UUID, MemoryAsOf]:
    """Each memory as it was at a moment; what was not there yet is left out."""
    rows = await SQL["read_as_of"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids, moment=moment)
    return {row[0]: MemoryAsOf(*row[1:]) for row in rows}


async def read_form_history(
    tx: Tx, *, agent_id: UUID, memory_ids: Sequence[UUID]
) -> Mapping[UUID, Sequence[ShortForms]]:
    """Every form that each memory has had, the present one last; of what is gone, none."""
    had: defaultdict[UUID, list[ShortForms]] = defaultdict(list)
    for row in await SQL["list_versions"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids):
        memory_id, micro, summary, micro_tokens, summary_tokens = row
        had[memory_id].append(
            ShortForms(micro=micro, summary=summary, micro_tokens=micro_tokens, summary_tokens=summary_tokens)
        )
    return had
