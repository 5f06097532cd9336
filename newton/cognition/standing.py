"""What has to be read to tell whether a context still stands, and what belongs beside it. No search of memories."""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple
from uuid import UUID

from newton.cognition.current import Current
from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart import procedures
from newton.heart.matching import Pattern
from newton.memory.memory import Kind, past
from newton.memory.recall import Cue, Found, details

SQL = load("newton.cognition", "standing.sql")

MOST_LEARNT = 200  # memories written since; when there are more, a search is cheaper than a look at each
MOST_ENTERING = 10
_SLACK = 10_000  # milliseconds: ids are made a little before they are committed, and clocks differ


class Changes(NamedTuple):
    """What has become of a context's ground: what it states that is not so any more, in words; what was written since,
    with the kind of each, and which of that happened in its session; and what procedures are asked for by."""

    stale: Sequence[str]
    learnt: Mapping[UUID, Kind]
    happened: Set[UUID]
    patterns: Sequence[Pattern]


class Beside(NamedTuple):
    """How close a context is to an input, None when nobody can tell; and what of that which was learnt is as close."""

    cosine: float | None
    entering: Sequence[Found]
    unjudged: int


async def is_latest(tx: Tx, current: Current) -> bool:
    """Whether its session has had no other context since, and the database still holds it."""
    bundle = current.bundle
    row = await SQL["get_latest_bundle"].one(tx, agent_id=bundle.agent_id, session_id=bundle.session_id)
    return row is not None and row["bundle_id"] == bundle.bundle_id


async def changes(tx: Tx, current: Current) -> Changes:
    bundle, stated = current.bundle, current.stated
    rows = await SQL["find_changed"].all(
        tx,
        agent_id=bundle.agent_id,
        memory_ids=list(stated),
        micros=[found.micro for found in stated.values()],
        summaries=[found.summary for found in stated.values()],
    )
    learnt = await SQL["list_new_memories"].all(
        tx,
        agent_id=bundle.agent_id,
        after=_since(current.since),
        known=[one.memory_id for one in (*bundle.candidates, *bundle.focus)],
        session_id=bundle.session_id,
        max_rows=MOST_LEARNT,
    )
    stale = [_fate(stated[r["memory_id"]].kind, r["state"], quarantined=r["quarantined"]) for r in rows]
    return Changes(
        stale=stale,
        learnt={row["memory_id"]: row["kind"] for row in learnt},
        happened={row["memory_id"] for row in learnt if row["happened"]},
        patterns=await procedures.patterns(tx, agent_id=bundle.agent_id),
    )


def _since(bundle_id: UUID) -> UUID:
    """An id such as was made a little before this one."""
    made = (bundle_id.int >> 80) - _SLACK
    return UUID(int=max(made, 0) << 80)


def _fate(kind: Kind, state: str | None, *, quarantined: bool) -> str:
    if state is None:
        return f"{_one(kind)} was forgotten"
    if quarantined:
        return f"{_one(kind)} is quarantined"
    return f"{_one(kind)} is {past(kind, state) or 'told otherwise'}"


def _one(kind: Kind) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


async def beside(tx: Tx, current: Current, cue: Cue, changes: Changes, *, least: float) -> Beside:
    """How close the context is to the input, and of what was learnt since that which is at least so close to it or to
    what was searched for last, or happened in the session."""
    if cue.vector is None or current.cue.vector is None or cue.model_id != current.cue.model_id:
        return Beside(None, await _told(tx, current, dict.fromkeys(changes.happened, 0.0)), len(changes.learnt))
    vectors = {"agent_id": current.bundle.agent_id, "model_id": cue.model_id, "embedding": cue.vector}
    row = await SQL["get_max_cosine"].one(tx, **vectors, memory_ids=list(current.stated))
    near = row["cosine"] if row and row["cosine"] is not None else 0.0
    cosine = max(near, float(cue.vector @ current.cue.vector))
    if not changes.learnt:
        return Beside(cosine, (), 0)
    rows = await SQL["list_cosines"].all(
        tx,
        **vectors,
        topic=current.cue.vector,
        memory_ids=list(changes.learnt),
        kinds=list(changes.learnt.values()),
    )
    close = {row["memory_id"]: row["cosine"] for row in rows if row["cosine"] >= least}
    return Beside(cosine, await _told(tx, current, dict.fromkeys(changes.happened, 0.0) | close), 0)


async def _told(tx: Tx, current: Current, cosines: Mapping[UUID, float]) -> Sequence[Found]:
    """Memories by id, with the cosine that is known of each as all that is known of its relevance."""
    if not cosines:
        return ()
    found = await details(tx, list(cosines), agent_id=current.bundle.agent_id, moment=None)
    return [f._replace(similarity=cosines[f.memory_id], relevance=max(cosines[f.memory_id], 0.0)) for f in found]
