"""Recalibration: a map that never falls, chosen on the earlier decisions and judged by the later ones."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.brain.calibration.recalibration import (
    MIN_REVIEWS,
    CorrectionMap,
    RecalibrationResult,
    fit_isotonic,
    fit_platt,
    recalibrate,
)
from newton.brain.calibration.scores import FloatArray, ForecastSeries, to_series
from newton.brain.drafts import Verdict
from tests.support import examples
from tests.unit.judging import CONFIDENCES, PAIRS, drawn, record

STEPS = np.linspace(0, 1, 101)


def learnt(pairs: ForecastSeries) -> RecalibrationResult:
    found = recalibrate(pairs)
    assert found is not None
    return found


@given(st.lists(PAIRS, min_size=1, max_size=60), st.sampled_from([fit_platt, fit_isotonic]))
@examples(24)
def test_a_map_never_falls_and_stays_within_0_and_1(
    pairs: list[tuple[float, Verdict]], fit: Callable[[ForecastSeries], CorrectionMap]
) -> None:
    corrected = fit(to_series(record(pairs))).apply(STEPS)
    assert bool(np.all(np.diff(corrected) >= -1e-12))
    assert 0 <= corrected.min() <= corrected.max() <= 1


@given(st.lists(st.tuples(CONFIDENCES, st.sampled_from(["success", "failure"])), min_size=MIN_REVIEWS, max_size=80))
@examples(10)
def test_so_does_the_one_that_is_chosen(pairs: list[tuple[float, Verdict]]) -> None:
    found = learnt(to_series(record(pairs)))
    corrected = [one.corrected for one in found.map]
    assert corrected == sorted(corrected)
    assert 0 <= corrected[0] <= corrected[-1] <= 1
    assert found.earlier + found.later == len(pairs)


def test_platt_finds_the_curve_and_nothing_wild() -> None:
    rng = np.random.default_rng(1)
    stated = rng.uniform(0.02, 0.98, 20_000)
    true = 1 / (1 + np.exp(0.5 - 0.6 * np.log(stated / (1 - stated))))
    found = fit_platt(drawn(rng, stated, true))
    assert (found.slope, found.intercept) == (pytest.approx(0.6, abs=0.03), pytest.approx(-0.5, abs=0.04))
    found = fit_platt(ForecastSeries(np.full(40, 0.9), np.ones(40)))
    assert 0.9 < found.apply(np.array([0.9]))[0] < 0.999
    stated = np.tile([0.2, 0.8], 50)
    assert fit_platt(ForecastSeries(stated, (stated < 0.5).astype(np.float64))).slope == 0
    # isotonic is the mean of what must be joined
    stated = np.array([0.5, 0.6, 0.6, 0.7, 0.9, 0.9])
    found = fit_isotonic(ForecastSeries(stated, np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])))
    assert found.stated == (0.5, 0.6, 0.7, 0.9)
    assert found.observed == pytest.approx((0, 2 / 3, 2 / 3, 1))
    assert found.apply(np.array([0.0, 0.55, 0.65, 0.8, 1.0])) == pytest.approx([0, 1 / 3, 2 / 3, 5 / 6, 1])


def test_it_takes_thirty_reviews_to_correct_an_overconfident_recorder_and_not_a_calibrated_one() -> None:
    assert recalibrate(ForecastSeries(np.full(MIN_REVIEWS - 1, 0.9), np.ones(MIN_REVIEWS - 1))) is None
    assert learnt(ForecastSeries(np.full(MIN_REVIEWS, 0.9), np.ones(MIN_REVIEWS))).later == 10
    # an overconfident recorder is corrected to what comes true
    rng = np.random.default_rng(2)
    found = learnt(drawn(rng, np.full(1_500, 0.9), np.full(1_500, 0.6)))
    assert found.method != "none"
    assert found.helped
    assert {one.stated: one.corrected for one in found.map}[0.9] == pytest.approx(0.6, abs=0.06)
    assert found.brier_stated == pytest.approx(0.33, abs=0.05)
    assert found.brier_corrected == pytest.approx(0.24, abs=0.04)
    # a calibrated recorder mostly keeps the stated figures
    rng = np.random.default_rng(3)
    kept = 0
    for _ in range(60):
        stated = rng.uniform(0.5, 1, 120)
        kept += learnt(drawn(rng, stated, stated)).method == "none"
    assert kept >= 48


def test_a_fall_in_the_later_part_does_not_choose_a_map() -> None:
    even = ForecastSeries(np.tile([0.5, 0.5], 100), np.tile([0.0, 1.0], 100))
    fallen = ForecastSeries(
        np.concatenate([even.stated, np.full(100, 0.5)]), np.concatenate([even.outcome, np.zeros(100)])
    )
    found = learnt(fallen)
    assert (found.method, found.earlier, found.later) == ("none", 200, 100)
    assert found.brier_corrected == found.brier_stated == 0.25
    assert not found.helped


def test_the_later_part_has_no_say_in_the_choice_or_the_map_it_judges() -> None:
    rng = np.random.default_rng(4)
    stated: FloatArray = rng.uniform(0.7, 1, 300)
    whole = drawn(rng, stated, stated - 0.3)
    turned = ForecastSeries(whole.stated, np.concatenate([whole.outcome[:200], 1 - whole.outcome[200:]]))
    there, other = learnt(whole), learnt(turned)
    assert there.method == other.method != "none"
    fitted = fit_platt(whole.select(slice(200))) if there.method == "platt" else fit_isotonic(whole.select(slice(200)))
    for found, pairs in ((there, whole), (other, turned)):
        later = pairs.select(slice(200, None))
        assert found.brier_corrected == pytest.approx(((fitted.apply(later.stated) - later.outcome) ** 2).mean())
        assert found.brier_stated == pytest.approx(later.squared_errors.mean())
    assert there.helped
