"""`newton export`, `newton import` of what it wrote, and the same over HTTP."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import httpx2
import pytest

from tests.system.daemons import Daemon
from tests.system.typed import typed

pytestmark = pytest.mark.slow


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
