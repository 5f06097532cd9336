"""Endpoints that import memories from NDJSON lines or exports of other programs, and export or import an agent."""

import asyncio
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AdminAccess, AuthenticatedCaller
from newton.runtime.api.base_models import ResponseModel
from newton.runtime.api.idempotency import EMBED_JOB
from newton.runtime.api.middleware import request_limits
from newton.runtime.api.middleware.admission import stall_timeout
from newton.runtime.jobs import queue
from newton.runtime.transfer.export_file import MAX_HEADER_BYTES, is_archive
from newton.runtime.transfer.exports.export_detection import find_source
from newton.runtime.transfer.import_source import summarize_source

router = APIRouter(prefix="/v1", tags=["transfer"])

EXAMPLE_LINE = (
    '{"type":"fact","ref":"f1","content":"Ana lives in Porto.","subject":"Ana","at":"2026-03-01T09:00:00Z"}\n'
)
REQUEST_BODY = {
    "requestBody": {
        "required": True,
        "description": "One JSON object per line (`newton import --help` shows every type), the output of"
        " `GET /v1/export`, or an export of another program that `newton import` recognizes. A line that was imported"
        " before changes nothing, so a file can be sent in parts, and a part can be sent again.",
        "content": {
            "application/x-ndjson": {"schema": {"type": "string", "examples": [EXAMPLE_LINE]}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


class RejectedImport(ResponseModel):
    """The place of an entry that cannot be imported, as "line 17" or "conversations.json, entry 3", and the reason."""

    place: str
    reason: str


class ImportResponse(ResponseModel):
    """The counts of an import. `redacted` counts the secrets that were removed from the entries by kind.

    `passed_over` counts by reason what an import leaves out on purpose, and `rejected` names what cannot be read.
    `embedder_error` says why texts could not be embedded; null if they were. `undecided` are the conversations in which
    a person asks to forget something that several statements may mean: none of them is forgotten until they say which.
    """

    new: int
    unchanged: int
    episodes: int
    embedded: int
    redacted: dict[str, int]
    passed_over: dict[str, int]
    rejected: list[RejectedImport]
    embedder_error: str | None
    undecided: list[str]


class ImportPreview(ResponseModel):
    """The contents of a file to import: its format, the counts, and the first and last time.

    `passed_over` counts by reason what an import leaves out on purpose, and `rejected` names what cannot be read.
    """

    format: str
    sessions: int
    messages: int
    facts: int
    documents: int
    decisions: int
    others: int
    rejected: list[RejectedImport]
    first: datetime | None
    last: datetime | None
    passed_over: dict[str, int]


class ImportedAgent(ResponseModel):
    """An imported agent: the number of its memories, and the time of its export."""

    memories: int
    exported_at: datetime


@router.post("/import", openapi_extra=REQUEST_BODY)
async def import_memories(
    request: Request,
    caller: AdminAccess,
    *,
    preview: Annotated[bool, Query(description="Only recognize the format and count; import nothing.")] = False,
) -> ImportResponse | ImportPreview | ImportedAgent:
    """Import every valid entry once, and name the rejected ones with the reason.

    A file of `GET /v1/export` is imported completely or not at all, and only into an empty agent.
    """
    caller.require_person("A model cannot import memories.")
    with tempfile.TemporaryDirectory(prefix="newton-") as folder:
        path = Path(folder) / "upload"
        with path.open("w+b") as file:
            await request_limits.save_to_file(request, file)
            file.seek(0)
            is_whole_agent = is_archive(file.readline(MAX_HEADER_BYTES))
        async with stall_timeout() as on_progress:
            if preview and not is_whole_agent:
                source = await asyncio.to_thread(find_source, path)
                summary = await asyncio.to_thread(summarize_source, source)
                rejected = [RejectedImport.from_source(one) for one in summary.rejections]
                left_out = dict(source.passed_over)
                return ImportPreview.from_source(summary, format=source.format, passed_over=left_out, rejected=rejected)
            if not is_whole_agent:
                source = await asyncio.to_thread(find_source, path)
                report = await caller.newton.importer().run(source, progress=on_progress)
                rejected = [RejectedImport.from_source(one) for one in report.rejections]
                return ImportResponse.from_source(report, rejected=rejected, passed_over=dict(source.passed_over))
            imported = await _restore_archive(caller, path, on_progress)
    agents: AgentRegistry = request.app.state.agents
    await agents.reload(caller.newton)  # the export also contains the frame classifier and the scoring weights
    return imported


async def _restore_archive(
    caller: AuthenticatedCaller, path: Path, on_progress: Callable[[object], None]
) -> ImportedAgent:
    newton, max_trust = caller.newton, caller.max_trust
    with path.open("rb") as file:
        header = await newton.archive(max_trust).restore(file, progress=on_progress)
    async with newton.scope.transaction() as tx:
        await queue.enqueue_if_idle(tx, EMBED_JOB, agent_id=newton.scope.agent_id)
    return ImportedAgent(memories=header.counts.get("memory.memories", 0), exported_at=header.at)


NDJSON_MEDIA_TYPE = "application/x-ndjson"
CHUNK_BYTES = 256 * 1024


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "content": {NDJSON_MEDIA_TYPE: {"schema": {"type": "string"}}},
            "description": "One JSON object per line.",
        }
    },
)
async def export_agent(caller: AdminAccess) -> StreamingResponse:
    """Export the agent as a file that `POST /v1/import` and `newton import` can read.

    The daemon first writes the export to a temporary file, so that a slow client keeps no transaction open.
    """
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile())
        async with stall_timeout() as on_progress:
            header = await caller.newton.archive().export(file, progress=on_progress)
        stack.pop_all()  # _read_chunks closes the file
    filename = f"{caller.newton.scope.agent_id}.{header.at:%Y%m%dT%H%M%SZ}.ndjson"
    headers = {"Content-Disposition": f'attachment; filename="{filename}"', "Content-Length": str(file.tell())}
    return StreamingResponse(_read_chunks(file), media_type=NDJSON_MEDIA_TYPE, headers=headers)


def _read_chunks(file: IO[bytes]) -> Generator[bytes]:
    with file:
        file.seek(0)
        yield from iter(partial(file.read, CHUNK_BYTES), b"")
