"""Contexts that were made: listed, explained, and made once more."""

from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter

from newton.cognition.bundles import Listed
from newton.cognition.replay import Replay
from newton.runtime.api import pages
from newton.runtime.api.caller import Reader
from newton.runtime.api.shapes import Answer, Cursor, Limit, Page

router = APIRouter(prefix="/v1/bundles", tags=["context"])


class Bundle(Answer):
    """A context as a list shows it."""

    bundle_id: UUID
    created_at: datetime
    as_of: datetime | None
    session: str | None
    frame: str
    tokens: int
    budget: int
    input: str


class Differs(Answer):
    """What did not come out as it is stored."""

    what: str
    why: str


class Replayed(Answer):
    """A context made once more. `since` is what has changed since and does not matter to it."""

    bundle_id: UUID
    created_at: datetime
    input: str
    tokens: int
    items: int
    identical: bool
    differences: list[Differs]
    since: list[str]
    text: str


@router.get("")
async def listed(caller: Reader, limit: Limit = 20, cursor: Cursor = None) -> Page[Bundle]:
    """The contexts that were made, the last first."""
    before = pages.read_id(cursor)
    found = await caller.newton.hindsight().recent(limit + 1, before=before)
    return pages.page(found, limit, _shown, lambda one: one.bundle_id)


@router.get("/{bundle_id}")
async def why(bundle_id: UUID, caller: Reader) -> dict[str, Any]:
    """A context with all its candidates as they were then, and why each is in or out."""
    account = await caller.newton.hindsight().why(bundle_id.hex)
    return account.as_json()


@router.post("/{bundle_id}/replay")
async def replay(bundle_id: UUID, caller: Reader) -> Replayed:
    """Make a context once more from what is stored of it, and compare. Nothing is kept of this."""
    return _replayed(await caller.newton.hindsight().replay(bundle_id.hex))


def _shown(one: Listed) -> Bundle:
    return Bundle(**{name: getattr(one, name) for name in Bundle.model_fields})


def _replayed(made: Replay) -> Replayed:
    own = {name: getattr(made, name) for name in Replayed.model_fields if name not in ("differences", "since")}
    differences = [Differs(what=one.what, why=one.why) for one in made.differences]
    return Replayed(**own, differences=differences, since=list(made.since))
