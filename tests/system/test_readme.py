"""The README's tour, typed as it stands there: what it shows is what comes."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from newton.db.embedded import EmbeddedServer, discard

ROOT = Path(__file__).parents[2]


def tour() -> list[tuple[str, str]]:
    """Each command of the README's console with what it prints."""
    block = (ROOT / "README.md").read_text(encoding="utf-8").partition("```console\n")[2].partition("```")[0]
    steps = re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE)
    return [(command, shown.strip()) for command, shown in steps]


def typed(command: str, home: Path) -> str:
    script, *words = shlex.split(command)
    assert script == "scripts/newton"
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("NEWTON_", "OPENAI_")) and k != "DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "newton", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=True,
        # unbuffered, so that answers and remarks come in the order in which a person sees them
        env={**plain, "NEWTON_DATA_DIR": str(home), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        cwd=home,
    )
    return done.stdout.strip()


def alike(text: str) -> str:
    """Without what differs each time: ids, and in their last digits certainty and evidence, by the processor."""
    return re.sub(r"\([0-9a-f]{8}\)", "(id)", re.sub(r"\d+% sure|evidence \d\.\d\d", "so sure", text))


def test_the_tour_shows_what_comes(tmp_path: Path) -> None:
    steps = tour()
    assert {command.split()[1] for command, _ in steps} == {"remember", "context", "ask"}
    with EmbeddedServer.start(tmp_path, durable=False):
        came = [(command, alike(typed(command, tmp_path))) for command, _ in steps]
    discard(tmp_path)
    assert came == [(command, alike(shown)) for command, shown in steps]
