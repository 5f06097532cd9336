"""Guardrails: what must hold of a choice before it is recorded, said in CEL and judged without asking anybody. Pure."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Literal, get_args

import cel

from newton.brain.choice import Choice, Reason, Stakes, Standing
from newton.brain.expressions import FAILURES, Names, compiled, first_line
from newton.content.guardrails import Severity
from newton.errors import InputError

Verdict = Literal["passed", "warned", "blocked", "not_evaluated"]
Source = Literal["file", "own"]

MOST_ITEMS = 100  # of each list of a choice
MOST_TEXT = 100_000  # characters of a choice in all

LISTS = frozenset({"alternatives", "tags", "reasons", "reason_kinds"})
VARIABLES = LISTS | {
    *("description", "context", "category", "stakes", "confidence", "frame", "expected", "reviewed_by", "ref"),
    *("at", "look_again_at"),
}
RECORD = frozenset(field.name for field in fields(Standing))
NAMES = Names(variables=VARIABLES, lists=LISTS, fields={"record": RECORD})
RATES = frozenset({"success_rate", "brier", "category_success_rate"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A guardrail in force. Its expression is true when the choice breaks it; `message` says what to do instead."""

    name: str
    expression: str
    severity: Severity
    message: str
    description: str = ""
    source: Source = "file"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a guardrail says of a choice; `why` is set when it could not be evaluated."""

    rule: Rule
    verdict: Verdict
    why: str | None = None

    @property
    def blocks(self) -> bool:
        """One that cannot be evaluated blocks as well, whatever its severity."""
        return self.verdict in ("blocked", "not_evaluated")

    @property
    def words(self) -> str:
        """For whoever is stopped or warned; empty when it passed."""
        match self.verdict:
            case "passed":
                return ""
            case "not_evaluated":
                return f"{self.rule.name} could not be evaluated: {self.why}"
            case "warned" | "blocked":
                return f"{self.rule.name}: {self.rule.message}"


def judge(rules: Sequence[Rule], choice: Choice, standing: Standing) -> list[Ruling]:
    """What each rule says of the choice, in their order. Never raises: what fails is a ruling that blocks."""
    try:
        context = cel.Context(variables=_variables(choice, standing))
    except InputError as error:
        return [Ruling(rule, "not_evaluated", str(error)) for rule in rules]
    return [_judged(rule, context) for rule in rules]


def _judged(rule: Rule, context: cel.Context) -> Ruling:
    try:
        broken = _broken(rule.expression, context)
    except InputError as error:
        return Ruling(rule, "not_evaluated", str(error))
    if not broken:
        return Ruling(rule, "passed")
    return Ruling(rule, "blocked" if rule.severity == "block" else "warned")


def check(expression: str) -> None:
    """Nothing, if the expression can be a guardrail: within the limits, of known names, and true or false for whatever
    choice and record. Raises InputError that says what is wrong and what to do."""
    for sample in _samples():
        _broken(expression, sample)


def _broken(expression: str, context: cel.Context) -> bool:
    program = _program(expression)
    try:
        result: object = program.execute(context)
    except FAILURES as error:
        raise InputError(f"It fails: {first_line(error)}.", hint=_remedy(expression, error)) from None
    if not isinstance(result, bool):
        kind = "null" if result is None else type(result).__name__
        raise InputError(f"It is a {kind}, not true or false.", hint="Compare it with something.")
    return result


def _remedy(expression: str, error: BaseException) -> str:
    if isinstance(error, ZeroDivisionError):
        return "Ask first whether the divisor is 0: record.judged > 0 && …"
    nullable = [f"record.{name}" for name in sorted(RATES) if f"record.{name}" in expression]
    if "look_again_at" in expression:
        nullable.append("look_again_at")
    if nullable:
        return f"While nothing is known it is null: write {nullable[0]} != null && …"
    return "Compare a number with a number and a text with a text; double(…) makes a whole number a broken one."


@functools.lru_cache(maxsize=1_000)
def _program(expression: str) -> cel.Program:
    return compiled(expression, NAMES)


def _variables(choice: Choice, standing: Standing) -> dict[str, object]:
    """What an expression sees: a text that was not given is empty, a time or a rate that is not known is null.

    Raises InputError for a choice that is larger than a guardrail reads, or whose confidence is no share.
    """
    kinds = tuple(reason.kind for reason in choice.reasons)
    seen: dict[str, object] = {
        "description": choice.description,
        "context": choice.context or "",
        "alternatives": choice.alternatives,
        "reasons": kinds,
        "reason_kinds": tuple(dict.fromkeys(kinds)),
        "tags": choice.tags,
        "category": choice.category,
        "stakes": choice.stakes,
        "confidence": float(choice.confidence),
        "frame": choice.frame or "",
        "expected": choice.expected or "",
        "reviewed_by": choice.reviewed_by or "",
        "ref": choice.ref or "",
        "at": choice.at,
        "look_again_at": choice.look_again_at,
        "record": {name: getattr(standing, name) for name in RECORD},
    }
    _within_limits(choice, seen)
    return seen


def _within_limits(choice: Choice, seen: dict[str, object]) -> None:
    if not 0 <= choice.confidence <= 1:
        raise InputError(f"A confidence of {choice.confidence} is no share.", hint="Give 0 to 1.")
    items = [choice.alternatives, choice.tags, choice.reasons]
    longest = max(map(len, items))
    if longest > MOST_ITEMS:
        raise InputError(f"A list of the choice has {longest:,} items.", hint=f"Guardrails read {MOST_ITEMS}.")
    texts = sum(map(len, choice.alternatives + choice.tags)) + sum(len(v) for v in seen.values() if isinstance(v, str))
    if texts > MOST_TEXT:
        raise InputError(f"The choice has {texts:,} characters.", hint=f"Guardrails read {MOST_TEXT:,}: shorten it.")


@functools.cache
def _samples() -> tuple[cel.Context, ...]:
    """Choices that differ in what expressions ask first, with and without a record: a failure that hides behind an
    `&&` for one of them shows in another."""
    return tuple(cel.Context(variables=_variables(*sample)) for sample in _pairs())


def _pairs() -> Iterator[tuple[Choice, Standing]]:
    noon = datetime(2000, 1, 1, 12, tzinfo=UTC)
    bare = Choice(description="a choice", confidence=0.5, at=noon)
    full = replace(
        bare,
        context="why now",
        alternatives=("one", "other"),
        reasons=(Reason("analysis", "a"), Reason("empirical", "b"), Reason("empirical", "c")),
        tags=("first",),
        frame="decision",
        expected="it works",
        look_again_at=noon + timedelta(days=7),
        reviewed_by="ana",
        ref="d1",
    )
    rated = Standing(
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
    for choice, standing, level, confidence in product((bare, full), (Standing(), rated), stakes, (0.0, 0.5, 1.0)):
        yield replace(choice, stakes=level, confidence=confidence), standing
