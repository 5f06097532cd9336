"""One agent as a file: everything that is theirs, written line by line, verified, and taken in whole or not at all."""

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
from newton.brain.headnote import HeadNotes
from newton.db.pool import Tx, refusing
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.ids import model_id

SQL = load("newton.runtime.transfer", "whole.sql")

FORMAT = 1
WORDS = "memory.postings"
LAST = (WORDS, "memory.embeddings")  # of what the others hold
# What belongs to a database and not to a mind, and who may ask for it.
LEFT_OUT = {
    "runtime.agents",
    "runtime.tokens",
    "runtime.jobs",
    "runtime.events",
    "runtime.idempotency_keys",
    "dialogue.leases",
}

ROWS_AT_ONCE, BYTES_AT_ONCE = 500, 4_000_000
LONGEST_HEADER = 100_000
LONGEST_LINE = 256 * 1024 * 1024
UPDATE = "Use the Newton that wrote it, or update this one."
BEGINS, BETWEEN, ENDS = b'{"table":"', b'","row":', b"}\n"


class Header(BaseModel):
    """The first line: whose mind it is, of when, and how many lines of each table follow."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["export"] = "export"
    format: int
    agent: str
    at: AwareDatetime
    counts: dict[str, int]


class End(BaseModel):
    """The last line. `sha256` is of all bytes before it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["end"] = "end"
    lines: int
    sha256: str


class Vector(BaseModel):
    """The vector of a memory, as the bytes of half floats that the database stores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identity: str
    dimensions: int
    memory_id: UUID
    vector: str


class Line(NamedTuple):
    """A row as it stands in the file."""

    part: str
    row: bytes


class Written:
    """A file that is being written, with the hash of what is in it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.lines, self.hash = file, 0, hashlib.sha256()

    def line(self, content: bytes) -> None:
        self.file.write(content)
        self.hash.update(content)
        self.lines += 1

    def end(self) -> None:
        end = End(lines=self.lines, sha256=self.hash.hexdigest())
        self.file.write(end.model_dump_json().encode() + b"\n")
        self.file.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """Carries one agent out of a database, or into it."""

    scope: AgentScope
    agent: str
    notes: HeadNotes

    async def export(self, file: IO[bytes], *, progress: Callable[[int], None] = lambda lines: None) -> Header:
        """Writes the agent as it stands at one moment. What others write meanwhile is not in it."""
        async with self.scope.transaction(snapshot=True) as tx:
            parts = await _parts(tx)
            counts = {part: await self._counted(tx, part) for part in parts}
            header = Header(format=FORMAT, agent=self.agent, at=self.scope.now(), counts=counts)
            out = Written(file)
            out.line(header.model_dump_json().encode() + b"\n")
            for part in (part for part in parts if counts[part]):
                async for row in self._rows(tx, part):
                    out.line(BEGINS + part.encode() + BETWEEN + row.encode() + ENDS)
                    if out.lines % ROWS_AT_ONCE == 0:
                        progress(ROWS_AT_ONCE)
            out.end()
            progress(out.lines % ROWS_AT_ONCE)
        return header

    async def _counted(self, tx: Tx, part: str) -> int:
        if part == WORDS:
            row = await SQL["count_indexed"].one(tx, agent_id=self.scope.agent_id)
        else:
            row = await SQL["count_rows"].one(tx, agent_id=self.scope.agent_id, table_name=part)
        return row["rows"] if row else 0

    async def _rows(self, tx: Tx, part: str) -> AsyncIterator[str]:
        match part:
            case "memory.embeddings":
                models = {row["model_id"]: row for row in await SQL["list_models"].all(tx)}
                async for row in SQL["export_embeddings"].stream(tx, agent_id=self.scope.agent_id):
                    model, packed = models[row["model_id"]], base64.b64encode(row["embedding"].to_binary())
                    yield Vector(
                        identity=model["identity"],
                        dimensions=model["dimensions"],
                        memory_id=row["memory_id"],
                        vector=packed.decode(),
                    ).model_dump_json()
            case "memory.postings":
                async for row in SQL["export_postings"].stream(tx, agent_id=self.scope.agent_id):
                    yield row["line"]
            case _:
                async for row in SQL["export_rows"].stream(tx, agent_id=self.scope.agent_id, table_name=part):
                    yield row["line"]

    async def take(self, file: IO[bytes], *, progress: Callable[[int], None] = lambda lines: None) -> Header:
        """Makes the agent what the file says, all of it or nothing.

        Raises InputError for a file that is not as it was written, before anything is touched, and ConflictError for an
        agent that has begun to live.
        """
        header = await asyncio.to_thread(verified, file)
        async with self.scope.transaction() as tx:
            row = await SQL["has_data"].one(tx, agent_id=self.scope.agent_id)
            if row and row["begun"]:
                raise ConflictError(
                    f"The agent {self.agent!r} has memories of its own.",
                    hint="Name a new one with --agent, or take this one away with"
                    f" `newton erase --agent {shlex.quote(self.agent)} --everything`.",
                )
            with refusing("The file holds what this database cannot keep"):
                if strange := header.counts.keys() - set(await _parts(tx)):
                    raise InputError(f"The file has {min(strange)}, which is not known here.", hint=UPDATE)
                await SQL["erase_agent"].run(tx, agent_id=self.scope.agent_id)
                await SQL["defer_constraints"].run(tx)
                for part, rows in _batches(row for row in _rows(file) if row.part in header.counts):
                    await self._kept(tx, part, rows)
                    progress(len(rows))
            memories = header.counts.get("memory.memories", 0)
            self.scope.publish("agent.imported", {"memories": memories})
        await self._noted()
        return header

    async def _kept(self, tx: Tx, part: str, rows: list[bytes]) -> None:
        match part:
            case "memory.embeddings":
                await self._take_vectors(tx, [Vector.model_validate_json(row) for row in rows])
            case "memory.postings":
                await SQL["import_postings"].run(tx, agent_id=self.scope.agent_id, rows=_array(rows))
            case _:
                await SQL["import_rows"].run(tx, agent_id=self.scope.agent_id, table_name=part, rows=_array(rows))

    async def _take_vectors(self, tx: Tx, vectors: Sequence[Vector]) -> None:
        models = {(one.identity, one.dimensions) for one in vectors}
        await SQL["import_models"].run(
            tx,
            model_ids=[model_id(identity) for identity, _ in models],
            identities=[identity for identity, _ in models],
            dimensions=[dimensions for _, dimensions in models],
        )
        await SQL["import_embeddings"].run(
            tx,
            agent_id=self.scope.agent_id,
            model_ids=[model_id(one.identity) for one in vectors],
            memory_ids=[one.memory_id for one in vectors],
            vectors=[HalfVector.from_binary(base64.b64decode(one.vector)) for one in vectors],
        )

    async def _noted(self) -> None:
        async with self.scope.transaction() as tx:
            head = await ledger.head(tx, agent_id=self.scope.agent_id)
        await asyncio.to_thread(self.notes.note, self.scope.agent_id, head)


def _array(rows: list[bytes]) -> str:
    return (b"[" + b",".join(rows) + b"]").decode()


async def _parts(tx: Tx) -> list[str]:
    """The tables that a file carries, in an order in which they can be taken in."""
    found = [row["part"] for row in await SQL["list_tables"].all(tx)]
    return [*(part for part in found if part not in LEFT_OUT and part not in LAST), *LAST]


def verified(file: IO[bytes]) -> Header:
    """The header of a file that is as it was written; leaves the file at its beginning.

    Raises InputError otherwise: one changed byte is enough.
    """
    file.seek(0)
    seen, lines, last = hashlib.sha256(), -1, b""
    header = _header(file.readline(LONGEST_LINE))
    file.seek(0)
    while line := file.readline(LONGEST_LINE):
        seen.update(last)
        last, lines = line, lines + 1
    file.seek(0)
    try:
        end = End.model_validate_json(last)
    except ValidationError:
        raise _damaged("its end is missing") from None
    if (end.lines, end.sha256) != (lines, seen.hexdigest()) or last != end.model_dump_json().encode() + b"\n":
        raise _damaged("its lines are not those that were written")
    return header


def _header(line: bytes) -> Header:
    try:
        header = Header.model_validate_json(line)
    except ValidationError:
        raise _damaged("its first line is none of an export") from None
    if header.format != FORMAT:
        raise InputError(
            f"The export is of format {header.format}, and this Newton reads {FORMAT}.",
            hint=UPDATE,
        )
    return header


def _damaged(why: str) -> InputError:
    return InputError(
        f"The export is damaged: {why}. Nothing was taken.", hint="Copy the file anew from where it was made."
    )


def is_whole(first: bytes) -> bool:
    """Whether a file with that first line is an export, damaged or not, and no list of things to import."""
    try:
        given = json.loads(first)
    except ValueError:
        return b'"export"' in first
    return isinstance(given, dict) and "counts" in given and "format" in given


def _rows(file: IO[bytes]) -> Iterator[Line]:
    file.readline(LONGEST_LINE)
    while line := file.readline(LONGEST_LINE):
        part, found, row = line.removeprefix(BEGINS).partition(BETWEEN)
        if found:
            yield Line(part.decode(), row.removesuffix(ENDS))


def _batches(rows: Iterator[Line]) -> Iterator[tuple[str, list[bytes]]]:
    for part, of_part in groupby(rows, key=itemgetter(0)):
        batch: list[bytes] = []
        for line in of_part:
            batch.append(line.row)
            if len(batch) == ROWS_AT_ONCE or sum(map(len, batch)) > BYTES_AT_ONCE:
                yield part, batch
                batch = []
        if batch:
            yield part, batch
