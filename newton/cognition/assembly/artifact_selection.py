"""Which artifacts of its session go with an input: the nearest few that the conversation sent does not hold. Pure."""

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
LEXICAL_WEIGHT = 1.0  # so much as its nearness counts it for an artifact that all the words of the input are in it
LEXICAL_SIMILARITY_SCALE = 2 / 3  # and so much for how near it is: a table of numbers has no meaning, but it has names


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSelector:
    """How the artifacts among the candidates are chosen, and the first and last line that each covers."""

    policy: ArtifactPolicy = DEFAULT_ARTIFACT_POLICY
    line_ranges: Mapping[UUID, LineRange] = field(default_factory=dict[UUID, LineRange])

    def reserve_tokens(self, artifacts: Sequence[RetrievedMemory], sent_messages: SentMessages | None) -> int:
        """The most that they may cost with their heading; 0 when none can be chosen. What they cost is known only when
        the lines of the context are, so others take what they leave."""
        return self.policy.max_tokens if select_artifacts(artifacts, self, sent_messages).selected else 0


DEFAULT_ARTIFACT_SELECTOR = ArtifactSelector()


class ArtifactSelection(NamedTuple):
    """The artifacts for an input, best first with the place each has, and why the others stay out."""

    selected: Mapping[UUID, str]
    rejected: Mapping[UUID, str]


def compute_similarity(found: RetrievedMemory, policy: ArtifactPolicy) -> float:
    """How near it is to the input: by meaning, by its share of the words where nobody knows a vector, and by whichever
    says more where words count too."""
    if not found.similarity:
        return found.lexical
    return (
        max(found.similarity, LEXICAL_SIMILARITY_SCALE * found.lexical)
        if policy.rerank_candidates
        else found.similarity
    )


def rank_artifacts(artifacts: Sequence[RetrievedMemory], policy: ArtifactPolicy) -> list[RetrievedMemory]:
    """The nearest first; with re-ranking, words count beside the meaning."""
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
    """Every artifact once, with its place or the reason why it stays out. What is `barred` takes no place, nor what is
    too large for the tokens that are left of the `room`: what comes behind it may fit."""
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
