"""Health and capabilities of the database server."""

from dataclasses import dataclass

from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.db", "health.sql")


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Capabilities of the database server.

    `durable`: a commit survives a power failure. `utf8`: letters beyond ASCII are converted to lower case.
    `rls_enforced`: the role of the application cannot bypass row level security. `tables` is the number of tables with
    rows of agents, `isolated` the number of those with forced row level security.
    """

    version: str
    pgvector: str | None
    durable: bool
    utf8: bool
    rls_enforced: bool
    tables: int
    isolated: int


async def read_server_info(tx: Tx) -> ServerInfo:
    row = await SQL["describe_server"].fetch_one(tx)
    assert row is not None
    return ServerInfo(**row)
