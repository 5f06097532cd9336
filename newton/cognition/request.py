"""What is asked of the cognitive layer."""

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


NO_FILTERS = ContextFilters()


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessages:
    """The part of a session that is sent as conversation anyway: its lines from `first` on, but for the `unsent`. Those
    that a branch begins with are in the sessions that it descends from: from a place to a place of each."""

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
        """Whether all lines of the session from one to another are sent."""
        return first >= self.first_position and self.unsent_positions.isdisjoint(range(first, last + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBuildRequest:
    """One input that wants a context of at most `tokens`.

    `frame` and `profile` force what is otherwise chosen. With `adapt` a plain input gets less than `tokens`. `as_of`
    asks for the context as it would have been at that moment. `filters` say what may be in it, and `additional` are
    words of the caller's own that stand in it, as far as half of it holds them. `itself` is the memory that the input
    has become already, and which is not found for it.
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
}  # the filters that are of one kind
