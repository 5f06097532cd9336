"""Which lines of an identity say the same, and which cannot both be followed."""

import pytest

from newton.heart.identity.conflicts import LineRelation, compare_lines
from tests.cases import load_cases

RELATIONS: dict[LineRelation | None, str] = {"same": "same", "against": "against", None: "neither"}


@pytest.mark.parametrize("expected", RELATIONS)
def test_two_lines_are_the_same_against_each_other_or_neither(expected: LineRelation | None) -> None:
    for one, other in load_cases(__file__)[RELATIONS[expected]]:
        assert compare_lines(one, other) == compare_lines(other, one) == expected, one
        assert compare_lines(one, one) == "same"
