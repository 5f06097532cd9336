"""Guardrails (CEL conditions that a decision must not meet): from YAML files, stored by an agent, and evaluated."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, cast, get_args
from uuid import UUID

import cel
from asyncpg import Record
from pydantic import Field, ValidationInfo, field_validator

from newton.brain.cel_expressions import CEL_ERRORS, AllowedNames, compile_expression, first_line
from newton.brain.drafts import DecisionDraft, DecisionReason, GuardrailResult, Stakes, TrackRecord
from newton.content.package_data import data_folder
from newton.content.yaml_files import ExpressionCheck, NamedModel, check_expression, did_you_mean, read_folder
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError, NotFoundError

SQL = load("newton.brain", "guardrails.sql")

Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
Severity = Literal["warn", "block"]


class Guardrail(NamedModel):
    """A rule that is checked before a decision is recorded."""

    description: Text = Field(description="The reason for the guardrail.")
    expression: str = Field(description="A CEL expression that is true if a decision violates the rule.")
    severity: Severity = Field(description="What happens to a decision that violates the rule: warn or block.")
    message: Text = Field(description="The text shown when a decision violates the rule: what to do instead.")

    @field_validator("expression")
    @classmethod
    def _check_expression(cls, expression: str, info: ValidationInfo) -> str:
        return check_expression(expression, cast("dict[str, ExpressionCheck]", info.context)["check"])


def load_guardrails(check: ExpressionCheck, extra: Path | None = None) -> dict[str, Guardrail]:
    """Load the guardrails that ship with Newton; one in the folder `extra` replaces the one of the same name.

    `check` validates each expression. Raises ConfigError for an invalid file or expression.
    """
    own = {} if extra is None else read_folder(extra.expanduser(), Guardrail, {"check": check})
    return {**_load_shipped_guardrails(check), **own}


@cache
def _load_shipped_guardrails(check: ExpressionCheck) -> Mapping[str, Guardrail]:
    return read_folder(data_folder("guardrails"), Guardrail, {"check": check})


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
    """Evaluate each guardrail for a draft, in order. One that fails raises nothing; its result blocks the decision."""
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
    """Raise InputError unless a CEL expression is within the limits, uses known names and gives a boolean.

    It is evaluated for sample drafts, to find errors that only occur with values.
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
    """Yield drafts and track records that differ in every optional field, for test runs of an expression."""
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


GuardrailChange = Literal["added", "retired", "restored"]
AddStatus = Literal["added", "replaced", "unchanged"]
FileGuardrails = Mapping[str, Guardrail]

MAX_OWN = 100  # per agent; each is evaluated before every decision
RULE_FIELDS = ("expression", "severity", "message", "description")  # of a rule, besides its name


@dataclass(frozen=True, slots=True, kw_only=True)
class EditContext:
    """The agent whose guardrails are changed, and the time and the interface of the change."""

    agent_id: UUID
    now: datetime
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailStatus(GuardrailRule):
    """A guardrail, and whether it is in force (not retired)."""

    is_active: bool


def _to_status(rule: GuardrailRule, *, is_active: bool) -> GuardrailStatus:
    return GuardrailStatus(**asdict(rule), is_active=is_active)


async def list_in_force(tx: Tx, file_guardrails: FileGuardrails, agent_id: UUID) -> list[GuardrailRule]:
    """Return the guardrails in force for the agent, its own and those from files, sorted by name."""
    return [status for status in await list_all(tx, file_guardrails, agent_id) if status.is_active]


async def list_all(tx: Tx, file_guardrails: FileGuardrails, agent_id: UUID) -> list[GuardrailStatus]:
    """Return the guardrails in force, and those from files that the agent has retired, sorted by name."""
    changes = {row["name"]: row for row in await SQL["list_last_changes"].fetch_all(tx, agent_id=agent_id)}
    retired = {name for name, row in changes.items() if row["change"] == "retired"}
    rules = {name: _from_file(guardrail) for name, guardrail in file_guardrails.items()}
    rules |= {name: _from_row(row) for name, row in changes.items() if row["change"] == "added"}
    return [_to_status(rule, is_active=name not in retired) for name, rule in sorted(rules.items())]


async def add(tx: Tx, rule: GuardrailRule, file_guardrails: FileGuardrails, *, ctx: EditContext) -> AddStatus:
    """Add a validated guardrail of the agent, or replace that of the same name; return which of both, or "unchanged".

    Raises ConflictError if the agent already has MAX_OWN other guardrails of its own.
    """
    await SQL["lock_guardrails"].execute(tx, agent_id=ctx.agent_id)
    by_name = {status.name: status for status in await list_all(tx, file_guardrails, ctx.agent_id)}
    before = by_name.get(rule.name)
    if before == _to_status(rule, is_active=True):
        return "unchanged"
    own = [status for status in by_name.values() if status.source == "own" and status.name != rule.name]
    if len(own) >= MAX_OWN:
        hint = "Retire a guardrail first: `newton guard retire NAME`."
        raise ConflictError(f"The agent already has the maximum of {MAX_OWN} guardrails.", hint=hint)
    await _append_change(tx, rule.name, "added", rule, ctx=ctx)
    return "replaced" if before and before.is_active else "added"


async def retire(tx: Tx, name: str, file_guardrails: FileGuardrails, *, ctx: EditContext) -> None:
    """Retire a guardrail, of the agent or from a file, for this agent. Raises NotFoundError if it is not in force."""
    await SQL["lock_guardrails"].execute(tx, agent_id=ctx.agent_id)
    rules = [rule.name for rule in await list_in_force(tx, file_guardrails, ctx.agent_id)]
    if name not in rules:
        raise _not_found_error(name, rules)
    await _append_change(tx, name, "retired", None, ctx=ctx)


async def restore(tx: Tx, name: str, file_guardrails: FileGuardrails, *, ctx: EditContext) -> bool:
    """Put a guardrail from a file in force again, in place of the agent's own one of this name.

    Return False if it is in force already. Raises NotFoundError for a name that no file defines.
    """
    await SQL["lock_guardrails"].execute(tx, agent_id=ctx.agent_id)
    if name not in file_guardrails:
        raise _not_found_error(name, list(file_guardrails), what="No file defines a guardrail")
    if _to_status(_from_file(file_guardrails[name]), is_active=True) in await list_all(
        tx, file_guardrails, ctx.agent_id
    ):
        return False
    await _append_change(tx, name, "restored", None, ctx=ctx)
    return True


async def _append_change(
    tx: Tx, name: str, change: GuardrailChange, rule: GuardrailRule | None, *, ctx: EditContext
) -> None:
    """Store a change of a guardrail as its next version. `rule` is None if the change retires or restores it."""
    last = {row["name"]: row["version"] for row in await SQL["list_last_changes"].fetch_all(tx, agent_id=ctx.agent_id)}
    fields = {name: getattr(rule, name, None) for name in RULE_FIELDS}
    await SQL["change_guardrail"].execute(
        tx,
        agent_id=ctx.agent_id,
        name=name,
        version=last.get(name, 0) + 1,
        changed_at=ctx.now,
        origin=ctx.origin,
        change=change,
        **fields,
    )


def _from_file(guardrail: Guardrail) -> GuardrailRule:
    return GuardrailRule(name=guardrail.name, **guardrail.model_dump(include=set(RULE_FIELDS)))


def _from_row(row: Record) -> GuardrailRule:
    return GuardrailRule(name=row["name"], **{name: row[name] for name in RULE_FIELDS}, source="own")


def _not_found_error(name: str, known: list[str], *, what: str = "There is no guardrail in force") -> NotFoundError:
    hint = f"{did_you_mean(name, known)} Known guardrails: {', '.join(sorted(known)) or 'none'}.".strip()
    return NotFoundError(f"{what} called {name!r}.", hint=hint)
