"""`python -m bench soak`: run the jobs of a day within minutes; report memory use, missed runs and failures."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from statistics import linear_regression
from typing import Annotated, Any

from apscheduler.triggers.interval import IntervalTrigger
from cyclopts import Parameter

from bench.environment import open_environment
from bench.run_metadata import RunStart, collect_run_metadata
from newton.agent.services.memories import FactDraft
from newton.clock import SystemClock, monotonic_ms
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.jobs import queue
from newton.runtime.jobs.queue import ClaimedRun, JobOutcome
from newton.runtime.jobs.schedule import SCHEDULES, build_runner
from newton.runtime.jobs.triggers import FIRST_SLOT, IntervalSchedule, JobSchedule
from newton.runtime.jobs.worker import JobWorker, RunFunction, WorkerTimings
from newton.runtime.wiring import AgentServices

AGENT_COUNT, SEED = 3, 24
SAMPLE_INTERVAL_SECONDS, WRITE_INTERVAL_SECONDS = 2.0, 0.5


@dataclass(slots=True)
class SoakMonitor:
    """Observations of a run: how often each job of an agent ran for each scheduled time (slot), and the memory use.

    A sample of the memory use is a pair of seconds since the start and MiB.
    """

    started_ms: float = field(default_factory=monotonic_ms)
    job_runs: Counter[tuple[str, str, datetime]] = field(default_factory=Counter[tuple[str, str, datetime]])
    memory_samples: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def record_runs(self, run: RunFunction) -> RunFunction:
        """Return a function that calls `run` and counts each completed call."""

        async def counted(claimed: ClaimedRun) -> JobOutcome:
            outcome = await run(claimed)
            self.job_runs[claimed.agent, claimed.name, claimed.slot] += 1
            return outcome

        return counted

    async def sample_memory(self) -> None:
        while True:
            self.memory_samples.append(((monotonic_ms() - self.started_ms) / 1_000, resident_memory_mib()))
            await asyncio.sleep(SAMPLE_INTERVAL_SECONDS)


def resident_memory_mib() -> float:
    """Return the resident memory of this process in MiB."""
    fields = Path("/proc/self/status").read_text(encoding="ascii").split()
    return int(fields[fields.index("VmRSS:") + 1]) / 1_024


def accelerate_schedules(schedules: dict[str, JobSchedule], factor: float) -> dict[str, JobSchedule]:
    """Return schedules with the intervals of the given ones divided by `factor`. Pure."""
    return {name: _accelerate(schedule, factor) for name, schedule in schedules.items()}


def _accelerate(schedule: JobSchedule, factor: float) -> JobSchedule:
    first = schedule.next_slot(FIRST_SLOT)
    if first is None:  # it runs on request
        return schedule
    second = schedule.next_slot(first)
    assert second is not None
    every, offset = (second - first) / factor, (first - FIRST_SLOT) / factor
    trigger = IntervalTrigger(seconds=every.total_seconds(), start_date=FIRST_SLOT + offset, timezone=UTC)
    return IntervalSchedule(trigger=trigger, description=f"every {every.total_seconds():g} seconds")


def slope_per_minute(points: Sequence[tuple[float, float]]) -> float:
    """Return the least-squares slope of the second half of the points (seconds, value), per minute. Pure.

    >>> round(slope_per_minute([(0.0, 9.0), (1.0, 9.0), (60.0, 1.0), (120.0, 2.0)]), 3)
    1.0
    """
    seconds, values = zip(*points[len(points) // 2 :], strict=True)
    return 60 * linear_regression(seconds, values).slope if len(set(seconds)) > 1 else 0.0


async def run_benchmark(
    *,
    minutes: Annotated[float, Parameter(help="Duration of the run, in minutes.")] = 20,
    hours: Annotated[float, Parameter(help="Length of the simulated time, in hours.")] = 24,
    json: JsonOption = False,
) -> None:
    """Run the scheduled jobs of a day within minutes, while three agents store memories.

    Example: python -m bench soak --minutes 3 --hours 3.6
    """
    start = RunStart()
    schedules, monitor = accelerate_schedules(SCHEDULES, hours * 60 / minutes), SoakMonitor()
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as env:
        registry = AgentRegistry(env.newton)
        ended_at = await _run_soak(registry, schedules, monitor, seconds=minutes * 60)
        results = await _collect_results(registry, schedules, monitor, ended_at)
        receipt = await collect_run_metadata(env, start, data_sha256=f"seed {SEED}", budgets=[])
    figures = {"minutes": minutes, "hours": hours, **results}
    if json:
        formatting.print_json({**figures, "receipt": receipt})
    else:
        print("\n".join(f"{name}: {value}" for name, value in figures.items()))


async def _run_soak(
    registry: AgentRegistry, schedules: dict[str, JobSchedule], monitor: SoakMonitor, *, seconds: float
) -> datetime:
    """Run the jobs for `seconds` seconds; return the time of the end."""
    stop, run = asyncio.Event(), monitor.record_runs(build_runner(registry))
    worker = JobWorker(registry.default.scope.db, run, WorkerTimings(tick=0.5, poll=0.25))
    for number in range(AGENT_COUNT):
        await registry.create(f"soak-{number}")
    async with asyncio.TaskGroup() as tasks:
        background = [tasks.create_task(monitor.sample_memory()), tasks.create_task(_write_memories(registry))]
        tasks.create_task(worker.work(schedules, stop))
        await asyncio.sleep(seconds)
        for task in background:
            task.cancel()
        ended_at = SystemClock().now()
        stop.set()
    return ended_at


async def _write_memories(registry: AgentRegistry) -> None:
    """Store facts, and conversations that are long enough for a summary, until cancelled."""
    rng = random.Random(SEED)
    for number in count():
        newton = await registry.get(f"soak-{number % AGENT_COUNT}")
        subject, thing = f"person {rng.randrange(40)}", f"thing {rng.randrange(500)}"
        content = f"Subject {subject} keeps {thing} in place {number}"
        await newton.memories("bench").remember(FactDraft(content=content, subject=subject, attribute="keeps"))
        await _append_message(newton, f"talk {number // 60}", content)
        await asyncio.sleep(WRITE_INTERVAL_SECONDS)


async def _append_message(newton: AgentServices, ref: str, content: str) -> None:
    now, ctx = newton.scope.now(), newton.scope.at("bench").write_context()
    async with newton.scope.transaction() as tx:
        session_id = await sessions.ensure_session(tx, agent_id=newton.scope.agent_id, ref=ref, now=now)
        message = Message(role="user", content=content, said_at=now)
        await sessions.append(tx, [message], session_id=session_id, ctx=ctx)


async def _collect_results(
    registry: AgentRegistry, schedules: dict[str, JobSchedule], monitor: SoakMonitor, ended_at: datetime
) -> dict[str, Any]:
    before = ended_at - timedelta(seconds=2)
    due = {name: slot for name, schedule in schedules.items() if (slot := schedule.last_slot(before)) is not None}
    late, unexplained = list[str](), list[str]()
    for number in range(AGENT_COUNT):
        scope = (await registry.get(f"soak-{number}")).scope
        async with scope.transaction() as tx:
            runs = await queue.latest_runs(tx, agent_id=scope.agent_id)
            dead = await queue.list_dead(tx, agent_id=scope.agent_id)
        late += [name for name, slot in due.items() if name not in runs or runs[name].slot < slot]
        unexplained += [name for name, run in runs.items() if not (run.reason or run.error or run.state == "queued")]
        unexplained += [run.name for run in dead]
    runs_by_name = Counter[str]()
    for (_, name, _), times in monitor.job_runs.items():
        runs_by_name[name] += times
    return {
        "completed runs": monitor.job_runs.total(),
        "scheduled times run twice": sum(times > 1 for times in monitor.job_runs.values()),
        "jobs that missed their last scheduled time": late,
        "jobs that gave up, or ended without a reason": unexplained,
        "maximum memory in MiB": round(max(mib for _, mib in monitor.memory_samples)),
        "memory growth in the second half in MiB per minute": round(slope_per_minute(monitor.memory_samples), 2),
        "completed runs by job": dict(runs_by_name.most_common()),
    }
