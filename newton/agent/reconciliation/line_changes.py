"""Record of the changes that messages made, for the receipt of a turn and for a person to undo them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.facts import fact_edits, fact_store
from newton.heart.lifecycle.engine import LifecycleContext
from newton.ids import new_id

SQL = load("newton.agent.reconciliation", "line_changes.sql")

LineEffect = Literal[
    "learnt",
    "confirmed",
    "replaced",
    "ended",
    "retracted",
    "merged",
    "unsettled",
    "ruled",
    "lifted",
    "proposed",
    "hidden",
]


class LineChange(NamedTuple):
    """One effect of a message on a fact, procedure, decision, rule or message. `line_id` is the memory of the message.

    A merge of facts that say the same has no message. `former_end` is that of an ended fact.
    """

    effect: LineEffect
    target_id: UUID
    line_id: UUID | None
    former_end: datetime | None = None


class StoredChange(NamedTuple):
    """A stored change of memory, with the text and the kind of what it changed (the section of a rule).

    Both are None if that is deleted.
    """

    change_id: UUID
    change: LineChange
    kind: str | None
    text: str | None


class LearningReceipt(NamedTuple):
    """The facts and rules that a message (or the time since the previous one) added, and those that it ended.

    `kept_out` are the short forms of the messages that the message asks not to keep.
    """

    learnt: tuple[str, ...] = ()
    no_longer: tuple[str, ...] = ()
    kept_out: tuple[str, ...] = ()


NO_RECEIPT = LearningReceipt()


async def read_receipt(tx: Tx, line_id: UUID, *, agent_id: UUID) -> LearningReceipt:
    """Return what the message with this memory has changed so far."""
    rows = await SQL["list_receipt"].fetch_all(tx, agent_id=agent_id, line_id=line_id)
    learnt = tuple(row["text"] for row in rows if row["is_learnt"])
    hidden = await SQL["list_kept_out"].fetch_all(tx, agent_id=agent_id, line_id=line_id)
    no_longer = tuple(row["text"] for row in rows if not row["is_learnt"])
    return LearningReceipt(learnt, no_longer, tuple(row["text"] for row in hidden))


async def insert_changes(tx: Tx, changes: Sequence[LineChange], *, ctx: LifecycleContext) -> None:
    """Store the record of changes that were made."""
    if changes:
        effects, targets, lines, ends = zip(*changes, strict=True)
        await SQL["insert_changes"].execute(
            tx,
            agent_id=ctx.agent_id,
            change_ids=[new_id() for _ in changes],
            line_ids=lines,
            effects=effects,
            target_ids=targets,
            former_ends=ends,
            now=ctx.now,
        )


async def list_changes(
    tx: Tx,
    *,
    agent_id: UUID,
    since: datetime | None = None,
    session_id: UUID | None = None,
    position: int | None = None,
) -> list[StoredChange]:
    """Return the changes made by messages that were not undone, oldest first.

    They are those since a time, of a session, or of its message at `position`; without any of these, all.
    """
    rows = await SQL["list_changes"].fetch_all(
        tx, agent_id=agent_id, since=since, session_id=session_id, position=position
    )
    return [
        StoredChange(
            row["change_id"],
            LineChange(row["effect"], row["target_id"], row["line_id"], row["former_valid_to"]),
            row["kind"],
            row["text"],
        )
        for row in rows
    ]


async def read_texts(tx: Tx, target_ids: Sequence[UUID], *, agent_id: UUID) -> dict[UUID, str]:
    """Return the texts of facts, messages and rules by id."""
    rows = await SQL["read_texts"].fetch_all(tx, agent_id=agent_id, target_ids=target_ids)
    return {row["target_id"]: row["text"] for row in rows}


async def undo_since(tx: Tx, since: datetime, *, ctx: LifecycleContext) -> list[StoredChange]:
    """Undo what messages changed in facts and messages since a time. Return these changes and those of rules.

    A person undoes those of rules.
    """
    changes = await list_changes(tx, agent_id=ctx.agent_id, since=since)
    await undo_changes(tx, changes, ctx=ctx)
    return changes


async def undo_changes(tx: Tx, changes: Sequence[StoredChange], *, ctx: LifecycleContext) -> None:
    """Undo changes of facts, the latest first: new facts are retracted, ended or hidden ones become current again.

    A fact that was replaced is current again when what replaced it is retracted.
    """
    for one in reversed(changes):
        if one.kind == "fact" and one.change.effect == "learnt":
            await fact_store.retract(tx, one.change.target_id, ctx=ctx)
        elif one.kind == "fact" and one.change.effect == "retracted":
            await fact_edits.undo_retractions(tx, [one.change.target_id], ctx=ctx)
        elif one.kind == "fact" and one.change.effect == "ended":
            await fact_edits.set_end(tx, one.change.target_id, one.change.former_end, ctx=ctx)
    hidden = [one.change.target_id for one in changes if one.change.effect == "hidden"]
    await SQL["unhide"].execute(tx, agent_id=ctx.agent_id, memory_ids=hidden)
    ids = [one.change_id for one in changes]
    await SQL["mark_undone"].execute(tx, agent_id=ctx.agent_id, change_ids=ids, now=ctx.now)
