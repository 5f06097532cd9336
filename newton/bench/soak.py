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

from newton.agent.verbs import Remark
from newton.bench.ground import ground
from newton.bench.receipt import Began, receipt
from newton.clock import SystemClock, stopwatch
from newton.dialogue import sessions
from newton.dialogue.lines import Line
from newton.runtime.cli import show
from newton.runtime.cli.options import AsJson, settings
from newton.runtime.jobs import queue
from newton.runtime.jobs.catalogue import SCHEDULES, running
from newton.runtime.jobs.queue import Claimed, Outcome
from newton.runtime.jobs.schedule import Schedule
from newton.runtime.jobs.work import Pace, Run, Worker
from newton.runtime.minds import Minds
from newton.runtime.wiring import Newton

AGENTS, SEED = 3, 24
LOOKED_EVERY, WRITES_EVERY = 2.0, 0.5  # seconds


class Ran(NamedTuple):
    """A run as the worker did it."""

    agent: str
    name: str
    slot: datetime


@dataclass(slots=True)
class Watch:
    """What is seen of a soak: its runs, and how much memory the process had, in MiB, at which second."""

    began: float = field(default_factory=stopwatch)
    ran: list[Ran] = field(default_factory=list[Ran])
    memory: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def watching(self, run: Run) -> Run:
        async def seen(claimed: Claimed) -> Outcome:
            outcome = await run(claimed)
            self.ran.append(Ran(claimed.agent, claimed.name, claimed.slot))
            return outcome

        return seen

    async def look(self) -> None:
        while True:
            self.memory.append(((stopwatch() - self.began) / 1_000, resident()))
            await asyncio.sleep(LOOKED_EVERY)


def resident() -> float:
    """MiB that this process has in memory."""
    words = Path("/proc/self/status").read_text(encoding="ascii").split()
    return int(words[words.index("VmRSS:") + 1]) / 1_024


def squeezed(schedules: dict[str, Schedule], factor: float) -> dict[str, Schedule]:
    """The same schedules on a day that is so many times shorter. Pure."""
    return {
        name: replace(schedule, every=schedule.every / factor, after=schedule.after / factor)
        for name, schedule in schedules.items()
    }


def slope(points: Sequence[tuple[float, float]]) -> float:
    """What the last half of the points rises by in a minute, by least squares. Pure.

    >>> round(slope([(0.0, 9.0), (1.0, 9.0), (60.0, 1.0), (120.0, 2.0)]), 3)
    1.0
    """
    late = points[len(points) // 2 :]
    mean_x = sum(x for x, _ in late) / len(late)
    mean_y = sum(y for _, y in late) / len(late)
    spread = sum((x - mean_x) ** 2 for x, _ in late)
    return 60 * sum((x - mean_x) * (y - mean_y) for x, y in late) / spread if spread else 0.0


async def command(
    *,
    minutes: Annotated[float, Parameter(help="How long it takes.")] = 20,
    hours: Annotated[float, Parameter(help="How much of the calendar passes meanwhile.")] = 24,
    json: AsJson = False,
) -> None:
    """Measure the daemon's jobs over a day that is squeezed into minutes, while agents go on being told things.

    Example: newton bench soak --minutes 3 --hours 3.6
    """
    began, factor = Began(), hours * 60 / minutes
    schedules, watch = squeezed(SCHEDULES, factor), Watch()
    async with ground(settings().model_copy(update={"database_url": None})) as here:
        minds = Minds(here.newton)
        ends = await _soaked(minds, schedules, watch, seconds=minutes * 60)
        figures = await _figures(minds, schedules, watch, ends)
        written = await receipt(here, began, data_sha256=f"seed {SEED}", budgets=[])
    told = {"minutes": minutes, "hours": hours, **figures}
    if json:
        show.as_json({**told, "receipt": written})
    else:
        print("\n".join(f"{name}: {value}" for name, value in told.items()))


async def _soaked(minds: Minds, schedules: dict[str, Schedule], watch: Watch, *, seconds: float) -> datetime:
    """Works so long, and returns when it ended."""
    stop = asyncio.Event()
    worker = Worker(minds.first.scope.db, watch.watching(running(minds)), Pace(tick=0.5, poll=0.25))
    for number in range(AGENTS):
        await minds.begin(f"soak {number}")
    async with asyncio.TaskGroup() as tasks:
        looking, telling = tasks.create_task(watch.look()), tasks.create_task(_told(minds))
        tasks.create_task(worker.work(schedules, stop))
        await asyncio.sleep(seconds)
        looking.cancel()
        telling.cancel()
        ends = SystemClock().now()
        stop.set()
    return ends


async def _told(minds: Minds) -> None:
    """Facts, and conversations long enough to be summarised."""
    dice, number = random.Random(SEED), 0
    while True:
        newton = await minds.of(f"soak {number % AGENTS}")
        subject, thing = f"person {dice.randrange(40)}", f"thing {dice.randrange(500)}"
        content = f"Subject {subject} keeps {thing} in place {number}"
        await newton.verbs("bench").remember(Remark(content=content, subject=subject, attribute="keeps"))
        await _said(newton, f"talk {number // 60}", content)
        number += 1
        await asyncio.sleep(WRITES_EVERY)


async def _said(newton: Newton, ref: str, content: str) -> None:
    now = newton.scope.now()
    ctx = newton.scope.at("bench").write_context()
    async with newton.scope.transaction() as tx:
        session_id = await sessions.session(tx, agent_id=newton.scope.agent_id, ref=ref, now=now)
        line = Line(role="user", content=content, said_at=now)
        await sessions.append(tx, [line], session_id=session_id, ctx=ctx)


async def _figures(minds: Minds, schedules: dict[str, Schedule], watch: Watch, ends: datetime) -> dict[str, Any]:
    runs = Counter(watch.ran)
    last = {name: schedule.slot(ends - timedelta(seconds=2)) for name, schedule in schedules.items()}
    lost, unexplained = list[str](), list[str]()
    for number in range(AGENTS):
        newton = await minds.of(f"soak {number}")
        async with newton.scope.transaction() as tx:
            known = await queue.latest(tx, agent_id=newton.scope.agent_id)
            given_up = await queue.dead(tx, agent_id=newton.scope.agent_id)
        lost += [name for name, slot in last.items() if name not in known or known[name].slot < slot]
        unexplained += [name for name, one in known.items() if not (one.because or one.error or one.state == "queued")]
        unexplained += [one.name for one in given_up]
    points = watch.memory
    by_name = Counter(one.name for one in watch.ran)
    return {
        "runs": runs.total(),
        "done twice": sum(1 for times in runs.values() if times > 1),
        "jobs behind their last slot": lost,
        "jobs without a reason, or given up": unexplained,
        "most MiB": round(max(mib for _, mib in points)),
        "MiB a minute, last half": round(slope(points), 2),
        "runs of each": dict(by_name.most_common()),
    }
