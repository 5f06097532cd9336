"""What a caller wants left out of a context: found out before anything is searched, so that it crowds out nothing."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Kind
from newton.memory.search_types import RetrievedMemory
from newton.memory.time_expressions import TimeRange

SQL = load("newton.cognition.sources", "filters.sql")

TIMELESS_KINDS: frozenset[Kind] = frozenset({"entity", "relation", "procedure", "censor"})

KIND_BY_TYPE_FILTER: Mapping[str, Kind] = {
    "event_types": "event",
    "entity_types": "entity",
}  # the filters that are of one kind


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFilters:
    """What may be in the context; nothing said, everything. Identity, censors and frame stand in it in any case.

    `since` and `until`, which is not included itself, are about what happened or was said: who there is and how things
    are done is of no time, but a relation that only later facts tell of is not before `until`. Types of events and of
    entities say nothing of other kinds.
    """

    since: datetime | None = None
    until: datetime | None = None
    kinds: frozenset[Kind] = frozenset()
    event_types: frozenset[str] = frozenset()
    entity_types: frozenset[str] = frozenset()
    exclude: frozenset[UUID] = frozenset()

    @property
    def time_ranges(self) -> tuple[TimeRange, ...]:
        """The time that they leave, for whoever names none otherwise: what is of it is wanted."""
        if self.since is None and self.until is None:
            return ()
        ends = {"since": self.since, "until": self.until}
        return (
            TimeRange(" ".join(f"{name} {at:%Y-%m-%d}" for name, at in ends.items() if at), self.since, self.until),
        )

    def allows_kind(self, kind: Kind) -> bool:
        return not self.kinds or kind in self.kinds

    def allows(self, found: RetrievedMemory) -> bool:
        """Whether a line or a decision, which have no type, may be in the context."""
        late = self.since is None or found.occurred_at >= self.since
        early = self.until is None or found.occurred_at < self.until
        return late and early and self.allows_kind(found.kind) and found.memory_id not in self.exclude

    def find_unmatched(self, kinds: Set[str]) -> dict[str, list[str]]:
        """Of the filters those that nothing passed, with what they name, when what passed is of these kinds."""
        given = {name: [value] if isinstance(value, str) else value for name, value in self.as_json().items()}
        if not kinds:
            return given
        left = {"kinds": [kind for kind in given.get("kinds", ()) if kind not in kinds]}
        left |= {name: given[name] for name, kind in KIND_BY_TYPE_FILTER.items() if name in given and kind not in kinds}
        left |= {name: given.get(name, []) if kinds <= TIMELESS_KINDS else [] for name in ("since", "until")}
        return {name: values for name, values in left.items() if values}

    def as_json(self) -> dict[str, Any]:
        """Those that were given."""
        given = {
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "kinds": sorted(self.kinds),
            "event_types": sorted(self.event_types),
            "entity_types": sorted(self.entity_types),
            "exclude": sorted(map(str, self.exclude)),
        }
        return {name: value for name, value in given.items() if value}


async def find_hidden_ids(tx: Tx, filters: ContextFilters, *, agent_id: UUID) -> Sequence[UUID]:
    """The memories that may not be found. Which kinds may is told apart: those are not searched at all."""
    if not (filters.since or filters.until or filters.event_types or filters.entity_types):
        return sorted(filters.exclude)
    rows = await SQL["list_filtered_out"].fetch_all(
        tx,
        agent_id=agent_id,
        since=filters.since,
        until=filters.until,
        event_types=sorted(filters.event_types),
        entity_types=sorted(filters.entity_types),
    )
    return sorted(filters.exclude | {row["memory_id"] for row in rows})
