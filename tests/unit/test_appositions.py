"""Appositions in told statements. The sentences were written before the rules."""

import pytest

from newton.heart.statements.appositions import find_appositions
from tests.cases import load_cases

CASES = load_cases(__file__)


@pytest.mark.parametrize(("text", "statements"), CASES["an_apposition_is_found"])
def test_an_apposition_is_found(text: str, statements: list[str]) -> None:
    # S002-17: what a superseded statement says besides is kept
    assert [one.statement for one in find_appositions(text)] == statements


@pytest.mark.parametrize("text", CASES["other_phrases_are_none"])
def test_other_phrases_are_none(text: str) -> None:
    assert find_appositions(text) == []
