"""A daemon in a process of its own, on the database of a benchmark."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

from newton.errors import ConfigError
from newton.runtime.access import tokens
from newton.runtime.access.tokens import TokenDraft
from newton.runtime.wiring import AgentServices


class DaemonAccess(NamedTuple):
    """The URL of a daemon, and a token of the agent of the benchmark."""

    url: str
    token: str


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
        yield DaemonAccess(await _read_url(process), token)
    finally:
        process.terminate()
        await process.wait()


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
