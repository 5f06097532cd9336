"""Retention jobs: deletion of old data, and a check for overdue vacuums."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from newton.db.pool import Tx
from newton.db.queries import load
from newton.runtime.jobs import queue
from newton.runtime.jobs.job import Job
from newton.runtime.jobs.queue import JobOutcome, RunResult
from newton.runtime.jobs.schedule import daily, weekly
from newton.runtime.wiring import AgentServices

SQL = load("newton.runtime.jobs", "retention.sql")

RUN_RETENTION = timedelta(days=30)  # retention of ended runs
MIN_DEAD_SHARE, MIN_DEAD_ROWS = (
    0.25,
    10_000,
)  # both must hold; autovacuum starts at a fifth, so such a table is overdue


async def apply_retention(newton: AgentServices) -> JobOutcome:
    async def write(tx: Tx) -> RunResult:
        released = await newton.maintenance("job retain").apply_retention(tx)
        runs = await queue.delete_old_runs(
            tx, agent_id=newton.scope.agent_id, before=newton.scope.now() - RUN_RETENTION
        )
        return {"contexts": released.contexts, "sessions": released.sessions, "runs": runs}

    return JobOutcome(
        reason=describe_retention(newton.settings.bundle_retention_days, newton.settings.working_set_idle_days),
        write=write,
    )


def describe_retention(bundle_retention_days: int, working_set_idle_days: int) -> str:
    contexts = (
        f"contexts are kept {bundle_retention_days} days" if bundle_retention_days else "contexts are kept for ever"
    )
    return f"{contexts}, what sessions have at hand {working_set_idle_days}, ended runs {RUN_RETENTION.days}"


class TableStats(NamedTuple):
    """Live and dead rows of a table by the database's statistics."""

    name: str
    live: int
    dead: int
    vacuumed_at: datetime | None


async def check_vacuum(newton: AgentServices) -> JobOutcome:
    async with newton.scope.transaction() as tx:
        tables = [
            TableStats(**row) for row in await SQL["list_table_stats"].fetch_all(tx, agent_id=newton.scope.agent_id)
        ]
    return to_vacuum_outcome(tables)


def to_vacuum_outcome(tables: Sequence[TableStats]) -> JobOutcome:
    """Return the tables with so many dead rows that they need a manual vacuum. Pure."""
    bad = [one for one in tables if one.dead >= MIN_DEAD_ROWS and one.dead >= MIN_DEAD_SHARE * (one.live + one.dead)]
    if not bad:
        return JobOutcome(reason="the database keeps its tables tidy")
    names = ", ".join(one.name for one in bad)
    because = f"autovacuum does not keep up: let the owner run `vacuum (analyze) {names}`"
    return JobOutcome(reason=because, result={"dead_percent": {t.name: 100 * t.dead // (t.live + t.dead) for t in bad}})


JOBS = (
    Job(
        name="retain",
        description="Deletes old contexts, working sets and runs.",
        schedule=daily(3, 40),
        run=apply_retention,
    ),
    Job(
        name="check-vacuum",
        description="Lists tables that need a vacuum.",
        schedule=weekly("Sunday", 5),
        run=check_vacuum,
    ),
)
