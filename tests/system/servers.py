"""What tests of the embedded server share: its files, its process, and homes that leave nothing behind."""

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from newton.db.embedded_server import delete_data

SLOW = 60.0


@contextmanager
def fresh(home: Path) -> Generator[Path]:
    """A home that leaves nothing behind, whatever happened to its server."""
    try:
        yield home
    finally:
        if (home / "server.place").exists() or (home / "postgres").exists():
            if pid := postmaster(home):
                os.kill(pid, signal.SIGKILL)
                wait(lambda: not alive(pid))
            delete_data(home)


def wait(holds: Callable[[], object], *, seconds: float = SLOW) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"


def alive(pid: int) -> bool:
    """Whether there is such a process; one that has died and was not yet buried counts, as it does for PostgreSQL."""
    return Path(f"/proc/{pid}").exists()


def base(home: Path) -> Path:
    """Where the server's files are, or will be. It looks only: to ask Newton for the place would make one."""
    pointer = home / "server.place"
    return Path(pointer.read_text(encoding="utf-8").strip()) if pointer.is_file() else home


def data(home: Path) -> Path:
    return base(home) / "postgres"


def postmaster(home: Path) -> int | None:
    """The process id of this home's running server."""
    try:
        pid = int((data(home) / "postmaster.pid").read_text(encoding="ascii").split("\n")[0])
    except (OSError, ValueError):
        return None
    return pid if alive(pid) else None


def children(pid: int) -> list[int]:
    """The processes that this one has begun."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


async def run(dsn: str, sql: str) -> object:
    conn = await asyncpg.connect(dsn)
    try:
        return await conn.fetchval(sql)
    finally:
        await conn.close()
