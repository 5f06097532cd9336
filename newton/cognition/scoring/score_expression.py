"""Score formulas of users: CEL expressions over the numeric features of a memory. Pure."""

import functools
import math
from collections.abc import Callable, Mapping

import cel

from newton.brain.cel_expressions import CEL_ERRORS, AllowedNames, compile_expression, first_line
from newton.errors import InputError

Values = Mapping[str, float]
Formula = Callable[[Values], float]

UNDEFINED_SCORE = 0.0  # for results that are not finite, such as a division by 0


def _make_total(function: Callable[..., float], arity: int) -> Callable[..., float]:
    """Wrap a function so that it returns NaN instead of raising, because the CEL library prints exceptions."""

    def total(*args: object) -> float:
        if len(args) != arity or not all(isinstance(arg, float) for arg in args):
            return math.nan
        try:
            result = function(*args)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan
        return result if isinstance(result, float) else math.nan

    return total


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "ln": _make_total(math.log, 1),
    "log10": _make_total(math.log10, 1),
    "exp": _make_total(math.exp, 1),
    "sqrt": _make_total(math.sqrt, 1),
    "abs": _make_total(math.fabs, 1),
    "pow": _make_total(math.pow, 2),
    "min": _make_total(min, 2),
    "max": _make_total(max, 2),
}


@functools.lru_cache(maxsize=100)
def compile_formula(expression: str, variables: tuple[str, ...]) -> Formula:
    """Compile an expression to a function from features to a score.

    The score is finite: NaN, infinity and errors give `UNDEFINED_SCORE`. Raises InputError for an invalid expression or
    an unknown name.
    """
    program = _compile_program(expression, variables)

    def compute(values: Values) -> float:
        try:
            score = _evaluate(program, values)
        except CEL_ERRORS:
            return UNDEFINED_SCORE
        return score if math.isfinite(score) else UNDEFINED_SCORE

    return compute


def check_formula(expression: str, variables: tuple[str, ...]) -> None:
    """Evaluate an expression on sample values.

    Raises InputError if it fails on any sample, or gives no finite number on any of them.
    """
    program = _compile_program(expression, variables)
    try:
        scores = [_evaluate(program, dict.fromkeys(variables, value)) for value in (0.0, 0.3, 1.0, 20_000.0)]
    except CEL_ERRORS as error:
        raise InputError(
            f"The expression fails: {first_line(error)}.", hint="The expression must give a number for every memory."
        ) from None
    if not any(map(math.isfinite, scores)):
        raise InputError(
            "The expression gives a number for none of the sample values.",
            hint="Check the arguments of the functions in the expression: ln(x), pow(x, y).",
        )


def _compile_program(expression: str, variables: tuple[str, ...]) -> cel.Program:
    names = AllowedNames(variables=frozenset(variables), math_functions=frozenset(FUNCTIONS))
    return compile_expression(expression, names)


def _evaluate(program: cel.Program, values: Values) -> float:
    score: object = program.execute(cel.Context(variables=dict(values), functions=dict(FUNCTIONS)))
    if not isinstance(score, float):
        raise TypeError("It is not a number")
    return score
