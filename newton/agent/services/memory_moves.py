"""Moves of memories and rules between a person and the projects of this person, or between two projects.

A move copies a memory with its text, origin, trust and times, and ends it in its old scope, in one transaction of two
scopes. A person confirms it; a model may only propose one, without a look at the target.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.brain import decisions, ledger
from newton.brain.decision_codec import NewDecision
from newton.brain.hash_chain import ChainHeadFiles
from newton.content.skills import SkillFile
from newton.db.pool import Tx, after_commit, visit_agent
from newton.db.queries import load
from newton.errors import ConflictError, ForbiddenError, InputError, NotFoundError
from newton.heart import censors, episodes, procedures
from newton.heart.censors import CensorRule
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.heart.lifecycle.engine import LifecycleContext
from newton.ids import new_id
from newton.memory import agents
from newton.memory.forgetting import forget
from newton.memory.hygiene import clean_name
from newton.memory.lookup import MemoryDetail, read_memory, resolve_id
from newton.memory.memory import MAX_IMPORTANCE
from newton.memory.redaction.redactor import redact_secrets

SQL = load("newton.agent.services", "memory_moves.sql")

PERSON = "person"  # the target above all projects
Copy = Callable[[Tx, LifecycleContext], Awaitable[UUID | None]]  # stores the memory in the scope of the context


@dataclass(frozen=True, slots=True, kw_only=True)
class MovingMemory:
    """A memory, or a line of the identity (kind `rule`), that would be moved."""

    memory_id: UUID
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """What would be moved to a scope, and the token that moves it."""

    target: str
    items: Sequence[MovingMemory]
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedMemories:
    """The ids of moved memories in their old scope, and in the new one, in the same order; null for a rule."""

    target: str
    items: Sequence[UUID]
    new_ids: Sequence[UUID | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedMove(MovingMemory):
    """A move of a memory that waits for a person, with what `target` says, which need not exist."""

    target: str


class _Target(NamedTuple):
    agent_id: UUID
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveService:
    """Moves memories out of the scope in use. With `is_confined`, a token is for this project alone."""

    scope: AgentScope
    chain_heads: ChainHeadFiles
    is_confined: bool = False

    async def plan(self, memory_refs: Sequence[str], target: str) -> MovePlan:
        """Return what a move would move. Raises as `move`, but for the token."""
        async with self.scope.transaction() as tx:
            found = await self._find_target(tx, target)
            items = [await self._describe(tx, ref) for ref in memory_refs]
        parts = [f"{one.memory_id} {one.text}" for one in items]
        return MovePlan(target=found.name, items=items, token=hash_preview("move", str(found.agent_id), *parts))

    async def move(self, memory_refs: Sequence[str], target: str, *, token: str) -> MovedMemories:
        """Move memories and lines of the identity to the person, or to the project that `target` names.

        Raises NotFoundError for an unknown memory or project, InputError for a kind that is bound to its scope,
        ConflictError for a memory that is not current, or if the memories have changed since the token was returned,
        and ForbiddenError if the token of the request is for this project alone.
        """
        verify_preview(token, (await self.plan(memory_refs, target)).token)
        async with self.scope.write() as (tx, ctx):
            found = await self._find_target(tx, target)
            reason = f"moved to {'the person' if found.name == PERSON else f'the project {found.name}'}"
            items = [await self._describe(tx, ref) for ref in memory_refs]
            new_ids = [await self._move(tx, one, found, reason, ctx) for one in items]
            if any(one.kind == "decision" for one in items):
                for agent_id in (ctx.agent_id, found.agent_id):
                    await self._save_chain_head(tx, agent_id)
            ids = [one.memory_id for one in items]
            await SQL["close_moves"].execute(tx, agent_id=ctx.agent_id, memory_ids=ids)
            self.scope.publish("memory.moved", {"memory_ids": [str(one) for one in ids], "target": found.name})
        return MovedMemories(target=found.name, items=ids, new_ids=new_ids)

    async def propose(self, memory_ref: str, target: str) -> bool:
        """Store a move of a memory that waits for a person; return False if one was proposed before.

        Whether there is such a target shows only the person's approval. Raises as `move` for the memory, and InputError
        for a line of the identity.
        """
        async with self.scope.write() as (tx, ctx):
            item = await self._describe(tx, memory_ref)
            if item.kind == "rule":
                raise InputError("A line of the identity is no memory.", hint="Ask the person to move it.")
            fields = {"memory_id": item.memory_id, "target": clean_name(target, what="target"), "trust": ctx.trust}
            stored = await SQL["insert_move"].fetch_one(tx, agent_id=ctx.agent_id, move_id=new_id(), **fields)
            return stored is not None

    async def list_proposed(self) -> list[ProposedMove]:
        """Return the moves that wait for a person, oldest first."""
        async with self.scope.transaction() as tx:
            return [ProposedMove(**row) for row in await SQL["list_moves"].fetch_all(tx, agent_id=self.scope.agent_id)]

    async def settle(self, memory_ref: str, *, approve: bool) -> MovedMemories:
        """Make the move of a memory that waits, or reject it, so that it is not proposed again; return what was moved.

        Raises NotFoundError if no move of the memory waits, and as `move`.
        """
        async with self.scope.write() as (tx, ctx):
            here = replace(self, scope=self.scope.within(tx))
            memory_id = await resolve_id(tx, memory_ref, agent_id=ctx.agent_id)
            target = next((one.target for one in await here.list_proposed() if one.memory_id == memory_id), None)
            if target is None:
                hint = "`newton moves` lists the moves that wait."
                raise NotFoundError(f"No move of the memory {memory_ref} waits.", hint=hint)
            if approve:
                plan = await here.plan([memory_id.hex], target)
                return await here.move([memory_id.hex], target, token=plan.token)
            await SQL["close_moves"].execute(tx, agent_id=ctx.agent_id, memory_ids=[memory_id])
        return MovedMemories(target=target, items=[], new_ids=[])

    async def _find_target(self, tx: Tx, name: str) -> _Target:
        if self.is_confined:
            what = f"This token is for the project {self.scope.project} alone."
            raise ForbiddenError(what, hint="Use a token of the agent that has the project.")
        person_id = self.scope.parent_id or self.scope.agent_id
        if name == PERSON:
            found = _Target(person_id, PERSON)
        else:
            async with visit_agent(tx, person_id, home=self.scope.agent_id):
                known = {one.name: one.agent_id for one in await agents.list_projects(tx, agent_id=person_id)}
            if (plain := redact_secrets(name.strip())) not in known:
                raise NotFoundError(f"There is no project {name!r}.", hint="`newton projects` lists the projects.")
            found = _Target(known[plain], plain)
        if found.agent_id == self.scope.agent_id:
            raise ConflictError("The memories are there already.", hint="Name another project, or `person`.")
        return found

    async def _describe(self, tx: Tx, ref: str) -> MovingMemory:
        """Return the memory or the line of the identity with an id. Raises ConflictError if it does not hold now."""
        agent_id = self.scope.agent_id
        current = await identity_store.read_identity(tx, agent_id=agent_id)
        for tenet in current.tenets:
            if tenet.tenet_id.hex.endswith(ref.replace("-", "").lower()):
                return MovingMemory(memory_id=tenet.tenet_id, kind="rule", text=tenet.text)
        memory = await read_memory(tx, await resolve_id(tx, ref, agent_id=agent_id), agent_id=agent_id)
        if memory.kind not in COPIES:
            hint = f"Move one of these kinds: {', '.join(COPIES)}, or a line of the identity."
            raise InputError(f"A memory of the kind {memory.kind} belongs to its scope.", hint=hint)
        if memory.is_past or memory.quarantined:
            hint = "Move the memory that holds now, or confirm it first."
            raise ConflictError(f"The {memory.kind} {ref} does not hold now.", hint=hint)
        return MovingMemory(memory_id=memory.memory_id, kind=memory.kind, text=memory.summary)

    async def _move(
        self, tx: Tx, item: MovingMemory, target: _Target, reason: str, ctx: LifecycleContext
    ) -> UUID | None:
        if item.kind == "rule":
            return await self._move_rule(tx, item, target, reason, ctx)
        memory = await read_memory(tx, item.memory_id, agent_id=ctx.agent_id)
        copy = await COPIES[memory.kind](tx, memory, f"moved:{memory.memory_id}", ctx)
        as_then = replace(
            ctx, agent_id=target.agent_id, origin=memory.origin, trust=memory.trust, now=memory.created_at
        )
        async with visit_agent(tx, target.agent_id, home=ctx.agent_id):
            new_id = await copy(tx, as_then)
        await _end(tx, memory, reason, ctx)
        return new_id

    async def _move_rule(
        self, tx: Tx, item: MovingMemory, target: _Target, reason: str, ctx: LifecycleContext
    ) -> UUID | None:
        removed = await identity_store.remove(tx, item.memory_id.hex, edit=IdentityEdit(ctx=ctx, reason=reason))
        async with visit_agent(tx, target.agent_id, home=ctx.agent_id):
            edit = IdentityEdit(ctx=replace(ctx, agent_id=target.agent_id), reason="moved from another scope")
            await identity_store.add(tx, removed.part, removed.text, edit=edit)
        return None

    async def _save_chain_head(self, tx: Tx, agent_id: UUID) -> None:
        """Save the head of the decisions of an agent to its file after the commit."""
        saved = await asyncio.to_thread(self.chain_heads.load_or_none, agent_id)
        async with visit_agent(tx, agent_id, home=self.scope.agent_id):
            head = await ledger.get_extended_head(tx, saved, agent_id=agent_id)
        after_commit(lambda: asyncio.to_thread(self.chain_heads.save, agent_id, head))


async def _copy_fact(tx: Tx, memory: MemoryDetail, ref: str, ctx: LifecycleContext) -> Copy:
    row = await fact_store.read_fact(tx, memory.memory_id, agent_id=ctx.agent_id)
    fact = NewFact(
        ref=ref,
        content=memory.full_text,
        valid_from=memory.occurred_at,
        valid_to=row["valid_to"],
        subject=row["subject"],
        attribute=row["attribute"],
        confidence=memory.confidence,
        importance=None if memory.importance is None else memory.importance / MAX_IMPORTANCE,
        is_core=memory.state == "CORE",
        tags=tuple(row["tags"]),
    )

    async def store(tx: Tx, as_then: LifecycleContext) -> UUID:
        await fact_store.add_facts(tx, [fact], ctx=as_then)
        fact_id = await fact_store.find_fact_id(tx, fact, agent_id=as_then.agent_id)
        await fact_store.ensure_not_inactive(tx, fact_id, ctx=as_then)
        return fact_id

    return store


async def _copy_episode(tx: Tx, memory: MemoryDetail, ref: str, ctx: LifecycleContext) -> Copy:
    episode = await episodes.to_new_episode(tx, memory, ref=ref, agent_id=ctx.agent_id)

    async def store(tx: Tx, as_then: LifecycleContext) -> UUID:
        await episodes.add_episodes(tx, [episode], ctx=as_then)
        return await episodes.find_episode_id(tx, episode, agent_id=as_then.agent_id)

    return store


async def _copy_procedure(tx: Tx, memory: MemoryDetail, ref: str, ctx: LifecycleContext) -> Copy:
    versions = await procedures.list_versions(tx, agent_id=ctx.agent_id)
    version = next(one for one in versions if one.memory_id == memory.memory_id)
    names = ("name", "description", "domain", "details", "triggers", "goals")
    fields = {name: getattr(version, name) for name in names}
    skill = SkillFile.model_validate({**fields, "core": version.steps, "front_matter": dict(version.front_matter)})

    async def store(tx: Tx, as_then: LifecycleContext) -> UUID:
        await procedures.put_procedure(tx, skill, ctx=as_then)
        return (await procedures.get_latest(tx, skill.name, agent_id=as_then.agent_id)).memory_id

    return store


async def _copy_decision(tx: Tx, memory: MemoryDetail, ref: str, ctx: LifecycleContext) -> Copy:
    stored = await decisions.load_decision(tx, memory.memory_id, agent_id=ctx.agent_id)
    if stored.draft is None:
        raise ConflictError("The text of the decision was erased.", hint="Only its record is left, which stays.")
    draft = replace(stored.draft, ref=stored.draft.ref or ref)

    async def store(tx: Tx, as_then: LifecycleContext) -> UUID:
        (result,) = await decisions.record(tx, [NewDecision(draft=draft, review=stored.review)], ctx=as_then)
        return result.decision_id

    return store


async def _copy_censor(tx: Tx, memory: MemoryDetail, ref: str, ctx: LifecycleContext) -> Copy:
    listed = await censors.list_censors(tx, agent_id=ctx.agent_id)
    censor = next(one for one in listed if one.memory_id == memory.memory_id)
    names = ("trigger", "reason", "match_mode", "action", "domain", "threshold")
    rule = CensorRule(**{name: getattr(censor, name) for name in names})

    async def store(tx: Tx, as_then: LifecycleContext) -> UUID | None:
        return next(iter(await censors.add_rules(tx, [rule], ctx=as_then)), None)

    return store


COPIES: Mapping[str, Callable[[Tx, MemoryDetail, str, LifecycleContext], Awaitable[Copy]]] = {
    "fact": _copy_fact,
    "episode": _copy_episode,
    "procedure": _copy_procedure,
    "decision": _copy_decision,
    "censor": _copy_censor,
}


async def _end(tx: Tx, memory: MemoryDetail, reason: str, ctx: LifecycleContext) -> None:
    """End a memory in its scope: the text of a decision is erased, a rule or a procedure retired, others forgotten."""
    match memory.kind:
        case "decision":
            await decisions.erase(tx, memory.memory_id, reason=reason, ctx=ctx)
        case "procedure":
            versions = await procedures.list_versions(tx, agent_id=ctx.agent_id)
            name = next(one.name for one in versions if one.memory_id == memory.memory_id)
            await procedures.retire_procedure(tx, name, ctx=ctx)
        case "censor":
            await censors.retire(tx, memory.memory_id, ctx=ctx)
        case _:
            await forget(tx, [memory.memory_id], derived=False, reason=reason, ctx=ctx)
