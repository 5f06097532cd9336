"""Order of memories within a section. Models recall the start and the end of a long text best. Pure."""

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
    """Sort items as the profile says. `sort_key` returns (time, id) for the order `chronological`.

    The order `edges` puts the best item first, the second best last, and so on inwards. `clustered` is kept as best
    first, because it needs vectors: see `cluster`.
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
    """Group similar items: the best item, followed by items similar to it; then the best remaining item, and so on.

    Vectors are unit vectors; items without a vector form groups of their own. `min_similarity` is a cosine.
    """
    if not vectors:
        return list(best_first)
    zero = np.zeros_like(next(iter(vectors.values())))
    matrix = np.stack([vectors.get(memory_id, zero) for memory_id in best_first])
    remaining = np.ones(len(best_first), dtype=np.bool_)
    ordered: list[UUID] = []
    for leader in range(len(best_first)):
        if remaining[leader]:
            # row by row: the full matrix product would wait for BLAS threads
            group = (matrix @ matrix[leader] >= min_similarity) & remaining
            group[leader] = True  # an item without a vector is in its own group
            ordered += [best_first[index] for index in np.flatnonzero(group).tolist()]
            remaining &= ~group
    return ordered
