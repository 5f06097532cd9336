"""The contexts that this process made lately: the current one of each session, and those that may be given again."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple, TypeVar
from uuid import UUID

from newton.cognition.bundle import Bundle
from newton.cognition.gather import Surroundings
from newton.cognition.refresh import own_words
from newton.cognition.request import InView, Request
from newton.memory.recall import Cue, Found

MOST = 32  # contexts in hand of either sort; each takes about half a megabyte
LIFE = timedelta(seconds=30)  # so long the same request is given the same context

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, kw_only=True)
class Current:
    """A context with what it was made from. `since` is the one last made from scratch: what was learnt after it may
    still come in. `searched` is the request of the last search, and `cue` what was searched for; `view` is what the
    session showed when the context was last brought up to date."""

    bundle: Bundle
    since: UUID
    searched: Request
    cue: Cue
    view: InView | None
    surroundings: Surroundings

    @property
    def words(self) -> frozenset[str]:
        """What it speaks of."""
        return own_words(f"{self.bundle.text}\n{self.searched.input}")

    @cached_property
    def stated(self) -> Mapping[UUID, Found]:
        """Every memory that stands in it."""
        items = {c.memory_id: c.scored.found for c in self.bundle.items}
        return items | {found.memory_id: found for found in self.bundle.focus}


class _Made(NamedTuple):
    bundle: Bundle
    until: datetime


@dataclass(slots=True)
class Shelf:
    """Of each sort the latest few; the database says which of them still count. `_quiet` is the snapshot in which
    nobody has written since what may be given again was made."""

    _current: OrderedDict[tuple[UUID, UUID], Current] = field(default_factory=OrderedDict[tuple[UUID, UUID], Current])
    _made: OrderedDict[Request, _Made] = field(default_factory=OrderedDict[Request, _Made])
    _quiet: str | None = None

    def of(self, request: Request) -> Current | None:
        """The context that was last made here for the session of the request."""
        return self._current.get((request.agent_id, request.session_id)) if request.session_id else None

    def stands(self, current: Current) -> None:
        """From now on this is the context of its session."""
        if current.bundle.session_id:
            _put(self._current, (current.bundle.agent_id, current.bundle.session_id), current)

    def again(self, request: Request, *, moment: str, now: datetime) -> Bundle | None:
        """The context that the same request was given at most LIFE ago, if nothing was written anywhere since but the
        contexts that were kept here, of which no other one depends."""
        made = self._made.get(request) if moment == self._quiet else None
        return made.bundle if made and now <= made.until else None

    def keep(self, request: Request, bundle: Bundle, *, moment: str, writer: int) -> None:
        """To be given again, if nobody has written from `moment` on but the one transaction that kept the bundle."""
        if moment != quiet(writer):
            return
        if moment != self._quiet:
            self._made.clear()
        _put(self._made, request, _Made(bundle, bundle.created_at + LIFE))
        self._quiet = quiet(writer + 1)


def quiet(following: int) -> str:
    """The snapshot in which every transaction before this one has ended, and none from it on has begun."""
    return f"{following}:{following}:"


def _put(latest: OrderedDict[K, V], key: K, value: V) -> None:
    latest[key] = value
    latest.move_to_end(key)
    if len(latest) > MOST:
        latest.popitem(last=False)
