"""Export and restore of one agent: all its rows as a checksummed NDJSON file, restored atomically."""

import asyncio
import base64
import hashlib
import json
import shlex
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import IO, Literal, NamedTuple
from uuid import UUID

from pgvector import HalfVector
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from newton.agent.scope import AgentScope
from newton.brain import ledger
from newton.brain.chain_heads import ChainHeadFiles
from newton.db.pool import Tx, reject_invalid_rows
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.ids import derive_model_id

SQL = load("newton.runtime.transfer", "agent_archive.sql")

FORMAT = 1
POSTINGS_TABLE = "memory.postings"
LAST_TABLES = (POSTINGS_TABLE, "memory.embeddings")  # derived from the other tables
# Tables that belong to a database, not to an agent, and access tokens.
EXCLUDED_TABLES = {
    "runtime.agents",
    "runtime.tokens",
    "runtime.jobs",
    "runtime.events",
    "runtime.idempotency_keys",
    "dialogue.leases",
}

BATCH_ROWS, BATCH_BYTES = 500, 4_000_000
MAX_HEADER_BYTES = 100_000
MAX_LINE_BYTES = 256 * 1024 * 1024
UPDATE_HINT = "Use the Newton that wrote it, or update this one."
ROW_PREFIX, ROW_SEPARATOR, ROW_SUFFIX = b'{"table":"', b'","row":', b"}\n"


class ArchiveHeader(BaseModel):
    """The first line: the agent, the time of export, and the line count of each table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["export"] = "export"
    format: int
    agent: str
    at: AwareDatetime
    counts: dict[str, int]


class ArchiveTrailer(BaseModel):
    """The last line. `sha256` covers all bytes before it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["end"] = "end"
    lines: int
    sha256: str


class VectorRow(BaseModel):
    """The vector of a memory, as the bytes of the stored half floats."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: str
    dimensions: int
    memory_id: UUID
    vector: str


class ArchiveRow(NamedTuple):
    """One row of the file."""

    table: str
    row: bytes


class ArchiveWriter:
    """An open file and the running hash of its content."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.lines, self.hash = file, 0, hashlib.sha256()

    def write_line(self, content: bytes) -> None:
        self.file.write(content)
        self.hash.update(content)
        self.lines += 1

    def write_trailer(self) -> None:
        end = ArchiveTrailer(lines=self.lines, sha256=self.hash.hexdigest())
        self.file.write(end.model_dump_json().encode() + b"\n")
        self.file.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentArchive:
    """Exports one agent from a database, or restores one into it."""

    scope: AgentScope
    agent: str
    chain_heads: ChainHeadFiles

    async def export(self, file: IO[bytes], *, progress: Callable[[int], None] = lambda lines: None) -> ArchiveHeader:
        """Write the agent from one snapshot, without concurrent writes."""
        async with self.scope.transaction(snapshot=True) as tx:
            parts = await _archived_tables(tx)
            counts = {part: await self._count_rows(tx, part) for part in parts}
            header = ArchiveHeader(format=FORMAT, agent=self.agent, at=self.scope.now(), counts=counts)
            out = ArchiveWriter(file)
            out.write_line(header.model_dump_json().encode() + b"\n")
            for part in (part for part in parts if counts[part]):
                async for row in self._read_rows(tx, part):
                    out.write_line(ROW_PREFIX + part.encode() + ROW_SEPARATOR + row.encode() + ROW_SUFFIX)
                    if out.lines % BATCH_ROWS == 0:
                        progress(BATCH_ROWS)
            out.write_trailer()
            progress(out.lines % BATCH_ROWS)
        return header

    async def _count_rows(self, tx: Tx, table: str) -> int:
        if table == POSTINGS_TABLE:
            row = await SQL["count_indexed"].fetch_one(tx, agent_id=self.scope.agent_id)
        else:
            row = await SQL["count_rows"].fetch_one(tx, agent_id=self.scope.agent_id, table_name=table)
        return row["rows"] if row else 0

    async def _read_rows(self, tx: Tx, table: str) -> AsyncIterator[str]:
        match table:
            case "memory.embeddings":
                models = {row["model_id"]: row for row in await SQL["list_models"].fetch_all(tx)}
                async for row in SQL["export_embeddings"].stream(tx, agent_id=self.scope.agent_id):
                    model, packed = models[row["model_id"]], base64.b64encode(row["embedding"].to_binary())
                    yield VectorRow(
                        identity=model["identity"],
                        dimensions=model["dimensions"],
                        memory_id=row["memory_id"],
                        vector=packed.decode(),
                    ).model_dump_json()
            case "memory.postings":
                async for row in SQL["export_postings"].stream(tx, agent_id=self.scope.agent_id):
                    yield row["line"]
            case _:
                async for row in SQL["export_rows"].stream(tx, agent_id=self.scope.agent_id, table_name=table):
                    yield row["line"]

    async def restore(self, file: IO[bytes], *, progress: Callable[[int], None] = lambda lines: None) -> ArchiveHeader:
        """Restore the agent from the file in one transaction.

        Raises InputError for a damaged file, before any change, and ConflictError for an agent that has memories.
        """
        header = await asyncio.to_thread(verify_archive, file)
        async with self.scope.transaction() as tx:
            row = await SQL["has_data"].fetch_one(tx, agent_id=self.scope.agent_id)
            if row and row["begun"]:
                raise ConflictError(
                    f"The agent {self.agent!r} already has memories.",
                    hint="Name a new one with --agent, or erase this one with"
                    f" `newton erase --agent {shlex.quote(self.agent)} --everything`.",
                )
            with reject_invalid_rows("The file holds rows that this database rejects"):
                if strange := header.counts.keys() - set(await _archived_tables(tx)):
                    raise InputError(f"The file has {min(strange)}, which this Newton does not know.", hint=UPDATE_HINT)
                await SQL["erase_agent"].execute(tx, agent_id=self.scope.agent_id)
                await SQL["defer_constraints"].execute(tx)
                for part, rows in _batch_rows(row for row in _iter_rows(file) if row.table in header.counts):
                    await self._write_rows(tx, part, rows)
                    progress(len(rows))
            memories = header.counts.get("memory.memories", 0)
            self.scope.publish("agent.imported", {"memories": memories})
        await self._record_chain_head()
        return header

    async def _write_rows(self, tx: Tx, table: str, rows: list[bytes]) -> None:
        match table:
            case "memory.embeddings":
                await self._write_vectors(tx, [VectorRow.model_validate_json(row) for row in rows])
            case "memory.postings":
                await SQL["import_postings"].execute(tx, agent_id=self.scope.agent_id, rows=_json_array(rows))
            case _:
                await SQL["import_rows"].execute(
                    tx, agent_id=self.scope.agent_id, table_name=table, rows=_json_array(rows)
                )

    async def _write_vectors(self, tx: Tx, vectors: Sequence[VectorRow]) -> None:
        models = {(one.identity, one.dimensions) for one in vectors}
        await SQL["import_models"].execute(
            tx,
            model_ids=[derive_model_id(identity) for identity, _ in models],
            identities=[identity for identity, _ in models],
            dimensions=[dimensions for _, dimensions in models],
        )
        await SQL["import_embeddings"].execute(
            tx,
            agent_id=self.scope.agent_id,
            model_ids=[derive_model_id(one.identity) for one in vectors],
            memory_ids=[one.memory_id for one in vectors],
            vectors=[HalfVector.from_binary(base64.b64decode(one.vector)) for one in vectors],
        )

    async def _record_chain_head(self) -> None:
        async with self.scope.transaction() as tx:
            head = await ledger.get_head(tx, agent_id=self.scope.agent_id)
        await asyncio.to_thread(self.chain_heads.save, self.scope.agent_id, head)


def _json_array(rows: list[bytes]) -> str:
    return (b"[" + b",".join(rows) + b"]").decode()


async def _archived_tables(tx: Tx) -> list[str]:
    """Return the exported tables in foreign key order."""
    found = [row["part"] for row in await SQL["list_tables"].fetch_all(tx)]
    return [*(part for part in found if part not in EXCLUDED_TABLES and part not in LAST_TABLES), *LAST_TABLES]


def verify_archive(file: IO[bytes]) -> ArchiveHeader:
    """Return the header of an intact file, rewound to its beginning.

    Raises InputError when any byte differs.
    """
    file.seek(0)
    seen, lines, last = hashlib.sha256(), -1, b""
    header = _parse_header(file.readline(MAX_LINE_BYTES))
    file.seek(0)
    while line := file.readline(MAX_LINE_BYTES):
        seen.update(last)
        last, lines = line, lines + 1
    file.seek(0)
    try:
        end = ArchiveTrailer.model_validate_json(last)
    except ValidationError:
        raise _damaged_error("its end is missing") from None
    if (end.lines, end.sha256) != (lines, seen.hexdigest()) or last != end.model_dump_json().encode() + b"\n":
        raise _damaged_error("its checksum does not match")
    return header


def _parse_header(line: bytes) -> ArchiveHeader:
    try:
        header = ArchiveHeader.model_validate_json(line)
    except ValidationError:
        raise _damaged_error("its first line is not an export header") from None
    if header.format != FORMAT:
        raise InputError(
            f"The export is of format {header.format}, and this Newton reads {FORMAT}.",
            hint=UPDATE_HINT,
        )
    return header


def _damaged_error(reason: str) -> InputError:
    return InputError(
        f"The export is damaged: {reason}. Nothing was imported.", hint="Copy the file again from its source."
    )


def is_archive(first_line: bytes) -> bool:
    """Return True when the first line is that of an export, damaged or not, rather than an import file."""
    try:
        given = json.loads(first_line)
    except ValueError:
        return b'"export"' in first_line
    return isinstance(given, dict) and "counts" in given and "format" in given


def _iter_rows(file: IO[bytes]) -> Iterator[ArchiveRow]:
    file.readline(MAX_LINE_BYTES)
    while line := file.readline(MAX_LINE_BYTES):
        part, found, row = line.removeprefix(ROW_PREFIX).partition(ROW_SEPARATOR)
        if found:
            yield ArchiveRow(part.decode(), row.removesuffix(ROW_SUFFIX))


def _batch_rows(rows: Iterator[ArchiveRow]) -> Iterator[tuple[str, list[bytes]]]:
    for part, of_part in groupby(rows, key=itemgetter(0)):
        batch: list[bytes] = []
        for line in of_part:
            batch.append(line.row)
            if len(batch) == BATCH_ROWS or sum(map(len, batch)) > BATCH_BYTES:
                yield part, batch
                batch = []
        if batch:
            yield part, batch
