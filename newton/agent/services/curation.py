"""Curation of memories by a person: confirm, correct, mark as core, forget, and inspect their history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import ConflictError
from newton.heart.facts import attributes, fact_store
from newton.heart.facts.fact_store import NewFact
from newton.ids import new_id
from newton.memory.forgetting import forget
from newton.memory.hygiene import clean_name, clean_text, validate_time
from newton.memory.lookup import MemoryDetail, read_memory, resolve_id, short_id
from newton.memory.transitions import AppliedTransition, TransitionRecord, list_applied_since, list_transitions


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationService:
    """Curation for one agent. A memory is named by its id or the end of it."""

    scope: AgentScope

    async def get(self, memory_ref: str) -> tuple[MemoryDetail, list[TransitionRecord], dict[str, str]]:
        """Return a memory in full, its state transitions, and the other attributes of a fact."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id)
            found = await read_memory(tx, memory_id, agent_id=self.scope.agent_id)
            changes = await list_transitions(tx, agent_id=self.scope.agent_id, memory_id=memory_id)
            told = (
                await fact_store.read_details(tx, memory_id, agent_id=self.scope.agent_id)
                if found.kind == "fact"
                else {}
            )
        return found, changes, told

    async def resolve(self, memory_ref: str) -> UUID:
        """Return the id of the memory with that id or id suffix. Raises as `get`."""
        async with self.scope.transaction() as tx:
            return await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id)

    async def list_changes(self, since: datetime) -> list[AppliedTransition]:
        """Return the transitions made through this interface since a moment."""
        async with self.scope.transaction() as tx:
            return await list_applied_since(tx, since, agent_id=self.scope.agent_id, origin=self.scope.origin)

    async def confirm(self, memory_ref: str) -> bool:
        """Confirm a fact. Return False if this interface has confirmed it today.

        Raises ConflictError for a retracted fact.
        """
        now = self.scope.now()
        source = f"{self.scope.origin} {now:%Y-%m-%d}"
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id)
            await fact_store.ensure_not_inactive(tx, memory_id, ctx=self.scope.write_context())
            counted = await fact_store.confirm(tx, memory_id, ref=source, source=source, ctx=self.scope.write_context())
            self._publish("memory.confirmed", memory_id, counted=counted)
            return counted

    async def mark_core(self, memory_ref: str) -> None:
        """Mark a fact as core. Raises as `confirm`."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id)
            await fact_store.ensure_not_inactive(tx, memory_id, ctx=self.scope.write_context())
            await fact_store.mark_core(tx, memory_id, ctx=self.scope.write_context())
            self._publish("memory.marked_core", memory_id)

    async def supersede(self, memory_ref: str, content: str, *, at: datetime | None = None) -> UUID:
        """Supersede a fact with a new statement of the same subject and attribute; return the new id."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id)
            await self._ensure_current(tx, memory_id)
            subject, attribute = await fact_store.read_subject_and_attribute(
                tx, memory_id, agent_id=self.scope.agent_id
            )
            told = NewFact(
                ref=str(new_id()),
                content=clean_text(content),
                valid_from=validate_time(at) if at else self.scope.now(),
                subject=subject,
                attribute=attribute,
            )
            await fact_store.add_facts(tx, [told], ctx=self.scope.write_context())
            new = await fact_store.find_fact_id(tx, told, agent_id=self.scope.agent_id)
            await fact_store.supersede(tx, memory_id, by_fact=new, ctx=self.scope.write_context())
            self._publish("memory.superseded", memory_id, superseded_by=str(new))
        return new

    async def _ensure_current(self, tx: Tx, memory_id: UUID) -> None:
        found = await read_memory(tx, memory_id, agent_id=self.scope.agent_id)
        if found.state == "SUPERSEDED":
            raise ConflictError(
                f"The fact {short_id(memory_id)} is superseded already.",
                hint="Supersede the current fact instead: `newton show` names it.",
            )

    async def retract(self, memory_ref: str) -> None:
        """Mark a fact as never true."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve_id(tx, memory_ref, agent_id=self.scope.agent_id)
            await fact_store.retract(tx, memory_id, ctx=self.scope.write_context())
            self._publish("memory.retracted", memory_id)

    async def list_attributes(self) -> dict[str, bool]:
        """Return every known attribute, and whether it is single-valued."""
        async with self.scope.transaction() as tx:
            return await attributes.list_attributes(tx, agent_id=self.scope.agent_id)

    async def set_cardinality(self, attribute: str, *, single_valued: bool) -> None:
        """Set whether an attribute is single-valued. Existing facts do not change."""
        async with self.scope.transaction() as tx:
            named = clean_name(attribute, what="attribute")
            await attributes.set_cardinality(tx, named, agent_id=self.scope.agent_id, single=single_valued)
            self.scope.publish("attribute.declared", {"single_valued": single_valued})

    async def forget(self, memory_refs: Sequence[str], *, include_derived: bool, reason: str) -> list[UUID]:
        """Permanently delete memories; return the ids of all that were deleted."""
        async with self.scope.transaction() as tx:
            memory_ids = [await resolve_id(tx, one, agent_id=self.scope.agent_id) for one in memory_refs]
            gone = await forget(
                tx, memory_ids, derived=include_derived, reason=clean_text(reason), ctx=self.scope.write_context()
            )
            about = {"memory_ids": [str(one) for one in memory_ids], "forgotten": len(gone)}
            self.scope.publish("memory.forgotten", about)
            return gone

    def _publish(self, type_: str, memory_id: UUID, **more: object) -> None:
        self.scope.publish(type_, {"memory_id": str(memory_id), **more})
