"""Storage of the brief of a session."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from asyncpg import Record

from newton.concurrency import compute
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.brief.brief_items import BriefDraft, BriefItem
from newton.dialogue.brief.brief_update import BriefUpdate, needs_brief
from newton.dialogue.messages import Message, StoredMessage
from newton.memory.memory import WriteContext

SQL = load("newton.dialogue.brief", "brief_store.sql")
_ITEM_COLUMNS = ("kind", "text", "tokens", "position", "source")


async def list_items(
    tx: Tx, *, agent_id: UUID, session_id: UUID, moment: datetime | None = None, only_open: bool = False
) -> list[BriefItem]:
    """Return the items of a session, also those that a branch inherits, in the order in which they were said.

    With `moment`, return them as they were then.
    """
    rows = await SQL["list_items"].fetch_all(
        tx, agent_id=agent_id, session_id=session_id, moment=moment, only_open=only_open
    )
    return [BriefItem(**dict(row)) for row in rows]


async def load_update(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> BriefUpdate:
    """Return the open items of a session, to be changed. The caller must hold the session lock."""
    items = await list_items(tx, agent_id=ctx.agent_id, session_id=session_id, only_open=True)
    return BriefUpdate(items=items, count_tokens=ctx.count_tokens)


async def compute_update(
    tx: Tx, messages: Sequence[StoredMessage], memory_ids: Mapping[int, UUID], *, session_id: UUID, ctx: WriteContext
) -> BriefUpdate | None:
    """Return the changes of the brief that new messages ask for. `memory_ids` maps positions to memories."""
    if not any(map(needs_brief, messages)):
        return None
    update = await load_update(tx, session_id=session_id, ctx=ctx)
    read = [one for one in messages if needs_brief(one)]
    await compute(lambda: _read_all(update, read, memory_ids), chars=sum(len(one.message.content) for one in read))
    return update


def _read_all(update: BriefUpdate, messages: Sequence[StoredMessage], memory_ids: Mapping[int, UUID]) -> None:
    for stored in messages:
        update.read_message(stored, memory_ids.get(stored.position))


async def add_proposals(
    tx: Tx, proposals: Sequence[BriefDraft], *, first: int, last: int, session_id: UUID, ctx: WriteContext
) -> Sequence[BriefItem]:
    """Add the items that a model proposes for the messages `first` to `last`; return those that are added.

    A proposal is added only if a message of a person says it in these words.
    """
    if not proposals:
        return ()
    key = {"agent_id": ctx.agent_id, "session_id": session_id}
    await log.lock_session(tx, **key)
    items = await list_items(tx, agent_id=ctx.agent_id, session_id=session_id)
    update = BriefUpdate(
        items=[item for item in items if item.status == "open"],
        count_tokens=ctx.count_tokens,
        closed=[item for item in items if item.status != "open"],
    )
    rows = await SQL["list_person_messages"].fetch_all(tx, **key, first=first, last=last)
    for draft in proposals:
        for row in rows:
            if update.propose(draft, _to_stored_message(row, session_id), row["memory_id"]):
                break
    await save(tx, update, session_id=session_id, ctx=ctx)
    return update.added


def _to_stored_message(row: Record, session_id: UUID) -> StoredMessage:
    message = Message(
        role=row["role"], name=row["name"], content=row["content"], said_at=row["said_at"], min_trust=row["trust"]
    )
    return StoredMessage(session_id=session_id, position=row["position"], tokens=row["tokens"], message=message)


async def save(tx: Tx, update: BriefUpdate, *, session_id: UUID, ctx: WriteContext) -> None:
    """Store the changes of a brief."""
    key = {"agent_id": ctx.agent_id, "session_id": session_id}
    if update.added:
        rows = [_to_row(item) for item in update.added]
        await SQL["insert_items"].execute(tx, **key, items=json.dumps(rows), now=ctx.now)
    if update.closings:
        closings = json.dumps([asdict(closing) for closing in update.closings], default=str)
        await SQL["insert_closings"].execute(tx, **key, closings=closings, now=ctx.now, origin=ctx.origin)


def _to_row(item: BriefItem) -> dict[str, object]:
    return {
        **{name: getattr(item, name) for name in _ITEM_COLUMNS},
        "item_id": str(item.item_id),
        "memory_id": item.memory_id and str(item.memory_id),
        "said_at": item.said_at.isoformat(),
    }
