"""What was learnt, followed and met in a period and in the one before it, read back for the report of growth."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.periods import Periods

SQL = load("newton.heart", "retrospect.sql")


class Met(NamedTuple):
    """Activations of censors, and those that were said to be wrong."""

    met: int
    false_positives: int
    met_before: int
    false_positives_before: int


class Followed(NamedTuple):
    """A procedure with its uses in both periods; those that were judged neither way are in no other column."""

    name: str
    uses: int
    successes: int
    failures: int
    uses_before: int
    successes_before: int
    failures_before: int


class Learnt(NamedTuple):
    """Facts at the end of each period, those that were new in it, and those that had been told again by then."""

    known: int
    learnt: int
    confirmed: int
    known_before: int
    learnt_before: int
    confirmed_before: int


class Lived(NamedTuple):
    """Episodes that were made."""

    episodes: int
    episodes_before: int


class Changed(NamedTuple):
    """A memory that came into another state: a censor that was escalated or retired, a procedure that turned out well
    or badly, a fact that was superseded or disproved. `name` is its short form."""

    at: datetime
    kind: Literal["censor", "procedure", "fact"]
    state: str
    memory_id: UUID
    name: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrospect:
    """Both periods. `changed` are the changes of either, the oldest first."""

    met: Met
    followed: tuple[Followed, ...]
    learnt: Learnt
    lived: Lived
    changed: tuple[Changed, ...]


async def retrospect(tx: Tx, periods: Periods, *, agent_id: UUID) -> Retrospect:
    """What became of facts, procedures and censors."""
    before, start, now = periods
    both = {"agent_id": agent_id, "before": before, "start": start, "now": now}
    return Retrospect(
        met=Met(*_only(await SQL["count_censor_activations"].all(tx, **both))),
        followed=tuple(Followed(*row) for row in await SQL["count_procedure_uses"].all(tx, **both)),
        learnt=await learnt(tx, periods, agent_id=agent_id),
        lived=Lived(*_only(await SQL["count_episodes"].all(tx, **both))),
        changed=tuple(
            Changed(*row) for row in await SQL["list_state_changes"].all(tx, agent_id=agent_id, before=before, now=now)
        ),
    )


async def learnt(tx: Tx, periods: Periods, *, agent_id: UUID) -> Learnt:
    """What became of facts alone."""
    before, start, now = periods
    return Learnt(*_only(await SQL["count_facts"].all(tx, agent_id=agent_id, before=before, start=start, now=now)))


def _only(rows: Iterable[Iterable[int]]) -> Iterable[int]:
    """The one row of a statement that counts."""
    (row,) = rows
    return row
