"""The option `--override`, which changes values of the frame and the profile of one context."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter
from pydantic import ValidationError

from newton.cognition.request import ContextOverrides
from newton.content.validation_messages import describe_problem
from newton.errors import InputError

OverridesOption = Annotated[
    list[str] | None,
    Parameter(
        "--override",
        negative=(),
        help="Change one value for this context: weights.FEATURE, such as weights.recency=0.4; reach.depth, salient,"
        " events, sessions or failures, such as reach.depth=3; or budget.recent, semantic, entity and patterns, in"
        " percent, all four. Repeatable.",
    ),
]
HINT = "Give values such as --override weights.recency=0.4 --override reach.depth=3 --override reach.failures=false."


def parse_overrides(assignments: Sequence[str]) -> ContextOverrides:
    """Return the overrides that assignments such as `reach.depth=3` state. Raises InputError for an invalid one.

    >>> parse_overrides(["reach.depth=3", "weights.recency=0.4"]).as_json()
    {'weights': {'recency': 0.4}, 'reach': {'depth': 3}}
    """
    groups: dict[str, dict[str, Any]] = {}
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        group, _, field = name.strip().partition(".")
        groups.setdefault(group, {})[field] = _parse_value(value.strip())
    try:
        return ContextOverrides.model_validate(groups)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise InputError(f"--override {where}: {describe_problem(problem)}.", hint=HINT) from None


def _parse_value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
