"""Jobs of data retention: delete old data, and report tables that PostgreSQL should have vacuumed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from newton.db.pool import Tx
from newton.db.queries import load
from newton.runtime.jobs import queue
from newton.runtime.jobs.queue import JobOutcome, RunResult
from newton.runtime.wiring import AgentServices

SQL = load("newton.runtime.jobs", "retention.sql")

RUN_RETENTION = timedelta(days=30)  # retention of ended runs
# A table above both limits is overdue for a vacuum: autovacuum starts at a share of 0.2.
MIN_DEAD_SHARE, MIN_DEAD_ROWS = 0.25, 10_000


async def apply_retention(newton: AgentServices) -> JobOutcome:
    async def write(tx: Tx) -> RunResult:
        deleted = await newton.maintenance("job retain").apply_retention(tx)
        before = newton.scope.now() - RUN_RETENTION
        runs = await queue.delete_old_runs(tx, agent_id=newton.scope.agent_id, before=before)
        return {**deleted._asdict(), "runs": runs}

    return JobOutcome(
        reason=describe_retention(newton.settings.bundle_retention_days, newton.settings.working_set_idle_days),
        write=write,
    )


def describe_retention(bundle_retention_days: int, working_set_idle_days: int) -> str:
    """Return the retention periods as text. If `bundle_retention_days` is 0, stored contexts are kept forever."""
    contexts = f"{bundle_retention_days} days" if bundle_retention_days else "no limit"
    return (
        f"retention: contexts {contexts}, working memory {working_set_idle_days} days, runs {RUN_RETENTION.days} days"
    )


class TableStats(NamedTuple):
    """The estimated counts of live and dead rows of a table, and the time of its last vacuum."""

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
    """Return the job outcome with the tables whose share of dead rows requires a manual vacuum."""
    bad = [one for one in tables if one.dead >= MIN_DEAD_ROWS and one.dead >= MIN_DEAD_SHARE * (one.live + one.dead)]
    if not bad:
        return JobOutcome(reason="no table needs a manual vacuum")
    names = ", ".join(one.name for one in bad)
    reason = f"autovacuum is too slow: run `vacuum (analyze) {names}` as the owner of the tables"
    return JobOutcome(reason=reason, result={"dead_percent": {t.name: 100 * t.dead // (t.live + t.dead) for t in bad}})
