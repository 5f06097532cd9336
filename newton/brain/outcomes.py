"""The outcomes that a decision can have, and their values in scores. Pure."""

from typing import Literal

Verdict = Literal["success", "partial", "failure"]

# The value of each outcome in shares and scores.
OUTCOME_SCORES: dict[Verdict, float] = {"success": 1.0, "partial": 0.5, "failure": 0.0}
