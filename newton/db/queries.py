"""Named SQL: `-- name: find(agent_id, ref)` heads a statement whose `$1, $2` are those arguments."""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from importlib import resources

from asyncpg import Record

from newton.db.pool import Tx

PREFETCH_ROWS = 200  # rows that are fetched at a time

NAME_PATTERN = re.compile(r"^-- name: (\w+)\(([^)]*)\)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    name: str
    args: tuple[str, ...]
    sql: str

    def bind(self, **arguments: object) -> list[object]:
        if arguments.keys() != set(self.args):
            raise TypeError(f"{self.name} takes {self.args}, not {tuple(arguments)}")
        return [arguments[name] for name in self.args]

    async def fetch_all(self, tx: Tx, **arguments: object) -> list[Record]:
        return await tx.fetch(self.sql, *self.bind(**arguments))

    async def fetch_one(self, tx: Tx, **arguments: object) -> Record | None:
        return await tx.fetchrow(self.sql, *self.bind(**arguments))

    async def stream(self, tx: Tx, **arguments: object) -> AsyncGenerator[Record]:
        """Row by row, so that no more than a few are ever held."""
        async for row in tx.cursor(self.sql, *self.bind(**arguments), prefetch=PREFETCH_ROWS):
            yield row

    async def execute(self, tx: Tx, **arguments: object) -> None:
        await tx.execute(self.sql, *self.bind(**arguments))


def parse_queries(text: str) -> dict[str, SqlQuery]:
    """The statements of one .sql file by name. Raises ValueError when a name stands twice."""
    parts = NAME_PATTERN.split(text)[1:]
    found = [
        SqlQuery(name, tuple(arg.strip() for arg in args.split(",") if arg.strip()), sql.strip())
        for name, args, sql in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]
    names = [query.name for query in found]
    if len(set(names)) != len(names):
        raise ValueError(f"a query is named twice: {sorted(names)}")
    return {query.name: query for query in found}


def load(package: str, file: str) -> dict[str, SqlQuery]:
    return parse_queries((resources.files(package) / file).read_text(encoding="utf-8"))
