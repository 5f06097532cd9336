"""In-process cache: the current context of each session, and recent contexts for repeated requests."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from uuid import UUID

from newton.cognition.bundles.bundle import Bundle
from newton.cognition.content_words import extract_content_words
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.sources.gathered_data import SessionContextData
from newton.memory.search_types import RecallQuery, RetrievedMemory

if TYPE_CHECKING:
    from newton.providers.embedding import Vector


class CoverageThresholds(NamedTuple):
    """Thresholds at which a context covers an input.

    `min_cosine` applies to the items of the context, `min_topic_cosine` to the last inputs of the topic.
    `min_word_overlap` is the share of content words, and decides only without an embedder.
    """

    min_cosine: float = 0.5
    min_topic_cosine: float = 0.22
    min_word_overlap: float = 0.8


DEFAULT_COVERAGE_THRESHOLDS = CoverageThresholds()
MAX_ENTRIES = 32  # per cache; each takes about half a megabyte
REPEAT_LIFETIME = timedelta(seconds=30)  # a repeated request gets the same context for this long
MAX_TOPIC_INPUTS = 4  # of a session that are compared with the next input

K = TypeVar("K")
V = TypeVar("V")


class TopicInputs(NamedTuple):
    """The last inputs of a session with their embeddings, oldest first.

    `pending_frame` is the frame that the last input suggested instead of the session's.
    """

    texts: "tuple[str, ...]" = ()
    vectors: "tuple[Vector, ...]" = ()
    pending_frame: str | None = None

    def append(self, text: str, vector: "Vector | None", *, pending_frame: str | None) -> "TopicInputs":
        """Return the inputs with one more; only the last `MAX_TOPIC_INPUTS` are kept."""
        vectors = self.vectors if vector is None else (*self.vectors, vector)
        return TopicInputs((*self.texts, text)[-MAX_TOPIC_INPUTS:], vectors[-MAX_TOPIC_INPUTS:], pending_frame)


NO_INPUTS = TopicInputs()


@dataclass(frozen=True, kw_only=True)
class CachedContext:
    """A context with its build data.

    `built_bundle_id` is the last full build. `search_request` and `cue` are those of the last search, `sent_messages`
    those of the last update. `topic` are the last inputs of the session.
    """

    bundle: Bundle
    built_bundle_id: UUID
    search_request: ContextBuildRequest
    cue: RecallQuery
    sent_messages: SentMessages | None
    session_data: SessionContextData
    topic: TopicInputs = NO_INPUTS

    @property
    def content_words(self) -> frozenset[str]:
        """Return the content words of the context and of the last inputs."""
        texts = (self.bundle.text, self.search_request.input, *self.topic.texts)
        return frozenset[str]().union(*map(extract_content_words, texts))

    @cached_property
    def shown_memories(self) -> Mapping[UUID, RetrievedMemory]:
        """Return every memory in the context by id."""
        items = {c.memory_id: c.scored.found for c in self.bundle.items}
        return items | {found.memory_id: found for found in self.bundle.focus}


class ContextCache:
    """LRU caches of contexts; the database decides which are valid.

    `_quiet_snapshot` is the snapshot at which nothing was written since the repeats were cached.
    """

    def __init__(self) -> None:
        self._current: OrderedDict[tuple[UUID, UUID], CachedContext] = OrderedDict()
        self._repeats: OrderedDict[ContextBuildRequest, Bundle] = OrderedDict()
        self._quiet_snapshot: str | None = None

    def get_current(self, request: ContextBuildRequest) -> CachedContext | None:
        """Return the cached context of the request's session."""
        return self._current.get((request.agent_id, request.session_id)) if request.session_id else None

    def set_current(self, cached: CachedContext) -> None:
        """Cache the context as the current one of its session."""
        if cached.bundle.session_id:
            _put_latest(self._current, (cached.bundle.agent_id, cached.bundle.session_id), cached)

    def find_repeat(self, request: ContextBuildRequest, *, snapshot: str, now: datetime) -> Bundle | None:
        """Return the context of an identical request within `REPEAT_LIFETIME`.

        Return None if anything except cached bundles was written since.
        """
        bundle = self._repeats.get(request) if snapshot == self._quiet_snapshot else None
        return bundle if bundle and now <= bundle.created_at + REPEAT_LIFETIME else None

    def store_repeat(self, request: ContextBuildRequest, bundle: Bundle, *, snapshot: str, transaction_id: int) -> None:
        """Cache the bundle if the transaction that stored it is the only write since `snapshot`."""
        if snapshot != format_quiet_snapshot(transaction_id):
            return
        if snapshot != self._quiet_snapshot:
            self._repeats.clear()
        _put_latest(self._repeats, request, bundle)
        self._quiet_snapshot = format_quiet_snapshot(transaction_id + 1)


def format_quiet_snapshot(next_transaction_id: int) -> str:
    """Return the text of a PostgreSQL snapshot when all earlier transactions have ended and no later one began."""
    return f"{next_transaction_id}:{next_transaction_id}:"


def _put_latest(entries: OrderedDict[K, V], key: K, value: V) -> None:
    entries[key] = value
    entries.move_to_end(key)
    if len(entries) > MAX_ENTRIES:
        entries.popitem(last=False)
