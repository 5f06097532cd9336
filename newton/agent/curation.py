"""What a person may do to what is known: confirm, correct, mark, forget; and see what became of it and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import ConflictError
from newton.heart import attributes, facts
from newton.heart.facts import Statement
from newton.ids import new_id
from newton.memory.forgetting import forget
from newton.memory.hygiene import clean, moment, name
from newton.memory.lookup import Record, record, resolve, short
from newton.memory.transitions import Changed, Transition, changed_since, history


@dataclass(frozen=True, slots=True, kw_only=True)
class Curation:
    """For one agent, by a person at the door `origin`. A memory is named by its id or the end of it."""

    scope: AgentScope

    async def look(self, given: str) -> tuple[Record, list[Transition], dict[str, str]]:
        """The whole memory, every change of its state, and what else a fact tells, by name."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve(tx, given, agent_id=self.scope.agent_id)
            found = await record(tx, memory_id, agent_id=self.scope.agent_id)
            changes = await history(tx, agent_id=self.scope.agent_id, memory_id=memory_id)
            told = await facts.told(tx, memory_id, agent_id=self.scope.agent_id) if found.kind == "fact" else {}
        return found, changes, told

    async def meant(self, given: str) -> UUID:
        """The memory of that id, or of an id that ends so. Raises as `look`."""
        async with self.scope.transaction() as tx:
            return await resolve(tx, given, agent_id=self.scope.agent_id)

    async def changed(self, since: datetime) -> list[Changed]:
        """What became of memories through this door from a moment on."""
        async with self.scope.transaction() as tx:
            return await changed_since(tx, since, agent_id=self.scope.agent_id, origin=self.scope.origin)

    async def confirm(self, given: str) -> bool:
        """The person says that this fact is so. False when the same door has said it today.

        Raises ConflictError for one that was said to be wrong.
        """
        now = self.scope.now()
        source = f"{self.scope.origin} {now:%Y-%m-%d}"
        async with self.scope.transaction() as tx:
            memory_id = await resolve(tx, given, agent_id=self.scope.agent_id)
            await facts.ensure_not_wrong(tx, memory_id, ctx=self.scope.write_context())
            counted = await facts.corroborate(tx, memory_id, ref=source, source=source, ctx=self.scope.write_context())
            self._tell("memory.confirmed", memory_id, counted=counted)
            return counted

    async def mark(self, given: str) -> None:
        """The person says that this is a core fact. Raises as `confirm`."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve(tx, given, agent_id=self.scope.agent_id)
            await facts.ensure_not_wrong(tx, memory_id, ctx=self.scope.write_context())
            await facts.mark(tx, memory_id, ctx=self.scope.write_context())
            self._tell("memory.marked", memory_id)

    async def supersede(self, given: str, content: str, *, at: datetime | None = None) -> UUID:
        """Puts a new statement in the place of a fact, of the same subject and attribute; returns its id."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve(tx, given, agent_id=self.scope.agent_id)
            await self._must_hold(tx, memory_id)
            subject, attribute = await facts.about(tx, memory_id, agent_id=self.scope.agent_id)
            told = Statement(
                ref=str(new_id()),
                content=clean(content),
                at=moment(at) if at else self.scope.now(),
                subject=subject,
                attribute=attribute,
            )
            await facts.learn(tx, [told], ctx=self.scope.write_context())
            new = await facts.telling(tx, told, agent_id=self.scope.agent_id)
            await facts.supersede(tx, memory_id, by_fact=new, ctx=self.scope.write_context())
            self._tell("memory.superseded", memory_id, superseded_by=str(new))
        return new

    async def _must_hold(self, tx: Tx, memory_id: UUID) -> None:
        found = await record(tx, memory_id, agent_id=self.scope.agent_id)
        if found.state == "SUPERSEDED":
            raise ConflictError(
                f"The fact {short(memory_id)} is superseded already.",
                hint="Supersede the one in its place: `newton show` names it.",
            )

    async def retract(self, given: str) -> None:
        """The person says that this fact was never so."""
        async with self.scope.transaction() as tx:
            memory_id = await resolve(tx, given, agent_id=self.scope.agent_id)
            await facts.retract(tx, memory_id, ctx=self.scope.write_context())
            self._tell("memory.retracted", memory_id)

    async def attributes(self) -> dict[str, bool]:
        """Every attribute that is used or declared, and whether it has one value at a time."""
        async with self.scope.transaction() as tx:
            return await attributes.listed(tx, agent_id=self.scope.agent_id)

    async def declare(self, attribute: str, *, single: bool) -> None:
        """From now on the attribute has one value at a time, or many. Facts that are there stay as they were told."""
        async with self.scope.transaction() as tx:
            named = name(attribute, what="attribute")
            await attributes.declare(tx, named, agent_id=self.scope.agent_id, single=single)
            self.scope.publish("attribute.declared", {"single": single})

    async def forget(self, given: Sequence[str], *, derived: bool, because: str) -> list[UUID]:
        """Takes memories away for good; returns the ids of all that went."""
        async with self.scope.transaction() as tx:
            memory_ids = [await resolve(tx, one, agent_id=self.scope.agent_id) for one in given]
            gone = await forget(tx, memory_ids, derived=derived, because=clean(because), ctx=self.scope.write_context())
            about = {"memory_ids": [str(one) for one in memory_ids], "forgotten": len(gone)}
            self.scope.publish("memory.forgotten", about)
            return gone

    def _tell(self, type_: str, memory_id: UUID, **more: object) -> None:
        self.scope.publish(type_, {"memory_id": str(memory_id), **more})
