"""What is asked of the cognitive layer."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.cognition.filters import Filters
from newton.memory.recall import Found

NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True, kw_only=True)
class InView:
    """The part of a session that is sent as conversation anyway: its lines from `first` on, but for the `unsent`. Those
    that a branch begins with are in the sessions that it descends from: from a place to a place of each."""

    session_id: UUID
    first: int
    unsent: Set[int] = frozenset()
    inherited: Sequence[tuple[UUID, int, int]] = ()

    def holds(self, found: Found) -> bool:
        if found.place is None or not self._own(found.thread, found.place):
            return False
        return self.covers(found.place, found.place)

    def _own(self, thread: UUID | None, place: int) -> bool:
        inherited = any(thread == other and first <= place <= last for other, first, last in self.inherited)
        return thread == self.session_id or inherited

    def covers(self, first: int, last: int) -> bool:
        """Whether all lines of the session from one to another are sent."""
        return first >= self.first and self.unsent.isdisjoint(range(first, last + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One input that wants a context of at most `tokens`.

    `frame` and `profile` force what is otherwise chosen. With `adapt` a plain input gets less than `tokens`. `as_of`
    asks for the context as it would have been at that moment. `filters` say what may be in it, and `additional` are
    words of the caller's own that stand in it, as far as half of it holds them. `itself` is the memory that the input
    has become already, and which is not found for it.
    """

    agent_id: UUID
    input: str
    tokens: int
    adapt: bool = False
    frame: str | None = None
    profile: str | None = None
    session_id: UUID | None = None
    in_view: InView | None = None
    itself: UUID | None = None
    as_of: datetime | None = None
    filters: Filters = NO_FILTERS
    additional: str | None = None
