"""Changes of all memories that a filter selects: a preview first, then the change in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from newton.agent.inventory.memory_edits import format_flag, format_importance
from newton.agent.inventory.memory_lists import MemoryFilterInput, resolve_filter
from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.db.pool import Tx
from newton.errors import InputError
from newton.heart.facts import fact_edits
from newton.heart.lifecycle.engine import LifecycleContext
from newton.memory import memory_list
from newton.memory.forgetting import find_derived, forget
from newton.memory.memory import MAX_IMPORTANCE, normalize_importance, past_reason
from newton.memory.memory_list import EditableField, ListedMemory, ListOrder, count_memories, list_positions, read_rows

MAX_BULK = 1_000  # memories of one change
BulkAction = Literal["forget", "retract", "set_importance", "set_core"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkChange:
    """A change of all memories that a filter selects.

    Each action uses one of the other fields: `importance` from 0 to 10 (None: computed again); whether the facts are
    `core`; or, to forget, `include_derived` (the memories derived from them too) and `reason`.
    """

    action: BulkAction
    filter: MemoryFilterInput
    importance: float | None = None
    core: bool = True
    include_derived: bool = False
    reason: str = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPlan:
    """The memories that a change affects, in the order of their ids, and the ids of the memories derived from them.

    `token` is a hash of the change and of the present state of the memories; it confirms exactly this plan.
    """

    change: BulkChange
    agent_id: UUID
    memories: Sequence[ListedMemory]
    derived_ids: Sequence[UUID] = ()

    @property
    def token(self) -> str:
        """Return a hash of the change and of the present state of the memories, which confirms exactly this plan."""
        change = self.change
        wanted = f"{change.action} {change.importance} {change.core} {change.include_derived}"
        states = [
            f"{one.memory_id} {one.state} {one.quarantined} {one.importance} {one.is_importance_set} {one.is_core}"
            for one in self.memories
        ]
        return hash_preview(str(self.agent_id), wanted, *states, *map(str, self.derived_ids))

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of memories of each kind."""
        return dict(Counter[str](one.kind for one in self.memories).most_common())


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkService:
    """Changes of many memories of one agent. `author` is recorded with each edit."""

    scope: AgentScope
    author: str

    async def plan(self, change: BulkChange) -> BulkPlan:
        """Return what the change would affect, with the token that confirms it.

        Raises InputError for a filter without a condition, too many memories, or memories to which the action does not
        apply.
        """
        async with self.scope.transaction() as tx:
            return await self._plan(tx, change)

    async def carry_out(self, change: BulkChange, *, token: str) -> BulkPlan:
        """Make the change that the token confirms; return the plan that was carried out.

        Raises ConflictError if the affected memories differ from those of the preview, and InputError for a filter
        without a condition, for too many memories, and for memories to which the action does not apply.
        """
        async with self.scope.write() as (tx, ctx):
            plan = await self._plan(tx, change)
            verify_preview(token, plan.token)
            if plan.memories:
                await self._apply(tx, plan, ctx)
                ids = [str(one.memory_id) for one in plan.memories]
                self.scope.publish("memory.bulk_changed", {"action": change.action, "memory_ids": ids})
            return plan

    async def _plan(self, tx: Tx, change: BulkChange) -> BulkPlan:
        """Select and lock the memories of a change, and check that it applies to them."""
        if change.filter.is_empty:
            hint = "Give a filter, such as `kinds`; `newton agents delete NAME` deletes an agent with all its memories."
            raise InputError("The filter is empty, which would select every memory.", hint=hint, param="filter")
        agent_id = self.scope.agent_id
        wanted = await resolve_filter(tx, change.filter, scope=self.scope)
        number = await count_memories(tx, wanted, agent_id=agent_id)
        if number > MAX_BULK:
            hint = (
                f"One change affects at most {MAX_BULK:,} memories. Give a narrower filter, such as a shorter period."
            )
            raise InputError(f"The filter selects {number:,} memories.", hint=hint, param="filter")
        found = await list_positions(tx, wanted, ListOrder(), after=None, limit=MAX_BULK, agent_id=agent_id)
        ids = sorted(one.memory_id for one in found)
        await memory_list.lock_memories(tx, ids, agent_id=agent_id)
        memories = await read_rows(tx, ids, agent_id=agent_id)
        _check_applicable(change, memories)
        derived = await find_derived(tx, ids, agent_id=agent_id) if change.action == "forget" else []
        return BulkPlan(change=change, agent_id=agent_id, memories=memories, derived_ids=derived)

    async def _apply(self, tx: Tx, plan: BulkPlan, ctx: LifecycleContext) -> None:
        """Make the change of a plan, and record the edits of importance and core marks."""
        change, ids = plan.change, [one.memory_id for one in plan.memories]
        match change.action:
            case "forget":
                await forget(tx, ids, derived=change.include_derived, reason=change.reason, ctx=ctx)
            case "retract":
                await fact_edits.retract_facts(tx, ids, ctx=ctx)
            case "set_importance":
                new = normalize_importance(change.importance)
                old = {
                    one.memory_id: format_importance(one.importance / MAX_IMPORTANCE) if one.is_importance_set else None
                    for one in plan.memories
                }
                await memory_list.set_importance(tx, ids, new, agent_id=ctx.agent_id)
                await self._record(tx, "importance", old, format_importance(new), ctx)
            case "set_core":
                marks = {one.memory_id: format_flag(value=one.is_core) for one in plan.memories}
                await fact_edits.set_core(tx, ids, is_core=change.core, ctx=ctx)
                await self._record(tx, "core", marks, format_flag(value=change.core), ctx)

    async def _record(
        self, tx: Tx, field: EditableField, old: Mapping[UUID, str | None], new: str | None, ctx: LifecycleContext
    ) -> None:
        """Record an edit of each memory whose old value differs from `new`."""
        changed = {memory_id: value for memory_id, value in old.items() if value != new}
        await memory_list.record_edits(tx, field, changed, new, author=self.author, ctx=ctx)


def _check_applicable(change: BulkChange, memories: Sequence[ListedMemory]) -> None:
    """Raise InputError if the action does not apply to one of the memories."""
    if change.action == "forget" and any(one.kind == "decision" for one in memories):
        hint = "Set `kinds` to other kinds; `newton decisions erase ID` deletes the text of one decision."
        raise InputError("The filter selects decisions, which are never deleted.", hint=hint, param="filter")
    if change.action not in ("retract", "set_core"):
        return
    if others := sorted({one.kind for one in memories if one.kind != "fact"}):
        hint = 'Set `kinds` of the filter to "fact".'
        what = f"This action applies only to facts, and the filter also selects: {', '.join(others)}."
        raise InputError(what, hint=hint, param="filter")
    if past := [one for one in memories if past_reason(one.kind, one.state)]:
        what = f"This action applies only to current facts, and {len(past):,} of the selected ones are not current."
        raise InputError(what, hint="Omit `states` in the filter, or set it to current or quarantined.", param="filter")
