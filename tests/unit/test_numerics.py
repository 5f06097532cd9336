"""The numerical methods of the fits give what SciPy gives, without SciPy in an installation."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.numerics import Floats, compute_t_quantile, fit_isotonic_levels, minimize_convex
from tests.support import examples

# they have no type hints
optimize: Any = import_module("scipy.optimize")
special: Any = import_module("scipy.special")
SEEDS = st.integers(0, 10_000)


def logistic(inputs: Floats, signs: Floats, penalty: float, point: Floats) -> tuple[float, Floats, Floats]:
    margin = signs * (inputs @ point)
    missed = 1 / (1 + np.exp(np.clip(margin, -500, 500)))
    value = float(np.logaddexp(0, -margin).sum() + penalty / 2 * point @ point)
    hessian = inputs.T @ (inputs * (missed * (1 - missed))[:, None]) + penalty * np.eye(len(point))
    return value, -inputs.T @ (signs * missed) + penalty * point, hessian


@given(SEEDS, st.integers(1, 8), st.sampled_from([0.01, 1.0]))
@examples(24)
def test_the_minimum_is_that_of_a_quasi_newton_method(seed: int, features: int, penalty: float) -> None:
    dice = np.random.default_rng(seed)
    inputs, signs = dice.normal(size=(60, features)), np.sign(dice.normal(size=60))
    upper = np.full(features, 0.7)

    found = minimize_convex(
        lambda x: logistic(inputs, signs, penalty, x), np.full(features, 0.5), lower=np.zeros(features), upper=upper
    )

    def value_and_gradient(x: Floats) -> tuple[float, Floats]:
        return logistic(inputs, signs, penalty, x)[:2]

    expected = optimize.minimize(
        value_and_gradient,
        np.full(features, 0.5),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, 0.7)] * features,
    )
    assert logistic(inputs, signs, penalty, found)[0] <= expected.fun + 1e-9 * abs(expected.fun)
    assert (found >= 0).all() and (found <= upper).all()
    assert found == pytest.approx(expected.x, abs=0.01)


def test_a_function_without_curvature_is_left_at_its_start() -> None:
    flat = minimize_convex(lambda x: (1.0, np.zeros(2), np.zeros((2, 2))), np.array([0.3, 2.0]), lower=np.zeros(2))
    assert flat.tolist() == [0.3, 2.0]


@given(SEEDS, st.integers(1, 80))
@examples(24)
def test_levels_are_those_of_an_isotonic_regression(seed: int, size: int) -> None:
    dice = np.random.default_rng(seed)
    values, weights = dice.random(size).round(2), dice.integers(1, 9, size).astype(np.float64)
    expected = optimize.isotonic_regression(values, weights=weights).x
    assert fit_isotonic_levels(values, weights) == pytest.approx(expected)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_quantiles_are_those_of_students_t(level: float) -> None:
    for freedom in (1, 2, 3, 7, 30, 61, 1_000, 100_000):
        assert compute_t_quantile(freedom, level) == pytest.approx(special.stdtrit(freedom, (1 + level) / 2), rel=1e-4)
