"""Metadata of a benchmark run, to compare it with other runs: data, code, settings and machine."""

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.environment import BenchEnvironment
from newton.clock import SystemClock, monotonic_ms
from newton.cognition.sources.question_memories import compute_search_limits
from newton.db import requirements
from newton.memory.recall import K1, B
from newton.runtime.wiring import AgentServices

CPU_INFO_PATH = Path("/proc/cpuinfo")
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RunStart:
    """The time at which a run starts. Create it before anything else in the run."""

    started_at: datetime = field(default_factory=SystemClock().now)
    started_ms: float = field(default_factory=monotonic_ms)


async def collect_run_metadata(
    env: BenchEnvironment, start: RunStart, *, data_sha256: str, budgets: Sequence[int], **options: object
) -> dict[str, Any]:
    """Return the metadata of a run as JSON. `options` are further options of the command."""
    return {
        "data_sha256": data_sha256,
        "commit": git_commit(Path(__file__).parent),
        "settings": {**_describe_settings(env, budgets), **options},
        "machine": await describe_machine(env.newton),
        "started_at": start.started_at.isoformat(),
        "seconds": round((monotonic_ms() - start.started_ms) / 1_000, 1),
    }


def git_commit(folder: Path) -> str:
    """Return the commit of this package, with "-dirty" if files are changed; "unknown" outside a repository."""
    if not _run_git(folder, "ls-files", "--error-unmatch", "__init__.py"):
        return UNKNOWN
    return _run_git(folder, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty") or UNKNOWN


def _run_git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _describe_settings(env: BenchEnvironment, budgets: Sequence[int]) -> dict[str, Any]:
    newton, embedder = env.newton, env.newton.scope.embedder
    return {
        "embedding": embedder.identity if embedder else None,
        "dimensions": embedder.dimensions if embedder else None,
        "profile": newton.settings.profile or "the frame's own",
        "frames": sorted(newton.frames),
        "budgets": list(budgets),
        "widths": {str(size): {k: w._asdict() for k, w in compute_search_limits(size).items()} for size in budgets},
        "bm25": {"k1": K1, "b": B},
        "database": env.server_kind,
    }


async def describe_machine(newton: AgentServices) -> dict[str, Any]:
    """Return the processor, cores, memory, and versions of Python and PostgreSQL."""
    async with newton.scope.transaction() as tx:
        server = await requirements.read_server_info(tx)
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "python": platform.python_version(),
        "postgres": f"{server.version}, pgvector {server.pgvector}",
    }


def cpu_name() -> str:
    """Return the model name of the processor; "unknown" if the system does not report it."""
    try:
        text = CPU_INFO_PATH.read_text(encoding="utf-8")
    except OSError:
        text = ""
    names = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine() or UNKNOWN


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (OSError, ValueError):
        return None
