"""Endpoints of frames, which ship with Newton or are files of the operator."""

from fastapi import APIRouter

from newton.content.frames import Frame
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess

router = APIRouter(prefix="/v1/frames", tags=["frames"])


@router.get("")
async def list_frames(caller: ReadAccess) -> ItemList[Frame]:
    """List the frames (kinds of input) with their questions, priorities and token shares."""
    return ItemList(items=list(caller.newton.frames.values()))
