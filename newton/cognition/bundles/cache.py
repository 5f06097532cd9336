"""In-process cache of contexts: the current one of each session, and recent ones for repeated requests."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from uuid import UUID

from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.sources.gathered_data import SessionContextData
from newton.db.transaction_log import DatabaseSnapshot, TransactionLog
from newton.memory.search_types import RecallQuery, RetrievedMemory
from newton.text.words import extract_content_words

if TYPE_CHECKING:
    from newton.providers.embedding import Vector


class CoverageThresholds(NamedTuple):
    """Minimums at which a context covers an input, so that it can be reused.

    `min_cosine` applies to the most similar item of the context, `min_topic_cosine` to the most similar of the last
    inputs. `min_word_overlap` is the share of the input's content words in the context; it is used only without an
    embedder.
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
    """The last inputs of a session on the current topic, with their embeddings, oldest first.

    `pending_frame` is a frame other than the session's that the last input suggested.
    """

    texts: "tuple[str, ...]" = ()
    vectors: "tuple[Vector, ...]" = ()
    pending_frame: str | None = None

    def append(self, text: str, vector: "Vector | None", *, pending_frame: str | None) -> "TopicInputs":
        """Return a copy with one more input. Only the last `MAX_TOPIC_INPUTS` inputs are kept."""
        vectors = self.vectors if vector is None else (*self.vectors, vector)
        return TopicInputs((*self.texts, text)[-MAX_TOPIC_INPUTS:], vectors[-MAX_TOPIC_INPUTS:], pending_frame)


NO_INPUTS = TopicInputs()


@dataclass(frozen=True, kw_only=True)
class CachedContext:
    """A context with the data from which it was built.

    `built_bundle_id` is the bundle of the last full build. `search_request` and `cue` are request and query of the last
    search. `sent_messages` are the messages sent to the model at the last update. `topic` are the last inputs. For a
    project, `parent_snapshot` was taken of the agent above it before the context was built.
    """

    bundle: Bundle
    built_bundle_id: UUID
    search_request: ContextBuildRequest
    cue: RecallQuery
    sent_messages: SentMessages | None
    session_data: SessionContextData
    topic: TopicInputs = NO_INPUTS
    parent_snapshot: DatabaseSnapshot | None = None

    @property
    def content_words(self) -> frozenset[str]:
        """Return the content words of the context's text and of the last inputs."""
        texts = (self.bundle.text, self.search_request.input, *self.topic.texts)
        return frozenset[str]().union(*map(extract_content_words, texts))

    @cached_property
    def shown_memories(self) -> Mapping[UUID, RetrievedMemory]:
        """Return all memories in the context by id."""
        items = {c.memory_id: c.scored.found for c in self.bundle.items}
        return items | {found.memory_id: found for found in self.bundle.focus}


class ContextCache:
    """LRU caches of contexts. Whether a cached context is still valid is checked in the database.

    `_repeats` has the snapshot before each context was built.
    """

    def __init__(self) -> None:
        self._current: OrderedDict[tuple[UUID, UUID], CachedContext] = OrderedDict()
        self._repeats: OrderedDict[ContextBuildRequest, tuple[Bundle, DatabaseSnapshot]] = OrderedDict()

    def get_current(self, request: ContextBuildRequest) -> CachedContext | None:
        """Return the cached context of the request's session; None if there is none."""
        return self._current.get((request.agent_id, request.session_id)) if request.session_id else None

    def set_current(self, cached: CachedContext) -> None:
        """Cache the context as the current one of its session."""
        if cached.bundle.session_id:
            _put_latest(self._current, (cached.bundle.agent_id, cached.bundle.session_id), cached)

    def find_repeat(
        self, request: ContextBuildRequest, log: TransactionLog, *, snapshot: DatabaseSnapshot, now: datetime
    ) -> Bundle | None:
        """Return the context of an identical request if it is not older than `REPEAT_LIFETIME`.

        Return None if its agent may have written anything but contexts since the context was begun.
        """
        bundle, earlier = self._repeats.get(request, (None, snapshot))
        if bundle is None or now > bundle.created_at + REPEAT_LIFETIME:
            return None
        return None if log.has_changed(request.agent_id, earlier, snapshot) else bundle

    def store_repeat(self, request: ContextBuildRequest, bundle: Bundle, *, snapshot: DatabaseSnapshot) -> None:
        """Cache a context that was built after `snapshot`."""
        _put_latest(self._repeats, request, (bundle, snapshot))


def _put_latest(entries: OrderedDict[K, V], key: K, value: V) -> None:
    entries[key] = value
    entries.move_to_end(key)
    if len(entries) > MAX_ENTRIES:
        entries.popitem(last=False)
