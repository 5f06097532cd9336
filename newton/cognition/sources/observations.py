"""Observations as a source of contexts: what the tools of the agent did in this session, and in others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.input_vector import embed_input
from newton.db.pool import Database
from newton.deadline import RequestDeadline
from newton.heart.events import event_store
from newton.heart.events.event_store import ObservationHit, ObservationQuery
from newton.ids import derive_model_id
from newton.memory.memory_reader import fetch_memories
from newton.memory.ranking import SINGLE_PRECISION
from newton.memory.search_types import RetrievedMemory
from newton.text.time_expressions import TimeRange

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

MAX_OWN = 50  # latest events of the session
MAX_FOUND = 10  # by each search in all sessions


class FoundObservation(NamedTuple):
    """An event with its evidence, and how it was found. The evidence has the precision of stored contexts."""

    memory: RetrievedMemory
    hit: ObservationHit

    @property
    def is_own(self) -> bool:
        """True if the event happened in the session of the input."""
        return self.hit.age is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationSource:
    """Reads events. If the embedder does not answer until the `deadline`, only words are compared."""

    db: Database
    embedder: "Embedder | None"
    deadline: RequestDeadline

    async def read(
        self, request: ContextBuildRequest, hidden_ids: Sequence[UUID], time_ranges: Sequence[TimeRange] = ()
    ) -> Sequence[FoundObservation]:
        """Return the last events of the session, and those of all sessions that match the input."""
        vector = await embed_input(self.embedder, request.input, self.deadline)
        query = ObservationQuery(
            agent_id=request.agent_id,
            session_id=request.session_id,
            text=request.input,
            vector=vector,
            model_id=derive_model_id(self.embedder.identity) if self.embedder else None,
            moment=request.as_of,
            excluded_ids=hidden_ids,
            max_own=MAX_OWN,
            max_found=MAX_FOUND,
            time_ranges=time_ranges,
        )
        async with self.db.transaction(request.agent_id) as tx:
            hits: dict[UUID, ObservationHit] = {}
            for hit in await event_store.find_observations(tx, query):
                known = hits.get(hit.memory_id)
                # what was done after a failure may match the input by itself
                hits[hit.memory_id] = known._replace(cause_id=known.cause_id or hit.cause_id) if known else hit
            if not hits:
                return ()
            found = await fetch_memories(tx, list(hits), agent_id=request.agent_id, moment=request.as_of)
        return [FoundObservation(_add_evidence(one, hits[one.memory_id]), hits[one.memory_id]) for one in found]


def _add_evidence(found: RetrievedMemory, hit: ObservationHit) -> RetrievedMemory:
    packed = SINGLE_PRECISION.pack(hit.similarity, hit.lexical, min(max(hit.similarity, hit.lexical, 0.0), 1.0))
    similarity, lexical, relevance = SINGLE_PRECISION.unpack(packed)
    return found._replace(similarity=similarity, lexical=lexical, relevance=relevance)
