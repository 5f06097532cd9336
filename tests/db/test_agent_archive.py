"""Export and import of an agent give an equal agent; a modified file is refused."""

import hashlib
import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from newton.brain import ledger
from newton.brain.hash_chain import ChainHead, ChainHeadFiles
from newton.clock import ManualClock
from newton.cognition.request import ContextBuildRequest
from newton.db.pool import Database
from newton.errors import ConflictError, InputError
from newton.memory import agents
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from newton.runtime.transfer.export_file import (
    EXCLUDED_TABLES,
    REMOVED_TABLES,
    AgentArchive,
    ArchiveTrailer,
    verify_archive,
)
from tests.db.world import contexts, live
from tests.support import NOON, agent_scope

ASKED = ("where is the kettle?", "which database did we choose?", "how do we make tea?")
LONG = "How many cups does pot 21 of the shelf hold?"


def carrier(db: Database, agent_id: UUID, name: str, home: Path) -> AgentArchive:
    return AgentArchive(
        agent=name,
        chain_heads=ChainHeadFiles(home / "ledger", "embedded"),
        scope=agent_scope(db=db, agent_id=agent_id, clock=ManualClock(NOON)),
    )


async def exported(db: Database, agent_id: UUID, home: Path) -> bytes:
    out = io.BytesIO()
    await carrier(db, agent_id, "ana", home).export(out)
    return out.getvalue()


async def texts(db: Database, agent_id: UUID) -> Sequence[str]:
    await EmbeddingOutbox(db, HashEmbedder(), agent_id).drain()
    built = [
        await contexts(db).build(ContextBuildRequest(agent_id=agent_id, input=asked, tokens=500)) for asked in ASKED
    ]
    return [bundle.text for bundle in built]


async def test_an_agent_carried_to_another_is_the_same(db: Database, tmp_path: Path) -> None:
    # the "lossless round trip"; R14
    ana = await live(db, "ana")
    first = await exported(db, ana, tmp_path)
    ben = await agents.get_or_create_agent(db, "ben", now=NOON)
    await carrier(db, ben, "ben", tmp_path).restore(io.BytesIO(first))
    again = await exported(db, ben, tmp_path)
    assert again.splitlines()[1:-1] == first.splitlines()[1:-1]
    assert len(first.splitlines()) > 150
    async with db.transaction(ben) as tx:
        whole = await ledger.verify_chain(tx, agent_id=ben, external_head=None)
    assert isinstance(whole, ChainHead) and whole.seq > 2
    assert carrier(db, ben, "ben", tmp_path).chain_heads.load(ben) == whole
    assert await texts(db, ben) == await texts(db, ana)


@pytest.mark.slow
async def test_the_windows_of_long_texts_answer_in_the_other_agent(db: Database, tmp_path: Path) -> None:
    # S002-3: they are carried with their vectors, so that no text is embedded again
    ana = await live(db, "ana")
    ben = await agents.get_or_create_agent(db, "ben", now=NOON)
    await carrier(db, ben, "ben", tmp_path).restore(io.BytesIO(await exported(db, ana, tmp_path)))
    request = ContextBuildRequest(agent_id=ana, input=LONG, tokens=400, fill=True)
    bundles = [await contexts(db).build(replace(request, agent_id=agent_id)) for agent_id in (ana, ben)]
    for bundle in bundles:
        (part,) = [item for item in bundle.items if item.detail == "part"]
        assert "Pot 21 of the shelf holds 21 cups" in part.text and part.scored.found.similarity > 0.5
    assert bundles[0].text == bundles[1].text
    windows = [await fetch_windows(db, agent_id) for agent_id in (ana, ben)]
    assert len(windows[0]) > 3 and windows[0] == windows[1]


async def fetch_windows(db: Database, agent_id: UUID) -> Sequence[object]:
    async with db.transaction(agent_id) as tx:
        return await tx.fetch(
            "select w.memory_id, position, text, tokens, lexemes, model_id, embedding::text from memory.windows as w"
            " join memory.window_embeddings using (agent_id, memory_id, position) order by w.memory_id, position"
        )


async def test_every_table_is_carried_or_left_out_for_a_reason(db: Database, tmp_path: Path) -> None:
    header = verify_archive(io.BytesIO(await exported(db, await live(db, "ana"), tmp_path)))
    assert header.counts.keys().isdisjoint(EXCLUDED_TABLES)
    assert [part for part, rows in header.counts.items() if not rows] == []
    async with db.transaction(await agents.get_or_create_agent(db, "ana", now=NOON)) as tx:
        every = {row[0] for row in await tx.fetch("select runtime.agent_tables()::text")}
    assert every - header.counts.keys() == EXCLUDED_TABLES
    assert len(header.counts) > 40


@pytest.mark.slow
async def test_one_changed_byte_is_refused_before_anything_is_touched(db: Database, tmp_path: Path) -> None:
    # R14: one flipped byte of an export is refused
    good = await exported(db, await live(db, "ana"), tmp_path)
    ben = await agents.get_or_create_agent(db, "ben", now=NOON)
    dice = random.Random(14)
    for place in [0, len(good) - 2, *(dice.randrange(len(good)) for _ in range(100))]:
        bad = bytearray(good)
        bad[place] ^= 1 << dice.randrange(8)
        with pytest.raises(InputError, match=r"damaged|format"):
            verify_archive(io.BytesIO(bytes(bad)))
    for bad in (good[:-1], good[: len(good) // 2], good + b"\n", b"", good[good.index(b"\n") + 1 :]):
        with pytest.raises(InputError, match="damaged"):
            await carrier(db, ben, "ben", tmp_path).restore(io.BytesIO(bad))
    assert (await exported(db, ben, tmp_path)).count(b"\n") == 2, "nothing was taken"


def forged(good: bytes, line: bytes, *, counts: str) -> bytes:
    """A file whose hash fits, with one more line."""
    head, *rest = good.splitlines(keepends=True)[:-1]
    told = json.loads(head)
    told["counts"][counts] = 1
    lines = [json.dumps(told).encode() + b"\n", *rest, line]
    whole = io.BytesIO(b"".join(lines))
    end = ArchiveTrailer(lines=len(lines), sha256=hashlib.sha256(whole.getvalue()).hexdigest())
    return whole.getvalue() + end.model_dump_json().encode() + b"\n"


WINDOW_VECTOR = {"identity": "a", "dimensions": 1, "memory_id": str(UUID(int=1)), "position": 0}


@pytest.mark.parametrize(
    ("part", "row"),
    [
        ("runtime.tokens", b'{"token_id": "00000000-0000-0000-0000-000000000001"}'),
        ("memory.links", b'{"link": "near", "later": 1}'),
        ("heart.mentions", b'{"entity_id": "00000000-0000-0000-0000-000000000001", "memory_id": null}'),
        ("memory.memories", b"{not json"),
        ("memory.embeddings", b'{"identity": "a", "dimensions": 1, "memory_id": "not an id", "vector": ""}'),
        ("memory.window_embeddings", json.dumps({**WINDOW_VECTOR, "vector": ""}).encode()),
    ],
)
async def test_a_file_that_fits_its_hash_and_not_the_database_leaves_nothing(
    db: Database, tmp_path: Path, part: str, row: bytes
) -> None:
    good = await exported(db, await agents.get_or_create_agent(db, "ana", now=NOON), tmp_path)
    ben = await agents.get_or_create_agent(db, "ben", now=NOON)
    bad = forged(good, b'{"table":"' + part.encode() + b'","row":' + row + b"}\n", counts=part)
    with pytest.raises(InputError):
        await carrier(db, ben, "ben", tmp_path).restore(io.BytesIO(bad))
    assert (await exported(db, ben, tmp_path)).count(b"\n") == 2


async def test_a_file_of_an_earlier_version_is_taken_over_without_the_rows_of_a_removed_table(
    db: Database, tmp_path: Path
) -> None:
    good = await exported(db, await agents.get_or_create_agent(db, "ana", now=NOON), tmp_path)
    ben = await agents.get_or_create_agent(db, "ben", now=NOON)
    (part,) = REMOVED_TABLES
    earlier = forged(good, b'{"table":"' + part.encode() + b'","row":{"name": "tea"}}\n', counts=part)
    header = await carrier(db, ben, "ben", tmp_path).restore(io.BytesIO(earlier))
    assert (header.counts[part], (await exported(db, ben, tmp_path)).count(b"\n")) == (1, 2)


@pytest.mark.slow
async def test_an_agent_that_has_begun_to_live_is_not_written_over(db: Database, tmp_path: Path) -> None:
    ana = await live(db, "ana")
    whole = await exported(db, ana, tmp_path)
    with pytest.raises(ConflictError, match="already has memories"):
        await carrier(db, ana, "ana", tmp_path).restore(io.BytesIO(whole))
    assert await exported(db, ana, tmp_path) == whole


async def test_a_file_cannot_raise_trust_above_that_of_the_importer(db: Database, tmp_path: Path) -> None:
    # S9
    ana = await live(db, "ana")
    lines = [
        line.replace(b'"trust": "user"', b'"trust": "operator"')
        for line in (await exported(db, ana, tmp_path)).splitlines(True)
    ]
    body = b"".join(lines[:-1])
    trailer = ArchiveTrailer(lines=len(lines) - 1, sha256=hashlib.sha256(body).hexdigest())
    forged = body + trailer.model_dump_json().encode() + b"\n"
    for name, max_trust, raised in (("ben", "user", 0), ("cat", "operator", 1)):
        agent_id = await agents.get_or_create_agent(db, name, now=NOON)
        archive = replace(carrier(db, agent_id, name, tmp_path), max_trust=max_trust)
        await archive.restore(io.BytesIO(forged))
        async with db.transaction(agent_id) as tx:
            for table in ("memory.memories", "memory.confirmations", "heart.tenets"):
                found = await tx.fetchval(f"select count(*) from {table} where trust = 'operator'")
                assert bool(found) <= bool(raised), (name, table)
            assert bool(await tx.fetchval("select count(*) from memory.memories where trust = 'operator'")) == bool(
                raised
            )
