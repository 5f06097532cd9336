"""Sessions with made lines, and entries laid over them by hand."""

from collections.abc import Sequence
from uuid import UUID

from newton.db.pool import Tx
from newton.dialogue import branches, log, sessions
from newton.dialogue.compaction import entry_store
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import CompactionEntry, EntryKind, ViewMessage
from newton.ids import new_id
from newton.memory.forgetting import forget
from tests.support import ANA, NOON, count, teller


async def session(tx: Tx, ref: str, *lines: Message) -> UUID:
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref=ref, now=NOON)
    await append(tx, session_id, *lines)
    return session_id


async def append(tx: Tx, session_id: UUID, *lines: Message) -> list[StoredMessage]:
    return await sessions.append(tx, lines, session_id=session_id, ctx=teller())


def entry(first: int, last: int, *, kind: EntryKind = "turn", text: str = "", before: int = 500) -> CompactionEntry:
    text = text or f"[{kind} {first}-{last}]"
    return CompactionEntry(
        entry_id=new_id(),
        kind=kind,
        first=first,
        last=last,
        text=text,
        tokens=count(text),
        before=before,
        strategy="threshold",
        prompt="extract/1",
        model=None,
        made_at=NOON,
    )


async def keep(tx: Tx, session_id: UUID, *made: CompactionEntry) -> Sequence[CompactionEntry]:
    read = await log.load_view(tx, agent_id=ANA, session_id=session_id)
    assert await entry_store.save_if_unchanged(tx, made, agent_id=ANA, session_id=session_id, sources=read.sources)
    return made


async def restore(tx: Tx, session_id: UUID, one: CompactionEntry) -> list[UUID]:
    return await entry_store.restore(tx, one.entry_id, session_id=session_id, ctx=teller())


async def view(tx: Tx, session_id: UUID) -> list[ViewMessage]:
    return list((await log.load_view(tx, agent_id=ANA, session_id=session_id)).view)


async def texts(tx: Tx, session_id: UUID) -> list[str]:
    return [item.text for item in await view(tx, session_id)]


async def forgets(tx: Tx, session_id: UUID, place: int) -> None:
    """Takes a line away for good."""
    line = await tx.fetchval(
        "select memory_id from memory.memories where kind = 'exchange' and thread_id = $1 and position = $2",
        session_id,
        place,
    )
    await forget(tx, [line], derived=True, reason="a test", ctx=teller())


async def branch(tx: Tx, parent_id: UUID, ref: str, at: int | None = None) -> UUID:
    return await branches.create_branch(tx, ref, parent_id=parent_id, from_position=at, ctx=teller())
