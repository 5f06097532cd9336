"""Store of an agent's own guardrails. They override guardrails of the same name from files."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from asyncpg import Record

from newton.brain.guardrail_engine import GuardrailRule
from newton.content.guardrails import Guardrail
from newton.content.yaml_models import did_you_mean
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError

SQL = load("newton.brain", "guardrail_store.sql")

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
    """A guardrail, and whether it is in force."""

    is_active: bool


def _to_status(rule: GuardrailRule, *, is_active: bool) -> GuardrailStatus:
    return GuardrailStatus(**asdict(rule), is_active=is_active)


async def list_in_force(tx: Tx, file_guardrails: FileGuardrails, agent_id: UUID) -> list[GuardrailRule]:
    """Return the guardrails in force for the agent, sorted by name."""
    return [status for status in await list_all(tx, file_guardrails, agent_id) if status.is_active]


async def list_all(tx: Tx, file_guardrails: FileGuardrails, agent_id: UUID) -> list[GuardrailStatus]:
    """Return the guardrails in force, and those from files that the agent has retired, sorted by name."""
    changes = {row["name"]: row for row in await SQL["list_last_changes"].fetch_all(tx, agent_id=agent_id)}
    retired = {name for name, row in changes.items() if row["change"] == "retired"}
    rules = {name: _from_file(guardrail) for name, guardrail in file_guardrails.items()}
    rules |= {name: _from_row(row) for name, row in changes.items() if row["change"] == "added"}
    return [_to_status(rule, is_active=name not in retired) for name, rule in sorted(rules.items())]


async def add(tx: Tx, rule: GuardrailRule, file_guardrails: FileGuardrails, *, ctx: EditContext) -> AddStatus:
    """Add a validated guardrail of the agent, or replace that of the same name.

    Raises ConflictError if the agent already has MAX_OWN guardrails of its own.
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
    """Put a guardrail from a file in force again, in place of the agent's own; return False if it is in force already.

    Raises NotFoundError for a name that no file defines.
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
