"""What is stored, row by row, to see whether an operation changed something."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import asyncpg

from newton.db.pool import Tx
from tests.db.catalog import SCHEMAS

# What a read may write: when and how often something was read. No column means each column of the table, and its rows.
ACCESS_COUNTERS: Mapping[str, tuple[str, ...]] = {
    "memory.memories": ("accessed_at", "uses"),
    "cognition.working_set": (),  # what a session read, when and how often
    "cognition.profile_stats": (),  # how often each profile ranked a working memory
    "runtime.tokens": ("used_at",),
    "memory.foreign_readings": (),  # that a model was given text of a tool
}
TABLES = """
select c.oid::regclass::text
from pg_class as c
where c.relkind in ('r', 'p') and not c.relispartition
    and (c.relnamespace::regnamespace::text = any($1) or c.relnamespace::regnamespace::text = 'public')
order by 1
"""
SEQUENCES = "select schemaname || '.' || sequencename as name, last_value::text as value from pg_sequences"
# Only a transaction that writes takes a number, so that equal numbers mean equal rows.
NEXT_TRANSACTION = "select pg_snapshot_xmax(pg_current_snapshot())::text"

Rows = Mapping[str, Counter[str]]


@dataclass(slots=True)
class StoredRows:
    """All rows of a database as they were at the last look, but for the access counters."""

    conn: Tx
    rows: Rows = field(default_factory=dict[str, Counter[str]])
    transaction: str = ""

    async def look(self) -> list[str]:
        """Read the rows again if anything wrote; return what changed since the last look, one line for each row."""
        transaction = await self.conn.fetchval(NEXT_TRANSACTION)
        if transaction == self.transaction:
            return []
        self.transaction = transaction
        before, self.rows = self.rows, await read_rows(self.conn)
        return [
            f"{sign} {table}: {row[:400]}"
            for table in sorted({*before, *self.rows})
            for sign, changed in (
                ("-", before.get(table, Counter()) - self.rows.get(table, Counter())),
                ("+", self.rows.get(table, Counter()) - before.get(table, Counter())),
            )
            for row in changed
        ]


async def read_rows(conn: Tx) -> Rows:
    """The rows of each table as JSON without access counters, and the sequences."""
    found: dict[str, Counter[str]] = {}
    for (table,) in await conn.fetch(TABLES, SCHEMAS):
        if (counters := ACCESS_COUNTERS.get(table, None)) != ():
            query = f"select (to_jsonb(t) - $1::text[])::text from {table} as t"
            found[table] = Counter(row for (row,) in await conn.fetch(query, list(counters or ())))
    found["sequences"] = Counter(f"{row['name']} {row['value']}" for row in await conn.fetch(SEQUENCES))
    return found


async def list_empty_tables(conn: Tx) -> list[str]:
    """The tables without a row."""
    names = [table for (table,) in await conn.fetch(TABLES, SCHEMAS)]
    return [name for name in names if not await conn.fetchval(f"select exists (select from {name})")]


async def watch(dsn: str) -> StoredRows:
    """The rows of a database as its owner sees them, those of all agents."""
    stored = StoredRows(await asyncpg.connect(dsn))
    await stored.look()
    return stored
