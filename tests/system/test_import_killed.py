"""An import that is killed again and again, and then run once more: every line is there exactly once."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import asyncpg
import pytest

from newton.db.embedded_server import EmbeddedServer, delete_data

IMPORT = """
import asyncio, sys
from pathlib import Path
from newton.runtime.bootstrap import open_newton
from newton.runtime.transfer.import_source import read_file
from newton.settings import load

async def main() -> None:
    async with open_newton(load()) as newton:
        report = await newton.importer().run(read_file(Path(sys.argv[1])))
    assert report.rejections == [] and report.embedder_error is None, report

asyncio.run(main())
"""
KILLS = 10
LINES = 5_000
FULL = 900.0


def lines() -> list[dict[str, object]]:
    """Conversations, facts and episodes; some lines say the same as others in another place."""
    made: list[dict[str, object]] = []
    for n in range(LINES):
        at = f"2024-03-{1 + n % 28:02}T{n % 24:02}:{n % 60:02}:00Z"
        match n % 10:
            case 8:
                made.append({"type": "fact", "content": f"The box {n} stands on shelf {n % 7}", "at": at})
            case 9:
                made.append({"type": "episode", "title": f"Day {n}", "content": "We moved boxes.", "at": at})
            case _:
                who = ("user", "assistant")[n % 2]
                said = f"Box {n} goes to shelf {n % 7}" if n % 3 else "Yes."
                made.append({"type": "message", "session": f"s{n // 100}", "role": who, "content": said, "at": at})
    return made


def run(path: Path, home: Path, embedding: str, *, seconds: float) -> bool:
    """Imports in a process of its own, killed when the time is over; whether it came to its end."""
    env = {**os.environ, "NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING_PROVIDER": embedding}
    process = subprocess.Popen([sys.executable, "-c", IMPORT, str(path)], env=env)
    try:
        assert process.wait(timeout=seconds) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


# Slow: eleven processes, and thousands of texts embedded.
@pytest.mark.fault
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("embedding", ["none", "local"])
async def test_an_import_killed_ten_times_is_finished_by_one_more_run(tmp_path: Path, embedding: str) -> None:
    home, path = tmp_path / "home", tmp_path / "lines.ndjson"
    wanted = lines()
    path.write_text("".join(f"{json.dumps(line)}\n" for line in wanted), encoding="utf-8")
    try:
        length = full_length(path, tmp_path / "other", embedding)
        dice = random.Random(20_240_301)
        finished = [run(path, home, embedding, seconds=dice.uniform(0.3, length / 3)) for _ in range(KILLS)]
        assert finished.count(False) >= KILLS // 2, "the kills come while there is work"
        assert run(path, home, embedding, seconds=FULL)
        with EmbeddedServer.start(home) as server:
            await check(server.dsn("postgres"), wanted, embedded=embedding == "local")
    finally:
        for made in (home, tmp_path / "other"):
            if made.exists():
                EmbeddedServer.start(made).stop()
                delete_data(made)


def full_length(path: Path, home: Path, embedding: str) -> float:
    """Seconds of an import that nobody disturbs."""
    started = time.monotonic()
    assert run(path, home, embedding, seconds=FULL)
    return time.monotonic() - started


async def check(dsn: str, wanted: list[dict[str, object]], *, embedded: bool) -> None:
    said = [line for line in wanted if line["type"] == "message"]
    conn = await asyncpg.connect(dsn)
    try:
        rows = await conn.fetch(
            "select s.ref, m.role, m.content, m.position from dialogue.messages as m"
            " join dialogue.sessions as s using (agent_id, session_id) order by s.ref, m.position"
        )
        kinds = {
            r["kind"]: r["n"]
            for r in await conn.fetch(
                "select kind, count(*) as n from memory.memories where kind <> 'procedure' group by 1"
            )
        }
        facts = await conn.fetch("select full_text, confirmations from memory.memories where kind = 'fact'")
        told = await conn.fetch("select title from heart.episodes where session_id is null")
        spans = await conn.fetch(
            "select session_id, first_position, last_position from heart.episodes where session_id is not null"
            " order by session_id, first_position"
        )
        unplaced = await conn.fetchval(
            "select count(*) from dialogue.messages as m where not exists (select from memory.memories as x"
            " where x.agent_id = m.agent_id and x.thread_id = m.session_id and x.position = m.position)"
        )
        halves = await conn.fetchval(
            "select count(*) from memory.memories as m where word_count > 0 and word_count <>"
            " (select sum(tf) from memory.postings as p where p.agent_id = m.agent_id and p.memory_id = m.memory_id)"
        )
        waiting = await conn.fetchval(
            "select count(*) from memory.outbox as o join memory.memories as m using (agent_id, memory_id)"
            " where m.kind <> 'procedure'"
        )
        vectors = await conn.fetchval("select count(*) from memory.embeddings where kind <> 'procedure'")
    finally:
        await conn.close()
    expected = Counter((line["session"], line["role"], line["content"]) for line in said)
    assert Counter((row["ref"], row["role"], row["content"]) for row in rows) == expected
    for ref in {row["ref"] for row in rows}:
        own = [(row["position"], row["content"]) for row in rows if row["ref"] == ref]
        assert own == list(enumerate(line["content"] for line in said if line["session"] == ref))
    assert {(r["full_text"], r["confirmations"]) for r in facts} == {
        (line["content"], 0) for line in wanted if line["type"] == "fact"
    }
    assert Counter(row["title"] for row in told) == Counter(
        line["title"] for line in wanted if line["type"] == "episode"
    )
    sessions = {line["session"] for line in said}
    assert len(spans) == len({row["session_id"] for row in spans}) == len(sessions)
    assert kinds == {"exchange": len(said), "fact": len(facts), "episode": len(told) + len(sessions)}
    assert (unplaced, halves) == (0, 0)
    total = sum(kinds.values())
    assert (waiting, vectors) == ((0, total) if embedded else (total, 0))
