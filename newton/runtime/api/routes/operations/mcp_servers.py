"""Endpoint that tests an MCP server whose tools the model may call."""

from fastapi import APIRouter

from newton.runtime.api.auth import AdminAccess
from newton.runtime.mcp_servers.servers import ServerCheckResult, check_server

router = APIRouter(prefix="/v1/mcp-servers", tags=["daemon"])


@router.post("/{name}/test")
async def test_mcp_server(caller: AdminAccess, name: str) -> ServerCheckResult:
    """Connect to an MCP server as it is listed now, and return its tools. No tool is called."""
    caller.require_operator("Only the operator's token can test a server, because this may start its command.")
    return await check_server(caller.newton.settings, name)
