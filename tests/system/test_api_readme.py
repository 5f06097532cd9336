"""The blocks of the README for HTTP and Python, run as they are pasted: from starting the daemon to stopping it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
