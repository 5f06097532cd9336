"""The hash chain of an agent's decision records, and files with its head, which reveal a truncated ledger.

The files are outside the database, so that a change of the database does not change them.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, cast
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from newton.errors import ConfigError
from newton.memory.memory import digest

RecordKind = Literal["decision", "thought", "amendment", "outcome", "link", "erasure"]
JsonObject = Mapping[str, object]


class ChainHead(NamedTuple):
    """The number of records in a hash chain, and the hash of the last one."""

    seq: int
    hash: bytes


class ChainRecord(NamedTuple):
    """A record of the hash chain. `words` is its free text, `words_hash` the hash of this text with `salt`.

    `words` and `salt` are None if the record has no text, or if its text was erased.
    """

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
    """The sequence number of the first record at which a hash chain is broken, and the reason."""

    seq: int
    reason: str


def canonical_json(value: JsonObject) -> str:
    """Return a value as JSON with sorted keys, so that its text is the same after storage as jsonb.

    >>> canonical_json({"b": 0.5, "a": ["ä"]})
    '{"a":["ä"],"b":0.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def make_initial_head(agent_id: UUID) -> ChainHead:
    """Return the head of an agent's empty chain. It differs per agent, so that equal records have different hashes."""
    return ChainHead(0, digest("newton ledger", str(agent_id)))


def hash_texts(texts: JsonObject, salt: bytes) -> bytes:
    """Return the SHA-256 hash of a record's free text with its salt, so that erased text cannot be guessed from it."""
    return hashlib.sha256(salt + canonical_json(texts).encode()).digest()


def hash_record(previous_hash: bytes, record: ChainRecord) -> bytes:
    """Return the hash of a record together with the hash of the previous record.

    The free text is included as its salted hash, so that the text can be erased later.
    """
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
    """Return the first broken link of an agent's hash chain; None if the chain is intact.

    `head` is stored in the database. `external_head` was saved outside of it: a chain that does not contain it is
    broken.
    """
    verifier = ChainVerifier(agent_id, external_head)
    return next(filter(None, map(verifier.check_record, records)), None) or verifier.finish(head)


@dataclass(slots=True)
class ChainVerifier:
    """A verifier that checks a hash chain record by record, without keeping the records.

    A chain that does not contain `external_head`, saved outside the database, is broken: truncated or rewritten.
    """

    agent_id: UUID
    external_head: ChainHead | None = None
    current: ChainHead = field(init=False)
    missing_texts: dict[UUID, int] = field(default_factory=dict[UUID, int])
    present_texts: set[UUID] = field(default_factory=set[UUID])

    def __post_init__(self) -> None:
        self.current = make_initial_head(self.agent_id)

    def check_record(self, record: ChainRecord) -> BrokenLink | None:
        """Check that the record is a valid next one of the chain; return the first fault, None if it is valid."""
        checks = (self._check_sequence, self._check_hash, self._check_texts, self._check_erasure)
        fault = next((fault for check in checks if (fault := check(record))), None)
        self.current = ChainHead(record.seq, record.hash)
        return fault

    def finish(self, head: ChainHead) -> BrokenLink | None:
        """Check the whole chain, after its last record; return the first fault, None if the chain is intact.

        `head` is the head stored in the database.
        """
        if self.missing_texts:
            return BrokenLink(min(self.missing_texts.values()), "its text is missing without an erasure record")
        if self.external_head and self.external_head.seq > self.current.seq:
            saved = self.external_head.seq
            reason = f"the end of the chain is missing: the head saved outside the database has {saved} records"
            return BrokenLink(self.current.seq + 1, reason)
        if head != self.current:
            return BrokenLink(self.current.seq + 1, f"the chain ends before it, but its head has {head.seq} records")
        return None

    def _check_sequence(self, record: ChainRecord) -> BrokenLink | None:
        due = self.current.seq + 1
        return BrokenLink(due, f"it is missing; the next record is {record.seq}") if record.seq != due else None

    def _check_hash(self, record: ChainRecord) -> BrokenLink | None:
        if hash_record(self.current.hash, record) != record.hash:
            return BrokenLink(record.seq, "its content or the previous hash was changed")
        if self.external_head and record.seq == self.external_head.seq and record.hash != self.external_head.hash:
            return BrokenLink(
                record.seq, "the chain was rewritten: the head saved outside the database has another hash"
            )
        return None

    def _check_texts(self, record: ChainRecord) -> BrokenLink | None:
        if record.words_hash is None:
            return BrokenLink(record.seq, "its text was added later") if record.words is not None else None
        if record.words is None or record.salt is None:
            self.missing_texts[record.record_id] = record.seq
            return None
        if hash_texts(record.words, record.salt) != record.words_hash:
            return BrokenLink(record.seq, "its text was changed")
        self.present_texts.add(record.record_id)
        return None

    def _check_erasure(self, record: ChainRecord) -> BrokenLink | None:
        for erased in list_erased_ids(record.body) if record.kind == "erasure" else ():
            if erased in self.present_texts:
                return BrokenLink(record.seq, "a text that this erasure record deleted is present")
            self.missing_texts.pop(erased, None)
        return None


def list_erased_ids(body: JsonObject) -> list[UUID]:
    """Return the ids of the records whose text was erased, which the body of an erasure record lists."""
    return [UUID(record_id) for record_id in cast("Iterable[str]", body.get("erased", ()))]


def derive_database_key(url: str | None) -> str:
    """Return a key for the database at this URL, the same for all its users. None means the embedded database."""
    if url is None:
        return "embedded"
    parts = urlsplit(url)
    return hashlib.sha256(f"{parts.netloc.rpartition('@')[2]}{parts.path}?{parts.query}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ChainHeadFiles:
    """The files with the chain heads of a database, one for each agent. `database_key` is a part of their names."""

    folder: Path
    database_key: str

    def path(self, agent_id: UUID) -> Path:
        return self.folder / f"{agent_id}.{self.database_key}.json"

    def load(self, agent_id: UUID) -> ChainHead | None:
        """Return the saved head of an agent's chain; None if there is no file.

        Raises ConfigError for an invalid file.
        """
        path = self.path(agent_id)
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            return ChainHead(int(saved["seq"]), bytes.fromhex(saved["hash"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{path} is not a valid chain head file: {error}.",
                hint="Restore the file, or delete it: the next decision saves a new one.",
            ) from None

    def load_or_none(self, agent_id: UUID) -> ChainHead | None:
        """Return the saved head; None if the file is missing or invalid, so that decisions can still be recorded."""
        with suppress(ConfigError):
            return self.load(agent_id)
        return None

    def save(self, agent_id: UUID, head: ChainHead | None) -> None:
        """Save a committed head if it has more records than the saved one.

        Saving a shorter head would hide that the chain was truncated. Errors are ignored, so that they block no
        decision.
        """
        with suppress(OSError, ConfigError):
            saved = self.load(agent_id)
            if head and head.seq and (saved is None or saved.seq < head.seq):
                self._write_atomically(self.path(agent_id), json.dumps({"seq": head.seq, "hash": head.hash.hex()}))

    def delete(self, agent_id: UUID) -> None:
        """Delete the saved head of an agent that was erased, if there is one."""
        self.path(agent_id).unlink(missing_ok=True)

    def _write_atomically(self, path: Path, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{uuid4().hex}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
