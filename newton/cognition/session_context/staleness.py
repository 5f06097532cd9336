"""Queries that find whether a cached context is stale, new memories that match an input, and replaced facts."""

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, NamedTuple
from uuid import UUID

from newton.cognition.bundles.cache import CachedContext
from newton.cognition.request import SentMessages
from newton.cognition.session_context.incremental_update import NEW_MEMORY_SCORE
from newton.cognition.sources.gathered_data import SessionContextData
from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart import procedures
from newton.heart.procedures import ProcedureTriggers
from newton.memory.memory import Kind, past_reason
from newton.memory.memory_reader import fetch_memories
from newton.memory.search_types import RecallQuery, RetrievedMemory

SQL = load("newton.cognition.session_context", "staleness.sql")

MAX_NEW_MEMORIES = 200  # with more new memories a full search is cheaper
MAX_ADDED_MEMORIES = 10
MAX_MISSING = 3  # memories nearest to the input that are added, when the context lacks them
MIN_MISSING_COSINE = 0.3  # a memory less close to the input says nothing of it
MIN_GAIN = 0.1  # by which a memory that the context left out must be nearer to this input than to that of the context
CLOCK_SLACK_MS = 10_000  # ids precede their commit, and clocks differ


class ContextChanges(NamedTuple):
    """Changes in memory since the context was built.

    `stale_reasons` describe changes of shown memories. `new_memories` maps ids of new memories to kinds;
    `session_event_ids` are those that are events of the session.
    """

    stale_reasons: Sequence[str]
    new_memories: Mapping[UUID, Kind]
    session_event_ids: Set[UUID]
    procedure_triggers: Sequence[ProcedureTriggers]


class NewMatches(NamedTuple):
    """The memories that match the input and are not in the context.

    `memories` are new ones; `unjudged_count` new ones could not be compared. `missing` are the memories nearest to the
    input, nearest first. `cosine` is the highest cosine similarity of the input to an item of the context,
    `topic_cosine` to one of the last inputs; None without vectors.
    """

    cosine: float | None
    memories: Sequence[RetrievedMemory]
    unjudged_count: int
    topic_cosine: float | None = None
    missing: Sequence[RetrievedMemory] = ()

    @property
    def additions(self) -> Sequence[RetrievedMemory]:
        """Return the memories to add to the context, each once."""
        return list({found.memory_id: found for found in (*self.memories, *self.missing)}.values())

    @property
    def missing_cosine(self) -> float:
        return max((found.similarity or 0.0 for found in self.missing), default=0.0)


async def is_latest(tx: Tx, cached: CachedContext) -> bool:
    """Return True if the context is stored as the latest of its session."""
    bundle = cached.bundle
    row = await SQL["get_latest_bundle"].fetch_one(tx, agent_id=bundle.agent_id, session_id=bundle.session_id)
    return row is not None and row["bundle_id"] == bundle.bundle_id


async def read_changes(tx: Tx, cached: CachedContext, sent: SentMessages | None) -> ContextChanges:
    """Return the changes in memory since the context was built. `sent` are the messages that the model is sent now."""
    bundle = cached.bundle  # what it shows of the agent above a project is compared by a snapshot
    shown = {memory_id: found for memory_id, found in cached.shown_memories.items() if not found.is_inherited}
    changed = await SQL["find_changed"].fetch_all(
        tx,
        agent_id=bundle.agent_id,
        memory_ids=list(shown),
        micros=[found.micro for found in shown.values()],
        summaries=[found.summary for found in shown.values()],
        built_at=bundle.created_at,
    )
    new = await SQL["list_new_memories"].fetch_all(
        tx,
        agent_id=bundle.agent_id,
        after=_subtract_clock_slack(cached.built_bundle_id),
        known=[memory.memory_id for memory in (*bundle.candidates, *bundle.focus)],
        session_id=bundle.session_id,
        **_describe_sent(sent),
        max_rows=MAX_NEW_MEMORIES,
    )
    return ContextChanges(
        [_describe_change(shown[r["memory_id"]].kind, r["state"], quarantined=r["quarantined"]) for r in changed],
        new_memories={row["memory_id"]: row["kind"] for row in new},
        session_event_ids={row["memory_id"] for row in new if row["happened"]},
        procedure_triggers=await procedures.list_triggers(tx, agent_id=bundle.agent_id),
    )


def _describe_sent(sent: SentMessages | None) -> Mapping[str, Any]:
    """Return the query parameters for the sent messages; None means that all messages are sent."""
    return {"first_sent": sent.first_position if sent else 0, "unsent": list(sent.unsent_positions) if sent else []}


def _subtract_clock_slack(bundle_id: UUID) -> UUID:
    """Return the smallest id of the time `CLOCK_SLACK_MS` before this id. Ids begin with their time of creation."""
    milliseconds = (bundle_id.int >> 80) - CLOCK_SLACK_MS
    return UUID(int=max(milliseconds, 0) << 80)


def _describe_change(kind: Kind, state: str | None, *, quarantined: bool) -> str:
    name = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    if state is None:
        return f"{name} was forgotten"
    if quarantined:
        return f"{name} is quarantined"
    past = past_reason(kind, state)
    return f"{name} is {past}" if past else f"{name} changed"


async def find_new_matches(
    tx: Tx,
    cached: CachedContext,
    cue: RecallQuery,
    changes: ContextChanges,
    sent: SentMessages | None,
    *,
    min_cosine: float,
) -> NewMatches:
    """Compare the input with the context, and find new memories that match.

    A new memory matches with a cosine similarity of at least `min_cosine` to the input or to the last search, or as an
    event of the session.
    """
    events: dict[UUID, float] = dict.fromkeys(changes.session_event_ids, 0.0)
    if cue.vector is None or cached.cue.vector is None or cue.model_id != cached.cue.model_id:
        memories = [_add_similarity(one, 0.0) for one in await _load_memories(tx, cached, events)]
        return NewMatches(None, memories, len(changes.new_memories))
    vectors = {"agent_id": cached.bundle.agent_id, "model_id": cue.model_id, "embedding": cue.vector}
    topic = max(float(cue.vector @ vector) for vector in (cached.cue.vector, *cached.topic.vectors))
    rows = await SQL["list_cosines"].fetch_all(
        tx,
        **vectors,
        topic=cached.cue.vector,
        memory_ids=list(changes.new_memories),
        kinds=list(changes.new_memories.values()),
        shown_ids=list(cached.shown_memories),
    )
    closest = next((row["cosine"] for row in rows if row["memory_id"] is None), None) or 0.0
    close = {row["memory_id"]: row["cosine"] for row in rows if row["memory_id"] and row["cosine"] >= min_cosine}
    new, nearest = events | close, await _find_nearest(tx, cached, vectors, sent)
    found = {one.memory_id: one for one in await _load_memories(tx, cached, {**nearest, **new})}
    memories = [_add_similarity(found[one], cosine) for one, cosine in new.items() if one in found]
    missing = [_add_similarity(found[one], cosine) for one, cosine in nearest.items() if one in found]
    return NewMatches(closest, memories, 0, topic, _drop_left_out(cached, missing))


async def _find_nearest(
    tx: Tx, cached: CachedContext, vectors: Mapping[str, Any], sent: SentMessages | None
) -> Mapping[UUID, float]:
    """Return the cosine similarities of the memories nearest to the input that are not in the context, nearest first.

    Memories that were added before, and then evicted or rejected as duplicates, are not returned again.
    """
    added = [c.memory_id for c in cached.bundle.candidates if c.score >= NEW_MEMORY_SCORE]
    rows = await SQL["find_nearest"].fetch_all(
        tx,
        **vectors,
        session_id=cached.bundle.session_id,
        **_describe_sent(sent),
        known=[*cached.shown_memories, *added],
        min_cosine=MIN_MISSING_COSINE,
        max_rows=MAX_MISSING,
    )
    return {row["memory_id"]: row["cosine"] for row in rows}


def _drop_left_out(cached: CachedContext, memories: Sequence[RetrievedMemory]) -> Sequence[RetrievedMemory]:
    """Return the memories without mere questions and without those that the context considered and left out.

    A memory that was left out is returned if its similarity to this input is higher by at least `MIN_GAIN`.
    """
    left_out = {c.memory_id: c.scored.found.similarity + MIN_GAIN for c in cached.bundle.candidates if not c.detail}
    return [m for m in memories if not m.is_only_question and m.similarity >= left_out.get(m.memory_id, 0.0)]


async def _load_memories(tx: Tx, cached: CachedContext, memory_ids: Collection[UUID]) -> Sequence[RetrievedMemory]:
    if not memory_ids:
        return ()
    return await fetch_memories(tx, list(memory_ids), agent_id=cached.bundle.agent_id, moment=None)


def _add_similarity(found: RetrievedMemory, cosine: float) -> RetrievedMemory:
    """Return the memory with its only evidence, the cosine similarity to the input."""
    return found._replace(similarity=cosine, relevance=max(cosine, 0.0))


def list_changed_sections(before: SessionContextData, now: SessionContextData) -> list[str]:
    """Return a text for each section that needs no search, such as the identity, and has changed."""
    old, new = before.session_state, now.session_state
    pairs = {
        "identity": (before.always_on.identity, now.always_on.identity),
        "censors": (before.always_on.censors, now.always_on.censors),
        "calibration note": (old.calibration_note, new.calibration_note),
        "tasks": (before.task_stack, now.task_stack),
        "injections": (old.injections, new.injections),
        "brief of the session": (old.brief, new.brief),
        "open decisions": (_index_texts(old.open_decisions), _index_texts(new.open_decisions)),
    }
    changed = [f"the {name} changed" for name, (was, is_now) in pairs.items() if was != is_now]
    return [*changed, "something new waits for approval"] if new.pending_approvals else changed


def _index_texts(memories: Sequence[RetrievedMemory]) -> Mapping[UUID, str]:
    return {found.memory_id: found.summary for found in memories}


class ReplacedMemory(NamedTuple):
    """A fact that was sent and is no longer current, and the facts that replaced it, the latest first."""

    memory_id: UUID
    text: str
    successor_ids: Sequence[UUID]
    successors: Sequence[str]

    @property
    def memory_ids(self) -> Sequence[UUID]:
        return (self.memory_id, *self.successor_ids)


async def list_replaced(
    tx: Tx, positions: Sequence[int], *, session_id: UUID, agent_id: UUID
) -> Sequence[ReplacedMemory]:
    """Return the facts that were sent with the inputs at these positions and have been replaced or withdrawn since."""
    rows = await SQL["list_replaced"].fetch_all(tx, agent_id=agent_id, session_id=session_id, positions=list(positions))
    return [ReplacedMemory(*row) for row in rows]
