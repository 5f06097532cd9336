"""A daemon in a process of its own, on the database of a benchmark."""

import asyncio
import math
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from newton.errors import ConfigError
from newton.runtime.access import tokens
from newton.runtime.access.tokens import TokenDraft
from newton.runtime.wiring import AgentServices

IDLE_SECONDS, MAX_IDLE_SHARE = 3.0, 0.05


class DaemonAccess(NamedTuple):
    """The URL of a daemon, a token of the agent of the benchmark, and the id of its process."""

    url: str
    token: str
    pid: int


@asynccontextmanager
async def run_daemon(newton: AgentServices, owner_dsn: str, **settings: str) -> AsyncGenerator[DaemonAccess]:
    """Run a daemon on the same database, with further `settings`. Raises ConfigError if it does not start."""
    home, scope = newton.settings.home, newton.scope
    values = {"database_url": owner_dsn, "data_dir": str(home), **settings}
    config = "".join(f'{name} = "{value}"\n' for name, value in values.items())
    (home / "newton.toml").write_text(config, encoding="utf-8")
    words = (sys.executable, "-m", "newton", "serve", "--port", "0", "--agent", newton.settings.agent)
    async with scope.transaction() as tx:
        token = await tokens.create_token(tx, TokenDraft("bench"), agent_id=scope.agent_id, now=scope.now())
    process = await asyncio.create_subprocess_exec(*words, cwd=home, stderr=PIPE)
    try:
        yield DaemonAccess(await _read_url(process), token, process.pid)
    finally:
        process.terminate()
        await process.wait()


async def wait_until_idle(daemon: DaemonAccess) -> None:
    """Wait until the daemon has used almost no CPU time for IDLE_SECONDS: its jobs have processed what was imported."""
    used = -math.inf
    while (now := _cpu_seconds(daemon.pid)) - used > MAX_IDLE_SHARE * IDLE_SECONDS:
        used = now
        await asyncio.sleep(IDLE_SECONDS)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _read_url(process: Process) -> str:
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        if " serves " in line:
            asyncio.get_running_loop().create_task(_drain_stderr(process))
            return line.split(" serves ")[1].split(". ")[0]
    raise ConfigError("The daemon to measure did not start.", hint="Run `newton serve` to see the reason.")


async def _drain_stderr(process: Process) -> None:
    assert process.stderr is not None
    while await process.stderr.read(65_536):
        pass
