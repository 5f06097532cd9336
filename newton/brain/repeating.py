"""Mistakes made again: decisions near a known failure, which they neither answer nor were shown. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from newton.brain.choice import NEAR, Verdict

# Of decisions worded freely, the same choice again lies at 0.7 and above, but so do few of those that only repeat the
# lesson ("skip the review", "merge without one": 0.57). The opposite choice reaches 0.64. So below NEAR meaning is not
# enough: a category and a tag must be shared too.
NEAR_IF_SHARED = 0.5
# As many as a decision is shown before it is made: whoever has taken one of them into account knows of the mistake.
MOST_NEAR = 5
BLOCK = 256  # decisions compared at once: some megabytes, however many have failed

Vector = NDArray[np.float32]
Grid = NDArray[np.bool_]
Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Made:
    """A decision as far as comparing it asks for. The vector is None until it is made, or for good when erased."""

    decision_id: UUID
    decided_at: datetime
    reviewed_at: datetime | None
    outcome: Verdict | None
    category: str
    vector: Vector | None


class _Columns(NamedTuple):
    """Decisions as columns; times in seconds, categories by number, without an outcome reviewed at infinity."""

    vector: Vector
    decided: Floats
    reviewed: Floats
    category: Places


class Near(NamedTuple):
    """A decision, and one near it that was known to have failed when it was made."""

    decision_id: UUID
    failed_id: UUID
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A pair with what the record says of it: whether a tag is shared; whether the failure was answered, by a link that
    somebody made or by its id in the words of the decision or of its thoughts; and whether it was at least shown, so
    that a link was made by itself. Who has read what was shown, no record tells.
    """

    near: Near
    decided_at: datetime
    outcome: Verdict | None
    description: str | None
    failed: str | None
    sharing: bool
    answered: bool
    shown: bool

    @property
    def close(self) -> bool:
        return self.near.cosine >= NEAR or self.sharing


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Of the decisions that could be `compared`: how many were `near` a known failure, how many of these `answered` it,
    and those to which it was not even shown, each with the nearest. `missing` have no vector, so nothing is said of
    them."""

    compared: int
    missing: int
    near: int
    answered: int
    repeated: tuple[Weighed, ...]


def near_failures(made: Sequence[Made], *, since: datetime) -> list[Near]:
    """For each decision made from `since` on the nearest that were known to have failed by then, the nearest first.

    Those of another category must be near by meaning alone.
    """
    new = [one for one in made if one.vector is not None and one.decided_at >= since]
    failed = [one for one in made if one.vector is not None and one.outcome == "failure"]
    if not new or not failed:
        return []
    numbers = {category: number for number, category in enumerate({one.category for one in (*new, *failed)})}
    later, earlier = _columns(new, numbers), _columns(failed, numbers)
    found: list[Near] = []
    for start in range(0, len(new), BLOCK):
        part = slice(start, start + BLOCK)
        cosines = later.vector[part] @ earlier.vector.T
        alike = _alike(cosines, later.category[part], earlier.category)
        alike &= _known_by_then(later.decided[part], earlier)
        for one, cosine, near in zip(new[part], cosines, alike, strict=True):
            places = _nearest(cosine, near)
            found += [Near(one.decision_id, failed[place].decision_id, float(cosine[place])) for place in places]
    return found


def repeats(made: Iterable[Made], weighed: Iterable[Weighed]) -> Repeats:
    """What is known of these decisions; `weighed` may hold pairs of others. Pairs of one decision stand together."""
    own = list(made)
    compared = {one.decision_id for one in own if one.vector is not None}
    pairs = [pair for pair in weighed if pair.near.decision_id in compared and pair.close]
    groups = [list(group) for _, group in groupby(pairs, key=lambda pair: pair.near.decision_id)]
    repeated = [group[0] for group in groups if not any(pair.answered or pair.shown for pair in group)]
    return Repeats(
        compared=len(compared),
        missing=len(own) - len(compared),
        near=len(groups),
        answered=sum(any(pair.answered for pair in group) for group in groups),
        repeated=tuple(sorted(repeated, key=lambda pair: pair.decided_at)),
    )


def _columns(those: Sequence[Made], numbers: Mapping[str, int]) -> _Columns:
    return _Columns(
        vector=np.stack([one.vector for one in those if one.vector is not None]),
        decided=np.array([one.decided_at.timestamp() for one in those]),
        reviewed=np.array([one.reviewed_at.timestamp() if one.reviewed_at else np.inf for one in those]),
        category=np.array([numbers[one.category] for one in those]),
    )


def _known_by_then(decided: Floats, failed: _Columns) -> Grid:
    return (failed.reviewed <= decided[:, None]) & (failed.decided < decided[:, None])


def _alike(cosines: Vector, own: Places, other: Places) -> Grid:
    return (cosines >= NEAR) | ((cosines >= NEAR_IF_SHARED) & (own[:, None] == other))


def _nearest(cosines: Vector, alike: Grid) -> list[int]:
    """The places of the nearest, at most MOST_NEAR."""
    places = np.flatnonzero(alike)
    if len(places) > MOST_NEAR:
        places = places[np.argpartition(-cosines[places], MOST_NEAR - 1)[:MOST_NEAR]]
    best: list[int] = places[np.argsort(-cosines[places], kind="stable")].tolist()
    return best
