"""Repeated mistakes in labelled decisions of four authors, and in forecasts that are alike in wording."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from newton.brain.draft import ReasonKind
from newton.brain.repeated_mistakes import (
    AssessedPair,
    DecisionVector,
    RepeatReport,
    find_near_failures,
    summarize_repeats,
)
from newton.providers.minilm import MiniLM

FOLDER = Path(__file__).parents[1] / "data" / "repeated_mistakes"
# Two kinds of reasons that the authors used and Newton does not have.
OTHER_KINDS: Mapping[str, ReasonKind] = {"pattern": "analogy", "constraint": "elimination"}


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def load(name: str) -> list[dict[str, Any]]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["decisions"]


def assess(rows: Sequence[Mapping[str, Any]], model: MiniLM) -> RepeatReport:
    """The report on decisions in order of time, each reviewed before the next one is made; ids are positions."""
    known = [
        DecisionVector(
            decision_id=UUID(int=place),
            decided_at=(at := datetime.fromisoformat(row["date"]).replace(tzinfo=UTC) + timedelta(seconds=place)),
            reviewed_at=at if row["outcome"] else None,
            outcome=row["outcome"],
            category=row["category"],
            reason_kinds=frozenset(OTHER_KINDS.get(one["type"], one["type"]) for one in row["reasons"]),
            vector=vector,
        )
        for place, (row, vector) in enumerate(zip(rows, model.embed_now([row["text"] for row in rows]), strict=True))
    ]
    pairs = [
        AssessedPair(
            pair=pair,
            decided_at=known[pair.decision_id.int].decided_at,
            outcome=known[pair.decision_id.int].outcome,
            description=None,
            failed_description=None,
            answered=False,
            shown=False,
        )
        for pair in find_near_failures(known, since=known[0].decided_at)
    ]
    return summarize_repeats(known, pairs)


def count_right(names: Sequence[str], model: MiniLM) -> tuple[int, int, int]:
    """The counts of decisions named, of those named with the failure that they repeat, and of those that repeat one."""
    named, right, labelled = 0, 0, 0
    for name in names:
        rows = load(name)
        repeated = assess(rows, model).repeated
        named += len(repeated)
        right += sum(
            rows[one.pair.decision_id.int]["repeats"] == rows[one.pair.failed_id.int]["id"] for one in repeated
        )
        labelled += sum(row["repeats"] is not None for row in rows)
    return named, right, labelled


@pytest.mark.slow
def test_decisions_that_repeat_a_failure_are_named_and_those_that_learnt_from_it_are_not(model: MiniLM) -> None:
    named, right, labelled = count_right(["heldout_2", "heldout_3", "heldout_4"], model)
    assert (labelled, right / named >= 0.8, right / labelled >= 0.4) == (15, True, True), (named, right)
    named, right, labelled = count_right(["dev_1"], model)
    assert (labelled, right == named, right >= 2) == (6, True, True), (named, right)


def test_forecasts_alike_in_wording_repeat_no_mistake(model: MiniLM) -> None:
    teams = ("Rams", "Bengals", "Chiefs", "Bills", "Packers", "Titans", "Ravens")
    rows = [
        {
            "date": f"2026-{1 + number // 25:02}-{1 + number % 25:02}",
            "text": f"{teams[number % 7]} beat {teams[number % 5 - 1]} in week {number}",
            "category": "forecast",
            "reasons": [{"type": "empirical"}],
            "outcome": "success" if number % 9 in (0, 2, 3, 6, 8) else "failure",
        }
        for number in range(100)
    ]
    assert (assess(rows, model).repeated, assess(rows, model).compared) == ((), 100)
