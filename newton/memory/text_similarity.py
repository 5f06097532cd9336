"""The similarity of found memories to the text that was searched for, beside that to the vector of the search. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.memory.ranking import SINGLE_PRECISION
from newton.memory.search_types import RetrievedMemory

SAME_COSINE = 1e-4  # cosines that differ less are equal but for rounding


class TextSimilarity(NamedTuple):
    """The cosines of a memory's own text with the vector of a search, and with that of the text searched for."""

    search: float
    text: float


def replace_similarities(
    memories: Sequence[RetrievedMemory], similarities: Mapping[UUID, TextSimilarity]
) -> list[RetrievedMemory]:
    """Return memories with the similarity to the text searched for, rounded as evidence is.

    A memory that was found by another text than its own, such as one of its windows or a fact that it replaced, keeps
    the similarity of that text.
    """
    return [
        one._replace(similarity=_round_single(known.text))
        if (known := similarities.get(one.memory_id)) and one.similarity <= known.search + SAME_COSINE
        else one
        for one in memories
    ]


def _round_single(value: float) -> float:
    return SINGLE_PRECISION.unpack(SINGLE_PRECISION.pack(value, 0.0, 0.0))[0]
