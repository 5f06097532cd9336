"""A database within one open transaction, for services that take part in the transaction of their caller."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

from newton.db.pool import Database, Tx


class NestedDatabase(Database):
    """A Database whose transactions all use one open transaction. Do not pass it to code that calls a model."""

    def __init__(self, tx: Tx, agent: UUID) -> None:
        self._tx, self._agent = tx, agent

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        assert agent == self._agent, "the open transaction belongs to another agent"
        assert not snapshot, "the open transaction may have written already"
        yield self._tx
