"""`newton export`, `newton import` of what it wrote, and the same over HTTP."""

import os
import subprocess
import sys
from pathlib import Path

from tests.system.daemons import daemon
from tests.system.typed import typed


def test_an_agent_is_exported_over_http_by_its_admin_and_taken_in_by_the_shell(home: Path) -> None:
    # GET /v1/export; design 6
    with daemon(home, NEWTON_EMBEDDING="none") as made:
        made.begins("ana")
        with made.client(**{"X-Newton-Agent": "ana"}) as client:
            assert client.post("/v1/memories", json={"content": "The kettle is in the cellar."}).status_code == 201
            answer = client.get("/v1/export")
        token = typed(home, "tokens", "create", "laptop", "--agent", "ana").stdout.split()[0]
        with made.client(token) as client:
            assert client.get("/v1/export").status_code == 403
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    (home / "ana.ndjson").write_bytes(answer.content)
    taken = typed(home, "import", "ana.ndjson", "--agent", "bea", NEWTON_EMBEDDING="none")
    assert "The agent bea has" in taken.stdout, taken.stderr
    assert "give --force" in typed(home, "export", "ana.ndjson", "--agent", "bea").stderr
    assert (home / "ana.ndjson").read_bytes() == answer.content
    assert typed(home, "export", "ana.ndjson", "--agent", "bea", "--force").returncode == 0
    words = [sys.executable, "-m", "newton", "export", "-", "--agent", "bea"]
    again = subprocess.run(words, cwd=home, env={**os.environ, "NEWTON_EMBEDDING": "none"}, stdout=-1, check=True)
    assert again.stdout.splitlines()[1:-1] == answer.content.splitlines()[1:-1]
    refused = typed(home, "import", "ana.ndjson", "--agent", "bea", NEWTON_EMBEDDING="none")
    assert (refused.returncode, "erase --everything" in refused.stderr) == (2, True)
