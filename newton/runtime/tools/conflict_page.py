"""Pages of the list of conflicts, for all interfaces."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.agent.services.conflicts import ConflictService
from newton.heart.facts.conflicts import FactPair, PairPosition
from newton.runtime.tools.cursors import decode_cursor, encode_cursor, invalid_cursor_error


@dataclass(frozen=True, slots=True)
class ConflictPage:
    """A page of open conflicts, newest first. `next` is the cursor of the next page, None on the last one.

    `count` is the number of all conflicts; None after the first page.
    """

    pairs: Sequence[FactPair]
    next: str | None
    count: int | None


async def list_conflict_page(service: ConflictService, *, limit: int, cursor: str | None) -> ConflictPage:
    """Return one page. Raises InputError for an invalid cursor."""
    found = await service.list_conflicts(limit + 1, after=_decode(cursor))
    page = found[:limit]
    following = _encode(page[-1].position) if len(found) > limit else None
    return ConflictPage(page, following, await service.count_conflicts() if cursor is None else None)


def _encode(position: PairPosition) -> str:
    return encode_cursor(f"{position.found_at.isoformat()} {position.first_id} {position.second_id}")


def _decode(cursor: str | None) -> PairPosition | None:
    if cursor is None:
        return None
    try:
        at, first, second = decode_cursor(cursor).split(" ")
        position = PairPosition(datetime.fromisoformat(at), UUID(first), UUID(second))
    except ValueError:
        raise invalid_cursor_error() from None
    if position.found_at.tzinfo is None:
        raise invalid_cursor_error()
    return position
