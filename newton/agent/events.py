"""The events of an agent, numbered in commit order, which clients of every interface can read."""

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
    "agent.erased": "all data of an agent are erased, its earlier events included",
    "agent.imported": "an exported agent is imported",
    "artifact.deleted": "versions of an artifact of a session are deleted",
    "artifact.stored": "a text or a reference is uploaded as an artifact of a session",
    "attribute.declared": "an attribute is declared single-valued or multi-valued",
    "censor.added": "a censor is added, or changed from warning to blocking",
    "censor.approved": "a person approves a proposed censor",
    "censor.false_positive": "a person reports a match of a censor as wrong",
    "censor.relaxed": "a person makes a blocking censor a warning",
    "censor.retired": "a person retires a censor",
    "conflict.found": "two facts contradict each other, and a person must decide",
    "conflict.settled": "a person settles the conflicts of a fact",
    "decision.amended": "text is added to a decision",
    "decision.deliberated": "a thought is added to a decision",
    "decision.done": "a decision is marked as carried out",
    "decision.erased": "the text of a decision is erased",
    "decision.linked": "two decisions are linked",
    "decision.recorded": "a decision is recorded",
    "decision.reviewed": "the outcome of a decision is recorded",
    "decision.superseded": "a decision supersedes another one",
    "document.deleted": "a document is deleted with its passages",
    "document.ingested": "the passages of a document are stored, replaced or removed",
    "entity.merged": "a person merges a person or thing into another one",
    "guardrail.added": "a guardrail is added for the agent",
    "guardrail.restored": "a guardrail from a file is enabled again",
    "guardrail.retired": "a guardrail is disabled for the agent",
    "hook.failed": "a hook of the pack fails, or misses its deadline, outside of a context",
    "identity.accepted": "a person accepts a line proposed for the identity",
    "identity.added": "a line is added to the identity",
    "identity.changed": "a line of the identity is changed",
    "identity.erased": "the text of a line of the identity is erased",
    "identity.proposed": "a line is proposed for the identity",
    "identity.rejected": "a person rejects a line proposed for the identity",
    "identity.removed": "a line is removed from the identity",
    "identity.rolled_back": "the identity is rolled back to an earlier version",
    "import.batch_committed": "a batch of imported records is committed",
    "import.completed": "an import is complete",
    "item.deleted": "an item is deleted, with the memories of its text",
    "item.stored": "an item is stored or replaced",
    "job.completed": "a run of a background job changes something, or fails and is not repeated",
    "lines.reconciled": "what new messages say changes what is known, as a model proposed and code checked",
    "memory.bulk_changed": "a person deletes, retracts or edits all memories that a filter selects",
    "memory.confirmed": "a person confirms a fact",
    "memory.edited": "a person edits a field of a memory",
    "memory.forgotten": "memories are deleted permanently",
    "memory.moved": "memories are moved to the person or to a project",
    "memory.marked_core": "a person marks a fact as core",
    "memory.outcome_set": "the outcome of an episode is set",
    "memory.remembered": "a fact or an episode is stored or confirmed",
    "memory.retracted": "a person retracts a fact, because it was never true",
    "memory.superseded": "a person replaces a fact by a new one",
    "model.failed": "a call of a model in the background fails, and the call before it did not",
    "model.recovered": "a call of a model in the background succeeds, after one that failed",
    "permission.allowed": "a person, or the trust in its server, permits calls of a tool",
    "permission.denied": "a person prohibits calls of a tool",
    "permission.used": "a call uses up the permission that a person gave for it",
    "permission.revoked": "a person revokes a permission or a prohibition",
    "procedure.added": "a person adds a skill, or a new version of one",
    "procedure.approved": "a person approves a proposed procedure",
    "procedure.dismissed": "a person dismisses a proposed procedure",
    "procedure.outcome_recorded": "the outcome of a use of a procedure is recorded",
    "procedure.reported": "a model reported how a use of a procedure ended, which does not count",
    "procedure.retired": "a person retires a procedure",
    "procedure.used": "a use of a procedure is recorded",
    "session.appended": "messages are appended to a session",
    "session.events_recorded": "events are recorded in a session",
    "session.branched": "a new session branches off another one",
    "session.closed": "a session is closed, and its messages become an episode",
    "session.brief_closed": "an item of the brief of a session is closed by a person",
    "session.compacted": "summaries replace old messages in what a model gets of a session",
    "session.created": "a session is created",
    "session.ejected": "messages of another session are no longer shown in a session",
    "session.injected": "messages of another session are shown in a session",
    "session.restored": "a summary is removed, and its messages are shown again",
    "subject.erased": "everything about a person is erased",
    "task.blocked": "the current task is blocked",
    "task.failed": "the current task is marked as a dead end",
    "task.popped": "the current task is completed with its result",
    "task.pushed": "a task is started inside the current one",
    "task.resumed": "a blocked task is resumed, or a person or the model starts a planned step",
    "task.started": "a step of a plan starts, because the plan was made or the step before it is complete",
    "turn.completed": "the reply to a message is stored",
    "turn.failed": "a message has no reply, and the reason is stored as a notice after it",
}


class AgentEvent(NamedTuple):
    """An event. Its payload has ids, numbers and states, never text that a person wrote."""

    number: int
    type: str
    created_at: datetime
    payload: Mapping[str, Any]


def publish(type_: str, data: Mapping[str, object], *, agent_id: UUID, now: datetime) -> None:
    """Announce a change to clients: store an event when the open transaction commits.

    `type_` is a key of EVENT_TYPES, `data` is JSON-serializable. The event is written at the end of the transaction,
    because the write locks the agent's events. Raises ValueError for an unknown type.
    """
    if type_ not in EVENT_TYPES:
        raise ValueError(f"{type_!r} is not an event type; add it to EVENT_TYPES")
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
    """Return up to `limit` events with a number above `number`, in ascending order."""
    rows = await SQL["list_after"].fetch_all(tx, agent_id=agent_id, number=number, max_rows=limit)
    return [AgentEvent(row["number"], row["type"], row["at"], json.loads(row["payload"])) for row in rows]


async def get_last_number(tx: Tx, *, agent_id: UUID) -> int:
    """Return the number of the last event, or 0 if there is none."""
    row = await SQL["get_last_number"].fetch_one(tx, agent_id=agent_id)
    assert row is not None
    return row["number"]
