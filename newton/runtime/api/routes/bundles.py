"""Contexts that were made: listed, explained, and made once more."""

from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter

from newton.cognition.bundles.bundle_store import BundleSummary
from newton.cognition.bundles.replay import ReplayResult
from newton.runtime.api import pagination
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.schemas import Cursor, CursorPage, Limit, ResponseModel

router = APIRouter(prefix="/v1/bundles", tags=["context"])


class BundleInfo(ResponseModel):
    """A context as a list shows it."""

    bundle_id: UUID
    created_at: datetime
    as_of: datetime | None
    session: str | None
    frame: str
    tokens: int
    budget: int
    input: str


class ReplayDifference(ResponseModel):
    """What did not come out as it is stored."""

    what: str
    why: str


class ReplayResponse(ResponseModel):
    """A context made once more. `since` is what has changed since and does not matter to it."""

    bundle_id: UUID
    created_at: datetime
    input: str
    tokens: int
    items: int
    identical: bool
    differences: list[ReplayDifference]
    since: list[str]
    text: str


@router.get("")
async def list_bundles(caller: ReadAccess, limit: Limit = 20, cursor: Cursor = None) -> CursorPage[BundleInfo]:
    """The contexts that were made, the last first."""
    before = pagination.decode_id_cursor(cursor)
    found = await caller.newton.bundles().list_recent(limit + 1, before=before)
    return pagination.build_page(found, limit, _to_bundle_info, lambda one: one.bundle_id)


@router.get("/{bundle_id}")
async def get_bundle(bundle_id: UUID, caller: ReadAccess) -> dict[str, Any]:
    """A context with all its candidates as they were then, and why each is in or out."""
    account = await caller.newton.bundles().explain(bundle_id.hex)
    return account.as_json()


@router.post("/{bundle_id}/replay")
async def replay_bundle(bundle_id: UUID, caller: ReadAccess) -> ReplayResponse:
    """Make a context once more from what is stored of it, and compare. Nothing is kept of this."""
    return _to_replay_response(await caller.newton.bundles().replay(bundle_id.hex))


def _to_bundle_info(summary: BundleSummary) -> BundleInfo:
    return BundleInfo(**{name: getattr(summary, name) for name in BundleInfo.model_fields})


def _to_replay_response(replayed: ReplayResult) -> ReplayResponse:
    own = {
        name: getattr(replayed, name) for name in ReplayResponse.model_fields if name not in ("differences", "since")
    }
    differences = [ReplayDifference(what=one.what, why=one.why) for one in replayed.differences]
    return ReplayResponse(**own, differences=differences, since=list(replayed.since))
