"""300 labelled beliefs of one person: `recall` returns the right ones, and few others."""

from pathlib import Path
from typing import Any

import yaml

BELIEFS: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[1] / "data/labelled_beliefs.yaml").read_text(encoding="utf-8")
)


def test_the_questions_have_zero_to_four_right_beliefs() -> None:
    counts = [len(question["right"]) for question in BELIEFS["questions"]]
    assert (len(BELIEFS["facts"]), len(counts), min(counts), max(counts)) == (300, 100, 0, 4)
    assert all(ref in BELIEFS["facts"] for question in BELIEFS["questions"] for ref in question["right"])
