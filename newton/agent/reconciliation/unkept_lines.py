"""Messages that a person asks not to keep: they are hidden from recall, contexts and learning, reversibly.

The conversation itself still has them. `newton forget` deletes a message for good.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from newton.agent.reconciliation.line_changes import LineChange, insert_changes
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import StoredMessage
from newton.heart.facts import fact_store
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.reconciliation.authority import find_off_record, find_topic, is_about
from newton.heart.reconciliation.text_evidence import list_stems
from newton.memory.forgetting import find_derived, find_orphaned
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, Trust

SQL = load("newton.agent.reconciliation", "unkept_lines.sql")

CONTEXT_MESSAGES = 8  # before new ones, to which a request in them may refer
MAX_MESSAGES = 500  # of one request, in which requests are looked for
MAX_CANDIDATES = 200  # latest messages that share a word with a topic
MAX_HIDDEN = 20  # messages of a person that one request hides
MIN_PREFIX = 4  # characters of a stem by which messages are found


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    text: str
    speaker: str
    source: str
    is_hidden: bool
    memory_id: UUID | None
    is_reported: bool
    has_hidden: bool  # other messages, and its reply may name what they say


class MessageTopic(NamedTuple):
    """The topic that a person asks not to keep: its words, the text of the request, and the request's memory id."""

    text: str
    request: str
    request_id: UUID


async def hide_unkept(tx: Tx, stored: Sequence[StoredMessage], *, ctx: LifecycleContext) -> None:
    """Hide those of newly stored messages that persons ask not to keep, earlier ones that they name, and replies.

    Requests of tools, the web and models hide nothing.
    """
    if not stored or len(stored) > MAX_MESSAGES:
        return
    first, session_id = stored[0].position, stored[0].session_id
    rows = await SQL["list_spoken"].fetch_all(
        tx, agent_id=ctx.agent_id, session_id=session_id, first=first - CONTEXT_MESSAGES, last=stored[-1].position
    )
    lines = [_to_line(dict(row)) for row in rows]
    unkept, latest = find_off_record(_leave_read(lines, first)), dict[str, _Line]()
    request_id: UUID | None = None
    for line in lines:
        if line.source == "person":
            previous = latest.get(line.speaker)
            latest[line.speaker] = line
            request_id = line.memory_id or request_id
            topic = find_topic(line.text, previous.text if previous else "")
            if topic and line.memory_id and not line.is_reported and line.number >= first:
                wanted = MessageTopic(topic, line.text, line.memory_id)
                found = await find_messages(tx, wanted, agent_id=ctx.agent_id)
                await hide_messages(tx, found, request_id=line.memory_id, ctx=ctx)
    unkept |= {line.number for line in lines if line.source == "assistant" and _find_asker(lines, line).has_hidden}
    unkept_ids = [line.memory_id for line in lines if line.number in unkept and line.memory_id and not line.is_hidden]
    await hide_messages(tx, unkept_ids, request_id=request_id, ctx=ctx)


def _find_asker(lines: Sequence[_Line], reply: _Line) -> _Line:
    """Return the last line of a person before a reply; the reply itself if there is none."""
    return next((one for one in reversed(lines) if one.number < reply.number and one.source == "person"), reply)


def _leave_read(lines: Sequence[_Line], first: int) -> list[_Line]:
    """Return the lines with empty texts before `first`: requests in them were carried out, and possibly undone, before.

    The last hidden line of a person keeps its text, because it may announce a line that follows.
    """
    waiting = next((one for one in reversed(lines) if one.number < first and one.source == "person"), None)
    is_complete = waiting is not None and waiting.is_hidden and (waiting is not lines[0] or waiting.number == 0)
    return [one if one.number >= first or (is_complete and one is waiting) else replace(one, text="") for one in lines]


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

    A fact ends as retracted, unless a message that stays says it too, or a person marked it as core. Rules, decisions
    and procedures stay.
    """
    if not memory_ids:
        return []
    key = {"agent_id": ctx.agent_id}
    replies = await SQL["list_replies"].fetch_all(tx, **key, memory_ids=memory_ids)
    ids = [*memory_ids, *(row["memory_id"] for row in replies)]
    derived = await find_derived(tx, ids, agent_id=ctx.agent_id)
    orphans = await find_orphaned(tx, [*ids, *derived], agent_id=ctx.agent_id)
    hidden = await SQL["hide"].fetch_all(tx, **key, memory_ids=[*ids, *derived, *orphans])
    facts = await SQL["list_unsupported"].fetch_all(tx, **key, memory_ids=derived)
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


def _to_line(row: Mapping[str, Any]) -> _Line:
    trust: Trust | None = row["trust"]
    is_person = row["role"] == "user" and trust is not None and trust not in UNTRUSTED_TIERS
    is_reported = trust not in PERSON_TIERS
    return _Line(
        number=row["position"],
        text=row["content"],
        # a program that reports what a person said hides only what it reported
        speaker=f"{row['name']}, reported" if is_reported else row["name"] or "",
        source="person" if is_person else "assistant" if row["role"] == "assistant" else "foreign",
        is_hidden=row["is_hidden"],
        memory_id=row["memory_id"],
        is_reported=is_reported,
        has_hidden=row["has_hidden"],
    )
