"""The README's blocks as they stand there: the tour as it is typed, and HTTP and Python as they are pasted."""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.typed import seen

ROOT = Path(__file__).parents[2]


def tour() -> list[tuple[str, str]]:
    """Each command of the README's console with what it prints."""
    block = (ROOT / "README.md").read_text(encoding="utf-8").partition("```console\n")[2].partition("```")[0]
    steps = re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE)
    return [(command, shown.strip()) for command, shown in steps]


def typed(command: str, home: Path) -> str:
    script, *words = shlex.split(command)
    assert script == "scripts/newton"
    return seen(home, *words).strip()


def alike(text: str) -> str:
    """Without what differs each time: ids, and in their last digits certainty and evidence, by the processor."""
    return re.sub(r"\([0-9a-f]{8}\)", "(id)", re.sub(r"confidence \d+%|evidence \d\.\d\d", "so sure", text))


def test_the_tour_shows_what_comes(home: Path) -> None:
    steps = tour()
    assert {command.split()[1] for command, _ in steps} == {"remember", "context", "ask"}
    came = [(command, alike(typed(command, home))) for command, _ in steps]
    assert came == [(command, alike(shown)) for command, shown in steps]


SERVE, STOP = "scripts/newton serve &\n", "kill $!"


def block(heading: str, language: str) -> str:
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(heading)[2]
    return section.partition(f"```{language}\n")[2].partition("```")[0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.slow
def test_the_blocks_for_http_and_python_work(home: Path) -> None:
    port, token = free_port(), str(home / "data" / "operator.token")
    script = block("**HTTP.**", "sh")
    assert script.startswith(SERVE) and STOP in script
    program = block("**Python.**", "py").replace("Client(", f"Client('http://127.0.0.1:{port}', ")
    (home / "program.py").write_text(program.replace("~/.local/share/newton/operator.token", token), encoding="utf-8")
    script = script.replace(SERVE, f"{sys.executable} -m newton serve --port {port} 2>log.txt &\n")
    script = script.replace("8700", str(port)).replace("~/.local/share/newton/operator.token", token)
    script = script.replace("sleep 1", "sleep 0.1")
    script = script.replace(STOP, f"{sys.executable} program.py\n{STOP}\nwait")
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NEWTON_DATA_DIR": str(home / "data"),
        "NEWTON_EMBEDDING_PROVIDER": "none",
    }
    done = subprocess.run(
        ["bash", "-euc", script], capture_output=True, text=True, timeout=120, check=False, cwd=home, env=env
    )
    assert done.returncode == 0, done.stderr + (home / "log.txt").read_text(encoding="utf-8")
    assert "event: decision.recorded" in done.stdout
    assert "## Known Information\n- Ana lives in Porto.\n" in done.stdout, "what the Python program prints"
