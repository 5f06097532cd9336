"""What an expression may say, what is refused before it is ever run, and that what is accepted ends soon."""

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.brain.cel_expressions import FUNCTIONS, LOOPS
from newton.brain.drafts import DecisionDraft, DecisionReason, GuardrailResult, Stakes, TrackRecord
from newton.brain.guardrails import (
    LISTS,
    MAX_ITEMS,
    MAX_TEXT_CHARS,
    NULLABLE_RATES,
    RECORD_FIELDS,
    VARIABLES,
    GuardrailRule,
    Severity,
    evaluate,
    validate_expression,
)
from newton.errors import InputError
from tests.cases import load_cases
from tests.support import NOON
from tests.timing import assert_quick

CASES = load_cases(__file__)

CHOICE = DecisionDraft(
    description="Move to Postgres", confidence=0.7, at=NOON, reasons=(DecisionReason("analysis", "it is one"),)
)
RATED = TrackRecord(decisions=10, judged=8, open=2, overdue=1, success_rate=0.25, brier=0.4, category_judged=0)


def rule(expression: str, severity: Severity = "block") -> GuardrailRule:
    return GuardrailRule(name="planted", expression=expression, severity=severity, message="Do something else.")


def ruling(expression: str, choice: DecisionDraft = CHOICE, standing: TrackRecord | None = None) -> GuardrailResult:
    (only,) = evaluate([rule(expression)], choice, standing or TrackRecord())
    return only


def refusal(expression: str) -> str:
    with pytest.raises(InputError) as refused:
        validate_expression(expression)
    return str(refused.value)


HOLDING = CASES["HOLDING"]


@pytest.mark.parametrize("expression", HOLDING)
def test_an_expression_sees_the_choice_and_the_record(expression: str) -> None:
    validate_expression(expression)
    assert ruling(expression).verdict == "blocked"
    assert ruling(f"!({expression})").verdict == "passed"


def test_an_expression_sees_the_record_of_the_agent() -> None:
    expression = "record.success_rate != null && record.success_rate < 0.5 && record.overdue == 1"
    assert [ruling(expression, CHOICE, standing).verdict for standing in (TrackRecord(), RATED)] == [
        "passed",
        "blocked",
    ]
    # reasons of one kind are one kind
    twice = replace(
        CHOICE,
        reasons=(DecisionReason("analysis", "a"), DecisionReason("analysis", "b"), DecisionReason("analogy", "c")),
    )
    assert ruling("size(reasons) == 3 && size(reason_kinds) == 2", twice).verdict == "blocked"


REFUSED = CASES["REFUSED"] | {
    "typo behind a condition": (
        "stakes == 'none' && record.sucess_rate < 0.5",
        "'record.sucess_rate' is not a known field. Did you mean 'record.success_rate'?",
    ),
    "sometimes a number": (
        "stakes == 'critical' ? 1 : 2",
        "The expression returns int; a guardrail must return true or false.",
    ),
    "long": (f"confidence < 0.{'5' * 600}", "has 615 characters. The maximum is 500"),
    "deep": (f"{'(' * 30}true{')' * 30}", "nested too deep"),
    "many refusals": (f"{'!' * 60}true", "too many ! in a row"),
    "half a character": ("stakes == '\ud800'", "an invisible character"),
}


@pytest.mark.parametrize(("expression", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_a_guardrail_is_refused_when_it_is_made(expression: str, complaint: str) -> None:
    assert complaint in refusal(expression)


@pytest.mark.parametrize("expression", [expression for expression, _ in REFUSED.values()])
def test_what_was_refused_blocks_if_it_is_judged_all_the_same(expression: str) -> None:
    # A sample may fail where this choice does not; what is refused for its words always fails.
    given = ruling(expression, CHOICE)
    assert given.verdict in ("not_evaluated", "passed", "blocked")
    if given.verdict == "passed":
        assert any(rate in expression for rate in (*NULLABLE_RATES, "look_again_at")), "only a null that is not reached"


def test_every_rule_has_its_ruling_in_order_and_only_a_warning_does_not_block() -> None:
    (given,) = evaluate([rule("record.open / record.decisions > 0", "warn")], CHOICE, TrackRecord())
    assert (given.verdict, given.blocks) == ("not_evaluated", True)
    assert given.message.startswith(
        "The guardrail planted could not be evaluated: The expression fails: division by zero in CEL expression."
    )
    (given,) = evaluate([rule("confidence < 0.9", "warn")], CHOICE, TrackRecord())
    assert (given.verdict, given.blocks, given.message) == ("warned", False, "planted: Do something else.")
    # every rule has its ruling in order
    rules = [rule("confidence < 0.9"), rule("confidence > 0.9"), rule("nonsense"), rule("true", "warn")]
    rulings = evaluate(rules, CHOICE, TrackRecord())
    assert [r.name for r in rulings] == [one.name for one in rules]
    assert [r.verdict for r in rulings] == ["blocked", "passed", "not_evaluated", "warned"]
    assert evaluate([], CHOICE, TrackRecord()) == []


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        (replace(CHOICE, tags=("t",) * (MAX_ITEMS + 1)), "A list of the decision has 101 items."),
        (replace(CHOICE, reasons=CHOICE.reasons * (MAX_ITEMS + 1)), "A list of the decision has 101 items."),
        (replace(CHOICE, context="c" * MAX_TEXT_CHARS), "The decision has 100,0"),
        (replace(CHOICE, alternatives=("c" * MAX_TEXT_CHARS,)), "The decision has 100,0"),
        (replace(CHOICE, confidence=float("nan")), "A confidence of nan is out of range."),
        (replace(CHOICE, confidence=1.1), "A confidence of 1.1 is out of range."),
    ],
)
def test_a_choice_over_the_limits_is_blocked_by_every_rule(choice: DecisionDraft, complaint: str) -> None:
    (given,) = evaluate([rule("confidence > 2.0", "warn")], choice, TrackRecord())
    assert given.blocks
    assert complaint in given.message


LARGEST = replace(
    CHOICE,
    description="a" * 400,
    context="b" * 30_000,
    alternatives=("a" * 300,) * MAX_ITEMS,
    tags=("a" * 380,) * MAX_ITEMS,
    reasons=CHOICE.reasons * MAX_ITEMS,
)
PARTS = [
    *("size(tags.filter(x, true)) > 0", "tags.filter(x, true) == tags", "tags.all(x, x in tags)", "tags == tags"),
    *("tags.all(x, tags == tags)", "context.contains(context)", "tags.all(x, context.contains('bbbba') || true)"),
    *("context == context", "-1 < 1", "duration('1h') > duration('1m')"),
]
INSIDE = [
    *("tags == tags", "tags == alternatives", "x in tags", "context.contains(x)", "x.contains(x)", "size(x) > 0"),
    *(f"context.contains('{'b' * 100}a')", "1 / 0 == 1", "context == context"),
]


def filled(head: str, part: str, sign: str, tail: str) -> str:
    times = (500 - len(head) - len(tail) + len(sign)) // (len(part) + len(sign))
    return head + sign.join([part] * times) + tail


HEAVIEST = [
    *(filled("", part, sign, "") for part in PARTS for sign in ("&&", "||")),
    *(
        filled(f"tags.{loop}(x,", part, sign, ")" if loop != "filter" else ") == []")
        for part in INSIDE
        for sign in ("&&", "||")
        for loop in sorted(LOOPS)
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("expression", HEAVIEST)
def test_the_heaviest_expressions_end_soon_on_the_largest_choice(expression: str) -> None:
    assert_quick(lambda: ruling(expression, LARGEST))  # what the limits keep out takes minutes or gigabytes
    given = ruling(expression, LARGEST)
    assert given.error is None or "fails" in given.error


BOMBS = [
    "[1,2,3,4,5,6,7,8,9,0].all(a, " * 9 + "true" + ")" * 9,
    "['a']" + ".map(x, x + x)" * 40 + " == []",
    "tags.all(a, " + "+".join(["tags"] * 90) + " != [])",
    "('" + "a" * 300 + "').matches('(" + "\\\\w{90}){90}')",
    "1" + "+1" * 200_000,
    "(" * 200_000,
    "{1:" * 100_000 + "1" + "}" * 100_000,
    "stakes" + ".a" * 100_000,
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[:20])
def test_what_would_hang_or_crash_the_library_never_reaches_it(bomb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("newton.brain.cel_expressions.cel.compile")
    assert refusal(bomb)
    assert ruling(bomb).verdict == "not_evaluated"


@pytest.mark.slow
def test_the_library_does_crash_without_the_limits() -> None:
    """Should this fail one day, the limit on length guards against less than it did."""
    code = "import cel; cel.compile('1' + '+1' * 200_000)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False).returncode < 0


WORDS = sorted(
    {*VARIABLES, *LISTS, *FUNCTIONS, *LOOPS, *(f"record.{name}" for name in RECORD_FIELDS)}
    | {"x", "record", "map", "matches"}
    | {"true", "false", "null", "in", "0", "1", "0.5", "'a'", '"', "'", "''", "r'", "\\", "//", "\n", "é", "[1]", "@"}
    | set("()[],.!?:-*/%<>+{}") | {"&&", "||", "==", "!=", "<=", ">=", " "}
)  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=40), st.sampled_from(["", " "]))
def test_whatever_is_written_is_judged_or_refused_and_never_raises(words: list[str], between: str) -> None:
    expression = between.join(words)
    given = ruling(expression)
    assert given.verdict in ("blocked", "passed", "not_evaluated")
    assert (given.error is not None) == (given.verdict == "not_evaluated")


@given(
    st.sampled_from(["low", "medium", "high", "critical"]), st.floats(0, 1), st.none() | st.floats(0, 1), st.booleans()
)
def test_a_verdict_is_the_expression_and_nothing_else(
    stakes: Stakes, confidence: float, rate: float | None, strict: bool
) -> None:
    given = replace(CHOICE, stakes=stakes, confidence=confidence)
    expression = "stakes == 'high' && confidence < 0.5 || record.success_rate != null && record.success_rate < 0.25"
    (only,) = evaluate([rule(expression, "block" if strict else "warn")], given, TrackRecord(success_rate=rate))
    broken = (stakes == "high" and confidence < 0.5) or (rate is not None and rate < 0.25)
    assert only.verdict == (("blocked" if strict else "warned") if broken else "passed")
