"""Export of one agent to an NDJSON file with a checksum, and its restore in one transaction."""

import asyncio
import base64
import hashlib
import json
import shlex
import struct
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import IO, Literal
from uuid import UUID

from pgvector import HalfVector
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from newton.agent.scope import AgentScope
from newton.brain import ledger
from newton.brain.hash_chain import ChainHeadFiles
from newton.db.driver import reject_invalid_rows
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.ids import derive_model_id
from newton.memory import agents
from newton.memory.memory import TRUST_TIERS, Trust

SQL = load("newton.runtime.transfer", "export_file.sql")

FORMAT = 1
POSTINGS_TABLE = "memory.postings"
EMBEDDINGS_TABLE = "memory.embeddings"
WINDOW_EMBEDDINGS_TABLE = "memory.window_embeddings"
LAST_TABLES = (POSTINGS_TABLE, EMBEDDINGS_TABLE, WINDOW_EMBEDDINGS_TABLE)  # derived from the other tables
# Access tokens and permissions of an installation, tables that belong to a database rather than to an agent, and
# vectors that a job computes again.
EXCLUDED_TABLES = {
    *("runtime.agents", "runtime.tokens", "runtime.jobs", "runtime.events", "runtime.idempotency_keys"),
    "runtime.projects",
    *(
        "runtime.tool_permissions",
        "runtime.tool_contracts",
        "runtime.tool_actions",
        "runtime.failing_models",
        "heart.proposed_items",
        "dialogue.leases",
        "dialogue.artifact_vectors",
        "memory.foreign_readings",
    ),
}
REMOVED_TABLES = {"dialogue.checkpoints"}  # in files of earlier versions, which are imported without them

BATCH_ROWS, BATCH_BYTES = 500, 4_000_000
MAX_HEADER_BYTES, MAX_LINE_BYTES = 100_000, 256 * 1024 * 1024
UPDATE_HINT = "Use the version of Newton that wrote the file, or update this installation."
ROW_PREFIX, ROW_SEPARATOR, ROW_SUFFIX = b'{"table":"', b'","row":', b"}\n"


class ArchiveHeader(BaseModel):
    """The first line of an export file: the agent, the time of the export, and the line count of each table.

    `projects` are the names of the agent's projects, which have files of their own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["export"] = "export"
    format: int
    agent: str
    at: AwareDatetime
    counts: dict[str, int]
    projects: tuple[str, ...] = ()


class ArchiveTrailer(BaseModel):
    """The last line of an export file. `lines` and `sha256` are the number and the hash of all lines before it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["end"] = "end"
    lines: int
    sha256: str


class VectorRow(BaseModel):
    """A line with the vector of a memory: half-precision floats in pgvector's binary format, in base64."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: str
    dimensions: int
    memory_id: UUID
    vector: str


class WindowVectorRow(VectorRow):
    """A line with the vector of a window of a long text. `position` is the number of the window, from 0."""

    position: int


VECTOR_ROWS = {EMBEDDINGS_TABLE: VectorRow, WINDOW_EMBEDDINGS_TABLE: WindowVectorRow}


class ArchiveWriter:
    """A writer that counts the lines of an export and computes their SHA-256."""

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
    """Export and restore of one agent of a database.

    A restored row gets at most the trust `max_trust`: a file can be forged, and its checksum with it.
    """

    scope: AgentScope
    agent: str
    chain_heads: ChainHeadFiles
    max_trust: Trust = "operator"

    async def export(self, file: IO[bytes], *, progress: Callable[[int], None] = lambda lines: None) -> ArchiveHeader:
        """Write the agent to a file from one database snapshot, and return the header of the file.

        `progress` is called repeatedly with the number of lines written since its last call.
        """
        async with self.scope.transaction(snapshot=True) as tx:
            tables = await _archived_tables(tx)
            counts = {table: await self._count_rows(tx, table) for table in tables}
            listed = await agents.list_projects(tx, agent_id=self.scope.agent_id)
            projects = tuple(one.name for one in listed)
            header = ArchiveHeader(
                format=FORMAT, agent=self.agent, at=self.scope.now(), counts=counts, projects=projects
            )
            out = ArchiveWriter(file)
            out.write_line(header.model_dump_json().encode() + b"\n")
            for table in (table for table in tables if counts[table]):
                async for row in self._read_rows(tx, table):
                    out.write_line(ROW_PREFIX + table.encode() + ROW_SEPARATOR + row.encode() + ROW_SUFFIX)
                    if out.lines % BATCH_ROWS == 0:
                        progress(BATCH_ROWS)
            out.write_trailer()
            progress(out.lines % BATCH_ROWS)
        return header

    async def _count_rows(self, tx: Tx, table: str) -> int:
        agent_id = self.scope.agent_id
        if table == POSTINGS_TABLE:
            row = await SQL["count_indexed"].fetch_one(tx, agent_id=agent_id)
        else:
            row = await SQL["count_rows"].fetch_one(tx, agent_id=agent_id, table_name=table)
        return row["rows"] if row else 0

    async def _read_rows(self, tx: Tx, table: str) -> AsyncIterator[str]:
        agent_id = self.scope.agent_id
        if table in VECTOR_ROWS:
            async for line in self._read_vectors(tx, table):
                yield line
            return
        if table == POSTINGS_TABLE:
            rows = SQL["export_postings"].stream(tx, agent_id=agent_id)
        else:
            rows = SQL["export_rows"].stream(tx, agent_id=agent_id, table_name=table)
        async for row in rows:
            yield row["line"]

    async def _read_vectors(self, tx: Tx, table: str) -> AsyncIterator[str]:
        models = {row["model_id"]: row for row in await SQL["list_models"].fetch_all(tx)}
        query = SQL["export_embeddings"] if table == EMBEDDINGS_TABLE else SQL["export_window_embeddings"]
        async for row in query.stream(tx, agent_id=self.scope.agent_id):
            model = {name: models[row["model_id"]][name] for name in ("identity", "dimensions")}
            place = {name: row[name] for name in ("memory_id", "position") if name in row}
            vector = base64.b64encode(row["embedding"].to_binary()).decode()
            yield VECTOR_ROWS[table](**model, **place, vector=vector).model_dump_json()

    async def restore(self, file: IO[bytes], *, progress: Callable[[int], None] = lambda lines: None) -> ArchiveHeader:
        """Restore the agent from a file in one transaction, and return the header of the file.

        `progress` is called repeatedly with the number of lines restored since its last call. Raises InputError for a
        damaged file, before any change, and ConflictError if the agent already has memories.
        """
        header, agent_id = await asyncio.to_thread(verify_archive, file), self.scope.agent_id
        async with self.scope.transaction() as tx:
            row = await SQL["has_data"].fetch_one(tx, agent_id=agent_id)
            if row and row["begun"]:
                raise ConflictError(
                    f"The agent {self.agent!r} already has memories.",
                    hint="Name a new agent with --agent, or erase the existing one with"
                    f" `newton erase --agent {shlex.quote(self.agent)} --everything`.",
                )
            with reject_invalid_rows("The file contains rows that this database rejects"):
                tables = set(await _archived_tables(tx))
                if unknown := header.counts.keys() - tables - REMOVED_TABLES:
                    what = f"The file contains the table {min(unknown)}, which this version of Newton does not have."
                    raise InputError(what, hint=UPDATE_HINT)
                kept = header.counts.keys() & tables
                await SQL["erase_agent"].execute(tx, agent_id=agent_id)
                await SQL["defer_constraints"].execute(tx)
                for table, rows in _batch_rows(row for row in _iter_rows(file) if row[0] in kept):
                    await self._write_rows(tx, table, rows)
                    progress(len(rows))
            self.scope.publish("agent.imported", {"memories": header.counts.get("memory.memories", 0)})
        async with self.scope.transaction() as tx:
            head = await ledger.get_head(tx, agent_id=agent_id)
        await asyncio.to_thread(self.chain_heads.save, agent_id, head)
        return header

    async def _write_rows(self, tx: Tx, table: str, rows: list[bytes]) -> None:
        """Insert rows of a table, each as JSON. Raises InputError for a vector that cannot be read."""
        agent_id, array = self.scope.agent_id, b"[" + b",".join(rows) + b"]"
        if table == EMBEDDINGS_TABLE:
            with _reject_unreadable_vectors():
                await self._write_vectors(tx, [VectorRow.model_validate_json(row) for row in rows])
        elif table == WINDOW_EMBEDDINGS_TABLE:
            with _reject_unreadable_vectors():
                await self._write_window_vectors(tx, [WindowVectorRow.model_validate_json(row) for row in rows])
        elif table == POSTINGS_TABLE:
            await SQL["import_postings"].execute(tx, agent_id=agent_id, rows=array.decode())
        else:
            higher = TRUST_TIERS[: TRUST_TIERS.index(self.max_trust)]
            await SQL["import_rows"].execute(
                tx,
                agent_id=agent_id,
                table_name=table,
                rows=array.decode(),
                max_trust=self.max_trust,
                higher_trusts=higher,
            )

    async def _write_vectors(self, tx: Tx, vectors: Sequence[VectorRow]) -> None:
        await _write_models(tx, vectors)
        await SQL["import_embeddings"].execute(tx, agent_id=self.scope.agent_id, **_make_vector_arguments(vectors))

    async def _write_window_vectors(self, tx: Tx, vectors: Sequence[WindowVectorRow]) -> None:
        await _write_models(tx, vectors)
        await SQL["import_window_embeddings"].execute(
            tx,
            agent_id=self.scope.agent_id,
            positions=[one.position for one in vectors],
            **_make_vector_arguments(vectors),
        )


@contextmanager
def _reject_unreadable_vectors() -> Generator[None]:
    try:
        yield
    except (ValueError, struct.error) as error:
        what = "The file contains a vector that cannot be read. Nothing was imported."
        raise InputError(what, hint="Export the agent again.") from error


async def _write_models(tx: Tx, vectors: Sequence[VectorRow]) -> None:
    models = {one.identity: one.dimensions for one in vectors}
    await SQL["import_models"].execute(
        tx,
        model_ids=[derive_model_id(identity) for identity in models],
        identities=list(models),
        dimensions=list(models.values()),
    )


def _make_vector_arguments(vectors: Sequence[VectorRow]) -> dict[str, object]:
    """Return vectors as arguments of a query: parallel arrays of model ids, memory ids and vectors."""
    return {
        "model_ids": [derive_model_id(one.identity) for one in vectors],
        "memory_ids": [one.memory_id for one in vectors],
        "vectors": [HalfVector.from_binary(base64.b64decode(one.vector)) for one in vectors],
    }


async def _archived_tables(tx: Tx) -> list[str]:
    """Return the exported tables, each after the tables that its foreign keys reference."""
    tables = [row["part"] for row in await SQL["list_tables"].fetch_all(tx)]
    return [*(table for table in tables if table not in EXCLUDED_TABLES and table not in LAST_TABLES), *LAST_TABLES]


def verify_archive(file: IO[bytes]) -> ArchiveHeader:
    """Verify the checksum of an export, rewind the file and return its header. Raises InputError for a damaged file."""
    file.seek(0)
    checksum, lines, last = hashlib.sha256(), -1, b""
    header = _parse_header(file.readline(MAX_LINE_BYTES))
    file.seek(0)
    while line := file.readline(MAX_LINE_BYTES):
        checksum.update(last)
        last, lines = line, lines + 1
    file.seek(0)
    try:
        trailer = ArchiveTrailer.model_validate_json(last)
    except ValidationError:
        raise _damaged_error("its end is missing") from None
    is_intact = (trailer.lines, trailer.sha256) == (lines, checksum.hexdigest())
    if not is_intact or last != trailer.model_dump_json().encode() + b"\n":
        raise _damaged_error("its checksum does not match")
    return header


def _parse_header(line: bytes) -> ArchiveHeader:
    try:
        header = ArchiveHeader.model_validate_json(line)
    except ValidationError:
        raise _damaged_error("its first line is not an export header") from None
    if header.format != FORMAT:
        what = f"The export has format {header.format}, and this version of Newton reads format {FORMAT}."
        raise InputError(what, hint=UPDATE_HINT)
    return header


def _damaged_error(reason: str) -> InputError:
    what = f"The export is damaged: {reason}. Nothing was imported."
    return InputError(what, hint="Copy the export file again from its source.")


def is_archive(first_line: bytes) -> bool:
    """Return True if a first line belongs to an export, even a damaged one; False for a file to import."""
    try:
        header = json.loads(first_line)
    except (ValueError, RecursionError):
        return b'"export"' in first_line
    return isinstance(header, dict) and "counts" in header and "format" in header


def _iter_rows(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the table name and the JSON text of each row of an export."""
    file.readline(MAX_LINE_BYTES)
    while line := file.readline(MAX_LINE_BYTES):
        table, separator, row = line.removeprefix(ROW_PREFIX).partition(ROW_SEPARATOR)
        if separator:
            yield table.decode(), row.removesuffix(ROW_SUFFIX)


def _batch_rows(rows: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, list[bytes]]]:
    for table, of_table in groupby(rows, key=itemgetter(0)):
        batch: list[bytes] = []
        for _, row in of_table:
            batch.append(row)
            if len(batch) == BATCH_ROWS or sum(map(len, batch)) > BATCH_BYTES:
                yield table, batch
                batch = []
        if batch:
            yield table, batch
