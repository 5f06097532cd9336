"""The guardrails that ship say what they should; a folder of one's own overlays them; a mistake names file and line."""

from dataclasses import replace
from pathlib import Path

import pytest

from newton.agent.services.guardrails import load_file_guardrails
from newton.brain.drafts import DecisionDraft, DecisionReason, ReasonKind, Stakes, TrackRecord
from newton.brain.guardrails import GuardrailRule, evaluate
from newton.errors import ConfigError
from tests.cases import load_cases
from tests.support import NOON

CASES = load_cases(__file__)

SHIPPED = [
    *("critical-without-review", "no-reason", "one-kind-of-reason", "one-kind-of-reason-when-critical"),
    "unsure-at-high-stakes",
]

GOOD = """\
name: review-first
description: Decisions that nobody reviews teach nothing.
expression: record.overdue > 5 && stakes != 'low'
severity: warn
message: Review what is overdue first.
"""


def rules(extra: Path | None = None) -> list[GuardrailRule]:
    return [
        GuardrailRule(name=g.name, expression=g.expression, severity=g.severity, message=g.message)
        for g in load_file_guardrails(extra).values()
    ]


def choice(stakes: Stakes, confidence: float, *kinds: ReasonKind, reviewed_by: str | None = None) -> DecisionDraft:
    reasons = tuple(DecisionReason(kind, "because") for kind in kinds)
    return DecisionDraft(
        description="x", confidence=confidence, at=NOON, stakes=stakes, reasons=reasons, reviewed_by=reviewed_by
    )


def broken(given: DecisionDraft) -> dict[str, str]:
    return {r.name: r.verdict for r in evaluate(rules(), given, TrackRecord()) if r.verdict != "passed"}


def test_the_defaults_ship_and_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(load_file_guardrails(None)) == SHIPPED
    assert all(
        given.description.endswith(".") and given.message.endswith(".") for given in load_file_guardrails(None).values()
    )
    # judging by the defaults compiles nothing anew
    given, known = choice("high", 0.7, "analysis", "empirical"), rules()
    given = replace(given, description="Move to Postgres. " * 20, context="It is one thing to back up. " * 50)
    first = evaluate(known, given, TrackRecord())
    monkeypatch.delattr("newton.brain.guardrails.compile_expression")
    assert evaluate(known, given, TrackRecord()) == first


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (choice("low", 0.1, "intuition"), {}),
        (choice("medium", 0.4, "analysis"), {}),
        (choice("low", 0.9), {"no-reason": "blocked"}),
        (choice("high", 0.5, "analysis", "empirical"), {}),
        (choice("high", 0.49, "analysis", "empirical"), {"unsure-at-high-stakes": "blocked"}),
        (choice("high", 0.9, "analysis", "analysis"), {"one-kind-of-reason": "warned"}),
        (choice("critical", 0.9, "analysis", "empirical"), {"critical-without-review": "blocked"}),
        (choice("critical", 0.9, "analysis", "empirical", reviewed_by="Ana"), {}),
        (
            choice("critical", 0.1, "analysis", reviewed_by="Ana"),
            {"one-kind-of-reason-when-critical": "blocked", "unsure-at-high-stakes": "blocked"},
        ),
    ],
)
def test_the_defaults_judge_a_choice(given: DecisionDraft, expected: dict[str, str]) -> None:
    assert broken(given) == expected


def test_a_folder_of_ones_own_adds_and_replaces(tmp_path: Path) -> None:
    (tmp_path / "review-first.yaml").write_text(GOOD, encoding="utf-8")
    softer = GOOD.replace("review-first", "no-reason").replace("record.overdue > 5", "size(reasons) == 0")
    (tmp_path / "no-reason.yaml").write_text(softer, encoding="utf-8")
    known = load_file_guardrails(tmp_path)
    assert sorted(known) == sorted([*SHIPPED, "review-first"])
    assert known["no-reason"].severity == "warn"


WRONG = CASES["WRONG"]


@pytest.mark.parametrize(("good", "bad", "complaint"), WRONG.values(), ids=WRONG)
def test_a_mistake_names_its_file_and_line(tmp_path: Path, good: str, bad: str, complaint: str) -> None:
    assert GOOD.count(good) == 1
    path = tmp_path / "review-first.yaml"
    path.write_text(GOOD.replace(good, bad), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load_file_guardrails(tmp_path)
    assert str(refused.value).startswith(f"{path}:{complaint}")
