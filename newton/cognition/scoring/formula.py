"""User-defined score formulas: CEL expressions over the numeric features of a memory. Pure."""

import functools
import math
from collections.abc import Callable, Mapping

import cel

from newton.brain.cel_expressions import CEL_ERRORS, AllowedNames, compile_expression, first_line
from newton.errors import InputError

Values = Mapping[str, float]
Formula = Callable[[Values], float]

UNDEFINED_SCORE = 0.0  # for results that are no finite number, such as a division by 0


def _make_total(function: Callable[..., float], arity: int) -> Callable[..., float]:
    """Wrap a function to return NaN instead of failing, because the library prints exceptions."""

    def never_fails(*given: object) -> float:
        if len(given) != arity or not all(isinstance(one, float) for one in given):
            return math.nan
        try:
            made = function(*given)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan
        return made if isinstance(made, float) else math.nan

    return never_fails


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
    """Compile an expression. Raises InputError for an invalid expression or unknown names.

    The result is always finite: NaN and infinity count as `UNDEFINED_SCORE`.
    """
    program = compile_expression(
        expression, AllowedNames(variables=frozenset(variables), math_functions=frozenset(FUNCTIONS))
    )

    def computed(values: Values) -> float:
        try:
            made = _evaluate(program, values)
        except CEL_ERRORS:
            return UNDEFINED_SCORE
        return made if math.isfinite(made) else UNDEFINED_SCORE

    return computed


def check_formula(expression: str, variables: tuple[str, ...]) -> None:
    """Validate an expression on sample values.

    Raises InputError when it fails on any sample or is finite on none.
    """
    program = compile_expression(
        expression, AllowedNames(variables=frozenset(variables), math_functions=frozenset(FUNCTIONS))
    )
    try:
        made = [_evaluate(program, dict.fromkeys(variables, value)) for value in (0.0, 0.3, 1.0, 20_000.0)]
    except CEL_ERRORS as error:
        raise InputError(f"It fails: {first_line(error)}.", hint="It must be a number for every memory.") from None
    if not any(map(math.isfinite, made)):
        raise InputError("It is no number for any memory.", hint="Look at what its functions take: ln(x), pow(x, y).")


def _evaluate(program: cel.Program, values: Values) -> float:
    made: object = program.execute(cel.Context(variables=dict(values), functions=dict(FUNCTIONS)))
    if not isinstance(made, float):
        raise TypeError("It is not a number")
    return made
