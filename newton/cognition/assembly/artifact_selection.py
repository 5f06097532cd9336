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

ALREADY_SENT = "the message itself is sent to the model"
LEXICAL_WEIGHT = 1.0  # weight of the lexical overlap in the ranking; the cosine has weight 1
LEXICAL_SIMILARITY_SCALE = 2 / 3  # applied before the minimum: tables of numbers embed badly, but contain names


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSelector:
    """The policy by which artifacts are selected, and the messages (first, last) that each artifact covers."""

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
    scale = LEXICAL_SIMILARITY_SCALE if policy.rerank_candidates else 0.0
    return max(found.similarity, scale * found.lexical) if scale else found.similarity


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

    Artifacts that are `excluded` or too large take no rank, so a smaller one after them may fit.
    """
    policy = selector.policy
    selected, rejected = dict[UUID, str](), dict[UUID, str](excluded or {})
    for found in rank_artifacts(artifacts, policy):
        if found.memory_id in rejected:
            continue
        if sent_messages and (lines := selector.line_ranges.get(found.memory_id)) and sent_messages.covers(*lines):
            reason = ALREADY_SENT
        elif (similarity := compute_similarity(found, policy)) < policy.min_similarity:
            reason = f"too far from the input: {similarity:.2f}, minimum {policy.min_similarity:.2f}"
        elif len(selected) >= policy.max_selected:
            reason = f"not among the best {policy.max_selected} of the session, {policy.order_description}"
        elif found.summary_tokens > max_tokens:
            reason = NO_ROOM
        else:
            max_tokens -= found.summary_tokens
            selected[found.memory_id] = f"number {len(selected) + 1} of the session, {policy.order_description}"
            continue
        rejected[found.memory_id] = reason
    return ArtifactSelection(selected, rejected)
