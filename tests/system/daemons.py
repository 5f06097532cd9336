"""A daemon of a test's own: a process that is spoken to over a real socket."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2

from tests.system.servers import wait

SERVES = re.compile(r"serves (https?://\S+)\.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """Where it is spoken to, its process, and the operator's token."""

    url: str
    process: "subprocess.Popen[str]"
    token: str
    said: list[str]

    def client(self, token: str | None = None, **headers: str) -> httpx2.Client:
        shown = {"Authorization": f"Bearer {token or self.token}", **headers}
        return httpx2.Client(base_url=self.url, headers=shown, timeout=60, verify=False)

    def begins(self, *agents: str) -> None:
        with self.client() as operator:
            for name in agents:
                assert operator.post("/v1/agents", json={"name": name}).status_code == 201

    def stopped(self) -> int:
        """Tells it to stop; the status it leaves with."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def log(self) -> list[dict[str, Any]]:
        """Every line of it, once it has ended; of one that speaks JSON."""
        wait(lambda: "shutting down" in "".join(self.said))
        return [json.loads(line) for line in self.said]


@contextmanager
def daemon(home: Path, *flags: str, planted: str | None = None, **env: str) -> Generator[Daemon]:
    """A daemon whose settings are those of the folder, on a port that the system chooses. No part of it may fail, but
    with the error that the test has planted."""
    words = [sys.executable, "-m", "newton", "serve", "--port", "0", *flags]
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    process = subprocess.Popen(
        words, cwd=home, env={**bare, "NEWTON_DATA_DIR": str(home / "data"), **env}, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said: list[str] = []
    draining = Thread(target=said.extend, args=(process.stderr,))  # a log that nobody reads would stop the daemon
    try:
        for line in process.stderr:
            said.append(line)
            if found := SERVES.search(line):
                token = (home / "data" / "operator.token").read_text(encoding="utf-8").strip()
                draining.start()
                yield Daemon(url=found[1], process=process, token=token, said=said)
                break
        else:
            raise AssertionError(f"it did not serve: {''.join(said)}")
    finally:
        process.kill()
        process.wait(timeout=60)
        if draining.is_alive():
            draining.join(timeout=60)
        process.stderr.close()
    failed = [line for line in said if "part_failed" in line and f"error={planted} " not in line]
    assert failed == [], failed
