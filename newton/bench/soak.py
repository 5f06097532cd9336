"""`newton bench soak`: days of the daemon's jobs in minutes, with their memory, their slots and their reasons."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from newton.agent.services.memories import FactDraft
from newton.bench.environment import open_environment
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.clock import SystemClock, monotonic_ms
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.jobs import queue
from newton.runtime.jobs.queue import ClaimedRun, JobOutcome
from newton.runtime.jobs.registry import SCHEDULES, build_runner
from newton.runtime.jobs.schedule import JobSchedule
from newton.runtime.jobs.worker import JobWorker, RunFunction, WorkerTimings
from newton.runtime.wiring import AgentServices

AGENT_COUNT, SEED = 3, 24
SAMPLE_INTERVAL_SECONDS, WRITE_INTERVAL_SECONDS = 2.0, 0.5  # seconds


class SoakJobRun(NamedTuple):
    """A run as the worker did it."""

    agent: str
    name: str
    slot: datetime


@dataclass(slots=True)
class SoakMonitor:
    """Observations of a soak: job runs, and memory samples as (seconds, MiB)."""

    started_ms: float = field(default_factory=monotonic_ms)
    job_runs: list[SoakJobRun] = field(default_factory=list[SoakJobRun])
    memory_samples: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def record_runs(self, run: RunFunction) -> RunFunction:
        async def seen(claimed: ClaimedRun) -> JobOutcome:
            outcome = await run(claimed)
            self.job_runs.append(SoakJobRun(claimed.agent, claimed.name, claimed.slot))
            return outcome

        return seen

    async def sample_memory(self) -> None:
        while True:
            self.memory_samples.append(((monotonic_ms() - self.started_ms) / 1_000, resident_memory_mib()))
            await asyncio.sleep(SAMPLE_INTERVAL_SECONDS)


def resident_memory_mib() -> float:
    """Return the resident memory of this process in MiB."""
    words = Path("/proc/self/status").read_text(encoding="ascii").split()
    return int(words[words.index("VmRSS:") + 1]) / 1_024


def accelerate_schedules(schedules: dict[str, JobSchedule], factor: float) -> dict[str, JobSchedule]:
    """Return the schedules, `factor` times faster. Pure."""
    return {
        name: replace(schedule, every=schedule.every / factor, offset=schedule.offset / factor)
        for name, schedule in schedules.items()
    }


def slope_per_minute(points: Sequence[tuple[float, float]]) -> float:
    """Return the least-squares slope per minute of the last half of the points. Pure.

    >>> round(slope_per_minute([(0.0, 9.0), (1.0, 9.0), (60.0, 1.0), (120.0, 2.0)]), 3)
    1.0
    """
    late = points[len(points) // 2 :]
    mean_x = sum(x for x, _ in late) / len(late)
    mean_y = sum(y for _, y in late) / len(late)
    spread = sum((x - mean_x) ** 2 for x, _ in late)
    return 60 * sum((x - mean_x) * (y - mean_y) for x, y in late) / spread if spread else 0.0


async def run_benchmark(
    *,
    minutes: Annotated[float, Parameter(help="How long it takes.")] = 20,
    hours: Annotated[float, Parameter(help="How much of the calendar passes meanwhile.")] = 24,
    json: JsonOption = False,
) -> None:
    """Measure the daemon's jobs over a day that is squeezed into minutes, while agents go on being told things.

    Example: newton bench soak --minutes 3 --hours 3.6
    """
    began, factor = RunStart(), hours * 60 / minutes
    schedules, watch = accelerate_schedules(SCHEDULES, factor), SoakMonitor()
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as here:
        minds = AgentRegistry(here.newton)
        ends = await _run_soak(minds, schedules, watch, seconds=minutes * 60)
        figures = await _collect_results(minds, schedules, watch, ends)
        written = await collect_run_metadata(here, began, data_sha256=f"seed {SEED}", budgets=[])
    told = {"minutes": minutes, "hours": hours, **figures}
    if json:
        formatting.print_json({**told, "receipt": written})
    else:
        print("\n".join(f"{name}: {value}" for name, value in told.items()))


async def _run_soak(
    minds: AgentRegistry, schedules: dict[str, JobSchedule], monitor: SoakMonitor, *, seconds: float
) -> datetime:
    """Works so long, and returns when it ended."""
    stop = asyncio.Event()
    worker = JobWorker(
        minds.default.scope.db, monitor.record_runs(build_runner(minds)), WorkerTimings(tick=0.5, poll=0.25)
    )
    for number in range(AGENT_COUNT):
        await minds.create(f"soak {number}")
    async with asyncio.TaskGroup() as tasks:
        looking, telling = tasks.create_task(monitor.sample_memory()), tasks.create_task(_write_memories(minds))
        tasks.create_task(worker.work(schedules, stop))
        await asyncio.sleep(seconds)
        looking.cancel()
        telling.cancel()
        ends = SystemClock().now()
        stop.set()
    return ends


async def _write_memories(minds: AgentRegistry) -> None:
    """Facts, and conversations long enough to be summarised."""
    dice, number = random.Random(SEED), 0
    while True:
        newton = await minds.get(f"soak {number % AGENT_COUNT}")
        subject, thing = f"person {dice.randrange(40)}", f"thing {dice.randrange(500)}"
        content = f"Subject {subject} keeps {thing} in place {number}"
        await newton.memories("bench").remember(FactDraft(content=content, subject=subject, attribute="keeps"))
        await _append_message(newton, f"talk {number // 60}", content)
        number += 1
        await asyncio.sleep(WRITE_INTERVAL_SECONDS)


async def _append_message(newton: AgentServices, ref: str, content: str) -> None:
    now = newton.scope.now()
    ctx = newton.scope.at("bench").write_context()
    async with newton.scope.transaction() as tx:
        session_id = await sessions.ensure_session(tx, agent_id=newton.scope.agent_id, ref=ref, now=now)
        line = Message(role="user", content=content, said_at=now)
        await sessions.append(tx, [line], session_id=session_id, ctx=ctx)


async def _collect_results(
    minds: AgentRegistry, schedules: dict[str, JobSchedule], monitor: SoakMonitor, ends: datetime
) -> dict[str, Any]:
    runs = Counter(monitor.job_runs)
    last = {name: schedule.last_slot(ends - timedelta(seconds=2)) for name, schedule in schedules.items()}
    lost, unexplained = list[str](), list[str]()
    for number in range(AGENT_COUNT):
        newton = await minds.get(f"soak {number}")
        async with newton.scope.transaction() as tx:
            known = await queue.latest_runs(tx, agent_id=newton.scope.agent_id)
            given_up = await queue.list_dead(tx, agent_id=newton.scope.agent_id)
        lost += [name for name, slot in last.items() if name not in known or known[name].slot < slot]
        unexplained += [name for name, one in known.items() if not (one.reason or one.error or one.state == "queued")]
        unexplained += [one.name for one in given_up]
    points = monitor.memory_samples
    by_name = Counter(one.name for one in monitor.job_runs)
    return {
        "runs": runs.total(),
        "done twice": sum(1 for times in runs.values() if times > 1),
        "jobs behind their last slot": lost,
        "jobs without a reason, or given up": unexplained,
        "most MiB": round(max(mib for _, mib in points)),
        "MiB a minute, last half": round(slope_per_minute(points), 2),
        "runs of each": dict(by_name.most_common()),
    }
