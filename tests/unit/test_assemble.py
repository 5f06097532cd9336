"""Lines under their day and in their order: what is said once, what comes first, and that the sum stays the count."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import get_args
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.assembler import AssemblyResult, assemble
from newton.cognition.assembly.candidate_sections import arrange, cluster
from newton.cognition.assembly.render import (
    FENCE_BEGIN,
    FENCE_END,
)
from newton.content.profiles import ItemOrder, load_profiles
from newton.ids import new_id
from newton.memory.memory import Kind
from newton.memory.representations import date_prefix, to_bullet
from newton.memory.search_types import RetrievedMemory
from newton.providers import token_counter
from tests.support import NOON
from tests.unit.assembling import EVIDENCE, make_setting, said, score_in_order

MAY = datetime(2026, 5, 8, 9, tzinfo=UTC)
THREAD = UUID(int=7)
PROFILE = load_profiles()["evidence"]


def found(number: int, text: str, *, day: int = 0, kind: Kind = "exchange", dated: bool = True) -> RetrievedMemory:
    at = MAY + timedelta(days=day)
    lines = {"thread_id": THREAD, "position": number} if kind == "exchange" else {}
    return said(number, text, at, prefix=date_prefix(f"{at:%Y-%m-%d}") if dated else "", kind=kind, **lines)


def told(*best_first: RetrievedMemory, budget: int = 8_000, order: str = "best_first") -> AssemblyResult:
    profile = EVIDENCE.model_copy(update={"order": order})
    return assemble(score_in_order(best_first), make_setting(budget, profile=profile))


def lines(assembly: AssemblyResult) -> Sequence[str]:
    return assembly.block.text.splitlines()


def test_days_are_said_once_over_their_lines() -> None:
    # S002-12
    best = found(5, "Ana: To Lisbon.", day=1)
    shown = told(best, found(2, "Bo: Hi."), found(4, "Bo: Where to?", day=1), found(1, "Ana: Hello."))
    assert lines(shown) == [
        "## Past Experience",
        "2026-05-08:",
        "- Ana: Hello.",
        "- Bo: Hi.",
        "2026-05-09:",
        "- Bo: Where to?",
        "- Ana: To Lisbon.",
    ]
    assert shown.candidates[0].text == "[2026-05-09] Ana: To Lisbon."  # with its day for who asks
    # what spans a day stands before its lines and what tools did behind all days
    event = found(9, "The office moved.", kind="event", dated=False)
    shown = told(found(1, "Ana: Hi."), found(8, "Moving: they packed.", kind="episode"), event)
    fenced = [FENCE_BEGIN.strip(), "- The office moved.", FENCE_END.strip()]
    assert lines(shown)[1:] == ["2026-05-08:", "- Moving: they packed.", "- Ana: Hi.", *fenced]
    shown = told(found(1, "Water boils at 100.", kind="passage"))
    assert lines(shown) == ["## From Documents", "- [2026-05-08] Water boils at 100."]


@pytest.mark.parametrize(
    ("order", "days"),
    [
        ("best_first", ["2026-05-08:", "2026-05-09:", "2026-05-10:"]),
        ("best_last", ["2026-05-09:", "2026-05-08:", "2026-05-10:"]),
        ("chronological", ["2026-05-08:", "2026-05-09:", "2026-05-10:"]),
        ("edges", ["2026-05-10:", "2026-05-09:", "2026-05-08:"]),
    ],
)
def test_days_come_in_the_order_of_the_profile(order: str, days: list[str]) -> None:
    shown = told(found(3, "C: c.", day=2), found(1, "A: a."), found(2, "B: b.", day=1), order=order)
    assert [line for line in lines(shown) if line.endswith(":") and line.startswith("2026")] == days


SAID = st.lists(
    st.tuples(
        st.text(max_size=400).map(lambda text: f"Ana: {text}"),
        st.integers(0, 3),
        st.sampled_from(["exchange", "episode"]),
        st.booleans(),
    ),
    max_size=12,
)


@given(SAID, st.integers(1, 900), st.sampled_from(["best_first", "best_last", "edges", "chronological"]))
def test_the_tokens_add_up_and_never_pass_the_budget(
    said: list[tuple[str, int, Kind, bool]], budget: int, order: str
) -> None:
    # S002-3, S002-12
    every = [found(n, text, day=day, kind=kind, dated=dated) for n, (text, day, kind, dated) in enumerate(said)]
    shown = told(*every, budget=budget, order=order)
    assert shown.block.tokens == token_counter.count(shown.block.text) <= budget
    inside = [c for c in shown.candidates if c.detail]
    assert shown.block.text.count("\n- ") == len(inside)
    assert all(to_bullet(c.context_line) in shown.block.text for c in inside)
    assert len({c.day for c in inside if c.day}) == sum(line.startswith("2026-") for line in lines(shown))


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
