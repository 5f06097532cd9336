"""What an expression may say, what is refused before it is ever run, and that what is accepted ends soon."""

import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.brain.cel_expressions import FUNCTIONS, LOOPS
from newton.brain.decision_checks import GuardrailResult
from newton.brain.draft import DecisionDraft, DecisionReason, Stakes, TrackRecord
from newton.brain.guardrail_engine import (
    LISTS,
    MAX_ITEMS,
    MAX_TEXT_CHARS,
    NULLABLE_RATES,
    RECORD_FIELDS,
    VARIABLES,
    GuardrailRule,
    evaluate,
    validate_expression,
)
from newton.content.guardrails import Severity
from newton.errors import InputError
from tests.support import NOON
from tests.timing import assert_quick

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


TRUE = [
    "description.contains('Postgres') && description.startsWith('Move') && description.endsWith('s')",
    "context == '' && frame == '' && expected == '' && reviewed_by == '' && ref == ''",
    "confidence == 0.7 && confidence < 1 && double(size(reasons)) * confidence < 1.0",
    "stakes in ['medium', 'high'] && !(stakes == 'low')",
    "size(reasons) == 1 && reasons == ['analysis'] && reason_kinds.all(k, k == 'analysis')",
    "size(alternatives) == 0 && tags.all(t, t == 'x') && !tags.exists(t, true)",
    "size(reasons.filter(r, r != 'intuition')) == 1 && reasons.exists_one(r, r == 'analysis')",
    "record.judged == 0 && record.success_rate == null && record.brier == null",
    "look_again_at == null || look_again_at - at > duration('24h')",
    "confidence > .5 ? category == 'process' : false",
    '"a\\"b" != \'\' && "+ // [ matches(" != "map("',
]


@pytest.mark.parametrize("expression", TRUE)
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


REFUSED = {
    "typo": ("sakes == 'high'", "'sakes' is not a known variable. Did you mean 'stakes'?"),
    "typo behind a condition": (
        "stakes == 'none' && record.sucess_rate < 0.5",
        "'record.sucess_rate' is not a known field. Did you mean 'record.success_rate'?",
    ),
    "typo that nothing depends on": ("true || confidenc < 0.5", "'confidenc' is not a known variable. Did you mean"),
    "typo in a function": ("siz(tags) == 0", "'siz' is not an available function. Did you mean 'size'?"),
    "unknown function": ("sleep(9) == 0", "'sleep' is not an available function. The functions are all, contains,"),
    "the item outside its loop": ("tags.exists(t, true) || t == 'x'", "'t' is not a known variable."),
    "no field": ("record == null", "'record' needs a field."),
    "field of a text": ("stakes.size == 1", "'stakes' has no fields. Only record has fields."),
    "field of a field": ("record.judged.record.judged == 1", "has no fields."),
    "null rate": (
        "stakes == 'high' && record.brier > 0.3",
        "record.brier is null while it is unknown: write record.brier != null && …",
    ),
    "null time": ("look_again_at < at", "write look_again_at != null && …"),
    "division by zero": (
        "record.open / record.decisions > 0",
        "division by zero in CEL expression. Check the divisor first",
    ),
    "a number": (
        "confidence",
        "a guardrail must return true or false. Use a comparison, such as confidence < 0.5.",
    ),
    "a text": ("'yes'", "The expression returns str; a guardrail must return true or false."),
    "nothing": ("record.brier", "The expression returns null; a guardrail must return true or false."),
    "sometimes a number": (
        "stakes == 'critical' ? 1 : 2",
        "The expression returns int; a guardrail must return true or false.",
    ),
    "two kinds of number": (
        "confidence * 2 > 1",
        "The expression fails: Unsupported operation: float * int. Compare numbers",
    ),
    "overflow": ("9223372036854775807 * 2 > 1", "The expression fails: Arithmetic overflow"),
    "unfinished": ("confidence <", "Invalid CEL expression: 1:13: Syntax error"),
    "unclosed": ("(confidence < 0.5", "Invalid CEL expression"),
    "closed twice": ("confidence < 0.5)", "Invalid CEL expression"),
    "empty": (" \n ", "The expression is empty. Write a condition for a violation"),
    "one sign": ("stakes = 'high'", "'=' is not allowed in an expression. Use == to compare."),
    "long": (f"confidence < 0.{'5' * 600}", "has 615 characters. The maximum is 500"),
    "deep": (f"{'(' * 30}true{')' * 30}", "nested too deep"),
    "many refusals": (f"{'!' * 60}true", "too many ! in a row"),
    "sum": ("'a' + 'b' == 'ab'", "'+' is not allowed in an expression. Addition is not supported"),
    "loop in a loop": ("tags.all(t, tags.all(u, u == t))", "all is inside another loop."),
    "loop over a list of its own": ("[1, 2].all(x, x > 0)", "all needs a list."),
    "loop over a result": ("tags.filter(t, true).all(t, true)", "all needs a list."),
    "method as a function": ("contains(category, 'a')", "'contains' is not allowed here. Write text.contains"),
    "function as a method": ("confidence.double() > 0.5", "'double' is not allowed here. Write double(…)."),
    "map": ("tags.map(t, t) == []", "'map' is not an available function. Use all, exists"),
    "variable in a list": ("[tags] == []", "'tags' is not allowed in a list."),
    "list in a list": ("[[1]] == []", "'[' is not allowed in a list."),
    "open list": ("tags == ['a'", "Invalid CEL expression"),
    "index": ("tags[0] == 'a'", "An expression cannot take an item of a list"),
    "pattern": (
        "description.matches('(a+)+')",
        "'matches' is not an available function. Use a censor to match patterns",
    ),
    "has": ("has(record.brier)", "compare it with null"),
    "map literal": ("{'a': 1} == {'a': 1}", "'{' is not allowed in an expression."),
    "taken name": ("tags.all(stakes, true)", "'stakes' is already the name of a variable."),
    "nameless item": ("tags.all(1, true)", "all does not name its loop variable."),
    "half a loop": ("tags.all(", "all does not name its loop variable."),
    "remark": ("true // always", "'//' is not allowed in an expression."),
    "three quotes": ('stakes == """high"""', "starts with three quotes"),
    "raw text": ("stakes == r'high'", "'r' is not a known variable."),
    "open text": ("stakes == 'high", "A string is not closed"),
    "unsigned": ("size(tags) < 1u", "'1u' is not a number."),
    "quoted name": ("`stakes` == 'high'", "'`' is not allowed in an expression."),
    "NUL": ("stakes == '\0'", "an invisible character"),
    "half a character": ("stakes == '\ud800'", "an invisible character"),
    "struct": ("Choice{a: 1} == null", "'{' is not allowed in an expression."),
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
