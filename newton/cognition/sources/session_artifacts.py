"""Artifacts of a session (summaries, facts, tool and web results) as a source of contexts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.source_reader import embed_input
from newton.db.pool import Database
from newton.deadline import RequestDeadline
from newton.dialogue.artifacts import ArtifactMatch, ArtifactQuery, find_matches
from newton.ids import derive_model_id
from newton.memory.memory_reader import fetch_memories
from newton.memory.ranking import SINGLE_PRECISION
from newton.memory.search_types import RetrievedMemory

MIN_INPUT_CHARS = 10  # a shorter input, such as "ok", is not searched for
LineRange = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactPolicy:
    """The rules for selecting artifacts of a session, and passages of documents.

    The search returns the larger of `top_k` and `rerank_candidates` artifacts. With `rerank_candidates=0`, they are
    ranked by cosine similarity only, not also by word overlap. A context holds at most
    `max_selected` artifacts and as many passages. `max_tokens` limits the tokens of all artifacts with the heading of
    their section, `max_passage_tokens` those of the passages with theirs, and `max_profile_tokens` those of the profile
    of a person for whom the input does not ask.
    """

    top_k: int = 5
    min_similarity: float = 0.25
    rerank_candidates: int = 20
    max_selected: int = 3
    max_tokens: int = 800
    max_passage_tokens: int = 1_000
    max_profile_tokens: int = 300

    @property
    def candidate_count(self) -> int:
        """Return the number of artifacts that the search returns."""
        return max(self.top_k, self.rerank_candidates)

    @property
    def order_description(self) -> str:
        """Return how artifacts are ranked, as text for reasons."""
        return "by meaning and words" if self.rerank_candidates else "by meaning"


DEFAULT_ARTIFACT_POLICY = ArtifactPolicy()


if TYPE_CHECKING:
    from newton.providers.embedding import Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundArtifacts:
    """Artifacts that match an input, and the range of messages (first, last) that each one covers."""

    found: Sequence[RetrievedMemory] = ()
    line_ranges: Mapping[UUID, LineRange] = field(default_factory=dict[UUID, LineRange])


def should_search_artifacts(request: ContextBuildRequest) -> bool:
    """Return True for a request in a session with a searchable input, unless its filters exclude artifacts."""
    return request.session_id is not None and is_searchable(request.input) and request.filters.allows_kind("artifact")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSource:
    """Searches the artifacts of a session.

    If the embedder does not answer until the `deadline`, only words are compared.
    """

    db: Database
    embedder: "Embedder | None"
    deadline: RequestDeadline
    policy: ArtifactPolicy

    async def read(self, request: ContextBuildRequest, hidden_ids: Sequence[UUID]) -> FoundArtifacts:
        """Return the artifacts most similar to the input, as they were at `as_of` of the request."""
        assert request.session_id is not None, "artifacts belong to a session"
        query = ArtifactQuery(
            agent_id=request.agent_id,
            session_id=request.session_id,
            text=request.input,
            vector=await embed_input(self.embedder, request.input, self.deadline),
            model_id=derive_model_id(self.embedder.identity) if self.embedder else None,
            moment=request.as_of,
            excluded=hidden_ids,
            limit=self.policy.candidate_count,
        )
        async with self.db.transaction(request.agent_id) as tx:
            hits = {hit.memory_id: hit for hit in await find_matches(tx, query)}
            found = await fetch_memories(tx, list(hits), agent_id=request.agent_id, moment=request.as_of)
        return FoundArtifacts(
            found=[_add_evidence(one, hits[one.memory_id]) for one in found],
            line_ranges={
                hit.memory_id: (hit.first_position, hit.last_position)
                for hit in hits.values()
                if hit.first_position is not None and hit.last_position is not None
            },
        )


def _add_evidence(found: RetrievedMemory, hit: ArtifactMatch) -> RetrievedMemory:
    """Return the artifact with its evidence, rounded to single precision, the precision of stored contexts."""
    packed = SINGLE_PRECISION.pack(hit.similarity, hit.lexical, max(hit.similarity or hit.lexical, 0.0))
    similarity, lexical, relevance = SINGLE_PRECISION.unpack(packed)
    return found._replace(similarity=similarity, lexical=lexical, relevance=relevance)


def is_searchable(text: str) -> bool:
    """Return True if the input has at least `MIN_INPUT_CHARS` characters."""
    return len(text.strip()) >= MIN_INPUT_CHARS
