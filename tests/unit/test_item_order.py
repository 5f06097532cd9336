"""The order of what was chosen, by what it does to a reader of a long text."""

from datetime import timedelta
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.item_order import arrange, cluster
from newton.content.profiles import ItemOrder, load_profiles
from newton.ids import new_id
from tests.support import NOON

BALANCED = load_profiles()["balanced"]
BEST_FIRST = ["a", "b", "c", "d", "e"]
IDS = {name: new_id() for name in BEST_FIRST}
HAPPENED = dict(zip(BEST_FIRST, (3, 1, 2, 1, 9), strict=True))


def order_of(order: ItemOrder) -> str:
    profile = BALANCED.model_copy(update={"order": order})
    return "".join(arrange(BEST_FIRST, profile, sort_key=lambda c: (NOON + timedelta(hours=HAPPENED[c]), IDS[c])))


@pytest.mark.parametrize(
    ("order", "stands"),
    [("best_first", "abcde"), ("best_last", "edcba"), ("edges", "acedb"), ("chronological", "bdcae")],
)
def test_each_order(order: ItemOrder, stands: str) -> None:  # S000-F4
    assert order_of(order) == stands


@pytest.mark.parametrize("order", get_args(ItemOrder))
def test_no_order_loses_or_doubles_anything(order: ItemOrder) -> None:
    assert sorted(order_of(order)) == BEST_FIRST


def test_what_is_alike_follows_the_best_of_it() -> None:  # S000-F3
    east, north = np.array([1, 0], dtype=np.float32), np.array([0, 1], dtype=np.float32)
    a, b, c, d, e = (IDS[name] for name in BEST_FIRST)
    vectors = {a: east, b: north, c: np.array([0.8, 0.6], dtype=np.float32), e: north}
    assert cluster([a, b, c, d, e], vectors, min_similarity=0.7) == [a, c, b, e, d]
    assert cluster([a, b, c, d, e], vectors, min_similarity=0.9) == [a, b, e, c, d]
    assert cluster([a, b, c, d, e], {}, min_similarity=0.5) == [a, b, c, d, e]


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=30), st.floats(0.1, 1))
def test_clusters_lose_nothing_and_begin_with_the_best(points: list[tuple[float, float]], alike: float) -> None:
    ids = [new_id() for _ in points]
    vectors = {one: np.array(point, dtype=np.float32) for one, point in zip(ids, points, strict=True)}
    ordered = cluster(ids, vectors, min_similarity=alike)
    assert sorted(ordered) == sorted(ids)
    assert ordered[:1] == ids[:1]
    assert cluster(ids, vectors, min_similarity=alike) == ordered
