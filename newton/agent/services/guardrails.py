"""Guardrails (rules that a decision must satisfy): list and evaluate them, and let a person change them."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from newton.agent.scope import AgentScope
from newton.brain import guardrails
from newton.brain.drafts import DecisionDraft, GuardrailResult, TrackRecord
from newton.brain.guardrails import (
    AddStatus,
    EditContext,
    Guardrail,
    GuardrailRule,
    GuardrailStatus,
    evaluate,
    load_guardrails,
    validate_expression,
)
from newton.db.pool import Tx
from newton.errors import InputError
from newton.memory.hygiene import clean_text

NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,59}")
MAX_TEXT_CHARS = 500  # of a message or a description

# Interfaces that only people use: an agent must not change its own guardrails.
PERSONAL_ORIGINS = frozenset({"cli"})


@functools.cache
def load_file_guardrails(extra_dir: Path | None) -> dict[str, Guardrail]:
    """Load the guardrails of the package and of `extra_dir`, once.

    Raises ConfigError with the file and line of a mistake.
    """
    return load_guardrails(validate_expression, extra_dir)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailService:
    """Lists and changes the guardrails (rules that a decision must satisfy) of one agent.

    `file_guardrails` are those from files, by name. An agent must not change its own guardrails: the methods that
    change them raise InputError except on the command line.
    """

    scope: AgentScope
    file_guardrails: Mapping[str, Guardrail]

    async def evaluate(self, tx: Tx, draft: DecisionDraft, track_record: TrackRecord) -> list[GuardrailResult]:
        """Evaluate all guardrails in force on a draft decision; return their results."""
        rules = await guardrails.list_in_force(tx, self.file_guardrails, self.scope.agent_id)
        return evaluate(rules, draft, track_record)

    async def list_guardrails(self) -> list[GuardrailStatus]:
        """Return the guardrails in force, and the guardrails from files that this agent has disabled."""
        async with self.scope.transaction() as tx:
            return await guardrails.list_all(tx, self.file_guardrails, self.scope.agent_id)

    async def add(self, rule: GuardrailRule) -> AddStatus:
        """Add a guardrail, or replace the one of the same name; return "added", "replaced" or "unchanged".

        Raises InputError for an invalid rule.
        """
        ctx, rule = self._edit_context(), _validate_rule(rule)
        async with self.scope.transaction() as tx:
            status = await guardrails.add(tx, rule, self.file_guardrails, ctx=ctx)
            self.scope.publish("guardrail.added", {})
            return status

    async def retire(self, name: str) -> None:
        """Disable a guardrail for this agent, even one from a file. Raises NotFoundError for an unknown name."""
        ctx = self._edit_context()
        async with self.scope.transaction() as tx:
            await guardrails.retire(tx, name, self.file_guardrails, ctx=ctx)
            self.scope.publish("guardrail.retired", {})

    async def restore(self, name: str) -> bool:
        """Enable a disabled guardrail from a file; return False if it is in force already.

        Raises NotFoundError for an unknown name.
        """
        ctx = self._edit_context()
        async with self.scope.transaction() as tx:
            restored = await guardrails.restore(tx, name, self.file_guardrails, ctx=ctx)
            if restored:
                self.scope.publish("guardrail.restored", {})
            return restored

    def _edit_context(self) -> EditContext:
        if self.scope.origin not in PERSONAL_ORIGINS:
            raise InputError("Only a person may change a guardrail.", hint="Use `newton guard` at the command line.")
        return EditContext(agent_id=self.scope.agent_id, now=self.scope.now(), origin=self.scope.origin)


def _validate_rule(rule: GuardrailRule) -> GuardrailRule:
    if not NAME_PATTERN.fullmatch(rule.name):
        raise InputError(
            f"{rule.name!r} is not a valid guardrail name.",
            hint="Start with a lowercase letter, then lowercase letters, digits, - and _; at most 60 characters.",
        )
    validate_expression(rule.expression)
    description = _clean_text(rule.description, "description") if rule.description else ""
    return replace(rule, message=_clean_text(rule.message, "message"), description=description, source="own")


def _clean_text(text: str, what: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        raise InputError(
            f"The {what} has {len(text):,} characters.", hint=f"The maximum is {MAX_TEXT_CHARS} characters."
        )
    return clean_text(text, what=what)
