"""Deletion of memories and of what was derived from them. Each deletion is recorded before it happens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx, visit_agent
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError
from newton.memory import agents, store, tombstones
from newton.memory.lookup import RelatedMemory, read_memory
from newton.memory.memory import PERSON_TIERS, Kind, WriteContext

SQL = load("newton.memory", "forgetting.sql")

# Kinds that are computed from a message, without a request, and contain nothing of their own.
COMPUTED_KINDS = frozenset({"artifact", "event"})
MAX_NAMED_DERIVED = 3  # derived memories that a refusal names


class DerivedMemory(NamedTuple):
    """A memory that was derived from others, with its short form."""

    memory_id: UUID
    kind: Kind
    micro: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPlan:
    """A memory that would be deleted, and the token that confirms it; nothing is deleted yet.

    `derived` are the memories derived from it, which `include_derived` deletes too. `sources` are those that it was
    made from, which remain.
    """

    memory_id: UUID
    kind: Kind
    state: str
    text: str
    derived: Sequence[RelatedMemory]
    sources: Sequence[RelatedMemory]
    token: str = ""

    @property
    def state_parts(self) -> tuple[str, ...]:
        """Texts that change whenever the memory or a memory derived from it changes; `token` is a hash of them."""
        return (self.memory_id.hex, self.state, self.text, *(str(one) for one in self.derived))


async def plan_forgetting(tx: Tx, memory_id: UUID, *, agent_id: UUID) -> ForgetPlan:
    """Return what forgetting a memory would delete, without deleting it. Raises NotFoundError for an unknown id."""
    memory = await read_memory(tx, memory_id, agent_id=agent_id)
    rows = await SQL["find_derived"].fetch_all(tx, agent_id=agent_id, memory_ids=[memory_id])
    return ForgetPlan(
        memory_id=memory_id,
        kind=memory.kind,
        state=memory.state,
        text=memory.summary,
        derived=[RelatedMemory("was derived from it", *row) for row in rows],
        sources=memory.sources,
    )


async def find_derived(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> list[UUID]:
    """Return the ids of all memories that were derived from these memories, directly or indirectly."""
    return [one.memory_id for one in await list_derived(tx, memory_ids, agent_id=agent_id)]


async def list_derived(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> list[DerivedMemory]:
    """Return the memories that were derived from these memories, directly or indirectly."""
    rows = await SQL["find_derived"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids)
    return [DerivedMemory(row["memory_id"], row["kind"], row["micro"]) for row in rows]


async def find_orphaned(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> list[UUID]:
    """Return the ids of the entities and relations for which no evidence remains without these memories."""
    rows = await SQL["find_orphaned"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids)
    return [row["memory_id"] for row in rows]


async def forget(
    tx: Tx, memory_ids: Sequence[UUID], *, derived: bool, reason: str, ctx: WriteContext, is_buried: bool = False
) -> list[UUID]:
    """Delete memories and return the ids of all that were deleted.

    What they state gets tombstones, unless the caller has buried it.

    With `derived`, memories derived from them are also deleted. Artifacts and events made of them, and entities and
    relations for which no other evidence remains, are always deleted. Raises NotFoundError for an unknown id. Raises
    ConflictError for a decision and, without `derived`, if another memory was derived from them.
    """
    # an entity that another transaction is about to mention must not be deleted as an orphan
    await store.lock_entities(tx, agent_id=ctx.agent_id)
    rows = await SQL["find_existing"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    if missing := set(memory_ids) - {row["memory_id"] for row in rows}:
        raise NotFoundError(
            f"There is no memory {missing.pop()}.", hint="`newton recall … --json` shows the ids of memories."
        )
    derivatives = await SQL["find_derived"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    if (remaining := [row for row in derivatives if row["kind"] not in COMPUTED_KINDS]) and not derived:
        named = "; ".join(f"{row['kind']} {row['memory_id']}: {row['micro']}" for row in remaining[:MAX_NAMED_DERIVED])
        raise ConflictError(
            f"{len(remaining)} memories are derived from what is to be forgotten ({named}).",
            hint="Add --include-derived to forget the derived memories too.",
        )
    if any(row["kind"] == "decision" for row in [*rows, *derivatives]):
        raise ConflictError(
            "A decision is never deleted.",
            hint="`newton decisions erase ID` deletes the text of a decision and keeps its record.",
        )
    deleted = [*memory_ids, *(row["memory_id"] for row in derivatives)]
    orphans = await find_orphaned(tx, deleted, agent_id=ctx.agent_id)
    deleted = list(dict.fromkeys([*deleted, *orphans]))
    if not is_buried and ctx.trust in PERSON_TIERS:  # what a model forgets, a person may still import
        stated = await SQL["list_statements"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=deleted)
        await tombstones.bury(
            tx, [row["text"] for row in stated], [row["ref"] for row in stated if row["ref"]], ctx=ctx
        )
    await SQL["record_forgotten"].execute(
        tx, agent_id=ctx.agent_id, memory_ids=deleted, now=ctx.now, reason=reason, origin=ctx.origin
    )
    # the rules first, because the memories of their messages are deleted
    await SQL["forget_recorded_rules"].execute(tx, agent_id=ctx.agent_id)
    await SQL["forget_recorded"].execute(tx, agent_id=ctx.agent_id)
    await forget_in_projects(tx, deleted, agent_id=ctx.agent_id)
    return deleted


async def forget_in_projects(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> None:
    """Delete the contexts and prompts of the projects of an agent that contain these memories or rules of it."""
    for project in await agents.list_projects(tx, agent_id=agent_id):
        async with visit_agent(tx, project.agent_id, home=agent_id):
            await SQL["forget_inherited"].execute(tx, agent_id=project.agent_id, memory_ids=list(memory_ids))
