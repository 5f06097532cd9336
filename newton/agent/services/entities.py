"""Entities of an agent: the people and things that memories name, and the relations between them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.errors import NotFoundError
from newton.heart.entities import entity_changes, entity_lookup, entity_store
from newton.heart.entities.entity_changes import EntityMergePlan
from newton.heart.entities.entity_lookup import EntityMention, EntityRecord
from newton.heart.entities.entity_store import EntityRelation, EntitySummary
from newton.heart.facts import fact_edits
from newton.memory import store
from newton.memory.memory_list import read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityService:
    """The entities of one agent: people and things that its memories name."""

    scope: AgentScope

    async def list_entities(self, *, limit: int) -> list[EntitySummary]:
        """Return up to `limit` entities, the most salient first: those mentioned often and lately."""
        async with self.scope.write() as (tx, ctx):
            entities = await entity_store.list_entities(tx, agent_id=ctx.agent_id, limit=limit)
        return _sort_by_salience(entities, ctx.now)

    async def list_session_entities(self, session: str, *, limit: int) -> list[EntitySummary]:
        """Return up to `limit` entities that a session mentions, with their salience there, highest first.

        The mentions and the time of the last one are those of the session. Raises NotFoundError for an unknown session.
        """
        async with self.scope.write() as (tx, ctx):
            session_id = await sessions.get_session_id(tx, agent_id=ctx.agent_id, ref=session)
            key = {"agent_id": ctx.agent_id, "session_id": session_id}
            entities = await entity_store.list_session_entities(tx, **key, limit=limit)
        return _sort_by_salience(entities, ctx.now)

    async def get(self, name: str, *, limit: int, depth: int = 1) -> EntityRecord:
        """Return an entity with its relations up to `depth` steps, and the latest `limit` memories that mention it.

        Raises NotFoundError for an unknown name.
        """
        async with self.scope.write() as (tx, ctx):
            found = (await entity_store.load_index(tx, agent_id=ctx.agent_id)).resolve(name)
            if found is None:
                raise unknown_entity_error(name)
            entity, properties = await entity_lookup.read_entity(tx, found.entity_id, agent_id=ctx.agent_id)
            relations = await entity_store.find_relations(
                tx, [found.entity_id], agent_id=ctx.agent_id, depth=depth, now=ctx.now
            )
            ids = await entity_lookup.list_mentions(tx, found.entity_id, agent_id=ctx.agent_id, limit=limit)
            memories = await read_rows(tx, ids, agent_id=ctx.agent_id)
        mentions = [
            EntityMention(
                memory_id=one.memory_id, kind=one.kind, state=one.state, text=one.text, occurred_at=one.occurred_at
            )
            for one in memories
        ]
        fields = asdict(entity.at(ctx.now))
        return EntityRecord(**fields, properties=properties, relations=relations, mentioned_in=mentions)

    async def find_relations(self, name: str, *, depth: int) -> list[EntityRelation]:
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

    async def plan_merge(self, name: str, into: str) -> EntityMergePlan:
        """Return what merging the entity `name` into the entity `into` would change, with the token that confirms it.

        Raises NotFoundError for an unknown name, and InputError if both names mean one entity.
        """
        async with self.scope.transaction() as tx:
            return await self._plan_merge(tx, name, into)

    async def merge(self, name: str, into: str, *, token: str) -> EntityMergePlan:
        """Merge the entity `name` into the entity `into`, as a preview showed it; return what was done.

        Raises ConflictError if the token is not that of the present preview, and as `plan_merge`. A merge cannot be
        undone.
        """
        async with self.scope.write() as (tx, ctx):
            await store.lock_entities(tx, agent_id=ctx.agent_id)
            plan = await self._plan_merge(tx, name, into)
            verify_preview(token, plan.token)
            await entity_changes.merge_entities(tx, plan, ctx=ctx)
            await fact_edits.move_subjects(tx, plan.subject_keys, plan.kept, ctx=ctx)
            ids = {"entity_id": str(plan.kept_id), "merged_id": str(plan.merged_id)}
            self.scope.publish("entity.merged", ids)
        return plan

    async def _plan_merge(self, tx: Tx, name: str, into: str) -> EntityMergePlan:
        index = await entity_store.load_index(tx, agent_id=self.scope.agent_id)
        merged, kept = index.resolve(name), index.resolve(into)
        if merged is None or kept is None:
            raise unknown_entity_error(name if merged is None else into)
        agent_id = self.scope.agent_id
        plan = await entity_changes.plan_merge(tx, merged.entity_id, kept.entity_id, agent_id=agent_id)
        return replace(plan, token=hash_preview(str(agent_id), "merge", *plan.state_parts))


def _sort_by_salience(entities: Sequence[EntitySummary], now: datetime) -> list[EntitySummary]:
    return sorted((one.at(now) for one in entities), key=lambda one: -one.salience)


def unknown_entity_error(name: str) -> NotFoundError:
    return NotFoundError(
        f"No person or thing named {name!r} is known.", hint="`newton entities` lists the known names."
    )
