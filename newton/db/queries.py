"""Named SQL: `-- name: find(agent_id, ref)` heads a statement whose `$1, $2` are those arguments."""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from importlib import resources

from asyncpg import Record

from newton.db.pool import Tx

STREAMED = 200  # rows that are fetched at a time

HEAD = re.compile(r"^-- name: (\w+)\(([^)]*)\)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    args: tuple[str, ...]
    sql: str

    def bind(self, **given: object) -> list[object]:
        if given.keys() != set(self.args):
            raise TypeError(f"{self.name} takes {self.args}, not {tuple(given)}")
        return [given[name] for name in self.args]

    async def all(self, tx: Tx, **given: object) -> list[Record]:
        return await tx.fetch(self.sql, *self.bind(**given))

    async def one(self, tx: Tx, **given: object) -> Record | None:
        return await tx.fetchrow(self.sql, *self.bind(**given))

    async def stream(self, tx: Tx, **given: object) -> AsyncGenerator[Record]:
        """Row by row, so that no more than a few are ever held."""
        async for row in tx.cursor(self.sql, *self.bind(**given), prefetch=STREAMED):
            yield row

    async def run(self, tx: Tx, **given: object) -> None:
        await tx.execute(self.sql, *self.bind(**given))


def parse(text: str) -> dict[str, Query]:
    """The statements of one .sql file by name. Raises ValueError when a name stands twice."""
    parts = HEAD.split(text)[1:]
    found = [
        Query(name, tuple(arg.strip() for arg in args.split(",") if arg.strip()), sql.strip())
        for name, args, sql in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]
    names = [query.name for query in found]
    if len(set(names)) != len(names):
        raise ValueError(f"a query is named twice: {sorted(names)}")
    return {query.name: query for query in found}


def load(package: str, file: str) -> dict[str, Query]:
    return parse((resources.files(package) / file).read_text(encoding="utf-8"))
