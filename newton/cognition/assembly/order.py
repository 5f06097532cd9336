"""In which order chosen memories stand: a reader of a long text keeps its ends best. Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import numpy as np

from newton.content.profiles import Profile

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

T = TypeVar("T")


def arrange(best_first: Sequence[T], profile: Profile, *, sort_key: Callable[[T], tuple[datetime, UUID]]) -> list[T]:
    """The items in the profile's order. `when` says when each happened, and tells apart what happened at once.

    Of edges the best stands first, the second best last, and so on inwards. `clustered` needs vectors: see there.
    """
    match profile.order:
        case "best_last":
            return list(reversed(best_first))
        case "edges":
            return [*best_first[0::2], *reversed(best_first[1::2])]
        case "chronological":
            return sorted(best_first, key=sort_key)
        case "best_first" | "clustered":
            return list(best_first)


def cluster(best_first: Sequence[UUID], vectors: "Mapping[UUID, Vector]", *, min_similarity: float) -> list[UUID]:
    """The best leads, what is alike to it follows, best first; then the best of the rest leads. Vectors are unit
    vectors; what has none stands alone."""
    if not vectors:
        return list(best_first)
    nowhere = np.zeros_like(next(iter(vectors.values())))
    matrix = np.stack([vectors.get(one, nowhere) for one in best_first])
    waiting = np.ones(len(best_first), dtype=np.bool_)
    ordered: list[UUID] = []
    for leader in range(len(best_first)):
        if waiting[leader]:
            # one row at a time: a product of the whole with itself waits for the threads of the library
            group = (matrix @ matrix[leader] >= min_similarity) & waiting
            group[leader] = True  # what has no vector is at least like itself
            ordered += [best_first[place] for place in np.flatnonzero(group).tolist()]
            waiting &= ~group
    return ordered
