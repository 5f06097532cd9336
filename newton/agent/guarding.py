"""The guardrails of an agent: looked at, tried, and changed by a person alone."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from newton.agent.scope import AgentScope
from newton.brain import guardrails
from newton.brain.choice import Choice, Standing
from newton.brain.guarding import Rule, Ruling, check, judge
from newton.brain.guardrails import Added, Author, Listed
from newton.content.guardrails import Guardrail, load_guardrails
from newton.db.pool import Tx
from newton.errors import InputError
from newton.memory.hygiene import clean

NAME = re.compile(r"[a-z][a-z0-9_-]{0,59}")
MOST_WORDS = 500  # characters of a message or a description

# The doors behind which a person stands. An agent that could change its guardrails would have none.
PERSONAL = frozenset({"cli"})


@functools.cache
def from_files(extra: Path | None) -> dict[str, Guardrail]:
    """Those that ship and those of a person's own folder, read once like every other content.

    Raises ConfigError naming file and line.
    """
    return load_guardrails(check, extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarding:
    """For one agent; `origin` names the door, `folder` holds the guardrails of the files by name."""

    scope: AgentScope
    folder: Mapping[str, Guardrail]

    async def judge(self, tx: Tx, choice: Choice, standing: Standing) -> list[Ruling]:
        """What every guardrail in force says of a choice that nobody has made yet."""
        return judge(await guardrails.in_force(tx, self.folder, self.scope.agent_id), choice, standing)

    async def listed(self) -> list[Listed]:
        """Those in force, and those of the files that were taken out of force."""
        async with self.scope.transaction() as tx:
            return await guardrails.all_known(tx, self.folder, self.scope.agent_id)

    async def add(self, rule: Rule) -> Added:
        """Puts a rule in force, in the place of one of that name. Raises InputError for one that cannot be judged."""
        ctx = self._author()
        checked = _checked(rule)
        async with self.scope.transaction() as tx:
            added = await guardrails.add(tx, checked, self.folder, ctx=ctx)
            self._tell("added")
            return added

    async def retire(self, name: str) -> None:
        """Takes a guardrail out of force, one of a file too. Raises NotFoundError."""
        ctx = self._author()
        async with self.scope.transaction() as tx:
            await guardrails.retire(tx, name, self.folder, ctx=ctx)
            self._tell("retired")

    async def restore(self, name: str) -> bool:
        """Puts the guardrail of a file back in force as it stands there; False when it is. Raises NotFoundError."""
        ctx = self._author()
        async with self.scope.transaction() as tx:
            restored = await guardrails.restore(tx, name, self.folder, ctx=ctx)
            if restored:
                self._tell("restored")
            return restored

    def _tell(self, what: str) -> None:
        self.scope.publish(f"guardrail.{what}", {})

    def _author(self) -> Author:
        if self.scope.origin not in PERSONAL:
            raise InputError("Only a person may change a guardrail.", hint="Use `newton guard` at the command line.")
        return Author(agent_id=self.scope.agent_id, now=self.scope.now(), origin=self.scope.origin)


def _checked(rule: Rule) -> Rule:
    if not NAME.fullmatch(rule.name):
        raise InputError(
            f"{rule.name!r} is no name for a guardrail.",
            hint="Begin with a small letter, then small letters, digits, - and _; 60 are the most.",
        )
    check(rule.expression)
    message = _said(rule.message, "message")
    description = _said(rule.description, "description") if rule.description else ""
    return Rule(
        name=rule.name,
        expression=rule.expression,
        severity=rule.severity,
        message=message,
        description=description,
        source="own",
    )


def _said(text: str, what: str) -> str:
    if len(text) > MOST_WORDS:
        raise InputError(f"The {what} has {len(text):,} characters.", hint=f"{MOST_WORDS} is the most.")
    return clean(text, what=what)
