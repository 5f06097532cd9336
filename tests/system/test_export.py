"""Export and import of every kind of memory, by commands and over HTTP."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from newton.db.pool import Database
from tests.system.daemons import Daemon
from tests.system.lines import ENTITY, RELATION, document, episode, event, everything, fact, procedure, take
from tests.system.typed import typed


@pytest.mark.slow
def test_an_agent_is_exported_by_its_admin_and_taken_in_over_http_and_by_the_shell(served: Daemon, house: Path) -> None:
    # GET /v1/export, POST /v1/import; design 6
    served.begins("olga", "cleo", "dora")
    with served.client(**{"X-Newton-Agent": "olga"}) as client:
        assert client.post("/v1/memories", json={"content": "The kettle is in the cellar."}).status_code == 201
        decision = {
            "description": "Keep it there",
            "confidence": 0.8,
            "reasons": [{"kind": "analysis", "text": "it is dry"}],
        }
        assert client.post("/v1/decisions", json=decision).status_code == 201
        answer = client.get("/v1/export")
    token = typed(house, "tokens", "create", "laptop", "--agent", "olga").stdout.split()[0]
    with served.client(token) as client:
        assert client.get("/v1/export").status_code == 403
        assert client.post("/v1/import", content=answer.content).status_code == 403
    _taken_over_http(served, answer)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    (house / "ana.ndjson").write_bytes(answer.content)
    taken = typed(house, "import", "ana.ndjson", "--agent", "bea", NEWTON_EMBEDDING_PROVIDER="none")
    assert "Restored the agent bea with" in taken.stdout, taken.stderr
    assert "overwrite the existing one with --force" in typed(house, "export", "ana.ndjson", "--agent", "bea").stderr
    assert (house / "ana.ndjson").read_bytes() == answer.content
    assert typed(house, "export", "ana.ndjson", "--agent", "bea", "--force").returncode == 0
    words = [sys.executable, "-m", "newton", "export", "-", "--agent", "bea"]
    again = subprocess.run(
        words, cwd=house, env={**os.environ, "NEWTON_EMBEDDING_PROVIDER": "none"}, stdout=-1, check=True
    )
    assert _rows(again.stdout) == _rows(answer.content)
    refused = typed(house, "import", "ana.ndjson", "--agent", "bea", NEWTON_EMBEDDING_PROVIDER="none")
    assert (refused.returncode, "erase --agent bea --everything" in refused.stderr) == (2, True)


def _taken_over_http(made: Daemon, exported: httpx2.Response) -> None:
    lines = exported.content.splitlines(keepends=True)
    with made.client(**{"X-Newton-Agent": "cleo"}) as client:
        damaged = client.post("/v1/import", content=b"".join([*lines[:3], *lines[4:]]))
        assert (damaged.status_code, "damaged" in damaged.text) == (422, True)
        taken = client.post("/v1/import", content=iter(lines))  # in pieces: nobody says how large it will be
        assert taken.json()["memories"] == json.loads(lines[0])["counts"]["memory.memories"]
        found = client.post("/v1/recall", json={"query": "Where is the kettle?"}).json()["items"]
        assert "cellar" in found[0]["text"]
        assert client.post("/v1/import", content=exported.content).status_code == 409
        events = client.stream("GET", "/v1/events", headers={"Last-Event-ID": "0"})
        with events as stream:
            told = [line for line in islice(stream.iter_lines(), 6) if line.startswith("event")]
            assert told == ["event: agent.imported"]
    with made.client(**{"X-Newton-Agent": "dora"}) as client:
        assert client.post("/v1/import", content=exported.content).status_code == 200
        again = client.get("/v1/export")
    assert _rows(again.content) == _rows(exported.content)


def _rows(archive: bytes) -> list[bytes]:
    """The lines between header and end, without watermarks: the daemon's jobs advance these at any moment."""
    return [line for line in archive.splitlines()[1:-1] if b'"heart.watermarks"' not in line]


EVERY_KIND: list[dict[str, object]] = [
    fact("Ana sails", until="2024-05-08T00:00:00Z", importance=7),
    episode("The boat sank.", outcome="failure", importance=10),
    procedure(),
    {"type": "censor", "trigger": "sail at night", "reason": "rocks", "action": "block"},
    event(session="s9"),
    event(event_type="shell_exec", payload={"command": "make", "stdout": "all the words of a tool"}),
    {**ENTITY, "entity_type": "person", "aliases": ["Annie"], "properties": {"role": "nurse"}},
    RELATION,
    document("# Sailing\n\nReef early.\n\n# Rowing\n\nSit still."),
]


async def test_every_kind_of_memory_comes_in_and_only_once(db: Database, agent: UUID, tmp_path: Path) -> None:
    # S001-20, S001-21, S001-28, S001-40, S000-16
    report = await take(db, agent, tmp_path, *EVERY_KIND)
    assert (report.new, report.unchanged, report.rejections) == (len(EVERY_KIND), 0, [])
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select kind, micro, quarantined, importance, outcome from memory.memories order by 1, 2")
        said = [(row["kind"], row["micro"], row["quarantined"]) for row in rows]
        assert await tx.fetchval("select valid_to from heart.facts") is not None
        assert await tx.fetchval("select weight from heart.relations") == pytest.approx(1 / 3)
    assert said == [
        ("censor", "**WARN:** sail at night — rocks", False),
        ("entity", "Acme (thing)", False),
        ("entity", "Ana Berg (person): role nurse", False),
        ("episode", "[2023-05-08] Tea: The boat sank.", False),
        ("event", "[2023-05-08T13:56:00+00:00] ran make · all the words of a tool", True),
        ("event", "[2023-05-08T13:56:00+00:00] read a.py", False),
        ("fact", "Ana sails", False),
        ("passage", "[Sailing] Reef early.", False),
        ("passage", "[Sailing] Sit still.", False),
        ("procedure", "test-first: Write tests first.", False),
        ("relation", "Ana Berg works at Acme", False),
    ]
    given = {row["kind"]: (row["importance"], row["outcome"]) for row in rows if row["importance"] is not None}
    assert given == {"fact": (pytest.approx(0.7), None), "episode": (1.0, "failure")}
    before = await everything(db, agent)
    again = await take(db, agent, tmp_path, *EVERY_KIND)
    assert (again.new, again.unchanged, again.rejections) == (0, len(EVERY_KIND), [])
    assert await everything(db, agent) == before


async def test_what_is_known_of_somebody_grows(db: Database, agent: UUID, tmp_path: Path) -> None:
    await take(db, agent, tmp_path, ENTITY, {**ENTITY, "entity_type": "person"}, RELATION, {**RELATION, "ref": "r2"})
    told: dict[str, object] = {**ENTITY, "name": "Annie", "properties": {"role": "nurse"}}
    report = await take(db, agent, tmp_path, {**ENTITY, "aliases": ["Annie"]}, told, told)
    assert (report.new, report.unchanged) == (2, 1)
    async with db.transaction(agent) as tx:
        row = await tx.fetchrow("select * from heart.entities where name = 'Ana Berg'")
        assert row is not None
        assert (row["type"], row["aliases"], row["properties"]) == ("person", ["Annie"], '{"role": "nurse"}')
        assert await tx.fetchval("select weight from heart.relations") == 0.5, "told twice"
        micro = await tx.fetchval("select micro from memory.memories where memory_id = $1", row["memory_id"])
        assert micro == "Ana Berg (person): role nurse"


async def test_a_document_that_changed_replaces_only_what_changed(db: Database, agent: UUID, tmp_path: Path) -> None:
    await take(db, agent, tmp_path, document("# One\n\nFirst.\n\n# Two\n\nSecond."))
    report = await take(db, agent, tmp_path, document("# One\n\nFirst.\n\n# Two\n\nAnother."))
    assert report.new == 1
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select state from memory.memories where kind = 'passage' order by memory_id")
    assert [row["state"] for row in rows] == ["ACTIVE", "SUPERSEDED", "ACTIVE"]


async def test_what_contradicts_another_of_its_name_is_refused(db: Database, agent: UUID, tmp_path: Path) -> None:
    await take(db, agent, tmp_path, procedure(), ENTITY, {**ENTITY, "name": "Ben Dahl", "aliases": ["Benny"]})
    report = await take(
        db,
        agent,
        tmp_path,
        procedure(steps=["Something else"]),
        {**ENTITY, "aliases": ["Benny"]},
        {**RELATION, "target": "Ana Berg"},
    )
    assert [refusal.reason.partition(".")[0] for refusal in report.rejections] == [
        "Another procedure is already named 'test-first'",
        "'Benny' is already a name of 'Ben Dahl'",
        "'Ana Berg' and 'Ana Berg' are not two distinct entities",
    ]


async def test_a_censor_of_a_domain_that_no_frame_names_is_rejected(db: Database, agent: UUID, tmp_path: Path) -> None:
    # S002-9
    rule: dict[str, object] = {"type": "censor", "trigger": "dig here", "reason": "cables", "action": "warn"}
    report = await take(db, agent, tmp_path, {**rule, "domain": "gardening"}, {**rule, "domain": "debugging"})
    assert report.new == 1
    (rejection,) = report.rejections
    assert rejection.place == "line 1" and "gardening" in rejection.reason and "debugging" in rejection.reason
