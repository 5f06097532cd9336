"""Evaluation of guardrails (CEL conditions that a decision must not meet) before a decision is recorded. Pure."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Literal, get_args

import cel

from newton.brain.cel_expressions import CEL_ERRORS, AllowedNames, compile_expression, first_line
from newton.brain.decision_checks import GuardrailResult
from newton.brain.draft import DecisionDraft, DecisionReason, Stakes, TrackRecord
from newton.content.guardrails import Severity
from newton.errors import InputError

GuardrailSource = Literal["file", "own"]

MAX_ITEMS = 100  # of each list of a draft
MAX_TEXT_CHARS = 100_000  # of all texts of a draft

LISTS = frozenset({"alternatives", "tags", "reasons", "reason_kinds"})
VARIABLES = LISTS | {
    *("description", "context", "category", "stakes", "confidence", "frame", "expected", "reviewed_by", "ref"),
    *("at", "look_again_at"),
}
OPTIONAL_TEXTS = ("context", "frame", "expected", "reviewed_by", "ref")
RECORD_FIELDS = frozenset(field.name for field in fields(TrackRecord))
ALLOWED_NAMES = AllowedNames(variables=VARIABLES, lists=LISTS, fields={"record": RECORD_FIELDS})
NULLABLE_RATES = frozenset({"success_rate", "brier", "category_success_rate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailRule:
    """A guardrail. Its expression is true for a decision that violates it; `message` says what to do instead."""

    name: str
    expression: str
    severity: Severity
    message: str
    description: str = ""
    source: GuardrailSource = "file"


def evaluate(rules: Sequence[GuardrailRule], draft: DecisionDraft, track_record: TrackRecord) -> list[GuardrailResult]:
    """Evaluate each rule for a draft, in order. An error does not raise, but gives a result that blocks."""
    try:
        context = cel.Context(variables=_to_variables(draft, track_record))
    except InputError as error:
        return [_fail(rule, error) for rule in rules]
    return [_evaluate_rule(rule, context) for rule in rules]


def _evaluate_rule(rule: GuardrailRule, context: cel.Context) -> GuardrailResult:
    try:
        if not _is_broken(rule.expression, context):
            return GuardrailResult(name=rule.name, verdict="passed")
    except InputError as error:
        return _fail(rule, error)
    verdict = "blocked" if rule.severity == "block" else "warned"
    return GuardrailResult(name=rule.name, verdict=verdict, message=f"{rule.name}: {rule.message}")


def _fail(rule: GuardrailRule, error: InputError) -> GuardrailResult:
    message = f"The guardrail {rule.name} could not be evaluated: {error}"
    return GuardrailResult(name=rule.name, verdict="not_evaluated", message=message, error=str(error))


def validate_expression(expression: str) -> None:
    """Raise InputError unless an expression is within the limits, uses known names and gives a boolean.

    It is evaluated for sample drafts.
    """
    for sample in _sample_contexts():
        _is_broken(expression, sample)


def _is_broken(expression: str, context: cel.Context) -> bool:
    program = _compile(expression)
    try:
        result: object = program.execute(context)
    except CEL_ERRORS as error:
        raise InputError(f"The expression fails: {first_line(error)}.", hint=_suggest_fix(expression, error)) from None
    if not isinstance(result, bool):
        kind = "null" if result is None else type(result).__name__
        message = f"The expression returns {kind}; a guardrail must return true or false."
        raise InputError(message, hint="Use a comparison, such as confidence < 0.5.")
    return result


def _suggest_fix(expression: str, error: BaseException) -> str:
    if isinstance(error, ZeroDivisionError):
        return "Check the divisor first: record.judged > 0 && …"
    nullable = [f"record.{name}" for name in sorted(NULLABLE_RATES) if f"record.{name}" in expression]
    if "look_again_at" in expression:
        nullable.append("look_again_at")
    if nullable:
        return f"{nullable[0]} is null while it is unknown: write {nullable[0]} != null && …"
    return "Compare numbers with numbers and strings with strings; double(…) converts an integer."


@functools.lru_cache(maxsize=1_000)
def _compile(expression: str) -> cel.Program:
    return compile_expression(expression, ALLOWED_NAMES)


def _to_variables(draft: DecisionDraft, track_record: TrackRecord) -> dict[str, object]:
    """Return the CEL variables of a draft: missing texts are empty, unknown times and rates are null.

    Raises InputError for a draft that exceeds the limits or whose confidence is outside [0, 1].
    """
    kinds = tuple(reason.kind for reason in draft.reasons)
    variables: dict[str, object] = {name: getattr(draft, name) for name in VARIABLES - {"reasons", "reason_kinds"}}
    variables |= {name: variables[name] or "" for name in OPTIONAL_TEXTS}
    variables |= {"reasons": kinds, "reason_kinds": tuple(dict.fromkeys(kinds)), "confidence": float(draft.confidence)}
    variables["record"] = {name: getattr(track_record, name) for name in RECORD_FIELDS}
    _check_limits(draft, variables)
    return variables


def _check_limits(draft: DecisionDraft, variables: dict[str, object]) -> None:
    if not 0 <= draft.confidence <= 1:
        raise InputError(f"A confidence of {draft.confidence} is out of range.", hint="Give a confidence from 0 to 1.")
    longest = max(map(len, (draft.alternatives, draft.tags, draft.reasons)))
    if longest > MAX_ITEMS:
        raise InputError(f"A list of the decision has {longest:,} items.", hint=f"The maximum is {MAX_ITEMS} items.")
    texts = [*draft.alternatives, *draft.tags, *(value for value in variables.values() if isinstance(value, str))]
    if (chars := sum(map(len, texts))) > MAX_TEXT_CHARS:
        raise InputError(
            f"The decision has {chars:,} characters.", hint=f"Shorten the texts to {MAX_TEXT_CHARS:,} characters."
        )


@functools.cache
def _sample_contexts() -> tuple[cel.Context, ...]:
    """Return the CEL variables of varied sample drafts, with and without a track record.

    An error that `&&` hides for one sample shows for another.
    """
    return tuple(cel.Context(variables=_to_variables(*sample)) for sample in _sample_inputs())


def _sample_inputs() -> Iterator[tuple[DecisionDraft, TrackRecord]]:
    noon = datetime(2000, 1, 1, 12, tzinfo=UTC)
    bare = DecisionDraft(description="a choice", confidence=0.5, at=noon)
    full = replace(
        bare,
        context="why now",
        alternatives=("one", "other"),
        reasons=(DecisionReason("analysis", "a"), DecisionReason("empirical", "b"), DecisionReason("empirical", "c")),
        tags=("first",),
        frame="decision",
        expected="it works",
        look_again_at=noon + timedelta(days=7),
        reviewed_by="ana",
        ref="d1",
    )
    counts = TrackRecord(decisions=9, judged=5, open=4, overdue=1, category_judged=2)
    records = (TrackRecord(), replace(counts, success_rate=0.5, brier=0.25, category_success_rate=0.5))
    stakes: tuple[Stakes, ...] = get_args(Stakes)
    for draft, record, level, confidence in product((bare, full), records, stakes, (0.0, 0.5, 1.0)):
        yield replace(draft, stakes=level, confidence=confidence), record
