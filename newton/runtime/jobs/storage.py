"""Jobs about what is stored: what is let go of, and what the database should tidy up."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from newton.db.pool import Tx
from newton.db.queries import load
from newton.runtime.jobs import queue
from newton.runtime.jobs.job import Job
from newton.runtime.jobs.queue import Did, Outcome
from newton.runtime.jobs.schedule import daily, weekly
from newton.runtime.wiring import Newton

SQL = load("newton.runtime.jobs", "storage.sql")

KEPT = timedelta(days=30)  # runs that have ended
DEAD_SHARE, DEAD_ROWS = 0.25, 10_000  # both: autovacuum comes at a fifth, so this is one that it does not keep up with


async def retain(newton: Newton) -> Outcome:
    async def write(tx: Tx) -> Did:
        released = await newton.upkeep("job retain").release(tx)
        runs = await queue.trim(tx, agent_id=newton.scope.agent_id, before=newton.scope.now() - KEPT)
        return {"contexts": released.contexts, "sessions": released.sessions, "runs": runs}

    return Outcome(because=kept_for(newton.settings.bundle_days, newton.settings.working_days), write=write)


def kept_for(bundle_days: int, working_days: int) -> str:
    contexts = f"contexts are kept {bundle_days} days" if bundle_days else "contexts are kept for ever"
    return f"{contexts}, what sessions have at hand {working_days}, ended runs {KEPT.days}"


class Table(NamedTuple):
    """How many rows of a table are alive and dead, by the statistics of the database."""

    name: str
    live: int
    dead: int
    vacuumed_at: datetime | None


async def tidy(newton: Newton) -> Outcome:
    async with newton.scope.transaction() as tx:
        tables = [Table(**row) for row in await SQL["list_table_stats"].all(tx, agent_id=newton.scope.agent_id)]
    return untidy(tables)


def untidy(tables: Sequence[Table]) -> Outcome:
    """Tables of which so much is dead that somebody should vacuum them. Pure."""
    bad = [one for one in tables if one.dead >= DEAD_ROWS and one.dead >= DEAD_SHARE * (one.live + one.dead)]
    if not bad:
        return Outcome(because="the database keeps its tables tidy")
    names = ", ".join(one.name for one in bad)
    because = f"autovacuum does not keep up: let the owner run `vacuum (analyze) {names}`"
    return Outcome(because=because, did={"dead_percent": {t.name: 100 * t.dead // (t.live + t.dead) for t in bad}})


JOBS = (
    Job(name="retain", does="Lets go of old contexts, working sets and runs.", schedule=daily(3, 40), act=retain),
    Job(name="vacuum", does="Says which tables are not kept tidy.", schedule=weekly("Sunday", 5), act=tidy),
)
