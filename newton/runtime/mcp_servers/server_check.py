"""A test of an MCP server that the user lists: connect to it and list its tools."""

from pydantic import BaseModel, ConfigDict

from newton.agent.actions.external_tools import ExternalTool
from newton.runtime.mcp_servers.server_list import load_servers
from newton.runtime.mcp_servers.server_pool import McpServerPool
from newton.settings import Settings


class CheckedTool(BaseModel):
    """A tool of a server: whether it only reads, and whether it may be called without asking (`runs_freely`)."""

    model_config = ConfigDict(frozen=True)

    name: str
    full_name: str
    description: str
    reads: bool
    runs_freely: bool
    parameters: object


class ServerCheckResult(BaseModel):
    """The result: why the server cannot be used (`failure`), else its tools, and what is wrong with some of them."""

    model_config = ConfigDict(frozen=True)

    name: str
    failure: str | None
    tools: list[CheckedTool]
    problems: list[str]


async def check_server(settings: Settings, name: str) -> ServerCheckResult:
    """Connect to a server as it is listed now, and return what it offers. Raises NotFoundError for an unknown name."""
    pool = McpServerPool(servers=load_servers(settings))
    try:
        connection = await pool.test(name)
        return ServerCheckResult(
            name=name,
            failure=connection.failure,
            tools=list(map(_to_tool, connection.tools.values())),
            problems=[one.reason for one in connection.problems],
        )
    finally:
        await pool.close()


def _to_tool(tool: ExternalTool) -> CheckedTool:
    return CheckedTool(
        name=tool.name,
        full_name=tool.full_name,
        description=tool.description,
        reads=tool.is_read,
        runs_freely=tool.runs_freely,
        parameters=tool.definition.function["parameters"],
    )
