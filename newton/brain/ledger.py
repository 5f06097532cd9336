"""The ledger: records about decisions are appended to the agent's chain, read back, and verified."""

import json
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from asyncpg import Record

from newton.brain.chain import Fault, Head, Json, RecordKind, Walk, Written, beginning, linked, words_hash
from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory.memory import Teller

SQL = load("newton.brain", "ledger.sql")

SALT = 32
AT_ONCE = 2_000  # records that are read at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record about to be appended. A decision's `record_id` is its `decision_id`. Words are what may be erased."""

    kind: RecordKind
    decision_id: UUID
    body: Json
    words: Json | None = None
    record_id: UUID = field(default_factory=new_id)


async def hold(tx: Tx, *, agent_id: UUID) -> Head:
    """The end of the agent's chain. Until the unit of work ends nobody else appends to it."""
    row = await SQL["lock_head"].one(tx, agent_id=agent_id, hash=beginning(agent_id).hash)
    assert row is not None
    return Head(row["seq"], row["hash"])


async def append(tx: Tx, entries: Sequence[Entry], *, ctx: Teller) -> Head:
    """Appends the entries in their order and returns the new end of the chain."""
    head = await hold(tx, agent_id=ctx.agent_id)
    if not entries:
        return head
    records: list[Written] = []
    for entry in entries:
        records.append(_chained(entry, head, ctx=ctx))
        head = Head(records[-1].seq, records[-1].hash)
    await SQL["append_records"].run(tx, agent_id=ctx.agent_id, records=json.dumps([_row(record) for record in records]))
    await SQL["advance_head"].run(tx, agent_id=ctx.agent_id, seq=head.seq, hash=head.hash)
    return head


async def head(tx: Tx, *, agent_id: UUID) -> Head:
    """What the database says of the end of the chain."""
    row = await SQL["get_head"].one(tx, agent_id=agent_id)
    return Head(row["seq"], row["hash"]) if row else beginning(agent_id)


async def grown(tx: Tx, seen: Head | None, *, agent_id: UUID) -> Head | None:
    """The end of the chain, if it goes on from an end that was seen before; None when that is not in it any more."""
    if seen is not None and seen.seq:
        row = await SQL["get_hash_at"].one(tx, agent_id=agent_id, seq=seen.seq)
        if row is None or row["hash"] != seen.hash:
            return None
    return await head(tx, agent_id=agent_id)


async def about(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> list[Written]:
    """Every record of one decision, in order."""
    rows = await SQL["list_by_decision"].all(tx, agent_id=agent_id, decision_id=decision_id)
    return [_written(row) for row in rows]


async def told_before(tx: Tx, refs: Sequence[str], *, agent_id: UUID) -> dict[str, list[Written]]:
    """Of each of the caller's refs that is known, the decision and its outcome, if it has one."""
    told: defaultdict[str, list[Written]] = defaultdict(list)
    if refs:
        for row in await SQL["find_by_ref"].all(tx, agent_id=agent_id, refs=refs):
            told[row["ref"]].append(_written(row))
    return told


async def verify(tx: Tx, *, agent_id: UUID, noted: Head | None) -> Fault | Head:
    """The first broken place of the agent's chain, or its end when it is whole.

    Nobody appends meanwhile. `noted` is an end of the chain that was seen before, outside of the database.
    """
    end = await hold(tx, agent_id=agent_id)
    begun = await SQL["get_origin_agent"].one(tx, agent_id=agent_id)
    walk = Walk(begun["began"] if begun else agent_id, noted)
    while rows := await SQL["list_records"].all(tx, agent_id=agent_id, after=walk.at.seq, max_rows=AT_ONCE):
        for row in rows:
            if fault := _taken(walk, row):
                return fault
    if fault := walk.end(end):
        return fault
    apart = await SQL["find_mismatch"].one(tx, agent_id=agent_id)
    return Fault(apart["seq"], "memory.memories tells something else of it") if apart else end


def _taken(walk: Walk, row: Record) -> Fault | None:
    try:
        return walk.take(_written(row))
    except (ValueError, TypeError, AttributeError, RecursionError):  # nothing of what is written here
        return Fault(row["seq"], "it cannot be read")


def _chained(entry: Entry, head: Head, *, ctx: Teller) -> Written:
    salt = secrets.token_bytes(SALT) if entry.words is not None else None
    record = Written(
        seq=head.seq + 1,
        record_id=entry.record_id,
        kind=entry.kind,
        decision_id=entry.decision_id,
        recorded_at=ctx.now,
        origin=ctx.origin,
        body=entry.body,
        words_hash=words_hash(entry.words, salt) if entry.words is not None and salt else None,
        hash=b"",
        salt=salt,
        words=entry.words,
    )
    return record._replace(hash=linked(head.hash, record))


def _row(record: Written) -> dict[str, object]:
    return {
        "seq": record.seq,
        "record_id": str(record.record_id),
        "kind": record.kind,
        "decision_id": str(record.decision_id),
        "recorded_at": record.recorded_at.isoformat(),
        "origin": record.origin,
        "body": record.body,
        "words_hash": record.words_hash.hex() if record.words_hash else None,
        "hash": record.hash.hex(),
        "salt": record.salt.hex() if record.salt else None,
        "words": record.words,
    }


def _written(row: Record) -> Written:
    return Written(
        seq=row["seq"],
        record_id=row["record_id"],
        kind=row["kind"],
        decision_id=row["decision_id"],
        recorded_at=row["recorded_at"],
        origin=row["origin"],
        body=json.loads(row["body"]),
        words_hash=row["words_hash"],
        hash=row["hash"],
        salt=row["salt"],
        words=json.loads(row["words"]) if row["words"] is not None else None,
    )
