"""The ledger of an agent's decisions: a hash chain of records, and the versions of a decision among them."""

import json
import re
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.brain import hash_chain
from newton.brain.decision_codec import NewDecision
from newton.brain.hash_chain import BrokenLink, ChainHead, ChainRecord, ChainVerifier, JsonObject, RecordKind
from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory.memory import WriteContext

SQL = load("newton.brain", "ledger.sql")

SALT_BYTES = 32
BATCH_SIZE = 2_000  # records per read


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A record to append to the hash chain. `words` is its free text, which can be erased; `body` remains.

    The first record of a decision has the id of the decision.
    """

    kind: RecordKind
    decision_id: UUID
    body: JsonObject
    words: JsonObject | None = None
    record_id: UUID = field(default_factory=new_id)


async def lock_chain(tx: Tx, *, agent_id: UUID) -> ChainHead:
    """Lock the agent's hash chain until the transaction ends, and return its head."""
    row = await SQL["lock_head"].fetch_one(tx, agent_id=agent_id, hash=hash_chain.make_initial_head(agent_id).hash)
    assert row is not None
    return ChainHead(row["seq"], row["hash"])


async def append(tx: Tx, entries: Sequence[LedgerEntry], *, ctx: WriteContext) -> ChainHead:
    """Append entries to the agent's hash chain in order, and return its new head."""
    head = await lock_chain(tx, agent_id=ctx.agent_id)
    if not entries:
        return head
    records: list[ChainRecord] = []
    for entry in entries:
        records.append(_to_record(entry, head, ctx=ctx))
        head = ChainHead(records[-1].seq, records[-1].hash)
    rows = json.dumps([record._asdict() for record in records], default=_to_json)
    await SQL["append_records"].execute(tx, agent_id=ctx.agent_id, records=rows)
    await SQL["advance_head"].execute(tx, agent_id=ctx.agent_id, seq=head.seq, hash=head.hash)
    return head


async def get_head(tx: Tx, *, agent_id: UUID) -> ChainHead:
    """Return the head of the agent's hash chain, as the database stores it."""
    row = await SQL["get_head"].fetch_one(tx, agent_id=agent_id)
    return ChainHead(row["seq"], row["hash"]) if row else hash_chain.make_initial_head(agent_id)


async def get_extended_head(tx: Tx, previous: ChainHead | None, *, agent_id: UUID) -> ChainHead | None:
    """Return the head of the agent's hash chain if the chain contains `previous`; otherwise None.

    An empty or missing `previous` is part of every chain.
    """
    if previous is not None and previous.seq:
        row = await SQL["get_hash_at"].fetch_one(tx, agent_id=agent_id, seq=previous.seq)
        if row is None or row["hash"] != previous.hash:
            return None
    return await get_head(tx, agent_id=agent_id)


async def list_records(tx: Tx, decision_id: UUID, *, agent_id: UUID) -> list[ChainRecord]:
    """Return all ledger records of a decision, in the order of the chain."""
    rows = await SQL["list_by_decision"].fetch_all(tx, agent_id=agent_id, decision_id=decision_id)
    return [_from_row(row) for row in rows]


async def find_by_refs(tx: Tx, refs: Sequence[str], *, agent_id: UUID) -> dict[str, list[ChainRecord]]:
    """Return, for each `ref` (external id) that is stored, the ledger records of the decision and of its outcome."""
    found: defaultdict[str, list[ChainRecord]] = defaultdict(list)
    if refs:
        for row in await SQL["find_by_ref"].fetch_all(tx, agent_id=agent_id, refs=refs):
            found[row["ref"]].append(_from_row(row))
    return found


async def verify_chain(tx: Tx, *, agent_id: UUID, external_head: ChainHead | None) -> BrokenLink | ChainHead:
    """Lock the agent's hash chain and verify it; return its first broken link, or its head if it is intact.

    `external_head` was saved outside the database: a chain that does not contain it was truncated or rewritten.
    """
    head = await lock_chain(tx, agent_id=agent_id)
    origin = await SQL["get_origin_agent"].fetch_one(tx, agent_id=agent_id)
    verifier = ChainVerifier(origin["began"] if origin else agent_id, external_head)
    page = {"agent_id": agent_id, "max_rows": BATCH_SIZE}
    while rows := await SQL["list_records"].fetch_all(tx, **page, after=verifier.current.seq):
        for row in rows:
            if fault := _check_row(verifier, row):
                return fault
    if fault := verifier.finish(head):
        return fault
    mismatch = await SQL["find_mismatch"].fetch_one(tx, agent_id=agent_id)
    return (
        BrokenLink(mismatch["seq"], "the table memory.memories has other data for its decision") if mismatch else head
    )


def _check_row(verifier: ChainVerifier, row: Record) -> BrokenLink | None:
    try:
        return verifier.check_record(_from_row(row))
    except (ValueError, TypeError, AttributeError, RecursionError):  # the body was tampered with
        return BrokenLink(row["seq"], "it cannot be read")


def _to_record(entry: LedgerEntry, head: ChainHead, *, ctx: WriteContext) -> ChainRecord:
    """Return the record that follows `head` in the chain, with its hash and the salted hash of its text."""
    salt = secrets.token_bytes(SALT_BYTES) if entry.words is not None else None
    record = ChainRecord(
        seq=head.seq + 1,
        record_id=entry.record_id,
        kind=entry.kind,
        decision_id=entry.decision_id,
        recorded_at=ctx.now,
        origin=ctx.origin,
        body=entry.body,
        words_hash=hash_chain.hash_texts(entry.words, salt) if entry.words is not None and salt else None,
        hash=b"",
        salt=salt,
        words=entry.words,
    )
    return record._replace(hash=hash_chain.hash_record(head.hash, record))


def _to_json(value: UUID | datetime | bytes) -> str:
    return str(value) if isinstance(value, UUID) else value.hex() if isinstance(value, bytes) else value.isoformat()


def _from_row(row: Record) -> ChainRecord:
    record = ChainRecord(*(row[name] for name in ChainRecord._fields))
    words = json.loads(row["words"]) if row["words"] is not None else None
    return record._replace(body=json.loads(row["body"]), words=words)


RECORD_REFS = "^adr:[0-9a-f]{12}:"  # a regular expression of the refs of decision records


class DecisionVersion(NamedTuple):
    """A stored decision with a ref. An imported decision record is stored as one decision for each of its versions."""

    memory_id: UUID
    ref: str
    decided_at: datetime


async def list_versions(tx: Tx, refs: Sequence[str], *, ctx: WriteContext) -> Mapping[str, Sequence[DecisionVersion]]:
    """Return the stored decisions that each ref names.

    For an imported decision record they are its versions, the latest last.
    """
    versions = defaultdict[str, list[DecisionVersion]](list)
    rows = await SQL["list_versions"].fetch_all(tx, agent_id=ctx.agent_id, refs=refs, records=RECORD_REFS)
    for name, *columns in rows:
        versions[name].append(DecisionVersion(*columns))
    return versions


async def number_versions(tx: Tx, new_decisions: Sequence[NewDecision], *, ctx: WriteContext) -> list[NewDecision]:
    """Return the decisions with the refs and times to record: imported decision records get the ref of a version.

    The latest version of a record keeps its ref and the time stored for it. A record that has the text of an earlier
    version again becomes a new version, whose ref ends with a number. Other decisions are returned unchanged.
    """
    await lock_chain(tx, agent_id=ctx.agent_id)  # so that no concurrent transaction adds a version
    records = [_get_record(one) for one in new_decisions]
    versions = await list_versions(tx, sorted(set(filter(None, records))), ctx=ctx)
    return [_number(one, versions.get(record, ())) for one, record in zip(new_decisions, records, strict=True)]


def _get_record(decision: NewDecision) -> str:
    """Return the ref of the decision record that a decision is a version of, or ""."""
    ref = decision.draft.ref or ""
    return ref.rpartition("#")[0] if re.match(RECORD_REFS, ref) else ""


def _number(decision: NewDecision, versions: Sequence[DecisionVersion]) -> NewDecision:
    equal = [version for version in versions if decision.draft.ref and version.ref.startswith(decision.draft.ref)]
    if not equal:
        return decision
    if equal[-1] == versions[-1]:
        draft = replace(decision.draft, ref=equal[-1].ref, at=equal[-1].decided_at)
    else:
        draft = replace(decision.draft, ref=f"{decision.draft.ref}.{len(equal) + 1}")
    return replace(decision, draft=draft)
