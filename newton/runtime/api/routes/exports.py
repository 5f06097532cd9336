"""Everything that an agent is, as a file."""

import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from typing import IO

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from newton.runtime.api.auth import AdminAccess
from newton.runtime.api.middleware.admission import stall_timeout

router = APIRouter(prefix="/v1", tags=["export"])

NDJSON_MEDIA_TYPE = "application/x-ndjson"
CHUNK_BYTES = 256 * 1024


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {"content": {NDJSON_MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": "One JSON object a line."}
    },
)
async def export_agent(caller: AdminAccess) -> StreamingResponse:
    """The agent as it stands at this moment; `POST /v1/import` takes it in, and `newton import`.

    It is written down before it is sent, so that a slow reader keeps no transaction open.
    """
    with ExitStack() as stack:
        file = stack.enter_context(tempfile.TemporaryFile())
        async with stall_timeout() as moved:
            header = await caller.newton.carrier().export(file, progress=moved)
        stack.pop_all()  # it goes with the last who reads it
    named = f"{caller.newton.scope.agent_id}.{header.at:%Y%m%dT%H%M%SZ}.ndjson"
    told = {"Content-Disposition": f'attachment; filename="{named}"', "Content-Length": str(file.tell())}
    return StreamingResponse(_read_chunks(file), media_type=NDJSON_MEDIA_TYPE, headers=told)


def _read_chunks(file: IO[bytes]) -> Generator[bytes]:
    with file:
        file.seek(0)
        yield from iter(partial(file.read, CHUNK_BYTES), b"")
