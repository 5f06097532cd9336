"""Selection of session artifacts for an input: the most similar ones whose messages are not sent. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.fill import NO_ROOM
from newton.cognition.request import SentMessages
from newton.cognition.sources.session_artifacts import DEFAULT_ARTIFACT_POLICY, ArtifactPolicy, LineRange
from newton.memory.search_types import RetrievedMemory

SESSION_LAYER = "session"

ALREADY_SENT = "in view: the conversation itself is sent"
LEXICAL_WEIGHT = 1.0  # weight of the lexical overlap in the ranking; the cosine has weight 1
LEXICAL_SIMILARITY_SCALE = 2 / 3  # for the minimum similarity: tables of numbers embed badly, but contain names


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSelector:
    """Selection policy for artifacts, and the message range (first, last) of each."""

    policy: ArtifactPolicy = DEFAULT_ARTIFACT_POLICY
    line_ranges: Mapping[UUID, LineRange] = field(default_factory=dict[UUID, LineRange])

    def reserve_tokens(self, artifacts: Sequence[RetrievedMemory], sent_messages: SentMessages | None) -> int:
        """Return the token limit for artifacts with their heading; 0 when none can be selected."""
        return self.policy.max_tokens if select_artifacts(artifacts, self, sent_messages).selected else 0


DEFAULT_ARTIFACT_SELECTOR = ArtifactSelector()


class ArtifactSelection(NamedTuple):
    """The selected artifacts with their rank, best first, and the rejected ones with the reason."""

    selected: Mapping[UUID, str]
    rejected: Mapping[UUID, str]


def compute_similarity(found: RetrievedMemory, policy: ArtifactPolicy) -> float:
    """Return the similarity to the input: cosine, or lexical overlap without a vector.

    With re-ranking, return the larger of both.
    """
    if not found.similarity:
        return found.lexical
    return (
        max(found.similarity, LEXICAL_SIMILARITY_SCALE * found.lexical)
        if policy.rerank_candidates
        else found.similarity
    )


def rank_artifacts(artifacts: Sequence[RetrievedMemory], policy: ArtifactPolicy) -> list[RetrievedMemory]:
    """Sort by similarity, best first; with re-ranking, add the lexical overlap."""
    weight = LEXICAL_WEIGHT if policy.rerank_candidates else 0.0
    return sorted(artifacts, key=lambda f: (-((f.similarity or f.lexical) + weight * f.lexical), f.memory_id))


def select_artifacts(
    artifacts: Sequence[RetrievedMemory],
    selector: ArtifactSelector,
    sent_messages: SentMessages | None,
    *,
    excluded: Mapping[UUID, str] | None = None,
    max_tokens: float = math.inf,
) -> ArtifactSelection:
    """Return each artifact once, selected or rejected with a reason.

    `excluded` and oversized artifacts take no rank: a smaller one behind them may fit.
    """
    selecting = selector.policy
    places, out = dict[UUID, str](), dict[UUID, str](excluded or {})
    for found in rank_artifacts(artifacts, selecting):
        if found.memory_id in out:
            continue
        if sent_messages and (lines := selector.line_ranges.get(found.memory_id)) and sent_messages.covers(*lines):
            out[found.memory_id] = ALREADY_SENT
        elif (near := compute_similarity(found, selecting)) < selecting.min_similarity:
            out[found.memory_id] = f"too far from the input: {near:.2f}, not {selecting.min_similarity:.2f}"
        elif len(places) >= selecting.max_selected:
            out[found.memory_id] = (
                f"behind the best {selecting.max_selected} of the session, {selecting.order_description}"
            )
        elif found.summary_tokens > max_tokens:
            out[found.memory_id] = NO_ROOM
        else:
            max_tokens -= found.summary_tokens
            places[found.memory_id] = f"number {len(places) + 1} of the session, {selecting.order_description}"
    return ArtifactSelection(places, out)
