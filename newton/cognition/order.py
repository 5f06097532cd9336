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


def arranged(best_first: Sequence[T], profile: Profile, *, when: Callable[[T], tuple[datetime, UUID]]) -> list[T]:
    """The items in the profile's order. `when` says when each happened, and tells apart what happened at once.

    Of edges the best stands first, the second best last, and so on inwards. `clustered` needs vectors: see there.
    """
    match profile.order:
        case "best_last":
            return list(reversed(best_first))
        case "edges":
            return [*best_first[0::2], *reversed(best_first[1::2])]
        case "chronological":
            return sorted(best_first, key=when)
        case "best_first" | "clustered":
            return list(best_first)


def clustered(best_first: Sequence[UUID], vectors: "Mapping[UUID, Vector]", *, alike: float) -> list[UUID]:
    """The best leads, what is alike to it follows, best first; then the best of the rest leads. Vectors are unit
    vectors; what has none stands alone."""
    known = [one for one in best_first if one in vectors]
    if not known:
        return list(best_first)
    matrix = np.stack([vectors[one] for one in known])
    near = matrix @ matrix.T >= alike
    place = {one: n for n, one in enumerate(known)}
    waiting = dict.fromkeys(best_first)
    ordered: list[UUID] = []
    while waiting:
        leader = next(iter(waiting))
        group = [leader]
        if leader in place:
            beside = near[place[leader]]
            group += [one for one in waiting if one != leader and one in place and beside[place[one]]]
        for one in group:
            del waiting[one]
        ordered += group
    return ordered
