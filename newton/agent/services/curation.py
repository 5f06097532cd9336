"""Curation of memories: confirm, correct, mark as core, rate, delete, and read their history."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import NamedTuple, cast, get_args
from uuid import UUID

from newton.agent.reconciliation.line_changes import StoredChange, read_texts, undo_since
from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.brain.drafts import Verdict
from newton.db.pool import Tx
from newton.errors import ConflictError, InputError, NotFoundError
from newton.heart import episodes
from newton.heart.facts import attributes, conflicts, fact_edits, fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext
from newton.ids import new_id
from newton.memory.forgetting import ForgetPlan, forget, plan_forgetting
from newton.memory.hygiene import clean_name, clean_text, validate_time
from newton.memory.lookup import MemoryDetail, MemoryMention, read_memory, resolve_id, short_id
from newton.memory.memory import PERSON_TIERS, Kind
from newton.memory.memory_list import MemoryEdit, list_edits
from newton.memory.representations import one_line
from newton.memory.store import AppliedTransition, TransitionRecord, list_applied_since, list_transitions


class FactEffects(NamedTuple):
    """The facts that a fact replaces (supersedes), the current facts that it may contradict, and whether the fact is
    quarantined.
    """

    replaced: Sequence[MemoryMention]
    contested: Sequence[MemoryMention]
    quarantined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord(MemoryDetail):
    """A memory with its state changes and edits, the oldest first, and the further fields of a fact.

    `remaining_chars` is the number of characters of the text that follow after `full_text`. `is_inherited` is True if
    it is of the agent above the project in use.
    """

    fact: dict[str, str] = field(default_factory=dict[str, str])
    changes: Sequence[TransitionRecord]
    edits: Sequence[MemoryEdit]
    remaining_chars: int = 0
    is_inherited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationService:
    """Curation of the memories of one agent. A memory is identified by its id or the end of its id."""

    scope: AgentScope

    async def get(self, memory_ref: str) -> MemoryRecord:
        """Return a memory in full. `memory_ref` is its id or the end of it.

        Of a project, a memory of the agent above it is found too. Raises NotFoundError for an unknown one, and
        ConflictError if several match.
        """
        above = self.scope.above
        try:
            return await self._get(memory_ref)
        except NotFoundError:
            if above is None:
                raise
        return replace(await replace(self, scope=above).get(memory_ref), is_inherited=True)

    async def _get(self, memory_ref: str) -> MemoryRecord:
        agent_id, fact = self.scope.agent_id, dict[str, str]()
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, memory_ref, agent_id=agent_id)
            memory = await read_memory(tx, memory_id, agent_id=agent_id)
            changes = await list_transitions(tx, agent_id=agent_id, memory_id=memory_id)
            edits = await list_edits(tx, memory_id, agent_id=agent_id)
            if memory.kind == "fact":
                memory = await self._add_adjacent_values(tx, memory)
                fact = await fact_store.read_details(tx, memory_id, agent_id=agent_id)
        if memory.replaced_by and changes and changes[-1].to_state == "SUPERSEDED":
            changes[-1] = replace(changes[-1], replaced_by=memory.replaced_by[0].mention)
        detail = {one.name: getattr(memory, one.name) for one in fields(memory)}
        return MemoryRecord(**detail, fact=fact, changes=changes, edits=edits)

    async def _add_adjacent_values(self, tx: Tx, memory: MemoryDetail) -> MemoryDetail:
        """Return the fact with the earlier and later values of its attribute added to its links."""
        linked = {(one.type, one.memory_id) for one in memory.links}
        agent_id, now = self.scope.agent_id, self.scope.now()
        values = await fact_store.list_adjacent_values(tx, memory.memory_id, agent_id=agent_id, now=now)
        new = [one for one in values if (one.type, one.memory_id) not in linked]
        return replace(memory, links=(*memory.links, *new))

    async def resolve(self, memory_ref: str, *, kind: Kind | None = None) -> UUID:
        """Return the full id of a memory.

        Raises InputError for an invalid id, NotFoundError for an unknown one, and ConflictError if several memories
        match.
        """
        async with self.scope.transaction() as tx:
            return await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id, kind=kind)

    async def find_effects(self, memory_id: UUID) -> FactEffects:
        """Return the facts that this fact replaces, those that it may contradict, and whether it is quarantined."""
        memory = await self.get(memory_id.hex)
        replaced, contested = [one.mention for one in memory.replaced], [one.mention for one in memory.contested]
        return FactEffects(replaced, contested, memory.quarantined)

    async def list_changes(self, since: datetime) -> list[AppliedTransition]:
        """Return the state changes made through this interface since a time."""
        async with self.scope.transaction() as tx:
            return await list_applied_since(tx, since, agent_id=self.scope.agent_id, origin=self.scope.origin)

    async def confirm(self, memory_ref: str) -> bool:
        """Record that a fact was stated again. Return False if that was counted through this interface today already.

        Raises ConflictError for a retracted fact, and for a superseded one; then the message names the newer fact.
        """
        async with self._memory(memory_ref) as (tx, ctx, memory_id):
            known = await read_memory(tx, memory_id, agent_id=ctx.agent_id)
            _reject_superseded(await self._add_adjacent_values(tx, known))
            source = f"{ctx.origin} {ctx.now:%Y-%m-%d}"
            await fact_edits.restore_withdrawn(tx, [memory_id], ctx=ctx)
            await fact_store.ensure_not_inactive(tx, memory_id, ctx=ctx)
            counted = await fact_store.confirm(tx, memory_id, ref=source, source=source, ctx=ctx)
            self._publish("memory.confirmed", memory_id, counted=counted)
            return counted

    async def supersede(self, memory_ref: str, content: str, *, at: datetime | None = None) -> UUID:
        """Replace a fact by a new one with the same subject and attribute; return the id of the new fact.

        The new fact is true from `at` on, or from now on. Raises ConflictError if the old one is superseded already.
        """
        async with self._successor(memory_ref, content, at) as (tx, ctx, memory_id, fact):
            await fact_store.add_facts(tx, [fact], ctx=ctx)
            fact_id = await fact_store.find_fact_id(tx, fact, agent_id=ctx.agent_id)
            await fact_store.supersede(tx, memory_id, by_fact=fact_id, ctx=ctx)
            self._publish("memory.superseded", memory_id, superseded_by=str(fact_id))
            return fact_id

    async def contest(self, memory_ref: str, content: str, *, at: datetime | None = None) -> UUID:
        """Store a new fact beside the one that it contradicts; return its id. Raises as `supersede`."""
        async with self._successor(memory_ref, content, at) as (tx, ctx, memory_id, fact):
            # without the attribute, of which the new fact would be the later value
            return await conflicts.contest(tx, memory_id, replace(fact, attribute=None), ctx=ctx)

    @asynccontextmanager
    async def _successor(
        self, memory_ref: str, content: str, at: datetime | None
    ) -> AsyncGenerator[tuple[Tx, LifecycleContext, UUID, NewFact]]:
        """Open a transaction; yield it with the id of a current fact and a new fact on the same subject and attribute.

        Raises ConflictError if the old one is superseded already.
        """
        await self.scope.reserve_storage(content)
        async with self._memory(memory_ref) as (tx, ctx, memory_id):
            if (await read_memory(tx, memory_id, agent_id=ctx.agent_id)).state == "SUPERSEDED":
                hint = "Supersede the current fact instead: `newton show` names it."
                raise ConflictError(f"The fact {short_id(memory_id)} is superseded already.", hint=hint)
            subject, attribute = await fact_store.read_subject_and_attribute(tx, memory_id, agent_id=ctx.agent_id)
            valid_from = validate_time(at) if at else ctx.now
            fact = NewFact(
                ref=str(new_id()),
                content=clean_text(content),
                valid_from=valid_from,
                subject=subject,
                attribute=attribute,
            )
            yield tx, ctx, memory_id, fact

    async def retract(self, memory_ref: str) -> None:
        """Mark a fact as never true (retracted), so that no context shows it."""
        async with self._memory(memory_ref) as (tx, ctx, memory_id):
            await fact_store.retract(tx, memory_id, ctx=ctx)
            self._publish("memory.retracted", memory_id)

    async def undo_changes(self, since: datetime) -> list[StoredChange]:
        """Undo what messages changed in the facts since a time; return these changes and those of rules.

        A person undoes those of rules.
        """
        async with self.scope.write() as (tx, ctx):
            return await undo_since(tx, since, ctx=ctx)

    async def read_texts(self, target_ids: Sequence[UUID]) -> dict[UUID, str]:
        """Return the texts of facts, messages and rules by id."""
        async with self.scope.transaction() as tx:
            return await read_texts(tx, target_ids, agent_id=self.scope.agent_id)

    async def set_outcome(self, memory_ref: str, outcome: Verdict) -> tuple[UUID, Verdict]:
        """Set the outcome of an episode; return its id and outcome. A model replaces no outcome.

        Raises InputError for a memory of another kind.
        """
        async with self._memory(memory_ref) as (tx, ctx, memory_id):
            memory = await read_memory(tx, memory_id, agent_id=ctx.agent_id)
            if memory.kind != "episode":
                hint = "For a decision use `newton review`, for a procedure `newton procedures record-outcome`."
                what = f"The memory {short_id(memory_id)} is not an episode; its kind is {memory.kind}."
                raise InputError(what, hint=hint)
            if memory.outcome in get_args(Verdict) and ctx.trust not in PERSON_TIERS:
                return memory_id, cast("Verdict", memory.outcome)
            await episodes.set_outcome(tx, memory_id, outcome, summary=memory.summary, ctx=ctx)
            self._publish("memory.outcome_set", memory_id, outcome=outcome)
            return memory_id, outcome

    async def list_attributes(self) -> dict[str, bool]:
        """Return the known attributes of facts; the value is True if an attribute has only one value at a time."""
        async with self.scope.transaction() as tx:
            return await attributes.list_attributes(tx, agent_id=self.scope.agent_id)

    async def set_cardinality(self, attribute: str, *, single_valued: bool) -> None:
        """Declare whether an attribute has only one value at a time, or several. Existing facts do not change."""
        async with self.scope.transaction() as tx:
            name = clean_name(attribute, what="attribute")
            await attributes.set_cardinality(tx, name, agent_id=self.scope.agent_id, single=single_valued)
            self.scope.publish("attribute.declared", {"single_valued": single_valued})

    async def forget(self, memory_refs: Sequence[str], *, include_derived: bool, reason: str) -> list[UUID]:
        """Permanently delete memories; return the ids of all deleted ones.

        With `include_derived`, memories derived from them are deleted too.
        """
        async with self.scope.write() as (tx, ctx):
            memory_ids = [await resolve_id(tx, memory_ref, agent_id=ctx.agent_id) for memory_ref in memory_refs]
            deleted = await forget(tx, memory_ids, derived=include_derived, reason=clean_text(reason), ctx=ctx)
            payload = {"memory_ids": [str(memory_id) for memory_id in memory_ids], "forgotten": len(deleted)}
            self.scope.publish("memory.forgotten", payload)
            return deleted

    async def plan_forget(self, memory_ref: str) -> ForgetPlan:
        """Return what deleting a memory would delete, with the token that confirms exactly this."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id)
            plan = await plan_forgetting(tx, memory_id, agent_id=self.scope.agent_id)
        return replace(plan, token=hash_preview(str(self.scope.agent_id), "forget", *plan.state_parts))

    async def forget_confirmed(
        self, memory_ref: str, *, token: str, include_derived: bool, reason: str
    ) -> tuple[ForgetPlan, list[UUID]]:
        """Permanently delete a memory; return the plan that its token confirmed, and the ids of all deleted memories.

        Raises ConflictError if the memory has changed since its token was returned.
        """
        async with self.scope.write() as (tx, _):
            joined = replace(self, scope=self.scope.within(tx))
            plan = await joined.plan_forget(memory_ref)
            verify_preview(token, plan.token)
            return plan, await joined.forget([plan.memory_id.hex], include_derived=include_derived, reason=reason)

    @asynccontextmanager
    async def _memory(self, memory_ref: str) -> AsyncGenerator[tuple[Tx, LifecycleContext, UUID]]:
        """Open a transaction; yield it with a write context and the full id of the memory. Raises as `resolve`."""
        async with self.scope.write() as (tx, ctx):
            yield tx, ctx, await resolve_id(tx, memory_ref, agent_id=ctx.agent_id)

    def _publish(self, type_: str, memory_id: UUID, **details: object) -> None:
        self.scope.publish(type_, {"memory_id": str(memory_id), **details})


def _reject_superseded(memory: MemoryDetail) -> None:
    """Raise ConflictError if the fact is superseded. The message names the newer fact, and how to undo the change."""
    newer = next(iter(memory.replaced_by), None)
    if memory.state == "SUPERSEDED" and newer:
        new_id = short_id(newer.memory_id)
        hint = f"If the newer fact is wrong: `newton retract {new_id}`. If the old one is true again, store it again."
        raise ConflictError(f"The fact was superseded by the fact {new_id}: {one_line(newer.micro)}", hint=hint)
