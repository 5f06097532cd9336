"""Endpoints about the daemon and its MCP servers, for commands of its operator on the same machine."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from newton.environment import SettingSources
from newton.errors import NewtonError
from newton.runtime.api.auth import AdminAccess
from newton.runtime.api.base_models import RequestModel, ResponseModel
from newton.runtime.daemon_state import DaemonState
from newton.runtime.health.check_result import HealthFinding
from newton.runtime.health.installation_checks import check_chat_model, check_installation
from newton.runtime.mcp_servers.servers import ServerCheckResult, check_server
from newton.runtime.wiring import AgentServices
from newton.settings import load

router = APIRouter(tags=["daemon"])


class SourcesInput(RequestModel):
    """The settings of a caller before validation: its settings file and environment variables."""

    folder: str
    home: str
    file: str
    file_values: dict[str, Any]
    variables: dict[str, str]
    library_choices: dict[str, str]
    upstream_keys: dict[str, str]


class DaemonStateRequest(RequestModel):
    """The settings of the caller, to compare with those of the daemon."""

    sources: SourcesInput


class ChecksRequest(RequestModel):
    """The checks to make."""

    verify: bool = Field(default=False, description="Also verify by its hash chain that the decision log is unchanged.")


class DaemonStateResponse(ResponseModel):
    """The process of the daemon, the time of its start, and the settings in which the caller differs from it."""

    process: int = Field(examples=[4711])
    started_at: datetime
    differing: list[str] = Field(examples=[["context_tokens"]])


@router.post("/v1/daemon/state")
async def get_daemon_state(request: Request, caller: AdminAccess, body: DaemonStateRequest) -> DaemonStateResponse:
    """Return the state of the daemon, and in which settings and files the caller differs from it.

    A command asks this before it uses the daemon.
    """
    caller.require_operator("Only the operator's token can read the state of the daemon.")
    state: DaemonState = request.app.state.daemon_state
    sources = SettingSources(**body.sources.model_dump())
    differing = await asyncio.to_thread(state.list_differences, load(sources=sources), sources)
    return DaemonStateResponse(process=os.getpid(), started_at=state.started_at, differing=differing)


NDJSON = "application/x-ndjson"


@router.post(
    "/v1/daemon/checks",
    response_class=StreamingResponse,
    responses={200: {"content": {NDJSON: {"schema": {"type": "string"}}}, "description": "One JSON object per line."}},
)
async def run_checks(caller: AdminAccess, body: ChecksRequest) -> StreamingResponse:
    """Check the database, the memories of the agent and the models, as `newton doctor` shows it.

    Each line has a finding: its `state` (ok, note or wrong), its `detail` and the remedy (`hint`).
    """
    caller.require_operator("Only the operator's token can check the daemon.")
    return StreamingResponse(_run_checks(caller.newton, verify=body.verify), media_type=NDJSON)


async def _run_checks(newton: AgentServices, *, verify: bool) -> AsyncGenerator[str]:
    try:
        async for finding in check_installation(newton, verify=verify):
            yield _to_line(finding)
    except NewtonError as error:
        yield _to_line(HealthFinding("wrong", error.what, error.hint))
    yield _to_line(await check_chat_model(newton.settings))


def _to_line(finding: HealthFinding) -> str:
    return json.dumps(asdict(finding)) + "\n"


@router.post("/v1/mcp-servers/{name}/test")
async def test_mcp_server(caller: AdminAccess, name: str) -> ServerCheckResult:
    """Connect to an MCP server as it is listed now, and return its tools. No tool is called."""
    caller.require_operator("Only the operator's token can test a server, because this may start its command.")
    return await check_server(caller.newton.settings, name)
