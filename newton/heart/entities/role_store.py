"""Storage of who has a role of the user, such as "my girlfriend": an alias of that entity until another gets it."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.entities.indexable_text import IndexableText
from newton.heart.entities.role_names import RoleHolder, find_holders, find_roles
from newton.memory.memory import WriteContext
from newton.text.names import NameIndex

SQL = load("newton.heart.entities", "role_store.sql")

LATE = timedelta(days=1)  # of a text that takes a role from nobody who was mentioned since


async def record_roles(
    tx: Tx, memories: Sequence[IndexableText], index: NameIndex, *, ctx: WriteContext
) -> list[tuple[IndexableText, UUID]]:
    """Store which entities have a role by what the user says; return the memories that name one by a role."""
    mentions, current = list[tuple[IndexableText, UUID]](), dict[str, UUID | None]()
    for memory in memories:
        if not memory.is_of_user:
            continue
        for holder in find_holders(memory.text):
            if (entity := index.resolve(holder.name)) and await _assign(tx, holder, entity.entity_id, memory, ctx=ctx):
                current[holder.role] = None if holder.is_over else entity.entity_id
        for role in find_roles(memory.text):
            if role not in current:
                known = index.find_exact(role)
                current[role] = known.entity_id if known else None
            if entity_id := current[role]:
                mentions.append((memory, entity_id))
    return mentions


async def _assign(tx: Tx, holder: RoleHolder, entity_id: UUID, memory: IndexableText, *, ctx: WriteContext) -> bool:
    """Give an entity a role, or take it away; return False if that is so already.

    An old text, and a fact read from a message later, takes a role from nobody who was mentioned since.
    """
    rows = await SQL["list_holders"].fetch_all(tx, agent_id=ctx.agent_id, role=holder.role)
    others = [row for row in rows if row["memory_id"] != entity_id and not holder.is_shared]
    is_late = memory.is_told or ctx.now - memory.occurred_at > LATE
    if is_late and any(row["mentioned_at"] > memory.occurred_at for row in others):
        return False
    if any(row["memory_id"] == entity_id for row in rows) != holder.is_over:
        return False
    removed = [entity_id] if holder.is_over else [row["memory_id"] for row in others]
    await SQL["remove_role"].execute(tx, agent_id=ctx.agent_id, entity_ids=removed, role=holder.role)
    if not holder.is_over:
        await SQL["add_role"].execute(tx, agent_id=ctx.agent_id, entity_id=entity_id, role=holder.role)
    return True
