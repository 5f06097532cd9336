"""Numerical methods of the fits: convex minimization within bounds, isotonic regression, Student's t quantile. Pure.

They are in the place of a few functions of scipy, which would be a quarter of the installation.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
# Returns the value, the gradient and the Hessian of a function at a point.
Objective: TypeAlias = Callable[[Floats], tuple[float, Floats, Floats]]

MAX_ITERATIONS = 200
GRADIENT_TOLERANCE = 1e-8  # relative to the value of the function
DAMPING = 1e-10  # added to the Hessian, relative to its trace, so that a flat direction does not make it singular
SUFFICIENT_DECREASE = 1e-4  # share of the expected decrease that a step must reach (Armijo's rule)
MIN_STEP = 1e-12
GRID_POINTS = 20_001
TAIL_WIDTHS = 12.0  # standard deviations beyond which the tails of the t distribution are negligible


def minimize_convex(objective: Objective, start: Floats, *, lower: Floats, upper: Floats | None = None) -> Floats:
    """Return the point within the bounds where a smooth convex function is lowest, by projected Newton steps.

    Coordinates at a bound that the gradient would push beyond it stay there during a step.
    """
    high = np.full(len(start), np.inf) if upper is None else upper
    point = np.clip(np.asarray(start, dtype=np.float64), lower, high)
    value, gradient, hessian = objective(point)
    for _ in range(MAX_ITERATIONS):
        is_fixed = ((point <= lower) & (gradient > 0)) | ((point >= high) & (gradient < 0))
        free = ~is_fixed
        if not free.any() or np.abs(gradient[free]).max() <= GRADIENT_TOLERANCE * max(1.0, abs(value)):
            break
        direction = np.zeros(len(point))
        direction[free] = -_solve_damped(hessian[np.ix_(free, free)], gradient[free])
        moved = _search_line(objective, point, direction, (lower, high))
        if moved is None:
            break
        point, value, gradient, hessian = moved
    return point


def _solve_damped(hessian: Floats, gradient: Floats) -> Floats:
    damping = DAMPING * max(float(np.trace(hessian)), 1.0)
    return np.asarray(np.linalg.solve(hessian + damping * np.eye(len(gradient)), gradient), dtype=np.float64)


def _search_line(
    objective: Objective, point: Floats, direction: Floats, bounds: tuple[Floats, Floats]
) -> tuple[Floats, float, Floats, Floats] | None:
    """Halve the step until the function decreases by Armijo's rule; return the new point, None if no step does."""
    value, gradient, _ = objective(point)
    step = 1.0
    while step > MIN_STEP:
        moved = np.clip(point + step * direction, *bounds)
        found = objective(moved)
        if found[0] < value + SUFFICIENT_DECREASE * float(gradient @ (moved - point)):
            return moved, *found
        step /= 2
    return None


def fit_isotonic_levels(values: Floats, weights: Floats) -> Floats:
    """Return the nondecreasing levels with the least weighted squared distance from the values.

    Neighbours that decrease are pooled into their weighted mean until none does.
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, number of values
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] >= pool[0]:
            mean, total, count = pools.pop()
            together = total + pool[1]
            pool = ((mean * total + pool[0] * pool[1]) / together, together, count + pool[2])
        pools.append(pool)
    return np.repeat([mean for mean, _, _ in pools], [count for _, _, count in pools])


def compute_t_quantile(degrees_of_freedom: int, level: float) -> float:
    """Return the bound below which the absolute value of Student's t stays with the probability `level`.

    With t = sqrt(n) tan(a), the density of the angle `a` is proportional to cos(a) ** (n - 1).
    """
    widest = min(math.pi / 2, TAIL_WIDTHS / math.sqrt(degrees_of_freedom))
    angles = np.linspace(0, widest, GRID_POINTS)
    density = np.cos(angles) ** (degrees_of_freedom - 1)
    probability = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    angle = np.interp(level, probability / probability[-1], angles)
    return math.sqrt(degrees_of_freedom) * math.tan(float(angle))
