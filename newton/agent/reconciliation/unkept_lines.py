"""Messages that a model takes for what a person asks not to keep: they are hidden from recall, contexts and learning.

The conversation itself still has them, and a person can undo it. What a person asks for in words that code reads is
forgotten for good (`newton.agent.wills`).
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from newton.agent.reconciliation.line_changes import LineChange, insert_changes
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import StoredMessage
from newton.heart.facts import fact_store
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.reconciliation.text_evidence import list_stems
from newton.heart.speakers import concerns_safety
from newton.heart.wills.will_reader import is_about
from newton.memory.forgetting import find_derived, find_orphaned

SQL = load("newton.agent.reconciliation", "unkept_lines.sql")

MAX_CANDIDATES = 200  # latest messages that share a word with a topic
MAX_HIDDEN = 20  # messages of a person that one request hides
MIN_PREFIX = 4  # characters of a stem by which messages are found


class MessageTopic(NamedTuple):
    """The topic that a person asks not to keep: its words, the text of the request, and the request's memory id."""

    text: str
    request: str
    request_id: UUID


async def hide_replies(tx: Tx, stored: Sequence[StoredMessage], *, ctx: LifecycleContext) -> None:
    """Hide newly stored replies to a message because of which a model has hidden messages."""
    if not any(one.message.role == "assistant" for one in stored):
        return
    key = {"agent_id": ctx.agent_id, "session_id": stored[0].session_id, "first": stored[0].position}
    for row in await SQL["list_replies_to_hidden"].fetch_all(tx, **key):
        await hide_messages(tx, [row["memory_id"]], request_id=row["request_id"], ctx=ctx)


async def find_messages(tx: Tx, topic: MessageTopic, *, agent_id: UUID) -> list[UUID]:
    """Return the messages of a person about a topic, the latest MAX_HIDDEN, and replies of the model that name it."""
    stems = list_stems(topic.text) | list_stems(topic.request)
    patterns = sorted({f"%{stem[: max(MIN_PREFIX, len(stem) - 2)]}%" for stem in stems})
    rows = await SQL["list_candidates"].fetch_all(
        tx, agent_id=agent_id, patterns=patterns, request_id=topic.request_id, max_rows=MAX_CANDIDATES
    )
    requests = {"user": topic.request, "assistant": ""}
    found = [row for row in rows if is_about(row["content"], topic.text, requests[row["role"]])]
    user_ids = [row["memory_id"] for row in found if row["role"] == "user"]
    return [*user_ids[:MAX_HIDDEN], *(row["memory_id"] for row in found if row["role"] == "assistant")]


async def hide_messages(
    tx: Tx, memory_ids: Sequence[UUID], *, request_id: UUID | None, ctx: LifecycleContext
) -> list[LineChange]:
    """Hide messages, the replies to them and what was made of both; return the changes, which a person can undo.

    A fact ends as retracted, unless a message that stays says it too, a person marked it as core or it concerns safety.
    Rules, decisions and procedures stay.
    """
    if not memory_ids:
        return []
    key = {"agent_id": ctx.agent_id}
    replies = await SQL["list_replies"].fetch_all(tx, **key, memory_ids=memory_ids)
    ids = [*memory_ids, *(row["memory_id"] for row in replies)]
    derived = await find_derived(tx, ids, agent_id=ctx.agent_id)
    orphans = await find_orphaned(tx, [*ids, *derived], agent_id=ctx.agent_id)
    hidden = await SQL["hide"].fetch_all(tx, **key, memory_ids=[*ids, *derived, *orphans])
    unsupported = await SQL["list_unsupported"].fetch_all(tx, **key, memory_ids=derived)
    facts = [row for row in unsupported if not concerns_safety(row["text"])]
    for row in facts:
        await fact_store.retract(tx, row["memory_id"], ctx=ctx)
    changes = [
        *(LineChange("hidden", row["memory_id"], request_id) for row in hidden),
        *(LineChange("retracted", row["memory_id"], request_id) for row in facts),
    ]
    await insert_changes(tx, changes, ctx=ctx)
    return changes


async def find_named_messages(tx: Tx, memory_id: UUID, *, request_id: UUID, agent_id: UUID) -> list[UUID]:
    """Return the message with this memory, or its source messages, if they are by the person of the request."""
    rows = await SQL["list_named"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id, request_id=request_id)
    return [row["memory_id"] for row in rows]


async def hide_read(tx: Tx, line_id: UUID, fact_ids: Sequence[UUID], *, ctx: LifecycleContext) -> list[LineChange]:
    """Hide a message that a model read later, and those of the same person that say the facts; return the changes.

    What a person has shown again stays.
    """
    found = [line_id]
    for fact_id in fact_ids:
        found += await find_named_messages(tx, fact_id, request_id=line_id, agent_id=ctx.agent_id)
    rows = await SQL["list_unhidden"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=found)
    shown = {row["memory_id"] for row in rows}
    return await hide_messages(tx, [one for one in found if one not in shown], request_id=line_id, ctx=ctx)
