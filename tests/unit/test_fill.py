"""What goes into a context, and why the rest does not."""

import random
from collections.abc import Sequence
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.fill import FITS_GAP, OVER_LIMIT, FillCandidate, FillPlacement, FillPolicy, fill

LAYERS = ["facts", "episodes", "decisions"]


def item(number: int, layer: str = "facts", score: float = 0.5, summary: int = 50, micro: int = 20) -> FillCandidate:
    return FillCandidate(UUID(int=number), layer, score, summary, micro)


ITEMS = st.lists(
    st.builds(
        FillCandidate,
        memory_id=st.uuids(),
        layer=st.sampled_from(LAYERS),
        score=st.floats(0, 1),
        summary_tokens=st.integers(1, 120),
        micro_tokens=st.integers(1, 30),
        group_heading=st.sampled_from([None, "2026-11-19", "2026-11-20"]),
        heading_tokens=st.just(7),
        part_tokens=st.none() | st.integers(1, 80),
        full_tokens=st.none() | st.integers(80, 400),
    ),
    unique_by=lambda i: i.memory_id,
    max_size=40,
)
CAPS = st.fixed_dictionaries({layer: st.integers(0, 2_000) for layer in LAYERS})
HEADERS = dict.fromkeys(LAYERS, 4)


def cost(items: list[FillCandidate], placed: Sequence[FillPlacement]) -> int:
    """With the headers of layers and the headings within them."""
    by_id = {i.memory_id: i for i in items}
    inside = [by_id[p.memory_id] for p in placed]
    headings = {(i.layer, i.group_heading) for i in inside if i.group_heading}
    return sum(p.tokens for p in placed) + 4 * len({i.layer for i in inside}) + 7 * len(headings)


@given(ITEMS, st.integers(0, 3_000), CAPS, st.sampled_from(["stop", "skip", "downgrade"]))
def test_the_room_is_never_passed_headers_included(
    items: list[FillCandidate], room: int, caps: dict[str, int], policy: FillPolicy
) -> None:
    # S002-3, S000-8
    placed = [p for p in fill(items, max_tokens=room, layers=caps, header_tokens=HEADERS, policy=policy) if p.detail]
    assert cost(items, placed) <= room


@given(ITEMS, st.integers(0, 3_000), CAPS)
def test_every_candidate_gets_one_verdict_with_a_reason(
    items: list[FillCandidate], room: int, caps: dict[str, int]
) -> None:
    verdicts = fill(items, max_tokens=room, layers=caps, header_tokens=HEADERS)
    assert sorted(str(v.memory_id) for v in verdicts) == sorted(str(i.memory_id) for i in items)
    assert all(v.reason for v in verdicts)
    assert all((v.tokens > 0) == (v.detail is not None) for v in verdicts)


@given(ITEMS, st.integers(0, 3_000), CAPS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(
    items: list[FillCandidate], room: int, caps: dict[str, int], chance: random.Random
) -> None:
    shuffled = list(items)
    chance.shuffle(shuffled)
    expected = fill(items, max_tokens=room, layers=caps, header_tokens=HEADERS)
    assert fill(shuffled, max_tokens=room, layers=caps, header_tokens=HEADERS) == expected


@given(ITEMS, st.integers(0, 400), CAPS, st.sets(st.sampled_from(range(40))))
def test_what_shares_the_budget_of_a_sublayer_never_exceeds_it(
    items: list[FillCandidate], limit: int, caps: dict[str, int], chosen: set[int]
) -> None:
    # S002-2
    items = [one._replace(sublayer="old" if place in chosen else "") for place, one in enumerate(items)]
    limited = {one.memory_id for one in items if one.sublayer}
    placed = fill(items, max_tokens=100_000, layers={**caps, "old": limit}, header_tokens=HEADERS)
    assert sum(one.tokens for one in placed if one.memory_id in limited) <= limit
    left_out = [one for one in placed if not one.detail]
    assert all(one.memory_id in limited and one.reason == OVER_LIMIT for one in left_out)


def test_best_first_within_shares_and_what_a_layer_leaves_flows_to_the_others() -> None:
    # S002-11, S002-3, S002-2, S000-9, S001-25
    items = [item(1, score=0.9), item(2, score=0.8), item(3, score=0.7)]
    verdicts = fill(items, max_tokens=4 + 50 + 20 + 10, layers={"facts": 1_000}, header_tokens={"facts": 4})
    assert [(v.detail, v.tokens) for v in verdicts] == [("summary", 50), ("micro", 20), (None, 0)]
    assert verdicts[2].reason == "no room left"
    # what a layer leaves flows to the others
    items = [item(n, "facts", score=1 - n / 10) for n in range(5)]
    verdicts = fill(items, max_tokens=300, layers={"facts": 60, "episodes": 240}, header_tokens={"facts": 4})
    assert [v.reason for v in verdicts] == [
        "fits the budget of its layer",
        *["fits into unused tokens of other layers"] * 4,
    ]
    # a layer s share is safe from better items of other layers
    # a mass of strong episodes cannot crowd the facts out
    items = [item(1, "facts", score=0.1), *(item(n, "episodes", score=0.9) for n in range(2, 30))]
    verdicts = fill(items, max_tokens=500, layers={"facts": 100, "episodes": 400}, header_tokens={})
    assert next(v for v in verdicts if v.memory_id == UUID(int=1)).detail == "summary"
    # stop ends at the first that does not fit and skip goes on
    items = [item(1, score=0.9, summary=90), item(2, score=0.8, summary=50), item(3, score=0.7, summary=10)]
    stopped = fill(items, max_tokens=100, layers={"facts": 0}, header_tokens={}, policy="stop")
    skipped = fill(items, max_tokens=100, layers={"facts": 0}, header_tokens={}, policy="skip")
    assert [v.detail for v in stopped] == ["summary", None, None]
    assert [v.detail for v in skipped] == ["summary", None, "summary"]


@given(ITEMS, st.integers(0, 3_000), st.integers(0, 1_000), CAPS, st.sampled_from(["stop", "skip", "downgrade"]))
def test_more_room_loses_nothing_that_less_kept_but_what_only_filled_a_gap(
    items: list[FillCandidate], room: int, more: int, caps: dict[str, int], policy: FillPolicy
) -> None:
    small = fill(items, max_tokens=room, layers=caps, header_tokens=HEADERS, policy=policy)
    large = {
        p.memory_id
        for p in fill(items, max_tokens=room + more, layers=caps, header_tokens=HEADERS, policy=policy)
        if p.detail
    }
    lost = [p for p in small if p.detail and p.memory_id not in large]
    assert all(p.reason.startswith(FITS_GAP) for p in lost)


@given(ITEMS, st.integers(0, 3_000), CAPS)
def test_a_sealed_layer_never_passes_its_share(items: list[FillCandidate], room: int, caps: dict[str, int]) -> None:
    # S004-10: what the others leave is not for it
    verdicts = fill(items, max_tokens=room, layers=caps, header_tokens=HEADERS, sealed_layers={"facts"})
    facts = [i for i in items if i.layer == "facts"]
    placed = [p for p in verdicts if p.detail and p.memory_id in {i.memory_id for i in facts}]
    assert not placed or cost(facts, placed) <= caps["facts"]


def test_what_enters_after_a_text_that_could_not_grow_only_fills_a_gap() -> None:
    # with more room the text grows, and nothing is left for the other one
    long = FillCandidate(UUID(int=1), "facts", 0.9, 10, 5, full_tokens=80)
    other = item(2, score=0.1, summary=10)
    small = fill([long, other], max_tokens=30, layers={"facts": 30}, header_tokens={})
    assert [(one.detail, one.reason) for one in small] == [
        ("summary", "fits the budget of its layer"),
        ("summary", FITS_GAP),
    ]
    large = fill([long, other], max_tokens=84, layers={"facts": 84}, header_tokens={}, policy="stop")
    assert [one.detail for one in large] == ["full", None]


def test_a_heading_is_paid_once_in_each_layer() -> None:
    # S002-11
    items = [
        item(n, score=1 - n / 10)._replace(group_heading=day, heading_tokens=7)
        for n, day in enumerate(["20", "20", "19"])
    ]
    exactly = 4 + 7 + 50 + 50 + 7 + 50
    assert [v.detail for v in fill(items, max_tokens=exactly, layers={"facts": 1_000}, header_tokens={"facts": 4})] == [
        "summary"
    ] * 3
    tight = fill(items, max_tokens=exactly - 1, layers={"facts": 1_000}, header_tokens={"facts": 4}, policy="skip")
    assert [v.detail for v in tight] == ["summary", "summary", None]
    # the same heading in two layers is paid twice
    items = [
        item(n, layer)._replace(group_heading="20", heading_tokens=7) for n, layer in enumerate(["facts", "episodes"])
    ]
    layers = {"facts": 500, "episodes": 500}
    assert all(v.detail == "summary" for v in fill(items, max_tokens=2 * 57, layers=layers, header_tokens={}))
    assert [v.detail for v in fill(items, max_tokens=2 * 57 - 1, layers=layers, header_tokens={}, policy="skip")].count(
        None
    ) == 1
