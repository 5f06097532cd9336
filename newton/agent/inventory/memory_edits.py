"""Edits of single memories by a person: importance, subject, and the mark as core."""

from dataclasses import dataclass
from typing import NamedTuple

from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import ConflictError, InputError
from newton.heart.facts import fact_edits
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory import memory_list
from newton.memory.lookup import resolve_id, short_id
from newton.memory.memory import MAX_IMPORTANCE, normalize_importance, past_reason
from newton.memory.memory_list import EditableField, EditableMemory, ListedMemory, read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChanges:
    """The new values of fields of a memory; None changes nothing.

    With `derive_importance`, the importance is computed again; with `remove_subject`, the fact has no subject any more.
    """

    importance: float | None = None
    derive_importance: bool = False
    core: bool | None = None
    subject: str | None = None
    remove_subject: bool = False

    def check(self) -> None:
        """Raise InputError if nothing is changed, or one field in two ways."""
        if self.importance is not None and self.derive_importance:
            what = "`importance` and `derive_importance` exclude each other."
            raise InputError(what, hint="Give `importance` or `derive_importance`.", param="importance")
        if self.subject is not None and self.remove_subject:
            what = "`subject` and `remove_subject` exclude each other."
            raise InputError(what, hint="Give `subject` or `remove_subject`.", param="subject")
        if self == FieldChanges():
            raise InputError("Nothing to change is given.", hint="Give `importance`, `core` or `subject`.")


class EditResult(NamedTuple):
    """A memory after an edit, and the names of the fields that changed."""

    memory: ListedMemory
    changed: tuple[EditableField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEditor:
    """Edits of the memories of one agent. `author`, the person who makes them, is recorded with each edit."""

    scope: AgentScope
    author: str

    async def edit(self, memory_ref: str, changes: FieldChanges) -> EditResult:
        """Set the given fields of a memory; return the memory and the changed fields. An equal value is no change.

        Raises InputError as FieldChanges.check and if the kind of the memory has no such field, and ConflictError if a
        superseded or retracted fact is to be marked as core.
        """
        changes.check()
        async with self.scope.write() as (tx, ctx):
            memory_id = await resolve_id(tx, memory_ref, agent_id=ctx.agent_id)
            (memory,) = await memory_list.lock_memories(tx, [memory_id], agent_id=ctx.agent_id)
            (before,) = await read_rows(tx, [memory_id], agent_id=ctx.agent_id)
            changed = list[EditableField]()
            sets_importance = changes.importance is not None or changes.derive_importance
            if sets_importance and await self._set_importance(tx, memory, changes.importance, ctx):
                changed.append("importance")
            sets_subject = changes.subject is not None or changes.remove_subject
            if sets_subject and await self._set_subject(tx, before, changes.subject, ctx):
                changed.append("subject")
            if changes.core is not None and await self._set_core(tx, before, ctx, is_core=changes.core):
                changed.append("core")
            if changed:
                self.scope.publish("memory.edited", {"memory_id": str(memory_id), "fields": changed})
            (after,) = await read_rows(tx, [memory_id], agent_id=ctx.agent_id)
            return EditResult(after, tuple(changed))

    async def _set_importance(
        self, tx: Tx, memory: EditableMemory, importance: float | None, ctx: LifecycleContext
    ) -> bool:
        new = normalize_importance(importance)
        if memory.importance == new:
            return False
        await memory_list.set_importance(tx, [memory.memory_id], new, agent_id=ctx.agent_id)
        old = {memory.memory_id: format_importance(memory.importance)}
        await memory_list.record_edits(tx, "importance", old, format_importance(new), author=self.author, ctx=ctx)
        return True

    async def _set_subject(self, tx: Tx, memory: ListedMemory, subject: str | None, ctx: LifecycleContext) -> bool:
        require_fact(memory, "a subject")
        if memory.subject == subject:
            return False
        old = await fact_edits.set_subject(tx, memory.memory_id, subject, ctx=ctx)
        await memory_list.record_edits(tx, "subject", {memory.memory_id: old}, subject, author=self.author, ctx=ctx)
        return True

    async def _set_core(self, tx: Tx, memory: ListedMemory, ctx: LifecycleContext, *, is_core: bool) -> bool:
        require_fact(memory, "a core mark")
        if memory.is_core == is_core:
            return False
        if reason := past_reason(memory.kind, memory.state):
            what = f"The fact {short_id(memory.memory_id)} is {reason}, so it cannot be core."
            hint = f"`newton show {short_id(memory.memory_id)}` shows which fact replaced it, if any."
            raise ConflictError(what, hint=hint)
        await fact_edits.set_core(tx, [memory.memory_id], is_core=is_core, ctx=ctx)
        old = {memory.memory_id: format_flag(value=memory.is_core)}
        await memory_list.record_edits(tx, "core", old, format_flag(value=is_core), author=self.author, ctx=ctx)
        return True


def require_fact(memory: ListedMemory, field: str) -> None:
    """Raise InputError unless the memory is a fact. `field` is what only facts have, for the message."""
    if memory.kind != "fact":
        what = f"The memory {short_id(memory.memory_id)} has the kind {memory.kind}; only facts have {field}."
        raise InputError(what, hint="Edit a fact, or only the importance of the memory.")


def format_importance(importance: float | None) -> str | None:
    """Convert an importance from 0 to 1 to text on the scale from 0 to 10; None (not set) stays None."""
    return None if importance is None else f"{MAX_IMPORTANCE * importance:g}"


def format_flag(*, value: bool) -> str:
    return "true" if value else "false"
