"""Route of the frames."""

from fastapi import APIRouter

from newton.content.frames import Frame
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ItemList

router = APIRouter(prefix="/v1", tags=["frames"])


@router.get("/frames")
async def list_frames(caller: ReadAccess) -> ItemList[Frame]:
    """List the frames: their questions, priorities and token shares."""
    return ItemList(items=list(caller.newton.frames.values()))
