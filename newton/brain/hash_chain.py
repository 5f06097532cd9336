"""The hash chain of an agent's records: hashing and verification. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple, cast
from uuid import UUID

from newton.memory.memory import digest

RecordKind = Literal["decision", "thought", "amendment", "outcome", "link", "erasure"]
JsonObject = Mapping[str, object]


class ChainHead(NamedTuple):
    """The number of records of a chain, and the hash of the last one."""

    seq: int
    hash: bytes


class ChainRecord(NamedTuple):
    """A record as read from the database. Words and salt are None when it has none, or when erased."""

    seq: int
    record_id: UUID
    kind: RecordKind
    decision_id: UUID
    recorded_at: datetime
    origin: str
    body: JsonObject
    words_hash: bytes | None
    hash: bytes
    salt: bytes | None
    words: JsonObject | None


class BrokenLink(NamedTuple):
    """The first broken record of a chain, and the reason."""

    seq: int
    reason: str


def canonical_json(value: JsonObject) -> str:
    """Serialize a value independent of key order, and stable through jsonb.

    >>> canonical_json({"b": 0.5, "a": ["ä"]})
    '{"a":["ä"],"b":0.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def make_initial_head(agent_id: UUID) -> ChainHead:
    """Return the head of an empty chain. It differs per agent, so identical records hash differently."""
    return ChainHead(0, digest("newton ledger", str(agent_id)))


def hash_texts(texts: JsonObject, salt: bytes) -> bytes:
    return hashlib.sha256(salt + canonical_json(texts).encode()).digest()


def hash_record(previous_hash: bytes, record: ChainRecord) -> bytes:
    """Hash a record with the previous hash. The text enters through its own salted hash."""
    return digest(
        previous_hash.hex(),
        str(record.seq),
        str(record.record_id),
        record.kind,
        str(record.decision_id),
        record.recorded_at.astimezone(UTC).isoformat(),
        record.origin,
        canonical_json(record.body),
        record.words_hash.hex() if record.words_hash else "",
    )


def verify_records(
    records: Iterable[ChainRecord], *, agent_id: UUID, head: ChainHead, external_head: ChainHead | None = None
) -> BrokenLink | None:
    """Return the first broken link of a chain in order; None if it is intact.

    `head` is the head stored in the database, `external_head` one saved outside of it, if any.
    """
    walk = ChainVerifier(agent_id, external_head)
    for record in records:
        if fault := walk.check_record(record):
            return fault
    return walk.finish(head)


@dataclass(slots=True)
class ChainVerifier:
    """Verifies a chain record by record, in constant memory. It starts with the agent's initial head."""

    agent_id: UUID
    external_head: ChainHead | None = None
    current: ChainHead = field(init=False)
    missing_texts: dict[UUID, int] = field(default_factory=dict[UUID, int])
    present_texts: set[UUID] = field(default_factory=set[UUID])

    def __post_init__(self) -> None:
        self.current = make_initial_head(self.agent_id)

    def check_record(self, record: ChainRecord) -> BrokenLink | None:
        """Return why this record cannot follow the previous one, or None."""
        fault = (
            self._check_sequence(record)
            or self._check_hash(record)
            or self._check_texts(record)
            or self._check_erasure(record)
        )
        self.current = ChainHead(record.seq, record.hash)
        return fault

    def finish(self, head: ChainHead) -> BrokenLink | None:
        """Run the checks that need the whole chain."""
        if self.missing_texts:
            first = min(self.missing_texts.values())
            return BrokenLink(first, "its words are gone, and no erasure says so")
        if self.external_head and self.external_head.seq > self.current.seq:
            return BrokenLink(
                self.current.seq + 1,
                f"the end is missing from here on: {self.external_head.seq} records were noted outside",
            )
        if head != self.current:
            return BrokenLink(self.current.seq + 1, f"the chain ends here, and its head says {head.seq}")
        return None

    def _check_sequence(self, record: ChainRecord) -> BrokenLink | None:
        due = self.current.seq + 1
        return BrokenLink(due, f"it is missing; record {record.seq} comes instead") if record.seq != due else None

    def _check_hash(self, record: ChainRecord) -> BrokenLink | None:
        if hash_record(self.current.hash, record) != record.hash:
            return BrokenLink(record.seq, "it is not what was recorded there, or the hash before it was changed")
        if self.external_head and record.seq == self.external_head.seq and record.hash != self.external_head.hash:
            return BrokenLink(record.seq, "the chain up to here was written anew: another hash was noted outside")
        return None

    def _check_texts(self, record: ChainRecord) -> BrokenLink | None:
        if record.words_hash is None:
            return BrokenLink(record.seq, "it has words that were not recorded") if record.words is not None else None
        if record.words is None or record.salt is None:
            self.missing_texts[record.record_id] = record.seq
            return None
        if hash_texts(record.words, record.salt) != record.words_hash:
            return BrokenLink(record.seq, "its words are not those that were recorded")
        self.present_texts.add(record.record_id)
        return None

    def _check_erasure(self, record: ChainRecord) -> BrokenLink | None:
        for erased in list_erased_ids(record.body) if record.kind == "erasure" else ():
            if erased in self.present_texts:
                return BrokenLink(record.seq, "words that it erased are there")
            self.missing_texts.pop(erased, None)
        return None


def list_erased_ids(body: JsonObject) -> list[UUID]:
    """Return the records whose text an erasure deleted."""
    named = cast("Iterable[str]", body.get("erased", ()))
    return [UUID(one) for one in named]
