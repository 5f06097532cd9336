"""Route of the export of an agent."""

import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from typing import IO

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from newton.runtime.api.auth import AdminAccess
from newton.runtime.api.middleware.admission import stall_timeout

router = APIRouter(prefix="/v1", tags=["transfer"])

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
    """Export the agent to a file that `POST /v1/import` and `newton import` can read.

    The export is first written to a temporary file, so that a slow client keeps no transaction open.
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
