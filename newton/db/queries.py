"""Named SQL statements. In a .sql file, `-- name: find(agent_id, ref)` names the next one and its parameters $1, $2."""

import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from importlib import resources

from asyncpg import Record

from newton.db.pool import Tx, note_write

PREFETCH_ROWS = 200  # rows per fetch

COMMENT_PATTERN = re.compile(r"--.*")
WRITE_PATTERN = re.compile(r"\b(insert|update|delete|merge)\b", re.IGNORECASE)
NAME_PATTERN = re.compile(r"^-- name: (\w+)\(([^)]*)\)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A named SQL statement. Its methods take the values of its parameters as keyword arguments.

    `writes` is True if its text changes rows by itself; a function that it calls may do so all the same.
    """

    name: str
    args: tuple[str, ...]
    sql: str
    writes: bool = False

    def bind(self, **arguments: object) -> list[object]:
        """Return the values of the arguments in the order of the parameters."""
        if arguments.keys() != set(self.args):
            raise TypeError(f"The query {self.name} takes the arguments {self.args}, not {tuple(arguments)}")
        return [arguments[name] for name in self.args]

    async def fetch_all(self, tx: Tx, **arguments: object) -> list[Record]:
        return await tx.fetch(self.sql, *self._prepare(arguments))

    async def fetch_one(self, tx: Tx, **arguments: object) -> Record | None:
        return await tx.fetchrow(self.sql, *self._prepare(arguments))

    async def stream(self, tx: Tx, **arguments: object) -> AsyncGenerator[Record]:
        """Yield the rows one by one from a server-side cursor, so that memory use does not grow with their number."""
        async for row in tx.cursor(self.sql, *self.bind(**arguments), prefetch=PREFETCH_ROWS):
            yield row

    async def execute(self, tx: Tx, **arguments: object) -> None:
        await tx.execute(self.sql, *self._prepare(arguments))

    def _prepare(self, arguments: Mapping[str, object]) -> list[object]:
        if self.writes:
            note_write()
        return self.bind(**arguments)


def parse_queries(text: str) -> dict[str, SqlQuery]:
    """Return the statements in the text of a .sql file by name. Raises ValueError if a name occurs twice."""
    parts = NAME_PATTERN.split(text)[1:]
    found = [
        SqlQuery(
            name,
            tuple(arg.strip() for arg in args.split(",") if arg.strip()),
            sql.strip(),
            WRITE_PATTERN.search(COMMENT_PATTERN.sub("", sql)) is not None,
        )
        for name, args, sql in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]
    names = [query.name for query in found]
    if len(set(names)) != len(names):
        raise ValueError(f"a query name occurs twice in {sorted(names)}")
    return {query.name: query for query in found}


def load(package: str, file: str) -> dict[str, SqlQuery]:
    """Return the statements of the .sql file `file` in a package, by name."""
    return parse_queries((resources.files(package) / file).read_text(encoding="utf-8"))
