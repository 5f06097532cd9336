"""What runs here is nobody else's business: no name is looked up, and nothing is written but in Newton's own folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from newton.environment import LIBRARY_VARIABLES
from tests.system.daemons import daemon

ROOT = Path(__file__).parents[2]
PLACES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")

# Has every Python end at once that looks up a name, or calls an address beyond this machine.
WATCH = """
import os, sys

def hears(event, given):
    asked = event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
    at = given[0] if asked else given[1][0] if event == "socket.connect" and isinstance(given[1], tuple) else None
    host = at.decode() if isinstance(at, bytes) else at
    if host not in (None, "", "localhost", "127.0.0.1", "::1"):
        os.write(2, f"{event} {host}".encode())
        os._exit(99)

sys.addaudithook(hears)
"""

# What reports by itself does so some ten seconds after it was loaded, out of a thread that Python knows nothing of.
LOADED = """
import time
from newton.providers.minilm import MiniLM
MiniLM().embed_now(["The ferry is called Artemis"])
time.sleep(25)
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Empty folders for all that a person has, a watch, and nothing said to any library."""
    places = {name: tmp_path / name for name in PLACES}
    for folder in places.values():
        folder.mkdir(mode=0o700)
    watch = tmp_path / "watch"
    watch.mkdir()
    (watch / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    own = {
        k: v for k, v in os.environ.items() if not k.startswith(("NEWTON_", "OPENAI_")) and k not in LIBRARY_VARIABLES
    }
    return {**own, **{name: str(folder) for name, folder in places.items()}, "PYTHONPATH": f"{watch}:{ROOT}"}


def left(env: dict[str, str]) -> list[str]:
    """Every file and folder in them."""
    return sorted(str(found) for name in PLACES for found in Path(env[name]).rglob("*"))


def newton(home: Path, env: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "newton", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**env, "NEWTON_DATA_DIR": str(home / "data")},
        cwd=home,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_look_up_would_be_seen(home: Path, env: dict[str, str]) -> None:
    file = home / "a.token"
    file.write_text("nwt_x", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"socket\.getaddrinfo newton\.invalid"):
        newton(home, env, "ask", "Hello?", "--daemon", "http://newton.invalid:8700", "--token-file", str(file))


@pytest.mark.slow
def test_commands_look_up_no_name_and_write_nothing_elsewhere(home: Path, env: dict[str, str]) -> None:
    assert newton(home, env, "remember", "The lighthouse is called Kullen").startswith("Remembered. (")
    assert "Kullen" in newton(home, env, "recall", "Which light?")
    assert left(env) == []


@pytest.mark.slow
def test_a_daemon_looks_up_no_name_and_writes_nothing_elsewhere(
    home: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What would report writes down who it is as soon as it is loaded, and it is when a memory has its vector.
    for name in LIBRARY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with daemon(home, **env) as served, served.client() as client:
        client.headers["X-Newton-Agent"] = "default"
        assert client.post("/v1/memories", json={"content": "The ferry is called Artemis"}).status_code == 201
        assert client.post("/v1/recall", json={"query": "Which ship?"}).json()["items"]
        assert served.stopped() == 0
    assert left(env) == []


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="strace sees what native threads do")
def test_no_native_thread_looks_up_a_name(tmp_path: Path, env: dict[str, str]) -> None:
    log = tmp_path / "calls"
    seen = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(log)]
    subprocess.run([*seen, sys.executable, "-c", LOADED], env=env, check=True, timeout=120)
    assert "htons(" not in log.read_text(encoding="utf-8")
