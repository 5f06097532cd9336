"""The similarity of found memories to the text that was searched for, beside that to the vector of the search. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias
from uuid import UUID

from newton.memory.ranking import SINGLE_PRECISION

SAME_COSINE = 1e-4  # cosines that differ less are equal but for rounding

Evidence: TypeAlias = tuple[float, float, float]  # cosine similarity, lexical share and relevance of a memory


class TextSimilarity(NamedTuple):
    """The cosines of a memory's own text with the vector of a search, and with that of the text searched for."""

    memory_id: UUID
    search: float
    text: float


def replace_similarities(
    evidence: Mapping[UUID, Evidence], similarities: Iterable[TextSimilarity]
) -> dict[UUID, Evidence]:
    """Return the evidence with the similarity to the text searched for, rounded as evidence is.

    A memory that was found by another text than its own, such as one of its windows or a fact that it replaced, keeps
    the similarity of that text.
    """
    replaced = dict(evidence)
    for memory_id, search, text in similarities:
        known = evidence.get(memory_id)
        if known and known[0] <= search + SAME_COSINE:
            replaced[memory_id] = SINGLE_PRECISION.unpack(SINGLE_PRECISION.pack(text, *known[1:]))
    return replaced
