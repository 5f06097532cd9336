"""The endpoint of the statistics of a session."""

from fastapi import APIRouter

from newton.runtime.api.auth import ReadAccess
from newton.runtime.tools.session_info import SessionStatsResponse, to_stats_response

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.get("/{session:path}/stats")
async def get_session_stats(session: str, caller: ReadAccess) -> SessionStatsResponse:
    """Return the tokens of a session by part, its compactions, what is masked, and the tokens of its latest context."""
    return to_stats_response(await caller.newton.session_stats().read(session))
