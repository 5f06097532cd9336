"""The guardrails of an agent: looked at, tried, and changed by a person alone."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from newton.agent.scope import AgentScope
from newton.brain import guardrail_store
from newton.brain.draft import DecisionDraft, TrackRecord
from newton.brain.guardrail_engine import GuardrailResult, GuardrailRule, evaluate, validate_expression
from newton.brain.guardrail_store import AddStatus, EditContext, GuardrailStatus
from newton.content.guardrails import Guardrail, load_guardrails
from newton.db.pool import Tx
from newton.errors import InputError
from newton.memory.hygiene import clean_text

NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]{0,59}")
MAX_TEXT_CHARS = 500  # characters of a message or a description

# The doors behind which a person stands. An agent that could change its guardrails would have none.
PERSONAL_ORIGINS = frozenset({"cli"})


@functools.cache
def load_file_guardrails(extra_dir: Path | None) -> dict[str, Guardrail]:
    """Those that ship and those of a person's own folder, read once like every other content.

    Raises ConfigError naming file and line.
    """
    return load_guardrails(validate_expression, extra_dir)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailService:
    """For one agent; `origin` names the door, `folder` holds the guardrails of the files by name."""

    scope: AgentScope
    file_guardrails: Mapping[str, Guardrail]

    async def evaluate(self, tx: Tx, draft: DecisionDraft, track_record: TrackRecord) -> list[GuardrailResult]:
        """What every guardrail in force says of a choice that nobody has made yet."""
        return evaluate(
            await guardrail_store.list_in_force(tx, self.file_guardrails, self.scope.agent_id), draft, track_record
        )

    async def list_guardrails(self) -> list[GuardrailStatus]:
        """Those in force, and those of the files that were taken out of force."""
        async with self.scope.transaction() as tx:
            return await guardrail_store.list_all(tx, self.file_guardrails, self.scope.agent_id)

    async def add(self, rule: GuardrailRule) -> AddStatus:
        """Puts a rule in force, in the place of one of that name. Raises InputError for one that cannot be judged."""
        ctx = self._edit_context()
        checked = _validate_rule(rule)
        async with self.scope.transaction() as tx:
            added = await guardrail_store.add(tx, checked, self.file_guardrails, ctx=ctx)
            self._publish("added")
            return added

    async def retire(self, name: str) -> None:
        """Takes a guardrail out of force, one of a file too. Raises NotFoundError."""
        ctx = self._edit_context()
        async with self.scope.transaction() as tx:
            await guardrail_store.retire(tx, name, self.file_guardrails, ctx=ctx)
            self._publish("retired")

    async def restore(self, name: str) -> bool:
        """Puts the guardrail of a file back in force as it stands there; False when it is. Raises NotFoundError."""
        ctx = self._edit_context()
        async with self.scope.transaction() as tx:
            restored = await guardrail_store.restore(tx, name, self.file_guardrails, ctx=ctx)
            if restored:
                self._publish("restored")
            return restored

    def _publish(self, event: str) -> None:
        self.scope.publish(f"guardrail.{event}", {})

    def _edit_context(self) -> EditContext:
        if self.scope.origin not in PERSONAL_ORIGINS:
            raise InputError("Only a person may change a guardrail.", hint="Use `newton guard` at the command line.")
        return EditContext(agent_id=self.scope.agent_id, now=self.scope.now(), origin=self.scope.origin)


def _validate_rule(rule: GuardrailRule) -> GuardrailRule:
    if not NAME_PATTERN.fullmatch(rule.name):
        raise InputError(
            f"{rule.name!r} is no name for a guardrail.",
            hint="Begin with a small letter, then small letters, digits, - and _; 60 are the most.",
        )
    validate_expression(rule.expression)
    message = _clean_text(rule.message, "message")
    description = _clean_text(rule.description, "description") if rule.description else ""
    return GuardrailRule(
        name=rule.name,
        expression=rule.expression,
        severity=rule.severity,
        message=message,
        description=description,
        source="own",
    )


def _clean_text(text: str, what: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        raise InputError(f"The {what} has {len(text):,} characters.", hint=f"{MAX_TEXT_CHARS} is the most.")
    return clean_text(text, what=what)
