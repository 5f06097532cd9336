"""What is asked of the cognitive layer."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.cognition.sources.filters import ContextFilters
from newton.memory.search_types import RetrievedMemory

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
