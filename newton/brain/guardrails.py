"""Which guardrails are in force for an agent: those of the files, as a person has changed them for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from asyncpg import Record

from newton.brain.guarding import Rule
from newton.content.guardrails import Guardrail
from newton.content.yamlfile import did_you_mean
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError

SQL = load("newton.brain", "guardrails.sql")

Change = Literal["added", "retired", "restored"]
Added = Literal["added", "replaced", "unchanged"]
Folder = Mapping[str, Guardrail]

MOST_OWN = 100  # in force for an agent; each is evaluated before every decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who changes a guardrail, when, and through which door."""

    agent_id: UUID
    now: datetime
    origin: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A guardrail as a list shows it: in force, or taken out of force by a person."""

    rule: Rule
    in_force: bool


async def in_force(tx: Tx, folder: Folder, agent_id: UUID) -> list[Rule]:
    """What a choice of this agent is judged by, by name: the files' guardrails overlaid by the agent's own."""
    return [listed.rule for listed in await all_known(tx, folder, agent_id) if listed.in_force]


async def all_known(tx: Tx, folder: Folder, agent_id: UUID) -> list[Listed]:
    """Those in force and, of the files, those that a person has taken out of force; by name."""
    changes = {row["name"]: row for row in await SQL["list_last_changes"].all(tx, agent_id=agent_id)}
    known = {name: Listed(_of_file(given), _change(changes, name) != "retired") for name, given in folder.items()}
    own = {name: Listed(_own(row), in_force=True) for name, row in changes.items() if row["change"] == "added"}
    return [listed for _, listed in sorted({**known, **own}.items())]


async def add(tx: Tx, rule: Rule, folder: Folder, *, ctx: Author) -> Added:
    """Puts a rule of the agent's own in force, in the place of one of that name. Whether it can be judged is for the
    caller to check. Raises ConflictError when there are too many."""
    await SQL["lock_guardrails"].run(tx, agent_id=ctx.agent_id)
    known = {listed.rule.name: listed for listed in await all_known(tx, folder, ctx.agent_id)}
    before = known.get(rule.name)
    if before == Listed(rule, in_force=True):
        return "unchanged"
    own = [listed for listed in known.values() if listed.rule.source == "own" and listed.rule.name != rule.name]
    if len(own) >= MOST_OWN:
        raise ConflictError(f"There are {MOST_OWN} guardrails of your own.", hint="`newton guard retire` one first.")
    await _write(tx, rule.name, "added", rule, ctx=ctx)
    return "replaced" if before and before.in_force else "added"


async def retire(tx: Tx, name: str, folder: Folder, *, ctx: Author) -> None:
    """Takes the guardrail of that name out of force for this agent, one of a file too. Raises NotFoundError."""
    await SQL["lock_guardrails"].run(tx, agent_id=ctx.agent_id)
    rules = [rule.name for rule in await in_force(tx, folder, ctx.agent_id)]
    if name not in rules:
        raise _missing(name, rules)
    await _write(tx, name, "retired", None, ctx=ctx)


async def restore(tx: Tx, name: str, folder: Folder, *, ctx: Author) -> bool:
    """Puts the file's guardrail of that name back in force, in the place of the agent's own; False when it is.

    Raises NotFoundError for one that no file has.
    """
    await SQL["lock_guardrails"].run(tx, agent_id=ctx.agent_id)
    if name not in folder:
        raise _missing(name, list(folder), what="There is no file of a guardrail")
    known = {listed.rule.name: listed for listed in await all_known(tx, folder, ctx.agent_id)}
    if known[name] == Listed(_of_file(folder[name]), in_force=True):
        return False
    await _write(tx, name, "restored", None, ctx=ctx)
    return True


async def _write(tx: Tx, name: str, change: Change, rule: Rule | None, *, ctx: Author) -> None:
    last = {row["name"]: row["version"] for row in await SQL["list_last_changes"].all(tx, agent_id=ctx.agent_id)}
    await SQL["change_guardrail"].run(
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


def _change(changes: Mapping[str, Record], name: str) -> Change | None:
    return changes[name]["change"] if name in changes else None


def _of_file(given: Guardrail) -> Rule:
    return Rule(
        name=given.name,
        expression=given.expression,
        severity=given.severity,
        message=given.message,
        description=given.description,
    )


def _own(row: Record) -> Rule:
    return Rule(
        name=row["name"],
        expression=row["expression"],
        severity=row["severity"],
        message=row["message"],
        description=row["description"],
        source="own",
    )


def _missing(name: str, known: list[str], *, what: str = "There is no guardrail in force") -> NotFoundError:
    near = did_you_mean(name, known)
    return NotFoundError(
        f"{what} called {name!r}.", hint=f"{near} Known: {', '.join(sorted(known)) or 'none'}.".strip()
    )
