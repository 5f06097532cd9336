"""A compose project of a test's own: its containers, networks and volumes are removed at the end."""

import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2

ROOT = Path(__file__).parents[2]
COMPOSE_FILE = ROOT / "docker-compose.yml"
BASE = "python:3.11-slim"
READY_SECONDS = 180.0
DB_PASSWORD = uuid4().hex


def docker(*words: str, check: bool = True, **env: str) -> str:
    """The output of a docker command, both streams of it."""
    return _run(["docker", *words], check=check, env=env)


def _run(words: list[str], *, check: bool, env: dict[str, str]) -> str:
    done = subprocess.run(
        words,
        env={**os.environ, **env},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1_500,
    )
    assert not check or done.returncode == 0, f"{' '.join(words)}\n{done.stdout}"
    return done.stdout


def _find_compose() -> list[str]:
    """The plugin, or the program that came before it."""
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return ["docker", "compose"] if plugin.returncode == 0 else ["docker-compose"]


@dataclass(slots=True, kw_only=True)
class ComposeProject:
    """Containers of docker-compose.yml and further files, on ports that the system chooses."""

    name: str
    files: tuple[Path, ...]
    env: dict[str, str]

    def run(self, *words: str, check: bool = True) -> str:
        files = [word for file in (COMPOSE_FILE, *self.files) for word in ("-f", str(file))]
        return _run([*_find_compose(), "-p", self.name, *files, *words], check=check, env=self.env)

    def within(self, *words: str, check: bool = True) -> str:
        """The output of a program in the daemon's container."""
        return docker("exec", self.container("newton"), *words, check=check)

    def container(self, service: str) -> str:
        return self.run("ps", "-q", service).split()[-1]

    def inspect(self, service: str, form: str) -> str:
        return docker("inspect", "-f", form, self.container(service)).strip()

    def starts(self) -> None:
        self.run("up", "-d", "--no-build")
        self.waits()

    def waits(self) -> None:
        """Until it is ready to be used."""
        end = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            assert time.monotonic() < end, self.run("logs", "--tail", "50")
            time.sleep(0.3)

    def _is_ready(self) -> bool:
        with suppress(httpx2.HTTPError, AssertionError, IndexError):
            return httpx2.get(f"{self.url}/health/ready", timeout=5).status_code == 200
        return False

    @property
    def url(self) -> str:
        port = docker("port", self.container("newton"), "8700/tcp").split()[0].rpartition(":")[2]
        return f"http://127.0.0.1:{port}"

    @property
    def token(self) -> str:
        return self.within("cat", "data/operator.token").strip()

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=60)

    def tells(self, *facts: str) -> None:
        with self.client() as client:
            for fact in facts:
                assert client.post("/v1/memories", json={"content": fact}).status_code in (200, 201)

    def context(self, question: str, **headers: str) -> str:
        with self.client() as client:
            answer: Any = client.post("/v1/context", json={"input": question}, headers=headers)
            assert answer.status_code in (200, 201), answer.text
            return answer.json()["text"]

    def kills(self, service: str) -> None:
        """End the first process of a container without a word, and wait for the project to be ready again."""
        process = int(self.inspect(service, "{{.State.Pid}}"))
        if os.geteuid() == 0 and Path(f"/proc/{process}").exists():
            os.kill(process, signal.SIGKILL)  # so that the restart policy starts it
        else:
            docker("kill", self.container(service))  # after which Docker expects to be told
            docker("start", self.container(service))
        end = time.monotonic() + READY_SECONDS
        while int(self.inspect(service, "{{.State.Pid}}")) in (0, process):
            assert time.monotonic() < end, f"{service} was not started again"
            time.sleep(0.2)
        self.waits()


@dataclass(frozen=True, slots=True)
class DaemonContainer:
    """A daemon in a container that is no part of a project."""

    name: str

    def is_ready(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/health/ready", timeout=5).status_code == 200
        except httpx2.HTTPError:
            return False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{docker('port', self.name, '8700/tcp').split()[0].rpartition(':')[2]}"

    def post(self, path: str, **body: str) -> str:
        token = docker("exec", self.name, "cat", "data/operator.token").strip()
        shown = {"Authorization": f"Bearer {token}"}
        answer = httpx2.post(f"{self.url}{path}", json=body, headers=shown, timeout=60)
        assert answer.status_code in (200, 201), answer.text
        return answer.text


@contextmanager
def project(image: str, *files: Path, **env: str) -> Generator[ComposeProject]:
    """A project that is not started yet."""
    usual = {"NEWTON_PORT": "0", "NEWTON_DB_PORT": "0", "NEWTON_DB_PASSWORD": DB_PASSWORD, "NEWTON_IMAGE": image}
    made = ComposeProject(name=f"newton-test-{uuid4().hex[:8]}", files=files, env={**usual, **env})
    try:
        yield made
    finally:
        made.run("down", "-v", "--remove-orphans", "-t", "5", check=False)
