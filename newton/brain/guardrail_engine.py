"""Guardrails: what must hold of a choice before it is recorded, said in CEL and judged without asking anybody. Pure."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Literal, get_args

import cel

from newton.brain.cel_expressions import CEL_ERRORS, AllowedNames, compile_expression, first_line
from newton.brain.draft import DecisionDraft, DecisionReason, Stakes, TrackRecord
from newton.content.guardrails import Severity
from newton.errors import InputError

GuardrailOutcome = Literal["passed", "warned", "blocked", "not_evaluated"]
GuardrailSource = Literal["file", "own"]

MAX_ITEMS = 100  # of each list of a choice
MAX_TEXT_CHARS = 100_000  # characters of a choice in all

LISTS = frozenset({"alternatives", "tags", "reasons", "reason_kinds"})
VARIABLES = LISTS | {
    *("description", "context", "category", "stakes", "confidence", "frame", "expected", "reviewed_by", "ref"),
    *("at", "look_again_at"),
}
RECORD_FIELDS = frozenset(field.name for field in fields(TrackRecord))
ALLOWED_NAMES = AllowedNames(variables=VARIABLES, lists=LISTS, fields={"record": RECORD_FIELDS})
NULLABLE_RATES = frozenset({"success_rate", "brier", "category_success_rate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailRule:
    """A guardrail in force. Its expression is true when the choice breaks it; `message` says what to do instead."""

    name: str
    expression: str
    severity: Severity
    message: str
    description: str = ""
    source: GuardrailSource = "file"


@dataclass(frozen=True, slots=True)
class GuardrailResult:
    """What a guardrail says of a choice; `why` is set when it could not be evaluated."""

    rule: GuardrailRule
    verdict: GuardrailOutcome
    error: str | None = None

    @property
    def blocks(self) -> bool:
        """One that cannot be evaluated blocks as well, whatever its severity."""
        return self.verdict in ("blocked", "not_evaluated")

    @property
    def message(self) -> str:
        """For whoever is stopped or warned; empty when it passed."""
        match self.verdict:
            case "passed":
                return ""
            case "not_evaluated":
                return f"{self.rule.name} could not be evaluated: {self.error}"
            case "warned" | "blocked":
                return f"{self.rule.name}: {self.rule.message}"


def evaluate(rules: Sequence[GuardrailRule], draft: DecisionDraft, track_record: TrackRecord) -> list[GuardrailResult]:
    """What each rule says of the choice, in their order. Never raises: what fails is a ruling that blocks."""
    try:
        context = cel.Context(variables=_to_variables(draft, track_record))
    except InputError as error:
        return [GuardrailResult(rule, "not_evaluated", str(error)) for rule in rules]
    return [_evaluate_rule(rule, context) for rule in rules]


def _evaluate_rule(rule: GuardrailRule, context: cel.Context) -> GuardrailResult:
    try:
        broken = _is_broken(rule.expression, context)
    except InputError as error:
        return GuardrailResult(rule, "not_evaluated", str(error))
    if not broken:
        return GuardrailResult(rule, "passed")
    return GuardrailResult(rule, "blocked" if rule.severity == "block" else "warned")


def validate_expression(expression: str) -> None:
    """Nothing, if the expression can be a guardrail: within the limits, of known names, and true or false for whatever
    choice and record. Raises InputError that says what is wrong and what to do."""
    for sample in _sample_contexts():
        _is_broken(expression, sample)


def _is_broken(expression: str, context: cel.Context) -> bool:
    program = _compile(expression)
    try:
        result: object = program.execute(context)
    except CEL_ERRORS as error:
        raise InputError(f"It fails: {first_line(error)}.", hint=_suggest_fix(expression, error)) from None
    if not isinstance(result, bool):
        kind = "null" if result is None else type(result).__name__
        raise InputError(f"It is a {kind}, not true or false.", hint="Compare it with something.")
    return result


def _suggest_fix(expression: str, error: BaseException) -> str:
    if isinstance(error, ZeroDivisionError):
        return "Ask first whether the divisor is 0: record.judged > 0 && …"
    nullable = [f"record.{name}" for name in sorted(NULLABLE_RATES) if f"record.{name}" in expression]
    if "look_again_at" in expression:
        nullable.append("look_again_at")
    if nullable:
        return f"While nothing is known it is null: write {nullable[0]} != null && …"
    return "Compare a number with a number and a text with a text; double(…) makes a whole number a broken one."


@functools.lru_cache(maxsize=1_000)
def _compile(expression: str) -> cel.Program:
    return compile_expression(expression, ALLOWED_NAMES)


def _to_variables(draft: DecisionDraft, track_record: TrackRecord) -> dict[str, object]:
    """What an expression sees: a text that was not given is empty, a time or a rate that is not known is null.

    Raises InputError for a choice that is larger than a guardrail reads, or whose confidence is no share.
    """
    kinds = tuple(reason.kind for reason in draft.reasons)
    seen: dict[str, object] = {
        "description": draft.description,
        "context": draft.context or "",
        "alternatives": draft.alternatives,
        "reasons": kinds,
        "reason_kinds": tuple(dict.fromkeys(kinds)),
        "tags": draft.tags,
        "category": draft.category,
        "stakes": draft.stakes,
        "confidence": float(draft.confidence),
        "frame": draft.frame or "",
        "expected": draft.expected or "",
        "reviewed_by": draft.reviewed_by or "",
        "ref": draft.ref or "",
        "at": draft.at,
        "look_again_at": draft.look_again_at,
        "record": {name: getattr(track_record, name) for name in RECORD_FIELDS},
    }
    _check_limits(draft, seen)
    return seen


def _check_limits(draft: DecisionDraft, variables: dict[str, object]) -> None:
    if not 0 <= draft.confidence <= 1:
        raise InputError(f"A confidence of {draft.confidence} is no share.", hint="Give 0 to 1.")
    items = [draft.alternatives, draft.tags, draft.reasons]
    longest = max(map(len, items))
    if longest > MAX_ITEMS:
        raise InputError(f"A list of the choice has {longest:,} items.", hint=f"Guardrails read {MAX_ITEMS}.")
    texts = sum(map(len, draft.alternatives + draft.tags)) + sum(
        len(v) for v in variables.values() if isinstance(v, str)
    )
    if texts > MAX_TEXT_CHARS:
        raise InputError(
            f"The choice has {texts:,} characters.", hint=f"Guardrails read {MAX_TEXT_CHARS:,}: shorten it."
        )


@functools.cache
def _sample_contexts() -> tuple[cel.Context, ...]:
    """Choices that differ in what expressions ask first, with and without a record: a failure that hides behind an
    `&&` for one of them shows in another."""
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
    rated = TrackRecord(
        decisions=9,
        judged=5,
        open=4,
        overdue=1,
        success_rate=0.5,
        brier=0.25,
        category_judged=2,
        category_success_rate=0.5,
    )
    stakes: tuple[Stakes, ...] = get_args(Stakes)
    for choice, standing, level, confidence in product((bare, full), (TrackRecord(), rated), stakes, (0.0, 0.5, 1.0)):
        yield replace(choice, stakes=level, confidence=confidence), standing
