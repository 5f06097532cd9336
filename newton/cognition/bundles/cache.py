"""The contexts that this process made lately: the current one of each session, and those that may be given again."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple, TypeVar
from uuid import UUID

from newton.cognition.bundles.bundle import Bundle
from newton.cognition.content_words import extract_content_words
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.sources.gather import SessionContextData
from newton.memory.search_types import RecallQuery, RetrievedMemory


class CoverageThresholds(NamedTuple):
    """From which cosine on to what a context holds, and from which share of its words on, an input is covered."""

    min_cosine: float = 0.5
    min_word_share: float = 0.8


DEFAULT_COVERAGE_THRESHOLDS = CoverageThresholds()


MAX_ENTRIES = 32  # contexts in hand of either sort; each takes about half a megabyte
REPEAT_LIFETIME = timedelta(seconds=30)  # so long the same request is given the same context

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, kw_only=True)
class CachedContext:
    """A context with what it was made from. `since` is the one last made from scratch: what was learnt after it may
    still come in. `searched` is the request of the last search, and `cue` what was searched for; `view` is what the
    session showed when the context was last brought up to date."""

    bundle: Bundle
    built_bundle_id: UUID
    search_request: ContextBuildRequest
    cue: RecallQuery
    sent_messages: SentMessages | None
    session_data: SessionContextData

    @property
    def content_words(self) -> frozenset[str]:
        """What it speaks of."""
        return extract_content_words(f"{self.bundle.text}\n{self.search_request.input}")

    @cached_property
    def shown_memories(self) -> Mapping[UUID, RetrievedMemory]:
        """Every memory that stands in it."""
        items = {c.memory_id: c.scored.found for c in self.bundle.items}
        return items | {found.memory_id: found for found in self.bundle.focus}


class _RepeatEntry(NamedTuple):
    bundle: Bundle
    expires_at: datetime


@dataclass(slots=True)
class ContextCache:
    """Of each sort the latest few; the database says which of them still count. `_quiet` is the snapshot in which
    nobody has written since what may be given again was made."""

    _current: OrderedDict[tuple[UUID, UUID], CachedContext] = field(
        default_factory=OrderedDict[tuple[UUID, UUID], CachedContext]
    )
    _repeats: OrderedDict[ContextBuildRequest, _RepeatEntry] = field(
        default_factory=OrderedDict[ContextBuildRequest, _RepeatEntry]
    )
    _quiet_snapshot: str | None = None

    def get_current(self, request: ContextBuildRequest) -> CachedContext | None:
        """The context that was last made here for the session of the request."""
        return self._current.get((request.agent_id, request.session_id)) if request.session_id else None

    def set_current(self, cached: CachedContext) -> None:
        """From now on this is the context of its session."""
        if cached.bundle.session_id:
            _put_latest(self._current, (cached.bundle.agent_id, cached.bundle.session_id), cached)

    def find_repeat(self, request: ContextBuildRequest, *, snapshot: str, now: datetime) -> Bundle | None:
        """The context that the same request was given at most LIFE ago, if nothing was written anywhere since but the
        contexts that were kept here, of which no other one depends."""
        made = self._repeats.get(request) if snapshot == self._quiet_snapshot else None
        return made.bundle if made and now <= made.expires_at else None

    def store_repeat(self, request: ContextBuildRequest, bundle: Bundle, *, snapshot: str, transaction_id: int) -> None:
        """To be given again, if nobody has written from `moment` on but the one transaction that kept the bundle."""
        if snapshot != format_quiet_snapshot(transaction_id):
            return
        if snapshot != self._quiet_snapshot:
            self._repeats.clear()
        _put_latest(self._repeats, request, _RepeatEntry(bundle, bundle.created_at + REPEAT_LIFETIME))
        self._quiet_snapshot = format_quiet_snapshot(transaction_id + 1)


def format_quiet_snapshot(next_transaction_id: int) -> str:
    """The snapshot in which every transaction before this one has ended, and none from it on has begun."""
    return f"{next_transaction_id}:{next_transaction_id}:"


def _put_latest(entries: OrderedDict[K, V], key: K, value: V) -> None:
    entries[key] = value
    entries.move_to_end(key)
    if len(entries) > MAX_ENTRIES:
        entries.popitem(last=False)
