"""Bias, trend, groups and the note: who is overconfident is called so, and who is not is left alone."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.brain.calibration.report import (
    MAX_NOTE_TOKENS,
    RECENT_COUNT,
    UNNAMED,
    WINDOW_SIZE,
    build_calibration,
    compute_trend,
    fit_slope,
    write_note,
)
from newton.brain.calibration.scores import MIN_REVIEWS_FOR_BIAS, FloatArray, ForecastSeries, compute_bias, to_series
from newton.brain.drafts import ReviewedDecision, Verdict
from newton.providers import token_counter
from tests.support import NOON, count, examples
from tests.timing import assert_near_linear
from tests.unit.judging import PAIRS, drawn, judged, record, said

Stating = Callable[[np.random.Generator], FloatArray]


def verdict(pairs: ForecastSeries) -> str:
    found = compute_bias(pairs)
    assert found is not None
    return found.verdict


def spread(low: float, high: float) -> Stating:
    return lambda rng: rng.uniform(low, high, 100)


def constant(value: float) -> Stating:
    return lambda _: np.full(100, value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "stating",
    [spread(0.5, 1), spread(0, 1), constant(0.8), constant(0.97), constant(0.995), constant(0.02)],
    ids=["upper half", "all", "0.8", "0.97", "0.995", "0.02"],
)
def test_a_calibrated_recorder_is_rarely_accused(stating: Stating) -> None:
    # S002-20: false alarms stay under 5 % at 100 reviews, also where hardly anything ever fails.
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(500):
        stated = stating(rng)
        alarms += verdict(drawn(rng, stated, stated)) != "no sign of either"
    assert alarms / 500 < 0.05


def test_a_recorder_who_says_nine_in_ten_and_is_right_six_times_is_overconfident_by_three() -> None:
    # S002-20
    rng = np.random.default_rng(12)
    sizes: list[float] = []
    for _ in range(200):
        found = compute_bias(drawn(rng, np.full(100, 0.9), np.full(100, 0.6)))
        assert found is not None
        assert found.verdict == "overconfident"
        assert found.interval95 is not None
        assert found.interval95[0] < found.size < found.interval95[1]
        sizes.append(found.size)
    assert np.mean(sizes) == pytest.approx(0.3, abs=0.01)


def test_bias_is_found_with_its_interval_and_a_slope_per_hundred() -> None:
    rng = np.random.default_rng(13)
    held = 0
    for _ in range(500):
        stated = rng.uniform(0.6, 1, 100)
        found = compute_bias(drawn(rng, stated, stated - 0.2))
        assert found is not None
        assert found.interval95 is not None
        held += found.interval95[0] <= 0.2 <= found.interval95[1]
    assert held / 500 > 0.93
    # as many as are asked for are enough to find a gross error
    rng = np.random.default_rng(14)
    stated, true = np.full(MIN_REVIEWS_FOR_BIAS, 0.9), np.full(MIN_REVIEWS_FOR_BIAS, 0.6)
    found = sum(verdict(drawn(rng, stated, true)) == "overconfident" for _ in range(500))
    assert found / 500 > 0.7
    # a slope is the change over a hundred
    found = fit_slope(np.linspace(0.5, 0.3, 201))
    assert found.per_100 == pytest.approx(-0.1)
    assert found.direction == "falling"
    assert fit_slope(np.zeros(50)).direction == "no clear change"


def test_bias_needs_enough_reviews_and_has_two_directions() -> None:
    assert verdict(to_series(record(said(0.6, "success", 40)))) == "underconfident"
    wrong = said(1.0, "failure", MIN_REVIEWS_FOR_BIAS - 1)
    assert verdict(to_series(record(wrong))) == "too few reviews to say"
    assert verdict(to_series(record([*wrong, wrong[0]]))) == "overconfident"
    assert compute_bias(to_series([])) is None


@given(st.lists(PAIRS, min_size=MIN_REVIEWS_FOR_BIAS, max_size=60))
@examples(16)
def test_the_interval_is_around_the_size_and_always_the_same(pairs: list[tuple[float, Verdict]]) -> None:
    found = compute_bias(to_series(record(pairs)))
    assert found is not None
    assert found.interval95 is not None
    assert found.interval95[0] - 1e-6 <= found.size <= found.interval95[1] + 1e-6
    again = compute_bias(to_series(record(pairs[::-1])))
    assert again is not None
    assert again.interval95 == pytest.approx(found.interval95, abs=1e-6)


def test_windows_hold_every_decision_once_in_order_of_the_time_of_decision() -> None:
    pairs: list[tuple[float, Verdict]] = [(0.7, "success"), (0.9, "failure")] * 45
    known = record(pairs)
    found = compute_trend(known, to_series(known))
    assert found is not None
    assert [window.n for window in found.windows] == [23, 23, 22, 22]
    assert found.windows[0].start == known[0].decided_at
    assert found.windows[-1].end == known[-1].decided_at
    assert compute_trend(known[: 2 * WINDOW_SIZE - 1], to_series(known[: 2 * WINDOW_SIZE - 1])) is None
    late = replace(judged(0, 0.9, "failure"), reviewed_at=NOON + timedelta(days=365))
    early = [judged(place, 0.9, "success") for place in range(1, 2 * WINDOW_SIZE)]
    moved: list[ReviewedDecision] = [*early, late]
    found = build_calibration(moved).trend
    assert found is not None
    assert found.windows[0].start == NOON
    assert found.windows[0].end < NOON + timedelta(hours=WINDOW_SIZE)
    assert found.windows[0].base_rate == pytest.approx(1 - 1 / WINDOW_SIZE)


def test_a_fall_is_called_drift_and_a_steady_record_is_not() -> None:
    steady: list[tuple[float, Verdict]] = [(0.8, "success"), (0.8, "success"), (0.8, "failure"), (0.8, "success")]
    well, badly = steady * 25, said(0.8, "failure", RECENT_COUNT)
    falling, even = build_calibration(record([*well, *badly])), build_calibration(record(well))
    assert falling.trend and even.trend and falling.trend.drift and even.trend.drift
    assert falling.trend.drift.reasons == ("Brier score rises", "accuracy falls")
    assert falling.trend.brier.direction == "rising"
    assert even.trend.drift.reasons == ()


def test_groups_are_scored_apart_and_small_ones_get_no_verdict() -> None:
    ops = [judged(place, 0.9, "failure", category="ops", reasons=("analysis", "analogy")) for place in range(30)]
    code = [judged(30 + place, 0.9, "success", category="code", reasons=()) for place in range(5)]
    groups = build_calibration([*code, *ops]).groups
    assert [(group.name, group.n, group.base_rate, group.bias.verdict) for group in groups["category"]] == [
        ("ops", 30, 0.0, "overconfident"),
        ("code", 5, 1.0, "too few reviews to say"),
    ]
    assert [group.brier for group in groups["category"]] == pytest.approx([0.81, 0.01])
    assert [(group.name, group.n) for group in groups["reason"]] == [("analogy", 30), ("analysis", 30), (UNNAMED, 5)]
    assert [(group.name, group.n) for group in groups["frame"]] == [(UNNAMED, 35)]


def test_the_note_says_what_the_record_says() -> None:
    # S002-21
    pairs: list[tuple[float, Verdict]] = [(0.9, "success"), (0.9, "success"), (0.9, "failure")] * 10
    expected = (
        "Recent accuracy 67 %. Brier 0.277. Strongly overconfident: stated 90 % on average, 67 % came true; state less."
    )
    assert write_note(record(pairs), count=count) == expected
    sure = said(0.93, "success", 100)
    trusted = write_note(record(sure), count=count)
    assert trusted is not None
    assert trusted.startswith("Recent accuracy 100 %. Brier 0.005. Slightly underconfident: stated 93 %")
    fair = said(0.8, "success", 16) + said(0.8, "failure", 4)
    assert write_note(record(fair), count=count) == (
        "Recent accuracy 80 %. Brier 0.160. No sign of over- or underconfidence."
    )


def test_the_note_is_on_the_latest_decisions_if_there_are_enough() -> None:
    # S002-21
    assert write_note([], count=count) is None
    assert write_note(record(said(0.9, "failure", MIN_REVIEWS_FOR_BIAS - 1)), count=count) is None
    long_ago = said(0.9, "failure", 300)
    now = said(0.9, "success", 90) + said(0.9, "failure", 10)
    found = write_note(record([*long_ago, *now]), count=count)
    assert found == "Recent accuracy 90 %. Brier 0.090. No sign of over- or underconfidence."


@given(st.lists(PAIRS, max_size=120), st.integers(0, 40))
@examples(16)
def test_the_note_fits_its_tokens(pairs: list[tuple[float, Verdict]], most: int) -> None:
    # S002-21
    short = write_note(record(pairs), count=token_counter.count, max_tokens=most)
    full = write_note(record(pairs), count=token_counter.count)
    assert short is None or token_counter.count(short) <= most
    assert full is None or token_counter.count(full) <= MAX_NOTE_TOKENS // 2


def test_the_time_of_a_calibration_grows_with_its_decisions() -> None:
    rng = np.random.default_rng(15)
    stated = rng.beta(6, 2, 10_000)
    known = [
        judged(
            place, share, "success" if true else "failure", category=f"c{place % 8}", reasons=("analysis", "analogy")
        )
        for place, (share, true) in enumerate(zip(stated.tolist(), rng.random(10_000) < stated * 0.85, strict=True))
    ]

    assert build_calibration(known).n == 10_000
    assert_near_linear(lambda size: build_calibration(known[:size]), 10_000)


def test_a_note_does_not_wait_for_large_libraries() -> None:
    code = (
        "import sys\nfrom newton.brain.calibration import report\n"
        "from newton.brain.calibration.report import write_note\n"
        "assert write_note([], count=len) is None\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('scipy', 'sklearn', 'asyncpg')])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout == "[]\n"
