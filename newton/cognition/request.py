"""What is asked of the cognitive layer."""

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.cognition.filters import Filters
from newton.memory.recall import Found

NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True, kw_only=True)
class InView:
    """The part of a session that is sent as conversation anyway: its lines from `first` on, but for the `unsent`."""

    session_id: UUID
    first: int
    unsent: Set[int] = frozenset()

    def holds(self, found: Found) -> bool:
        if found.thread != self.session_id or found.place is None:
            return False
        return self.covers(found.place, found.place)

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
