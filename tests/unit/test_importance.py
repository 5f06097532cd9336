"""Importance: given by hand on a scale of ten, or what the record makes of it, as docs/importance.md says."""

import re
from pathlib import Path

import pytest

from newton.errors import InputError
from newton.memory.memory import KINDS, derive_importance, normalize_importance

GUIDE = (Path(__file__).parents[2] / "docs/importance.md").read_text(encoding="utf-8")


def test_nothing_given_is_one_of_ten_and_a_person_gives_it_on_a_scale_of_ten() -> None:
    # S000-16
    assert (
        derive_importance("fact", "NEW", None, 0)
        == derive_importance("exchange", "ACTIVE", None, 0)
        == pytest.approx(0.1)
    )
    # a person gives it on a scale of ten
    assert (normalize_importance(0), normalize_importance(7), normalize_importance(10), normalize_importance(None)) == (
        0,
        0.7,
        1,
        None,
    )
    # whatever the record it stays on the scale
    for kind in KINDS:
        for state in ("NEW", "CORE", "EFFECTIVE", "ESCALATED", "REVIEWED"):
            for outcome in (None, "success", "failure"):
                assert 0 < derive_importance(kind, state, outcome, 10**9) <= 1


@pytest.mark.parametrize("importance", [-0.1, 10.1, float("nan"), float("inf")])
def test_what_is_not_on_the_scale_is_refused(importance: float) -> None:
    with pytest.raises(InputError, match="from 0 to 10"):
        normalize_importance(importance)


def test_the_guide_tells_the_numbers_that_are_used() -> None:
    # S000-16
    told = [[int(n) for n in re.findall(r"\d+", row.rpartition("|")[0].rpartition("|")[2])] for row in rows()]
    plain = derive_importance("fact", "NEW", None, 0)
    used = [
        [plain],
        [
            derive_importance("decision", "RECORDED", None, 0) - plain,
            derive_importance("episode", "ACTIVE", None, 0) - plain,
        ],
        [derive_importance("fact", "CONFIRMED", None, 0) - plain, derive_importance("fact", "CORE", None, 0) - plain],
        [
            derive_importance("procedure", "EFFECTIVE", None, 0) - plain,
            derive_importance("censor", "ESCALATED", None, 0) - plain,
        ],
        [derive_importance("fact", "NEW", outcome, 0) - plain for outcome in ("failure", "success")],
        [derive_importance("fact", "NEW", None, uses) - plain for uses in (9, 1_000)],
    ]
    assert told == [[round(10 * share) for share in row] for row in used]


def rows() -> list[str]:
    return [line for line in GUIDE.splitlines() if line.startswith("| ") and "| record" not in line]
