"""Scores: public forecasts, a small set worked out by hand, scikit-learn, and what must always hold."""

import csv
import json
import math
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.brain.calibration.report import build_calibration
from newton.brain.calibration.scores import (
    BIN_COUNT,
    LOG_CLIP,
    CalibrationScores,
    ForecastSeries,
    compute_scores,
    to_series,
    wilson_interval,
)
from newton.brain.drafts import ReviewedDecision, Verdict
from newton.errors import InputError
from tests.unit.judging import CONFIDENCES, NUMBERED, PAIRS, judged, record, said, to_json

FORECASTS = Path(__file__).parents[3] / "shared" / "bench" / "forecasts"
OUTCOMES: dict[str, Verdict] = {"0": "failure", "0.5": "partial", "1": "success"}


def scored(judged: list[ReviewedDecision]) -> CalibrationScores:
    found = compute_scores(to_series(judged))
    assert found is not None
    return found


def forecasts(name: str) -> list[ReviewedDecision]:
    with (FORECASTS / f"{name}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return record([(float(row["prob1"]), OUTCOMES[row["prob1_outcome"]]) for row in rows])


def close(got: Any, expected: Any) -> bool:
    """Whether both are alike to 1e-9, all the way down."""
    if isinstance(expected, dict):
        wanted = cast(dict[str, Any], expected)
        return all(close(got[key], value) for key, value in wanted.items())
    if isinstance(expected, list):
        listed = cast(list[Any], expected)
        return len(got) == len(listed) and all(close(a, b) for a, b in zip(got, listed, strict=True))
    return got == expected if isinstance(expected, str) else abs(got - expected) < 1e-9


@pytest.mark.parametrize("name", ["nfl_games", "nhl_games"])
def test_public_forecasts_score_as_others_have_computed(name: str) -> None:
    if not FORECASTS.is_dir():
        pytest.skip("the public forecasts are not on this machine")
    golden = json.loads((FORECASTS / "golden.json").read_text(encoding="utf-8"))[name]
    every = forecasts(name)
    settled = [one for one in every if one.outcome != "partial"]
    assert close(to_json(build_calibration(settled)), golden)
    # Draws are partial outcomes. With them in the record, the figures without them stand apart.
    apart = to_json(build_calibration(every))
    assert apart["n"] == len(every)
    assert apart["partials"] == len(every) - len(settled)
    assert len(every) == len(settled) or close(apart["without_partials"], golden)


# Two edges of bins (0.3, 0.8), a partial outcome, a whole certainty on the wrong side. Worked out with fractions.
BY_HAND: list[tuple[float, Verdict]] = [
    (0.25, "failure"),
    (0.3, "success"),
    (0.8, "success"),
    (0.8, "failure"),
    (0.85, "partial"),
    (1.0, "failure"),
    (1.0, "success"),
    (1.0, "success"),
]


def test_a_set_worked_out_by_hand() -> None:
    found = scored(record(BY_HAND))
    assert (found.n, found.partials, found.base_rate) == (8, 1, 0.5625)
    assert found.brier == pytest.approx(2.355 / 8)
    assert found.uncertainty == pytest.approx(1.71875 / 8)
    assert found.brier_skill_vs_base == pytest.approx(1 - 2.355 / 1.71875)
    assert [(one.bin, one.n) for one in found.bins] == [
        ("0.2-0.3", 1),
        ("0.3-0.4", 1),
        ("0.8-0.9", 3),
        ("0.9-1.0", 3),
    ]
    gaps = [0.25, 0.7, 0.95 / 3, 1 / 3]
    assert found.ece10 == pytest.approx((gaps[0] + gaps[1] + 3 * gaps[2] + 3 * gaps[3]) / 8)
    assert found.mce10 == pytest.approx(0.7)
    assert found.reliability == pytest.approx((0.0625 + 0.49 + 3 * gaps[2] ** 2 + 3 * gaps[3] ** 2) / 8)
    assert found.resolution == pytest.approx(
        (0.5625**2 + 0.4375**2 + 3 * (0.5 - 0.5625) ** 2 + 3 * (2 / 3 - 0.5625) ** 2) / 8
    )
    assert found.sharpness_var == pytest.approx(5.155 / 8 - 0.75**2)
    logs = [math.log(0.75), math.log(0.3), math.log(0.8), math.log(0.2), math.log(0.85 * 0.15) / 2, math.log(LOG_CLIP)]
    assert found.log_loss == pytest.approx(-(sum(logs) + 2 * math.log(1 - LOG_CLIP)) / 8)


def test_groups_of_equal_size_do_not_depend_on_who_came_first_among_equals() -> None:
    # S002-20: all say 0.8 and 16 of 20 come true, so there is no gap, in whatever order they came.
    pairs = said(0.8, "failure", 4) + said(0.8, "success", 16)
    assert scored(record(pairs)).ece10_equal_mass == pytest.approx(0)
    assert scored(record(pairs[::-1])).ece10_equal_mass == pytest.approx(0)


def test_nothing_judged_is_said() -> None:
    assert compute_scores(to_series([])) is None
    told = to_json(build_calibration([]))
    assert (told["n"], told["says"], told["bias"], told["bins"]) == (0, "nothing judged", None, [])


@pytest.mark.parametrize("wrong", [-0.01, 1.01, math.nan, math.inf])
def test_a_confidence_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="outside 0 to 1"):
        build_calibration([judged(0, 0.5, "success"), judged(1, wrong, "failure")])


@pytest.mark.slow
def test_brier_and_log_score_are_those_of_scikit_learn() -> None:
    metrics = import_module("sklearn.metrics")
    rng = np.random.default_rng(4)
    for _ in range(200):
        n = int(rng.integers(1, 60))
        stated = np.clip(rng.beta(rng.uniform(0.3, 5), rng.uniform(0.3, 5), n), LOG_CLIP, 1 - LOG_CLIP)
        outcome = rng.integers(0, 2, n).astype(np.float64)
        found = compute_scores(ForecastSeries(stated, outcome))
        assert found is not None
        assert found.brier == pytest.approx(metrics.brier_score_loss(outcome, stated, pos_label=1), abs=1e-12)
        assert found.log_loss == pytest.approx(metrics.log_loss(outcome, stated, labels=[0, 1]), abs=1e-9)


@given(st.lists(PAIRS, min_size=1, max_size=60))
def test_every_figure_is_finite_and_within_its_bounds(pairs: list[tuple[float, Verdict]]) -> None:
    found = scored(record(pairs))
    figures = {name: value for name, value in asdict(found).items() if isinstance(value, float)}
    assert all(math.isfinite(value) for value in figures.values())
    shares = ("base_rate", "brier", "ece10", "ece10_equal_mass", "mce10", "reliability")
    assert all(-1e-12 <= figures[name] <= 1 + 1e-12 for name in shares)
    assert all(-1e-12 <= figures[name] <= 0.25 + 1e-12 for name in ("resolution", "uncertainty", "sharpness_var"))
    assert figures["resolution"] <= figures["uncertainty"] + 1e-12
    assert 0 <= figures["log_loss"] <= -math.log(LOG_CLIP) + 1e-9
    assert figures["ece10"] <= figures["mce10"] + 1e-12
    assert (found.brier_skill_vs_base is None) == (len({outcome for _, outcome in pairs}) == 1)
    assert sum(one.n for one in found.bins) == len(pairs)
    assert all(one.wilson95[0] - 1e-12 <= one.observed <= one.wilson95[1] + 1e-12 for one in found.bins)


@given(st.lists(st.tuples(st.integers(0, BIN_COUNT - 1), st.sampled_from(NUMBERED)), min_size=1, max_size=60))
def test_murphys_parts_add_up_when_each_bin_has_one_forecast(pairs: list[tuple[int, Verdict]]) -> None:
    found = scored(record([((place + 0.5) / BIN_COUNT, outcome) for place, outcome in pairs]))
    assert found.brier == pytest.approx(found.reliability - found.resolution + found.uncertainty, abs=1e-12)


@given(st.lists(PAIRS, min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_neither_order_of_arrival_nor_time_changes_a_score(pairs: list[tuple[float, Verdict]], random: Any) -> None:
    known = record(pairs)
    mixed = known.copy()
    random.shuffle(mixed)
    there, back = build_calibration(known), build_calibration(record(pairs[::-1]))
    assert to_json(build_calibration(mixed)) == to_json(there)
    assert close(to_json(back)["bins"], to_json(there)["bins"])
    assert there.scores is not None and back.scores is not None
    assert there.scores.brier == pytest.approx(back.scores.brier)
    assert there.scores.ece10_equal_mass == pytest.approx(back.scores.ece10_equal_mass, abs=1e-9)


@given(CONFIDENCES, st.integers(1, 10_000))
def test_wilsons_interval_holds_the_share_and_shrinks(share: float, n: int) -> None:
    low, high = wilson_interval(share, n)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    assert wilson_interval(share, 4 * n)[1] - wilson_interval(share, 4 * n)[0] < high - low
