"""The ledger: appends records to the agent's hash chain, reads and verifies them."""

import json
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from asyncpg import Record

from newton.brain.hash_chain import (
    BrokenLink,
    ChainHead,
    ChainRecord,
    ChainVerifier,
    JsonObject,
    RecordKind,
    hash_record,
    hash_texts,
    make_initial_head,
)
from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory.memory import WriteContext

SQL = load("newton.brain", "ledger.sql")

SALT_BYTES = 32
BATCH_SIZE = 2_000  # records per read


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A record to append. A decision's `record_id` is its `decision_id`. `words` can be erased."""

    kind: RecordKind
    decision_id: UUID
    body: JsonObject
    words: JsonObject | None = None
    record_id: UUID = field(default_factory=new_id)


async def lock_chain(tx: Tx, *, agent_id: UUID) -> ChainHead:
    """Lock the agent's chain until the transaction ends, and return its head."""
    row = await SQL["lock_head"].fetch_one(tx, agent_id=agent_id, hash=make_initial_head(agent_id).hash)
    assert row is not None
    return ChainHead(row["seq"], row["hash"])


async def append(tx: Tx, entries: Sequence[LedgerEntry], *, ctx: WriteContext) -> ChainHead:
    """Append entries in order and return the new head."""
    head = await lock_chain(tx, agent_id=ctx.agent_id)
    if not entries:
        return head
    records: list[ChainRecord] = []
    for entry in entries:
        records.append(_to_record(entry, head, ctx=ctx))
        head = ChainHead(records[-1].seq, records[-1].hash)
    await SQL["append_records"].execute(
        tx, agent_id=ctx.agent_id, records=json.dumps([_to_row(record) for record in records])
    )
    await SQL["advance_head"].execute(tx, agent_id=ctx.agent_id, seq=head.seq, hash=head.hash)
    return head


async def get_head(tx: Tx, *, agent_id: UUID) -> ChainHead:
    """Return the head stored in the database."""
    row = await SQL["get_head"].fetch_one(tx, agent_id=agent_id)
    return ChainHead(row["seq"], row["hash"]) if row else make_initial_head(agent_id)


async def get_extended_head(tx: Tx, previous: ChainHead | None, *, agent_id: UUID) -> ChainHead | None:
    """Return the head if the chain extends `previous`; None if `previous` is not in it."""
    if previous is not None and previous.seq:
        row = await SQL["get_hash_at"].fetch_one(tx, agent_id=agent_id, seq=previous.seq)
        if row is None or row["hash"] != previous.hash:
            return None
    return await get_head(tx, agent_id=agent_id)


async def list_records(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> list[ChainRecord]:
    """Return the records of a decision, in order."""
    rows = await SQL["list_by_decision"].fetch_all(tx, agent_id=agent_id, decision_id=decision_id)
    return [_from_row(row) for row in rows]


async def find_by_refs(tx: Tx, refs: Sequence[str], *, agent_id: UUID) -> dict[str, list[ChainRecord]]:
    """Return the decision and outcome records of each known ref."""
    told: defaultdict[str, list[ChainRecord]] = defaultdict(list)
    if refs:
        for row in await SQL["find_by_ref"].fetch_all(tx, agent_id=agent_id, refs=refs):
            told[row["ref"]].append(_from_row(row))
    return told


async def verify_chain(tx: Tx, *, agent_id: UUID, external_head: ChainHead | None) -> BrokenLink | ChainHead:
    """Return the first broken link of the chain, or its head if it is intact.

    The chain is locked meanwhile. `external_head` is a head saved outside of the database.
    """
    end = await lock_chain(tx, agent_id=agent_id)
    begun = await SQL["get_origin_agent"].fetch_one(tx, agent_id=agent_id)
    walk = ChainVerifier(begun["began"] if begun else agent_id, external_head)
    while rows := await SQL["list_records"].fetch_all(
        tx, agent_id=agent_id, after=walk.current.seq, max_rows=BATCH_SIZE
    ):
        for row in rows:
            if fault := _check_row(walk, row):
                return fault
    if fault := walk.finish(end):
        return fault
    apart = await SQL["find_mismatch"].fetch_one(tx, agent_id=agent_id)
    return BrokenLink(apart["seq"], "memory.memories tells something else of it") if apart else end


def _check_row(verifier: ChainVerifier, row: Record) -> BrokenLink | None:
    try:
        return verifier.check_record(_from_row(row))
    except (ValueError, TypeError, AttributeError, RecursionError):  # the body was tampered with
        return BrokenLink(row["seq"], "it cannot be read")


def _to_record(entry: LedgerEntry, head: ChainHead, *, ctx: WriteContext) -> ChainRecord:
    salt = secrets.token_bytes(SALT_BYTES) if entry.words is not None else None
    record = ChainRecord(
        seq=head.seq + 1,
        record_id=entry.record_id,
        kind=entry.kind,
        decision_id=entry.decision_id,
        recorded_at=ctx.now,
        origin=ctx.origin,
        body=entry.body,
        words_hash=hash_texts(entry.words, salt) if entry.words is not None and salt else None,
        hash=b"",
        salt=salt,
        words=entry.words,
    )
    return record._replace(hash=hash_record(head.hash, record))


def _to_row(record: ChainRecord) -> dict[str, object]:
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


def _from_row(row: Record) -> ChainRecord:
    return ChainRecord(
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
