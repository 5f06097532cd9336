"""A score as a formula of a person's own: CEL over the features of a memory, numbers alone. Pure."""

import functools
import math
from collections.abc import Callable, Mapping

import cel

from newton.brain.expressions import FAILURES, Names, compiled, first_line
from newton.errors import InputError

Values = Mapping[str, float]
Formula = Callable[[Values], float]

NOTHING = 0.0  # what a formula counts that has no number for a memory, such as a division by 0


def _total(function: Callable[..., float], takes: int) -> Callable[..., float]:
    """The function, with no number in the place of every failure: the library would print them."""

    def never_fails(*given: object) -> float:
        if len(given) != takes or not all(isinstance(one, float) for one in given):
            return math.nan
        try:
            made = function(*given)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan
        return made if isinstance(made, float) else math.nan

    return never_fails


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "ln": _total(math.log, 1),
    "log10": _total(math.log10, 1),
    "exp": _total(math.exp, 1),
    "sqrt": _total(math.sqrt, 1),
    "abs": _total(math.fabs, 1),
    "pow": _total(math.pow, 2),
    "min": _total(min, 2),
    "max": _total(max, 2),
}


@functools.lru_cache(maxsize=100)
def formula(expression: str, variables: tuple[str, ...]) -> Formula:
    """What computes it. Raises InputError for an expression outside the limits, or of unknown names.

    The result is always finite: what is no number counts 0.
    """
    program = compiled(expression, Names(variables=frozenset(variables), maths=frozenset(FUNCTIONS)))

    def computed(values: Values) -> float:
        try:
            made = _made(program, values)
        except FAILURES:
            return NOTHING
        return made if math.isfinite(made) else NOTHING

    return computed


def check(expression: str, variables: tuple[str, ...]) -> None:
    """Nothing, if the expression gives a number for some memory and fails for none of a few that differ much.

    Raises InputError that says what is wrong and what to do.
    """
    program = compiled(expression, Names(variables=frozenset(variables), maths=frozenset(FUNCTIONS)))
    try:
        made = [_made(program, dict.fromkeys(variables, value)) for value in (0.0, 0.3, 1.0, 20_000.0)]
    except FAILURES as error:
        raise InputError(f"It fails: {first_line(error)}.", hint="It must be a number for every memory.") from None
    if not any(map(math.isfinite, made)):
        raise InputError("It is no number for any memory.", hint="Look at what its functions take: ln(x), pow(x, y).")


def _made(program: cel.Program, values: Values) -> float:
    made: object = program.execute(cel.Context(variables=dict(values), functions=dict(FUNCTIONS)))
    if not isinstance(made, float):
        raise TypeError("It is not a number")
    return made
