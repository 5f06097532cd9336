"""The chain of an agent's records: how a hash is made, and where a chain is broken. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple, cast
from uuid import UUID

from newton.memory.memory import digest

RecordKind = Literal["decision", "thought", "amendment", "outcome", "link", "erasure"]
Json = Mapping[str, object]


class Head(NamedTuple):
    """The end of a chain: how many records it has, and the hash of the last one."""

    seq: int
    hash: bytes


class Written(NamedTuple):
    """A record as it stands in the database, in the order of the query `written`. Words and salt are None when it has
    none, or none any more."""

    seq: int
    record_id: UUID
    kind: RecordKind
    decision_id: UUID
    recorded_at: datetime
    origin: str
    body: Json
    words_hash: bytes | None
    hash: bytes
    salt: bytes | None
    words: Json | None


class Fault(NamedTuple):
    """Where a chain is broken first, and how that shows."""

    seq: int
    why: str


def canonical(value: Json) -> str:
    """One text for one value, whatever the order of its keys. It survives being kept as jsonb.

    >>> canonical({"b": 0.5, "a": ["ä"]})
    '{"a":["ä"],"b":0.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def beginning(agent_id: UUID) -> Head:
    """The head of a chain without records: two agents with the same life have other hashes."""
    return Head(0, digest("newton ledger", str(agent_id)))


def words_hash(words: Json, salt: bytes) -> bytes:
    return hashlib.sha256(salt + canonical(words).encode()).digest()


def linked(before: bytes, record: Written) -> bytes:
    """The hash of a record: of the hash before it and of all that it is but its words, of which it has the hash."""
    return digest(
        before.hex(),
        str(record.seq),
        str(record.record_id),
        record.kind,
        str(record.decision_id),
        record.recorded_at.astimezone(UTC).isoformat(),
        record.origin,
        canonical(record.body),
        record.words_hash.hex() if record.words_hash else "",
    )


def verify(records: Iterable[Written], *, agent_id: UUID, head: Head, noted: Head | None = None) -> Fault | None:
    """The first broken place of a chain, given in its order; None when there is none.

    `head` is what the database says of its end, `noted` what was seen outside of it once, if anything.
    """
    walk = Walk(agent_id, noted)
    for record in records:
        if fault := walk.take(record):
            return fault
    return walk.end(head)


@dataclass(slots=True)
class Walk:
    """A chain that is verified record by record, however long it is. It begins with the id of that agent."""

    agent_id: UUID
    noted: Head | None = None
    at: Head = field(init=False)
    wordless: dict[UUID, int] = field(default_factory=dict[UUID, int])
    worded: set[UUID] = field(default_factory=set[UUID])

    def __post_init__(self) -> None:
        self.at = beginning(self.agent_id)

    def take(self, record: Written) -> Fault | None:
        """Why this record cannot follow the one before, or None."""
        fault = self._misplaced(record) or self._changed(record) or self._words(record) or self._erased(record)
        self.at = Head(record.seq, record.hash)
        return fault

    def end(self, head: Head) -> Fault | None:
        """What can only be seen once the whole chain is known."""
        if self.wordless:
            first = min(self.wordless.values())
            return Fault(first, "its words are gone, and no erasure says so")
        if self.noted and self.noted.seq > self.at.seq:
            return Fault(
                self.at.seq + 1, f"the end is missing from here on: {self.noted.seq} records were noted outside"
            )
        if head != self.at:
            return Fault(self.at.seq + 1, f"the chain ends here, and its head says {head.seq}")
        return None

    def _misplaced(self, record: Written) -> Fault | None:
        due = self.at.seq + 1
        return Fault(due, f"it is missing; record {record.seq} comes instead") if record.seq != due else None

    def _changed(self, record: Written) -> Fault | None:
        if linked(self.at.hash, record) != record.hash:
            return Fault(record.seq, "it is not what was recorded there, or the hash before it was changed")
        if self.noted and record.seq == self.noted.seq and record.hash != self.noted.hash:
            return Fault(record.seq, "the chain up to here was written anew: another hash was noted outside")
        return None

    def _words(self, record: Written) -> Fault | None:
        if record.words_hash is None:
            return Fault(record.seq, "it has words that were not recorded") if record.words is not None else None
        if record.words is None or record.salt is None:
            self.wordless[record.record_id] = record.seq
            return None
        if words_hash(record.words, record.salt) != record.words_hash:
            return Fault(record.seq, "its words are not those that were recorded")
        self.worded.add(record.record_id)
        return None

    def _erased(self, record: Written) -> Fault | None:
        for erased in erased_by(record.body) if record.kind == "erasure" else ():
            if erased in self.worded:
                return Fault(record.seq, "words that it erased are there")
            self.wordless.pop(erased, None)
        return None


def erased_by(body: Json) -> list[UUID]:
    """The records whose words an erasure took away."""
    named = cast("Iterable[str]", body.get("erased", ()))
    return [UUID(one) for one in named]
