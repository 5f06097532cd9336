"""What an older statement says besides what a newer one changes. The sentences were written before the rules."""

import pytest

from newton.heart.statements.clauses import list_untouched
from tests.cases import load_cases

CASES = load_cases(__file__)


@pytest.mark.parametrize(("older", "newer", "rest"), CASES["the_clauses_that_nothing_is_said_of_stay"])
def test_the_clauses_that_nothing_is_said_of_stay(older: str, newer: str, rest: list[str]) -> None:
    found = list_untouched(older, newer)
    assert len(found) == len(rest) and all(words in one for words, one in zip(rest, found, strict=True)), found


@pytest.mark.parametrize(("older", "newer"), CASES["nothing_stays_of_what_is_one_thing_or_not_sure"])
def test_nothing_stays_of_what_is_one_thing_or_not_sure(older: str, newer: str) -> None:
    assert list_untouched(older, newer) == []


def test_what_another_text_is_about_does_not_stay() -> None:
    older, newer = "Staging runs Postgres 15 and the backups go to S3.", "Staging runs Postgres 16."
    assert list_untouched(older, newer) == ["The backups go to S3."]
    assert list_untouched(older, newer, ["The backups are on Hetzner."]) == []
