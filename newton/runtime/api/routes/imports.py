"""Import: lines of NDJSON become memories, each once; or an agent that was exported is taken in as a whole."""

import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from fastapi import APIRouter, Request

from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AdminAccess
from newton.runtime.api.idempotency import EMBED_JOB
from newton.runtime.api.middleware import request_limits
from newton.runtime.api.middleware.admission import stall_timeout
from newton.runtime.api.schemas import ResponseModel
from newton.runtime.jobs import queue
from newton.runtime.transfer.agent_archive import MAX_HEADER_BYTES, is_archive
from newton.runtime.transfer.importer import ImportReport
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1", tags=["transfer"])

EXAMPLE_LINE = (
    '{"type":"fact","ref":"f1","content":"Ana lives in Porto.","subject":"Ana","at":"2026-03-01T09:00:00Z"}\n'
)
REQUEST_BODY = {
    "requestBody": {
        "required": True,
        "description": "An object a line; `newton import --help` shows every type. The same line again changes nothing,"
        " so that a file may be sent in parts, and a part again. Or the whole of what `GET /v1/export` answered.",
        "content": {"application/x-ndjson": {"schema": {"type": "string", "examples": [EXAMPLE_LINE]}}},
    }
}


class RejectedLine(ResponseModel):
    """A line that was not taken, and why."""

    line: int
    reason: str


class ImportResponse(ResponseModel):
    """What an import did. `embedder_down` is why vectors could not be made."""

    new: int
    known: int
    episodes: int
    embedded: int
    refused: list[RejectedLine]
    embedder_down: str | None


class ImportedAgent(ResponseModel):
    """What an export brought in: so many memories, as they stood when it was made."""

    memories: int
    exported_at: datetime


@router.post("/import", openapi_extra=REQUEST_BODY)
async def import_memories(request: Request, caller: AdminAccess) -> ImportResponse | ImportedAgent:
    """Take every valid line once. One that is refused is named with its number; the others go in.

    An export is taken in whole or not at all, and only into an agent that has not begun.
    """
    with tempfile.TemporaryDirectory(prefix="newton-") as folder:
        path = Path(folder) / "given.ndjson"
        with path.open("w+b") as file:
            await request_limits.save_to_file(request, file)
            file.seek(0)
            whole = is_archive(file.readline(MAX_HEADER_BYTES))
        async with stall_timeout() as moved:
            if not whole:
                return _to_import_response(await caller.newton.importer().run(path, progress=moved))
            taken = await _restore_archive(caller.newton, path, moved)
    minds: AgentRegistry = request.app.state.agents
    await minds.reload(caller.newton)  # the model by which its memories are found came with it
    return taken


async def _restore_archive(newton: AgentServices, path: Path, on_progress: Callable[[object], None]) -> ImportedAgent:
    with path.open("rb") as file:
        header = await newton.carrier().restore(file, progress=on_progress)
    async with newton.scope.transaction() as tx:
        await queue.enqueue_if_idle(tx, EMBED_JOB, agent_id=newton.scope.agent_id)
    return ImportedAgent(memories=header.counts.get("memory.memories", 0), exported_at=header.at)


def _to_import_response(report: ImportReport) -> ImportResponse:
    return ImportResponse(
        new=report.new,
        known=report.unchanged,
        episodes=report.episodes,
        embedded=report.embedded,
        refused=[RejectedLine(line=one.line, reason=one.reason) for one in report.rejections],
        embedder_down=report.embedder_error,
    )
