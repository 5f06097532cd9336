"""Route of the calibration report."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query

from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN

router = APIRouter(prefix="/v1", tags=["calibration"])


@router.get("/calibration")
async def get_calibration(
    caller: ReadAccess,
    category: Annotated[str | None, Query(max_length=200)] = None,
    since: Annotated[datetime | None, Query(description="Only decisions made from this time on.")] = None,
) -> dict[str, Any]:
    """Return Brier score, reliability, bias, trend and correction of stated confidence. Null means too few cases."""
    reviewed = await caller.newton.decisions(ORIGIN).list_reviewed_decisions()
    start = since.replace(tzinfo=since.tzinfo or UTC) if since else None
    return to_json(build_calibration(filter_decisions(reviewed, category=category, since=start)))
