"""Requests to the cognitive layer."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from newton.memory.memory import Kind
from newton.memory.search_types import RetrievedMemory
from newton.memory.time_expressions import TimeRange


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFilters:
    """Filters for the memories of a context; empty filters allow all. Identity, censors and frame are not filtered.

    `since` (inclusive) and `until` (exclusive) apply to the time of events and messages. Entities, relations and
    procedures are timeless, but a relation known only from later facts is excluded by `until`. Type filters apply to
    their own kind.
    """

    since: datetime | None = None
    until: datetime | None = None
    kinds: frozenset[Kind] = frozenset()
    event_types: frozenset[str] = frozenset()
    entity_types: frozenset[str] = frozenset()
    exclude: frozenset[UUID] = frozenset()

    @property
    def time_ranges(self) -> tuple[TimeRange, ...]:
        """Return the filtered time range, as the default for an input that names none."""
        if self.since is None and self.until is None:
            return ()
        ends = {"since": self.since, "until": self.until}
        return (
            TimeRange(" ".join(f"{name} {at:%Y-%m-%d}" for name, at in ends.items() if at), self.since, self.until),
        )

    def allows_kind(self, kind: Kind) -> bool:
        return not self.kinds or kind in self.kinds

    def allows(self, found: RetrievedMemory) -> bool:
        """Return True when a message or decision passes the filters. Both have no type."""
        late = self.since is None or found.occurred_at >= self.since
        early = self.until is None or found.occurred_at < self.until
        return late and early and self.allows_kind(found.kind) and found.memory_id not in self.exclude

    def find_unmatched(self, kinds: Set[str]) -> dict[str, list[str]]:
        """Return the filters and values that matched nothing, given the `kinds` that passed."""
        given = {name: [value] if isinstance(value, str) else value for name, value in self.as_json().items()}
        if not kinds:
            return given
        left = {"kinds": [kind for kind in given.get("kinds", ()) if kind not in kinds]}
        left |= {name: given[name] for name, kind in KIND_BY_TYPE_FILTER.items() if name in given and kind not in kinds}
        left |= {name: given.get(name, []) if kinds <= TIMELESS_KINDS else [] for name in ("since", "until")}
        return {name: values for name, values in left.items() if values}

    def as_json(self) -> dict[str, Any]:
        """Return the filters that are set."""
        given = {
            "since": self.since and self.since.isoformat(),
            "until": self.until and self.until.isoformat(),
            "kinds": sorted(self.kinds),
            "event_types": sorted(self.event_types),
            "entity_types": sorted(self.entity_types),
            "exclude": sorted(map(str, self.exclude)),
        }
        return {name: value for name, value in given.items() if value}


NO_FILTERS = ContextFilters()


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessages:
    """Messages of a session that are sent as conversation: all from `first_position` on without `unsent_positions`.

    `inherited_ranges` are (session, first, last) ranges of parent sessions that a branch includes.
    """

    session_id: UUID
    first_position: int
    unsent_positions: Set[int] = frozenset()
    inherited_ranges: Sequence[tuple[UUID, int, int]] = ()

    def contains(self, found: RetrievedMemory) -> bool:
        if found.position is None or not self._is_own_position(found.thread_id, found.position):
            return False
        return self.covers(found.position, found.position)

    def _is_own_position(self, thread_id: UUID | None, position: int) -> bool:
        inherited = any(
            thread_id == other and first <= position <= last for other, first, last in self.inherited_ranges
        )
        return thread_id == self.session_id or inherited

    def covers(self, first: int, last: int) -> bool:
        """Return True when all messages from `first` to `last` are sent."""
        return first >= self.first_position and self.unsent_positions.isdisjoint(range(first, last + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuildRequest:
    """A request for a context of at most `tokens` for one input.

    `frame` and `profile` override the selection. `adaptive_budget` gives a plain input fewer tokens. `as_of` rebuilds
    the context for a past moment. `additional` are lines of the caller, in at most half of the budget.
    `input_memory_id` is the memory of the input itself, which is excluded from the search.
    """

    agent_id: UUID
    input: str
    tokens: int
    adaptive_budget: bool = False
    frame: str | None = None
    profile: str | None = None
    session_id: UUID | None = None
    sent_messages: SentMessages | None = None
    input_memory_id: UUID | None = None
    as_of: datetime | None = None
    filters: ContextFilters = NO_FILTERS
    additional: str | None = None


TIMELESS_KINDS: frozenset[Kind] = frozenset({"entity", "relation", "procedure", "censor"})


KIND_BY_TYPE_FILTER: Mapping[str, Kind] = {
    "event_types": "event",
    "entity_types": "entity",
}  # filters that apply to one kind
