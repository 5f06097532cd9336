"""Entities of an agent: the people and things that memories name, and the relations between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.errors import NotFoundError
from newton.heart.entities import entity_merge, entity_records, entity_store
from newton.heart.entities.entity_merge import EntityMergePlan
from newton.heart.entities.entity_store import EntitySummary, ReachedRelation
from newton.heart.events.event_types import Payload
from newton.heart.facts import fact_edits
from newton.memory import store
from newton.memory.inventory.memory_list import ListedMemory, read_rows


class EntityRecord(NamedTuple):
    """An entity in full: its salience, its properties, its relations, and the latest memories that mention it."""

    entity: EntitySummary
    salience: float
    properties: Payload
    relations: Sequence[ReachedRelation]
    mentions: Sequence[ListedMemory]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityService:
    """Entities of one agent."""

    scope: AgentScope

    async def list_entities(self, *, limit: int) -> list[tuple[EntitySummary, float]]:
        """Return up to `limit` entities and their salience (how often and recently they are mentioned), highest
        first.
        """
        async with self.scope.write() as (tx, ctx):
            entities = await entity_store.list_entities(tx, agent_id=ctx.agent_id, limit=limit)
        return sorted(((entity, entity.salience_at(ctx.now)) for entity in entities), key=lambda pair: -pair[1])

    async def list_session_entities(self, session: str, *, limit: int) -> list[tuple[EntitySummary, float]]:
        """Return up to `limit` entities that a session mentions, with their salience there, highest first.

        The mentions and the time of the last one are those of the session. Raises NotFoundError for an unknown session.
        """
        async with self.scope.write() as (tx, ctx):
            session_id = await sessions.get_session_id(tx, agent_id=ctx.agent_id, ref=session)
            key = {"agent_id": ctx.agent_id, "session_id": session_id}
            entities = await entity_store.list_session_entities(tx, **key, limit=limit)
        return sorted(((entity, entity.salience_at(ctx.now)) for entity in entities), key=lambda pair: -pair[1])

    async def get(self, name: str, *, limit: int) -> EntityRecord:
        """Return an entity with its relations and the latest `limit` memories that mention it. Raises NotFoundError."""
        async with self.scope.write() as (tx, ctx):
            found = (await entity_store.load_index(tx, agent_id=ctx.agent_id)).resolve(name)
            if found is None:
                raise unknown_entity_error(name)
            entity, properties = await entity_records.read_entity(tx, found.entity_id, agent_id=ctx.agent_id)
            relations = await entity_store.find_relations(
                tx, [found.entity_id], agent_id=ctx.agent_id, depth=1, now=ctx.now
            )
            ids = await entity_records.list_mentions(tx, found.entity_id, agent_id=ctx.agent_id, limit=limit)
            mentions = await read_rows(tx, ids, agent_id=ctx.agent_id)
        return EntityRecord(entity, entity.salience_at(ctx.now), properties, relations, mentions)

    async def find_related_entities(self, name: str, *, depth: int) -> list[ReachedRelation]:
        """Return the relations that lead from the entity `name` to others over up to `depth` steps, nearest first.

        Raises NotFoundError for an unknown name.
        """
        async with self.scope.transaction() as tx:
            found = (await entity_store.load_index(tx, agent_id=self.scope.agent_id)).resolve(name)
            if found is None:
                raise unknown_entity_error(name)
            return await entity_store.find_relations(
                tx, [found.entity_id], agent_id=self.scope.agent_id, depth=depth, now=self.scope.now()
            )

    async def plan_merge(self, name: str, into: str) -> tuple[EntityMergePlan, str]:
        """Return what merging the entity `name` into the entity `into` would change, and the token that confirms it.

        Raises NotFoundError for an unknown name, and InputError if both names mean one entity.
        """
        async with self.scope.transaction() as tx:
            plan = await self._plan_merge(tx, name, into)
        return plan, _create_merge_token(plan, self.scope)

    async def merge(self, name: str, into: str, *, token: str) -> EntityMergePlan:
        """Merge the entity `name` into the entity `into`, as a preview showed it; return what was done.

        Raises ConflictError if the token is not that of the present preview, and as `plan_merge`. A merge cannot be
        undone.
        """
        async with self.scope.write() as (tx, ctx):
            await store.lock_entities(tx, agent_id=ctx.agent_id)
            plan = await self._plan_merge(tx, name, into)
            verify_preview(token, _create_merge_token(plan, self.scope))
            await entity_merge.merge_entities(tx, plan, ctx=ctx)
            await fact_edits.move_subjects(tx, plan.subject_keys, plan.kept.name, ctx=ctx)
            ids = {"entity_id": str(plan.kept.memory_id), "merged_id": str(plan.merged.memory_id)}
            self.scope.publish("entity.merged", ids)
        return plan

    async def _plan_merge(self, tx: Tx, name: str, into: str) -> EntityMergePlan:
        index = await entity_store.load_index(tx, agent_id=self.scope.agent_id)
        merged, kept = index.resolve(name), index.resolve(into)
        if merged is None or kept is None:
            raise unknown_entity_error(name if merged is None else into)
        return await entity_merge.plan_merge(tx, merged.entity_id, kept.entity_id, agent_id=self.scope.agent_id)


def _create_merge_token(plan: EntityMergePlan, scope: AgentScope) -> str:
    return hash_preview(str(scope.agent_id), "merge", *plan.state_parts)


def unknown_entity_error(name: str) -> NotFoundError:
    return NotFoundError(
        f"No person or thing named {name!r} is known.", hint="`newton entities` lists the known names."
    )
