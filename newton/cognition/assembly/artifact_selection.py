"""Selection of session artifacts (summaries, tool and web results of a session) for an input. Pure.

The most similar artifacts are selected, except those whose messages are sent to the model anyway.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.budget import ContextBudget, reserve_layer
from newton.cognition.assembly.fill import NO_ROOM, FillPlacement
from newton.cognition.request import SentMessages
from newton.cognition.sources.session_artifacts import DEFAULT_ARTIFACT_POLICY, ArtifactPolicy, LineRange
from newton.memory.search_types import RetrievedMemory

SESSION_LAYER, DOCUMENT_LAYER = "session", "documents"

ALREADY_SENT = "the message itself is sent to the model"
LEXICAL_WEIGHT = 1.0  # weight of the lexical overlap in the ranking; the cosine has weight 1
LEXICAL_SIMILARITY_SCALE = 2 / 3  # applied before the minimum: tables of numbers embed badly, but contain names


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSelector:
    """The rules for selecting artifacts of a session, and the messages (first, last) that each artifact covers."""

    policy: ArtifactPolicy = DEFAULT_ARTIFACT_POLICY
    line_ranges: Mapping[UUID, LineRange] = field(default_factory=dict[UUID, LineRange])

    def reserve_tokens(self, artifacts: Sequence[RetrievedMemory], sent_messages: SentMessages | None) -> int:
        """Return the tokens to reserve for artifacts, heading included; 0 when none would be selected."""
        return self.policy.max_tokens if select_artifacts(artifacts, self, sent_messages).selected else 0

    def reserve_layers(
        self,
        budget: ContextBudget,
        artifacts: Sequence[RetrievedMemory],
        memories: Sequence[RetrievedMemory],
        sent_messages: SentMessages | None,
    ) -> ContextBudget:
        """Return the budget with tokens reserved for session artifacts and document passages, where any were found."""
        has_passages = self.policy.max_selected and any(found.kind == "passage" for found in memories)
        documents = self.policy.max_passage_tokens if has_passages else 0
        budget = reserve_layer(budget, SESSION_LAYER, self.reserve_tokens(artifacts, sent_messages))
        return reserve_layer(budget, DOCUMENT_LAYER, documents)


DEFAULT_ARTIFACT_SELECTOR = ArtifactSelector()


class ArtifactSelection(NamedTuple):
    """The selected artifacts by id, best first, with a text that states the rank; the rejected ones with the reason."""

    selected: Mapping[UUID, str]
    rejected: Mapping[UUID, str]


def compute_similarity(found: RetrievedMemory, policy: ArtifactPolicy) -> float:
    """Return the similarity of an artifact to the input: cosine, or lexical overlap without a vector.

    With reranking, return the larger of the cosine and the scaled lexical overlap.
    """
    if not found.similarity:
        return found.lexical
    scale = LEXICAL_SIMILARITY_SCALE if policy.rerank_candidates else 0.0
    return max(found.similarity, scale * found.lexical) if scale else found.similarity


def rank_artifacts(artifacts: Sequence[RetrievedMemory], policy: ArtifactPolicy) -> list[RetrievedMemory]:
    """Sort artifacts by similarity to the input, best first. With reranking, add the lexical overlap to the cosine."""
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
    """Select or reject each artifact, with a reason.

    An artifact that is in `excluded` or exceeds the remaining `max_tokens` takes no rank, so a smaller one may follow.
    """
    policy = selector.policy
    selected, rejected = dict[UUID, str](), dict[UUID, str](excluded or {})
    for found in rank_artifacts(artifacts, policy):
        if found.memory_id in rejected:
            continue
        if sent_messages and (lines := selector.line_ranges.get(found.memory_id)) and sent_messages.covers(*lines):
            reason = ALREADY_SENT
        elif (similarity := compute_similarity(found, policy)) < policy.min_similarity:
            reason = f"too far from the input: similarity {similarity:.2f}, minimum {policy.min_similarity:.2f}"
        elif len(selected) >= policy.max_selected:
            reason = f"not among the best {policy.max_selected} artifacts of the session, {policy.order_description}"
        elif found.summary_tokens > max_tokens:
            reason = NO_ROOM
        else:
            max_tokens -= found.summary_tokens
            selected[found.memory_id] = (
                f"number {len(selected) + 1} of the session's artifacts, {policy.order_description}"
            )
            continue
        rejected[found.memory_id] = reason
    return ArtifactSelection(selected, rejected)


def add_artifact_reason(placed: FillPlacement, selection: ArtifactSelection) -> FillPlacement:
    """Return the placement of a candidate; if it is an artifact in the context, with its rank in the reason."""
    reason = selection.selected.get(placed.memory_id)
    return placed._replace(reason=f"{placed.reason}: {reason}") if reason and placed.detail else placed
