"""Lines of import files, and importing them."""

import json
from pathlib import Path
from uuid import UUID

from newton.brain.hash_chain import ChainHeadFiles, derive_database_key
from newton.clock import ManualClock
from newton.content.frames import load_frames
from newton.db.pool import Database
from newton.memory.vectors import EmbeddingOutbox
from newton.runtime.transfer.import_source import ImportReport, read_file
from newton.runtime.transfer.importer import MemoryImporter
from tests.support import DEFAULT_THRESHOLDS, NOON, agent_scope, count

AT = "2023-05-08T13:56:00Z"


def message(content: str, **changed: object) -> dict[str, object]:
    return {"type": "message", "session": "s1", "role": "user", "content": content, "at": AT, **changed}


def fact(content: str, **changed: object) -> dict[str, object]:
    return {"type": "fact", "content": content, "at": AT, **changed}


def episode(content: str, **changed: object) -> dict[str, object]:
    return {"type": "episode", "title": "Tea", "content": content, "at": AT, **changed}


def procedure(**changed: object) -> dict[str, object]:
    steps = ["Write the test", "Watch it fail"]
    return {"type": "procedure", "name": "test-first", "description": "Write tests first.", "steps": steps, **changed}


def event(**changed: object) -> dict[str, object]:
    return {"type": "event", "event_type": "file_read", "payload": {"path": "a.py"}, "at": AT, **changed}


def document(content: str, **changed: object) -> dict[str, object]:
    return {"type": "document", "ref": "handbook", "content": content, **changed}


RELATION: dict[str, object] = {"type": "relation", "source": "Ana Berg", "relation_type": "works at", "target": "Acme"}
ENTITY: dict[str, object] = {"type": "entity", "name": "Ana Berg"}
GOOD = [
    message("We sold the boat.", name="Caroline", ref="m1"),
    message("To whom?", role="assistant"),
    message("To Carl.", name="Caroline"),
    message("the boat is gone", role="tool", session="s2"),
    message("Good.", role="system"),
    fact("The boat is blue", subject="boat", attribute="colour", confidence=0.9, ref="f1"),
    fact("Carl has a boat"),
    episode("We had tea.", participants=["Ana", "Ben"], ended_at="2023-05-08T17:00:00+02:00", ref="e1"),
    episode("We had cake.", title="Cake"),
]


def written(folder: Path, *lines: "dict[str, object] | bytes") -> Path:
    path = folder / "lines.ndjson"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return path


def importer(
    db: Database, agent: UUID, *, outbox: EmbeddingOutbox | None = None, home: Path | None = None
) -> MemoryImporter:
    return MemoryImporter(
        outbox=outbox,
        chain_heads=ChainHeadFiles(home or Path("/nowhere"), derive_database_key(None)),
        domains=frozenset(domain for frame in load_frames().values() for domain in frame.domains),
        scope=agent_scope(
            db=db, agent_id=agent, clock=ManualClock(NOON), count_tokens=count, thresholds=DEFAULT_THRESHOLDS
        ),
    )


async def take(db: Database, agent: UUID, folder: Path, *lines: "dict[str, object] | bytes") -> ImportReport:
    return await importer(db, agent).run(read_file(written(folder, *lines)))


async def totals(db: Database, agent: UUID) -> dict[str, int]:
    tables = ("dialogue.messages", "heart.facts", "heart.episodes", "memory.memories", "memory.confirmations")
    async with db.transaction(agent) as tx:
        return {table.partition(".")[2]: await tx.fetchval(f"select count(*) from {table}") for table in tables}


async def everything(db: Database, agent: UUID) -> list[str]:
    async with db.transaction(agent) as tx:
        names = await tx.fetch(
            "select c.oid::regclass::text as name from pg_class as c"
            " join pg_attribute as a on a.attrelid = c.oid and a.attname = 'agent_id' where c.relkind = 'r'"
        )
        return sorted([row[0] for n in names for row in await tx.fetch(f"select t::text from {n['name']} as t")])
