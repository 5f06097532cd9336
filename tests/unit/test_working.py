"""A context of what is at hand: the published cases with their true values, the limit, and who leaves first."""

import math
import random
from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.working_context import (
    BLANK_LINE,
    SEPARATOR_TOKENS,
    EvictionItem,
    WorkingContext,
    WorkingSetSnapshot,
    assemble_working_context,
    select_evictions,
)
from newton.cognition.scoring.score import compute_contributions
from newton.content.profiles import OverflowMode, Profile, load_profiles
from newton.heart.procedures import section_header
from newton.ids import new_id
from newton.memory.memory import ShortForms
from newton.memory.representations import make_short_forms, one_line, to_bullet
from newton.memory.search_types import RetrievedMemory
from newton.providers.token_counter import count
from tests.support import NOON, examples
from tests.timing import assert_near_linear
from tests.unit.assembling import found

PROFILES = {name: profile for name, profile in load_profiles().items() if not profile.by_frame}
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def at_hand(text: str, *, importance: float = 0.1, age: timedelta = timedelta(), **more: object) -> RetrievedMemory:
    """A memory that came into the set, and was last used, so long ago; importance from 0 to 1."""
    short: ShortForms = make_short_forms(text, count_tokens=count)
    came = NOON - age
    given_ = {"created_at": came, "accessed_at": came, "importance": importance, **more}
    return found(
        None,
        micro=short.micro,
        summary=short.summary,
        micro_tokens=short.micro_tokens,
        summary_tokens=short.summary_tokens,
        **given_,
    )


def made(strategy: str | Profile, *held: RetrievedMemory, limit: int = 128_000) -> WorkingContext:
    profile = PROFILES[strategy] if isinstance(strategy, str) else strategy
    return assemble_working_context(WorkingSetSnapshot(memories=held, now=NOON), profile, max_tokens=limit)


def lines(context: WorkingContext) -> list[str]:
    return [chosen.text for chosen in context.items]


TRIVIA = (at_hand("the weather", importance=0.1, age=MINUTE), at_hand("a joke", importance=0.1, age=2 * MINUTE))


def test_each_profile_orders_by_its_own() -> None:
    # S000-20, S000-2, S000-10, S000-F4
    """At no more than its tokens, which count a header."""
    steps, name = "1. Look. 2. Say what you see.", "look-and-say: To say what is seen."
    tokens = count(section_header("look-and-say")) + count(to_bullet(steps))
    held = found(kind="procedure", state="ACTIVE", micro=name, summary=steps, micro_tokens=14, summary_tokens=tokens)
    whole, short = (made("balanced", held, limit=limit) for limit in (200, tokens - 1))
    assert whole.text == to_bullet(f"look-and-say: {steps}") and count(whole.text) <= whole.tokens
    assert short.text == to_bullet(name)
    old = at_hand("the deadline", importance=0.9, age=5 * DAY)
    assert lines(made("recent", old, TRIVIA[1], TRIVIA[0], limit=8_000)) == ["the weather", "a joke", "the deadline"]
    held = [at_hand(f"used {uses} times", uses=uses, age=uses * HOUR) for uses in (1, 40, 7)]
    assert lines(made("frequent", *held)) == ["used 40 times", "used 7 times", "used 1 times"]
    # what was never read is not nothing
    # one of the listed mistakes: an item never read still beats nothing
    unread = at_hand("never read", accessed_at=None, uses=0)
    for name in PROFILES:
        assert lines(made(name, unread)) == ["never read"]
    context = made("important", at_hand("one", importance=0.9), at_hand("two", importance=0.8))
    assert context.text == "- one\n\n- two\n"
    # the best can stand nearest to the question
    held = [at_hand(str(n), importance=n / 10) for n in range(5)]
    first, last = PROFILES["important"], PROFILES["important"].model_copy(update={"order": "best_last"})
    assert lines(made(last, *held)) == lines(made(first, *held))[::-1]


def test_a_mixed_store_is_ranked_by_its_true_values_and_says_why() -> None:
    # S000-12, S000-21, S000-3
    # S000-22, S000-4; importance is kept in [0, 1], so the published values are ten times these
    ages = {0.7: 2 * MINUTE, 0.5: 10 * MINUTE, 1.0: 3 * DAY, 0.9: 5 * DAY}
    held = [at_hand(f"{importance}", importance=importance, age=age) for importance, age in reversed(ages.items())]
    context = made("balanced", *held)
    assert lines(context) == ["0.7", "0.5", "1.0", "0.9"]
    assert [10 * chosen.scored.score for chosen in context.items] == pytest.approx([6.77, 4.29, 0.137, 0.074], rel=6e-3)
    # why is this memory here
    context = made("balanced", at_hand("x", importance=0.7, age=HOUR))
    parts = compute_contributions(context.items[0].scored.features, context.profile)
    assert parts == pytest.approx({"importance": 0.7, "recency": 0.5})
    assert math.prod(parts.values()) == pytest.approx(context.items[0].scored.score)
    # plans keep what matters and drop the trivia first
    held = (
        TRIVIA[0],
        at_hand("the goal", importance=1.0, age=3 * DAY),
        at_hand("the law", importance=0.9, age=2 * DAY),
    )
    whole = made("important", *held)
    assert lines(whole) == ["the goal", "the law", "the weather"]
    less = made("important", *held, limit=whole.tokens - 1)
    assert lines(less) == ["the goal", "the law"]
    assert [chosen.text for chosen in less.left_out] == ["the weather"]


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_same_store_within_every_limit(name: str) -> None:
    # S000-8, S000-23
    dice = random.Random(7)
    held = [
        at_hand("word " * dice.randint(3, 90) + str(n), importance=dice.random(), age=dice.random() * 9 * DAY)
        for n in range(300)
    ]
    sizes = [made(name, *held, limit=limit).tokens for limit in (500, 4_000, 8_000, 128_000)]
    for size, limit in zip(sizes, (500, 4_000, 8_000, 128_000), strict=True):
        assert size <= limit
    assert sizes == sorted(set(sizes))
    assert sizes[0] > 400 and sizes[1] > 3_900, "a limit is used"


def test_a_blank_line_that_costs_a_token_is_paid_for() -> None:
    # S000-8, S000-10: in this encoding "&", "<" and "[" do not join two line ends
    held = [at_hand(f"this and that{end}", importance=0.5) for end in "&<[&<["]
    held = [
        one._replace(summary=f"{n} {one.summary}", summary_tokens=count(f"- {n} {one.summary}\n"))
        for n, one in enumerate(held)
    ]
    context = made("important", *held)
    assert context.tokens == count(context.text) > sum(chosen.tokens for chosen in context.items)
    less = made("important", *held, limit=context.tokens - 1)
    assert [chosen.detail for chosen in less.items] == ["summary"] * 5 + ["micro"], "the last one has no room as it is"


@given(st.lists(st.text(min_size=1, max_size=9).filter(str.strip), min_size=2, max_size=5))
def test_a_blank_line_costs_a_token_at_most(texts: list[str]) -> None:
    bullets = [to_bullet(one_line(text)) for text in texts]
    assert count(BLANK_LINE.join(bullets)) <= sum(map(count, bullets)) + SEPARATOR_TOKENS * (len(bullets) - 1)


WORDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30).filter(
    lambda text: bool(" ".join(text.split()))
)
HELD = st.lists(
    st.builds(
        at_hand,
        WORDS,
        importance=st.floats(0, 1),
        age=st.timedeltas(timedelta(), timedelta(days=400)),
        uses=st.integers(0, 1_000),
        state=st.sampled_from(["NEW", "SUPERSEDED"]),
        quarantined=st.booleans(),
    ),
    max_size=9,
)


@examples(20)
@given(HELD, st.integers(1, 200), st.sampled_from(get_args(OverflowMode)))
def test_no_context_is_over_its_limit_and_everything_has_a_verdict(
    held: list[RetrievedMemory], limit: int, fill: OverflowMode
) -> None:
    # S000-8, S000-12, S000-14; the mistake: rendered text fits the budget, headers and joiners counted
    for profile in PROFILES.values():
        context = made(profile.model_copy(update={"fill": fill}), *held, limit=limit)
        assert count(context.text) <= context.tokens <= limit
        assert sorted(c.memory_id for c in (*context.items, *context.left_out)) == sorted(f.memory_id for f in held)
        assert all(chosen.reason for chosen in (*context.items, *context.left_out))
        assert not {c.scored.found.state for c in context.items} & {"SUPERSEDED"}
        assert not any(chosen.scored.found.quarantined for chosen in context.items)


@examples(12)
@given(HELD, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(held: list[RetrievedMemory], dice: random.Random) -> None:
    # S000-12
    shuffled = dice.sample(held, len(held))
    assert all(made(name, *held) == made(name, *shuffled) for name in ("recent", "important", "balanced", "clustered"))


@pytest.mark.parametrize(
    ("fill", "kept"), [("stop", ["long"]), ("skip", ["long", "s"]), ("downgrade", ["long", "m", "s"])]
)
def test_what_does_not_fit_follows_the_policy(fill: OverflowMode, kept: list[str]) -> None:
    # S000-9 and the ruling: stop, skip or downgrade
    sizes = {"long": (10, 10), "longer": (20, 6), "s": (3, 3)}
    held = [
        at_hand(name, importance=1 - n / 10)._replace(summary=name, micro=name[:1] if name == "s" else "m")
        for n, name in enumerate(sizes)
    ]
    held = [f._replace(summary_tokens=sizes[f.summary][0], micro_tokens=sizes[f.summary][1]) for f in held]
    profile = PROFILES["important"].model_copy(update={"fill": fill})
    context = made(profile, *held, limit=10 + 6 + 3 + 2 * SEPARATOR_TOKENS)
    assert lines(context) == kept
    reasons = {chosen.scored.found.summary: chosen.reason for chosen in (*context.items, *context.left_out)}
    assert reasons["longer"] == ("only its short form fits" if fill == "downgrade" else "no room left")
    assert reasons["s"] == ("comes after an item that did not fit" if fill == "stop" else "fits")


@pytest.mark.parametrize("name", ["recent", "important", "balanced"])
def test_the_time_of_a_choice_grows_with_its_items(name: str) -> None:
    # S000-13; docs/benchmarks.md has what it takes on a quiet machine
    dice = random.Random(1)
    held = tuple(at_hand(f"item {n}", importance=dice.random(), age=dice.random() * DAY) for n in range(2_000))
    assert_near_linear(lambda size: made(name, *held[:size]), len(held))


def held(importance: float, age: timedelta, tokens: int = 9) -> EvictionItem:
    return EvictionItem(new_id(), importance, NOON - age, tokens)


def test_eviction_takes_what_is_old_and_keeps_the_hottest() -> None:
    # S000 A: ADR-007
    old_trivia, old, trivia, fresh = held(0.1, DAY), held(0.9, DAY), held(0.1, HOUR), held(0.9, HOUR)
    everyone = [fresh, old, trivia, old_trivia]
    gone = [select_evictions(everyone, capacity=10 * n, now=NOON) for n in (4, 3, 2, 1)]
    order = [old_trivia.memory_id, old.memory_id, trivia.memory_id]
    assert gone == [order[:0], order[:1], order[:2], order[:3]]
    # eviction keeps the hottest item
    # one of the listed mistakes
    hot = held(0.0, timedelta())
    everyone = [hot, *(held(1.0, MINUTE) for _ in range(5))]
    assert hot.memory_id not in select_evictions(everyone, capacity=20, now=NOON)
    assert hot.memory_id not in select_evictions(everyone, capacity=1, now=NOON), "one always stays"


CACHED = st.lists(
    st.builds(held, st.floats(0, 1), st.timedeltas(timedelta(), timedelta(days=99)), st.integers(1, 100)), max_size=20
)


@given(CACHED, st.integers(1, 1_000))
def test_what_stays_fits_and_no_more_goes_than_must(everyone: list[EvictionItem], capacity: int) -> None:
    # the mistake: "drop" removes the lowest, as often as needed
    gone = select_evictions(everyone, capacity=capacity, now=NOON)
    size = {one.memory_id: one.tokens + SEPARATOR_TOKENS for one in everyone}
    left = sum(size.values()) - sum(size[one] for one in gone)
    assert left <= capacity or len(everyone) - len(gone) <= 1
    if gone:
        assert left + size[gone[-1]] > capacity
