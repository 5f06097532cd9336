"""Endpoints of bundles. A bundle is a stored context with its inputs and the memories considered for it."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from newton.operations.cursors import decode_id_cursor
from newton.operations.results import CursorPage, build_page
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import Cursor, Limit, ResponseModel
from newton.runtime.api.path_ids import PathId
from newton.runtime.chat_backend.view_models import ExplanationView, explain_item
from newton.runtime.tools.views import BundleInfo

router = APIRouter(prefix="/v1/bundles", tags=["bundles"])


class ReplayDifference(ResponseModel):
    """A field in which the rebuilt bundle differs from the stored one, and the reason."""

    field: str
    reason: str


class ReplayResponse(ResponseModel):
    """A rebuilt bundle and its differences from the stored one.

    `changes_since` lists later changes of the code, the frame and the profile, which the rebuilt bundle ignores.
    """

    bundle_id: UUID
    created_at: datetime
    input: str
    tokens: int
    items: int
    identical: bool
    differences: list[ReplayDifference]
    changes_since: list[str]
    text: str


@router.get("")
async def list_bundles(caller: ReadAccess, limit: Limit = 20, cursor: Cursor = None) -> CursorPage[BundleInfo]:
    """List the stored contexts (bundles), newest first."""
    before = decode_id_cursor(cursor)
    found = await caller.newton.bundles().list_recent(limit + 1, before=before)
    return build_page(found, limit, BundleInfo.from_source, lambda one: one.bundle_id)


@router.get("/{bundle_id}")
async def get_bundle(bundle_id: PathId, caller: ReadAccess) -> dict[str, Any]:
    """Return a bundle with all memories considered for it, and why each was selected or rejected."""
    return (await caller.newton.bundles().explain(bundle_id)).as_json()


@router.get("/{bundle_id}/explain")
async def explain_bundle(
    bundle_id: PathId,
    caller: ReadAccess,
    item: Annotated[
        str,
        Query(
            max_length=1_000,
            description="The memory: its number in the context, its id, its `ref`, or words of its text.",
        ),
    ],
) -> ExplanationView:
    """Explain why a memory is or is not in a stored context."""
    return explain_item(await caller.newton.bundles().explain(bundle_id), item)


@router.get("/{bundle_id}/diff/{other_id}")
async def diff_bundles(bundle_id: PathId, other_id: PathId, caller: ReadAccess) -> dict[str, Any]:
    """Return the differences between two stored contexts (bundles)."""
    return (await caller.newton.bundles().diff(bundle_id, other_id)).as_json()


@router.post("/{bundle_id}/replay")
async def replay_bundle(bundle_id: PathId, caller: ReadAccess) -> ReplayResponse:
    """Build a stored context again from its stored inputs, and compare the result with it. Stores nothing."""
    result = await caller.newton.bundles().replay(bundle_id)
    differences = [ReplayDifference(field=one.what, reason=one.why) for one in result.differences]
    return ReplayResponse.from_source(result, differences=differences, changes_since=list(result.since))
