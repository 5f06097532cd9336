"""The README's tour with curl, against a daemon of its own."""

import subprocess
from pathlib import Path

from tests.system.daemons import daemon

ROOT = Path(__file__).parents[2]


def tour() -> str:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("**HTTP.**")[2]
    return section.partition("```sh\n")[2].partition("```")[0]


def test_the_tour_over_http_works(home: Path) -> None:
    with daemon(home, "--log-format", "json") as made:
        script = tour().replace("scripts/newton serve &\n", "").replace("http://127.0.0.1:8700", made.url)
        script = script.replace("~/.local/share/newton/operator.token", str(home / "data" / "operator.token"))
        came = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=60, check=False)
        assert made.stopped() == 0
        events = [line["event"] for line in made.log()]  # every line is JSON
        assert "Newton serves" in events[0] and "request_answered" in events
    assert came.returncode == 0, came.stderr
    assert "Ana lives in Porto." in came.stdout
    assert "event: decision.recorded" in came.stdout
