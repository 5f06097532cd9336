"""Log of transactions by agent: a write of one agent does not invalidate the cached contexts of another."""

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

MAX_LOGGED = 20_000  # transactions; older ones count as unknown
LOW_BITS = 0xFFFF_FFFF  # of the id of a transaction: rows have no more of it
MAX_COMPARED = 5_000  # transactions between two snapshots; with more, all agents count as changed

# A distributed database evaluates it on the node of the agent, where the agent's writes get their transaction ids.
SNAPSHOT_SQL = """
select pg_current_snapshot()::text || ' ' || coalesce(host(inet_server_addr()) || ':' || inet_server_port(), '')
from (select count(*) from runtime.agents where agent_id = $1) as node
"""
# Of a transaction that has written. It is null on a distributed database, whose nodes have ids of their own.
TRANSACTION_SQL = """
select
    coalesce(host(inet_server_addr()) || ':' || inet_server_port(), '') as server,
    pg_current_xact_id_if_assigned()::text::bigint as transaction_id
"""


class DatabaseSnapshot(NamedTuple):
    """The transactions of a server that have ended: those with ids below `xmax`, without those `in_progress`."""

    server: str
    xmax: int
    in_progress: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "DatabaseSnapshot":
        """Return the snapshot from the text that the statement `SNAPSHOT_SQL` returns.

        >>> DatabaseSnapshot.parse("7:9:7 10.0.0.1:5432")
        DatabaseSnapshot(server='10.0.0.1:5432', xmax=9, in_progress=frozenset({7}))
        """
        snapshot, _, server = text.partition(" ")
        _, xmax, in_progress = snapshot.split(":")
        return cls(server, int(xmax), frozenset(map(int, filter(None, in_progress.split(",")))))

    def iterate_ended_since(self, earlier: "DatabaseSnapshot") -> Iterator[int]:
        """Yield the ids of the transactions that ended after an earlier snapshot of the same server."""
        for one in (*earlier.in_progress, *range(earlier.xmax, self.xmax)):
            if one not in self.in_progress:
                yield one


class TransactionLog:
    """The transactions of this process that wrote, each with its agent; None for one that no context depends on.

    No context (text for a model) depends on transactions of the job queue, or on those that only store a context. The
    transactions of other processes are unknown. The log is kept from the first snapshot on.
    """

    def __init__(self) -> None:
        self._agents: dict[tuple[str, int], UUID | None] = {}
        self._servers: dict[UUID, str] = {}
        self.is_kept = False

    def set_server(self, agent: UUID, server: str) -> None:
        """Record which server has the rows of an agent."""
        self._servers[agent] = server
        if len(self._servers) > MAX_LOGGED:
            del self._servers[next(iter(self._servers))]

    def find_server(self, agent: UUID | None) -> str | None:
        """Return the server that had the rows of an agent at its last snapshot; None if there was no snapshot."""
        return self._servers.get(agent) if agent else None

    def add(self, server: str, transaction_id: int, agent: UUID | None) -> None:
        """Add a transaction that has committed."""
        self._agents[server, transaction_id & LOW_BITS] = agent
        if len(self._agents) > MAX_LOGGED:
            del self._agents[next(iter(self._agents))]

    def has_changed(self, agent: UUID, earlier: DatabaseSnapshot, now: DatabaseSnapshot) -> bool:
        """Return whether the agent may have written between two snapshots. Unknown transactions count as its own."""
        if earlier.server != now.server or now.xmax - earlier.xmax > MAX_COMPARED:
            return True
        ended = now.iterate_ended_since(earlier)
        return any(self._agents.get((now.server, one & LOW_BITS), agent) == agent for one in ended)
