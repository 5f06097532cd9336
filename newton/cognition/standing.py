"""What has to be read to tell whether a context still stands, and what belongs beside it. No search of memories."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.cognition.current import Current
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import PAST
from newton.memory.recall import Cue, Found, described

SQL = load("newton.cognition", "standing.sql")

MOST_LEARNT = 200  # memories written since; when there are more, a search is cheaper than a look at each
MOST_ENTERING = 10
_SLACK = 10_000  # milliseconds: ids are made a little before they are committed, and clocks differ


class Changes(NamedTuple):
    """What has become of a context's ground: what it states that is not so any more, in words, and what was written
    since, with the kind of each."""

    stale: Sequence[str]
    learnt: Mapping[UUID, str]


class Beside(NamedTuple):
    """How close a context is to an input, None when nobody can tell; and what of that which was learnt is as close."""

    cosine: float | None
    entering: Sequence[Found]
    unjudged: int


async def is_latest(tx: Tx, current: Current) -> bool:
    """Whether its session has had no other context since, and the database still holds it."""
    bundle = current.bundle
    row = await SQL["latest"].one(tx, agent_id=bundle.agent_id, session_id=bundle.session_id)
    return row is not None and row["bundle_id"] == bundle.bundle_id


async def changes(tx: Tx, current: Current) -> Changes:
    bundle, stated = current.bundle, current.stated
    rows = await SQL["changed"].all(
        tx,
        agent_id=bundle.agent_id,
        memory_ids=list(stated),
        micros=[found.micro for found in stated.values()],
        summaries=[found.summary for found in stated.values()],
    )
    learnt = await SQL["learnt"].all(
        tx,
        agent_id=bundle.agent_id,
        after=_since(bundle.bundle_id),
        known=[*(c.memory_id for c in bundle.candidates), *bundle.focus],
        session_id=bundle.session_id,
        most=MOST_LEARNT,
    )
    stale = [_fate(stated[r["memory_id"]].kind, r["state"], quarantined=r["quarantined"]) for r in rows]
    return Changes(stale, {row["memory_id"]: row["kind"] for row in learnt})


def _since(bundle_id: UUID) -> UUID:
    """An id such as was made a little before this one."""
    made = (bundle_id.int >> 80) - _SLACK
    return UUID(int=max(made, 0) << 80)


def _fate(kind: str, state: str | None, *, quarantined: bool) -> str:
    if state is None:
        return f"a {kind} was forgotten"
    if quarantined:
        return f"a {kind} is quarantined"
    return f"a {kind} is {PAST[state]}" if state in PAST else f"a {kind} is told otherwise"


async def beside(tx: Tx, current: Current, cue: Cue, changes: Changes, *, least: float) -> Beside:
    """How close the context is to the input, and of what was learnt since that which is at least so close to it or to
    what was searched for last."""
    if cue.vector is None or current.cue.vector is None or cue.model_id != current.cue.model_id:
        return Beside(None, (), len(changes.learnt))
    vectors = {"agent_id": current.bundle.agent_id, "model_id": cue.model_id, "embedding": cue.vector}
    row = await SQL["nearest"].one(tx, **vectors, memory_ids=list(current.stated))
    near = row["cosine"] if row and row["cosine"] is not None else 0.0
    cosine = max(near, float(cue.vector @ current.cue.vector))
    if not changes.learnt:
        return Beside(cosine, (), 0)
    rows = await SQL["likenesses"].all(
        tx,
        **vectors,
        topic=current.cue.vector,
        memory_ids=list(changes.learnt),
        kinds=list(changes.learnt.values()),
    )
    close = {row["memory_id"]: row["cosine"] for row in rows if row["cosine"] >= least}
    found = await described(tx, close, agent_id=current.bundle.agent_id) if close else ()
    return Beside(cosine, found, 0)


async def moment(tx: Tx, *, agent_id: UUID) -> str:
    """Which transactions have ended by now: the same answer twice says that nobody has written in between."""
    row = await SQL["moment"].one(tx, agent_id=agent_id)
    assert row is not None
    return row["moment"]


async def writer(tx: Tx, *, agent_id: UUID) -> int:
    """The number of this unit of work among all that write."""
    row = await SQL["writer"].one(tx, agent_id=agent_id)
    assert row is not None
    return row["writer"]
