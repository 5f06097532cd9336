"""Guardrails in force for an agent: those of the files, overridden by the agent's own."""

from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EditContext:
    """The agent, time and interface of a change to a guardrail."""

    agent_id: UUID
    now: datetime
    origin: str


@dataclass(frozen=True, slots=True)
class GuardrailStatus:
    """A guardrail, and whether it is in force."""

    rule: GuardrailRule
    in_force: bool


async def list_in_force(tx: Tx, file_guardrails: FileGuardrails, agent_id: UUID) -> list[GuardrailRule]:
    """Return the guardrails in force by name: the files' guardrails overridden by the agent's own."""
    return [listed.rule for listed in await list_all(tx, file_guardrails, agent_id) if listed.in_force]


async def list_all(tx: Tx, file_guardrails: FileGuardrails, agent_id: UUID) -> list[GuardrailStatus]:
    """Return the guardrails in force, and retired ones of the files, by name."""
    changes = {row["name"]: row for row in await SQL["list_last_changes"].fetch_all(tx, agent_id=agent_id)}
    known = {
        name: GuardrailStatus(_from_file(given), _last_change(changes, name) != "retired")
        for name, given in file_guardrails.items()
    }
    own = {
        name: GuardrailStatus(_from_row(row), in_force=True)
        for name, row in changes.items()
        if row["change"] == "added"
    }
    return [listed for _, listed in sorted({**known, **own}.items())]


async def add(tx: Tx, rule: GuardrailRule, file_guardrails: FileGuardrails, *, ctx: EditContext) -> AddStatus:
    """Add the agent's own rule, or replace the one of that name. The caller validates it.

    Raises ConflictError when there are too many.
    """
    await SQL["lock_guardrails"].execute(tx, agent_id=ctx.agent_id)
    known = {listed.rule.name: listed for listed in await list_all(tx, file_guardrails, ctx.agent_id)}
    before = known.get(rule.name)
    if before == GuardrailStatus(rule, in_force=True):
        return "unchanged"
    own = [listed for listed in known.values() if listed.rule.source == "own" and listed.rule.name != rule.name]
    if len(own) >= MAX_OWN:
        raise ConflictError(
            f"There are {MAX_OWN} guardrails already.", hint="Retire one first: `newton guard retire NAME`."
        )
    await _append_change(tx, rule.name, "added", rule, ctx=ctx)
    return "replaced" if before and before.in_force else "added"


async def retire(tx: Tx, name: str, file_guardrails: FileGuardrails, *, ctx: EditContext) -> None:
    """Retire a guardrail for this agent, a file's too. Raises NotFoundError."""
    await SQL["lock_guardrails"].execute(tx, agent_id=ctx.agent_id)
    rules = [rule.name for rule in await list_in_force(tx, file_guardrails, ctx.agent_id)]
    if name not in rules:
        raise _not_found_error(name, rules)
    await _append_change(tx, name, "retired", None, ctx=ctx)


async def restore(tx: Tx, name: str, file_guardrails: FileGuardrails, *, ctx: EditContext) -> bool:
    """Restore a file's guardrail in place of the agent's own; False if it is in force.

    Raises NotFoundError for a name that no file defines.
    """
    await SQL["lock_guardrails"].execute(tx, agent_id=ctx.agent_id)
    if name not in file_guardrails:
        raise _not_found_error(name, list(file_guardrails), what="There is no file of a guardrail")
    known = {listed.rule.name: listed for listed in await list_all(tx, file_guardrails, ctx.agent_id)}
    if known[name] == GuardrailStatus(_from_file(file_guardrails[name]), in_force=True):
        return False
    await _append_change(tx, name, "restored", None, ctx=ctx)
    return True


async def _append_change(
    tx: Tx, name: str, change: GuardrailChange, rule: GuardrailRule | None, *, ctx: EditContext
) -> None:
    last = {row["name"]: row["version"] for row in await SQL["list_last_changes"].fetch_all(tx, agent_id=ctx.agent_id)}
    await SQL["change_guardrail"].execute(
        tx,
        agent_id=ctx.agent_id,
        name=name,
        version=last.get(name, 0) + 1,
        changed_at=ctx.now,
        origin=ctx.origin,
        change=change,
        expression=rule and rule.expression,
        severity=rule and rule.severity,
        message=rule and rule.message,
        description=None if rule is None else rule.description,
    )


def _last_change(changes: Mapping[str, Record], name: str) -> GuardrailChange | None:
    return changes[name]["change"] if name in changes else None


def _from_file(guardrail: Guardrail) -> GuardrailRule:
    return GuardrailRule(
        name=guardrail.name,
        expression=guardrail.expression,
        severity=guardrail.severity,
        message=guardrail.message,
        description=guardrail.description,
    )


def _from_row(row: Record) -> GuardrailRule:
    return GuardrailRule(
        name=row["name"],
        expression=row["expression"],
        severity=row["severity"],
        message=row["message"],
        description=row["description"],
        source="own",
    )


def _not_found_error(name: str, known: list[str], *, what: str = "There is no guardrail in force") -> NotFoundError:
    near = did_you_mean(name, known)
    return NotFoundError(
        f"{what} called {name!r}.", hint=f"{near} Known: {', '.join(sorted(known)) or 'none'}.".strip()
    )
