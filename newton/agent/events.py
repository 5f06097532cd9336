"""The events of an agent, numbered in commit order and published to listeners of every interface."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from newton.db.pool import Tx, before_commit
from newton.db.queries import load

SQL = load("newton.agent", "events.sql")

RETENTION = timedelta(days=7)  # older events are deleted when a new one is published
CHANNEL = "newton_events"  # NOTIFY payload: the agent with new events

EVENT_TYPES: Mapping[str, str] = {
    "agent.erased": "a whole agent is erased; earlier events are deleted",
    "agent.imported": "an exported agent is imported",
    "attribute.declared": "an attribute is declared single-valued or multi-valued",
    "censor.added": "a censor is added or escalated",
    "censor.approved": "a person approves a proposed censor",
    "censor.false_positive": "a person reports a false positive",
    "censor.relaxed": "a person makes a blocking censor a warning",
    "censor.retired": "a person retires a censor",
    "conflict.found": "a fact contradicts another one, and evidence does not settle it",
    "conflict.settled": "a person settles the conflicts of a fact",
    "decision.amended": "text is added to a decision",
    "decision.deliberated": "a thought is added to a decision",
    "decision.done": "a decision is marked as done",
    "decision.erased": "the text of a decision is erased",
    "decision.linked": "two decisions are linked",
    "decision.recorded": "a decision is recorded",
    "decision.reviewed": "the outcome of a decision is recorded",
    "decision.superseded": "a decision supersedes another one",
    "document.deleted": "a document is deleted with its passages",
    "document.ingested": "a document is ingested, replaced or removed",
    "guardrail.added": "a guardrail is added for the agent",
    "guardrail.restored": "a guardrail file is enabled again",
    "guardrail.retired": "a guardrail is disabled for the agent",
    "identity.accepted": "a person accepts a proposed line",
    "identity.added": "a line is added to the identity",
    "identity.changed": "a line of the identity is changed",
    "identity.erased": "the text of a line is erased",
    "identity.proposed": "a line is proposed",
    "identity.rejected": "a person rejects a proposed line",
    "identity.removed": "a line is removed from the identity",
    "identity.rolled_back": "the identity is rolled back to a version",
    "import.batch_committed": "a batch of an import commits",
    "import.completed": "an import is complete",
    "item.deleted": "an item is deleted with its memory",
    "item.stored": "an item is stored or replaced",
    "job.completed": "a run of a job changes something, or fails for good",
    "memory.bulk_changed": "a person forgets, retracts or edits all memories of a filter",
    "memory.confirmed": "a person confirms a fact",
    "memory.edited": "a person edits a field of a memory",
    "memory.forgotten": "memories are deleted permanently",
    "memory.marked_core": "a person marks a fact as core",
    "memory.outcome_set": "the outcome of an episode is set",
    "memory.remembered": "a fact or an episode is stored or confirmed",
    "memory.retracted": "a person retracts a fact",
    "memory.superseded": "a person supersedes a fact",
    "procedure.outcome_recorded": "the outcome of a use is recorded",
    "procedure.used": "a use of a procedure is recorded",
    "session.appended": "messages are appended to a session",
    "session.events_recorded": "events are recorded in a session",
    "session.branched": "a session is branched",
    "session.checkpointed": "a checkpoint is set",
    "session.closed": "a session is closed and becomes an episode",
    "session.compacted": "compaction entries replace messages in the view",
    "session.created": "a session is created",
    "session.ejected": "injected messages are removed from a view",
    "session.injected": "messages of another session are shown in a view",
    "session.restored": "a compaction entry is replaced by its messages",
    "subject.erased": "everything about a person is erased",
    "task.blocked": "the current task is blocked",
    "task.failed": "the current task is marked as a dead end",
    "task.popped": "the current task is completed with its result",
    "task.pushed": "a task is started within the current one",
    "task.resumed": "a blocked task is resumed",
    "turn.completed": "a reply is stored",
}


class AgentEvent(NamedTuple):
    """An event. The payload contains ids, numbers and states, never text of a person."""

    number: int
    type: str
    created_at: datetime
    payload: Mapping[str, Any]


def publish(type_: str, data: Mapping[str, object], *, agent_id: UUID, now: datetime) -> None:
    """Publish an event (`noun.participle`) when the open transaction commits. `data` must be JSON-serializable.

    The event is written at the end of the transaction, because the write locks the agent's events.
    """
    if type_ not in EVENT_TYPES:
        raise ValueError(f"{type_} is not in EVENT_TYPES")
    payload = json.dumps(data)

    async def write(tx: Tx) -> None:
        await SQL["publish"].execute(
            tx, agent_id=agent_id, type=type_, occurred_at=now, payload=payload, keep_after=now - RETENTION
        )

    before_commit(write)


def clear(*, agent_id: UUID, now: datetime) -> None:
    """Delete all events of the agent when the open transaction commits, and publish `agent.erased`."""

    async def write(tx: Tx) -> None:
        await SQL["clear"].execute(tx, agent_id=agent_id, cleared_at=now)

    before_commit(write)


async def read_after(tx: Tx, number: int, *, agent_id: UUID, limit: int = 500) -> list[AgentEvent]:
    """Return up to `limit` events after `number`, in order."""
    rows = await SQL["list_after"].fetch_all(tx, agent_id=agent_id, number=number, max_rows=limit)
    return [AgentEvent(row["number"], row["type"], row["at"], json.loads(row["payload"])) for row in rows]


async def get_last_number(tx: Tx, *, agent_id: UUID) -> int:
    """Return the number of the last event, or 0 if there is none."""
    row = await SQL["get_last_number"].fetch_one(tx, agent_id=agent_id)
    assert row is not None
    return row["number"]
