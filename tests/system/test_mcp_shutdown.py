"""A call of MCP that comes while the daemon ends."""

from pathlib import Path
from typing import cast

from starlette.routing import Route

from newton.db.pool import Database
from newton.runtime.api.problems import MCP_PATH
from newton.runtime.mcp.streamable_http import HttpTransport
from tests.system.served import served


async def test_a_call_that_comes_while_the_daemon_ends_is_asked_to_retry(db: Database, tmp_path: Path) -> None:
    async with served(db, tmp_path) as api:
        token = await api.token("ana")
        routes = [route for route in api.app.router.routes if isinstance(route, Route) and route.path == MCP_PATH]
        await cast("HttpTransport", routes[0].endpoint).close()
        async with api.http(token, Accept="application/json, text/event-stream") as http:
            answer = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert answer.status_code == 503 and "shutting down" in answer.text
