"""Import: lines of NDJSON become memories, each once."""

import asyncio
import tempfile
from pathlib import Path

from fastapi import APIRouter, Request

from newton.runtime.api.caller import Admin
from newton.runtime.api.shapes import Answer
from newton.runtime.transfer.importing import Report

router = APIRouter(prefix="/v1", tags=["transfer"])

LINE = '{"type":"fact","ref":"f1","content":"Ana lives in Porto.","subject":"Ana","at":"2026-03-01T09:00:00Z"}\n'
BODY = {
    "requestBody": {
        "required": True,
        "description": "An object a line; `newton import --help` shows every type. The same line again changes nothing,"
        " so that a file may be sent in parts, and a part again.",
        "content": {"application/x-ndjson": {"schema": {"type": "string", "examples": [LINE]}}},
    }
}


class Refused(Answer):
    """A line that was not taken, and why."""

    line: int
    reason: str


class Imported(Answer):
    """What an import did. `embedder_down` is why vectors could not be made."""

    new: int
    known: int
    episodes: int
    embedded: int
    refused: list[Refused]
    embedder_down: str | None


@router.post("/import", openapi_extra=BODY)
async def import_(request: Request, caller: Admin) -> Imported:
    """Take every valid line once. One that is refused is named with its number; the others go in."""
    newton = caller.newton
    with tempfile.TemporaryDirectory(prefix="newton-") as folder:
        file = Path(folder) / "given.ndjson"
        await asyncio.to_thread(file.write_bytes, await request.body())
        report = await newton.importer().run(file)
    return _imported(report)


def _imported(report: Report) -> Imported:
    return Imported(
        new=report.new,
        known=report.known,
        episodes=report.episodes,
        embedded=report.embedded,
        refused=[Refused(line=one.line, reason=one.reason) for one in report.refused],
        embedder_down=report.down,
    )
