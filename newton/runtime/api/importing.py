"""Import: lines of NDJSON become memories, each once; or an agent that was exported is taken in as a whole."""

import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from fastapi import APIRouter, Request

from newton.runtime.api import bodies
from newton.runtime.api.acting import EMBED
from newton.runtime.api.caller import Admin
from newton.runtime.api.shapes import Answer
from newton.runtime.api.turns import unless_stuck
from newton.runtime.jobs import queue
from newton.runtime.minds import Minds
from newton.runtime.transfer.importing import Report
from newton.runtime.transfer.whole import LONGEST_HEADER, is_whole
from newton.runtime.wiring import Newton

router = APIRouter(prefix="/v1", tags=["transfer"])

LINE = '{"type":"fact","ref":"f1","content":"Ana lives in Porto.","subject":"Ana","at":"2026-03-01T09:00:00Z"}\n'
BODY = {
    "requestBody": {
        "required": True,
        "description": "An object a line; `newton import --help` shows every type. The same line again changes nothing,"
        " so that a file may be sent in parts, and a part again. Or the whole of what `GET /v1/export` answered.",
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


class Taken(Answer):
    """What an export brought in: so many memories, as they stood when it was made."""

    memories: int
    exported_at: datetime


@router.post("/import", openapi_extra=BODY)
async def import_(request: Request, caller: Admin) -> Imported | Taken:
    """Take every valid line once. One that is refused is named with its number; the others go in.

    An export is taken in whole or not at all, and only into an agent that has not begun.
    """
    with tempfile.TemporaryDirectory(prefix="newton-") as folder:
        path = Path(folder) / "given.ndjson"
        with path.open("w+b") as file:
            await bodies.file(request, file)
            file.seek(0)
            whole = is_whole(file.readline(LONGEST_HEADER))
        async with unless_stuck() as moved:
            if not whole:
                return _imported(await caller.newton.importer().run(path, progress=moved))
            taken = await _taken(caller.newton, path, moved)
    minds: Minds = request.app.state.minds
    await minds.renew(caller.newton)  # the model by which its memories are found came with it
    return taken


async def _taken(newton: Newton, path: Path, moved: Callable[[object], None]) -> Taken:
    with path.open("rb") as file:
        header = await newton.carrier().take(file, progress=moved)
    async with newton.scope.transaction() as tx:
        await queue.wake(tx, EMBED, agent_id=newton.scope.agent_id)
    return Taken(memories=header.counts.get("memory.memories", 0), exported_at=header.at)


def _imported(report: Report) -> Imported:
    return Imported(
        new=report.new,
        known=report.known,
        episodes=report.episodes,
        embedded=report.embedded,
        refused=[Refused(line=one.line, reason=one.reason) for one in report.refused],
        embedder_down=report.down,
    )
