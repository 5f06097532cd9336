"""Store of memories with their index words, links, places in the embedding outbox, and state transitions.

A constraint of the database and docs/lifecycle.md must agree with ALLOWED_TRANSITIONS.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product, starmap
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError
from newton.ids import new_id
from newton.memory.lookup import MemoryMention
from newton.memory.memory import Kind, NewMemory, Outcome, ShortForms, WriteContext, is_quarantined
from newton.text.languages import detect_language
from newton.text.words import MAX_TEXT_CHARACTERS, prepare_words

SQL = load("newton.memory", "store.sql")

END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)  # as `moment`: the current state


class AllowedTransition(NamedTuple):
    """A transition that is allowed: `event` may change a memory of `kind` from `from_state` to `to_state`."""

    kind: Kind
    from_state: str
    event: str
    to_state: str


def _expand(kind: Kind, from_states: str, events: str, to_states: str) -> Iterable[AllowedTransition]:
    """Return an allowed transition for every combination of these states and events, each given as a list of words."""
    return starmap(AllowedTransition, product([kind], from_states.split(), events.split(), to_states.split()))


CAPPED_KINDS: tuple[Kind, ...] = ("event", "entity", "relation", "passage")
REPLACED_KINDS: tuple[Kind, ...] = ("artifact", "item")

ALLOWED_TRANSITIONS: frozenset[AllowedTransition] = frozenset(
    transition
    for transitions in (
        _expand("fact", "NEW", "confirmed", "CONFIRMED"),
        _expand("fact", "NEW CONFIRMED", "established", "CORE"),
        _expand("fact", "CORE", "unmarked", "NEW CONFIRMED"),
        _expand("fact", "NEW CONFIRMED CORE", "superseded expired merged generalized", "SUPERSEDED"),
        _expand("fact", "NEW CONFIRMED CORE SUPERSEDED", "disproved withdrawn", "INACTIVE"),
        _expand("fact", "SUPERSEDED", "restored", "NEW CONFIRMED CORE"),
        _expand("fact", "INACTIVE", "restored", "NEW"),
        _expand("fact", "NEW CONFIRMED SUPERSEDED", "released", "CONFIRMED CORE SUPERSEDED"),
        _expand("fact", "CORE", "released", "CORE SUPERSEDED"),
        _expand("episode", "ACTIVE", "summarized", "SUMMARIZED"),
        _expand("episode", "ACTIVE SUMMARIZED", "archived", "ARCHIVED"),
        _expand("procedure", "ACTIVE INEFFECTIVE", "proved", "EFFECTIVE"),
        _expand("procedure", "ACTIVE EFFECTIVE", "failed", "INEFFECTIVE"),
        _expand("procedure", "EFFECTIVE INEFFECTIVE", "reopened", "ACTIVE"),
        _expand("procedure", "ACTIVE EFFECTIVE INEFFECTIVE", "retired", "RETIRED"),
        _expand("procedure", "RETIRED", "restored", "ACTIVE EFFECTIVE INEFFECTIVE"),
        _expand("censor", "CREATED", "released", "CREATED"),
        _expand("censor", "CREATED", "triggered", "ACTIVE"),
        _expand("censor", "CREATED ACTIVE", "escalated tightened", "ESCALATED"),
        _expand("censor", "ESCALATED", "relaxed", "ACTIVE"),
        _expand("censor", "CREATED ACTIVE ESCALATED", "retired", "RETIRED"),
        _expand("passage", "ACTIVE", "replaced", "SUPERSEDED"),
        _expand("passage", "SUPERSEDED", "restored", "ACTIVE"),
        *(_expand(kind, "ACTIVE", "released", "ACTIVE") for kind in ("passage", "relation")),
        *(_expand(kind, "ACTIVE", "replaced", "SUPERSEDED") for kind in REPLACED_KINDS),
        _expand("decision", "RECORDED", "done", "PENDING"),
        _expand("decision", "RECORDED PENDING", "reviewed", "REVIEWED"),
        _expand("procedure", "ACTIVE EFFECTIVE INEFFECTIVE", "archived", "ARCHIVED"),
        _expand("procedure", "ARCHIVED", "retired", "RETIRED"),
        *(_expand(kind, "ACTIVE", "archived", "ARCHIVED") for kind in CAPPED_KINDS),
        *(_expand(kind, "ARCHIVED", "restored", "ACTIVE") for kind in (*CAPPED_KINDS, "procedure")),
        _expand("passage", "ARCHIVED", "replaced", "SUPERSEDED"),
        _expand("passage", "ARCHIVED", "released", "ARCHIVED"),
    )
    for transition in transitions
)


@dataclass(frozen=True, slots=True)
class PlannedTransition:
    """A change of a memory's state that is not applied yet.

    With `releases` it also ends the quarantine of the memory, and the state may stay the same.
    """

    memory_id: UUID
    event: str
    from_state: str
    to_state: str
    reason: str
    releases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRecord:
    """A change of a memory's state that was applied. `origin` is the interface or job that applied it.

    `replaced_by` is set on the last transition of a fact that was replaced: the fact that replaced it.
    """

    changed_at: datetime
    event: str
    from_state: str
    to_state: str
    reason: str
    origin: str
    replaced_by: MemoryMention | None = None


async def apply_transitions(tx: Tx, planned: Sequence[PlannedTransition], *, ctx: WriteContext) -> set[UUID]:
    """Apply the state transitions, at most one for each memory, and return the ids of the changed memories.

    A memory that is no longer in `from_state` is skipped.
    """
    if not planned:
        return set()
    rows = await SQL["apply_transitions"].fetch_all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[transition.memory_id for transition in planned],
        transition_ids=[new_id() for _ in planned],
        events=[transition.event for transition in planned],
        from_states=[transition.from_state for transition in planned],
        to_states=[transition.to_state for transition in planned],
        reasons=[transition.reason for transition in planned],
        releases=[transition.releases for transition in planned],
        now=ctx.now,
        origin=ctx.origin,
    )
    return {row["memory_id"] for row in rows}


async def list_transitions(tx: Tx, *, agent_id: UUID, memory_id: UUID) -> list[TransitionRecord]:
    """Return the transitions that were applied to a memory, the oldest first."""
    rows = await SQL["list_transitions"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id)
    return [TransitionRecord(**row) for row in rows]


class AppliedTransition(NamedTuple):
    """A change of a memory's state that was applied. `micro` is the memory in about 20 tokens."""

    transition: PlannedTransition
    micro: str


async def list_applied_since(tx: Tx, moment: datetime, *, agent_id: UUID, origin: str) -> list[AppliedTransition]:
    """Return the transitions that the interface or job `origin` has applied since `moment`, the oldest first."""
    rows = await SQL["list_changed_since"].fetch_all(tx, agent_id=agent_id, origin=origin, since=moment)
    return [AppliedTransition(PlannedTransition(*columns), micro) for *columns, micro in rows]


LinkType = Literal[
    "supersedes",
    "was_wrong",
    "corroborates",
    "near",
    "evidence",
    "part_of",
    "depends_on",
    "relates",
    "contradicts",
    "compatible",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfirmation:
    """A repeated statement of a known memory. `ref` is its idempotency key.

    `source` is who or what states it; confirmations from one source are not independent of each other.
    """

    memory_id: UUID
    ref: str
    source: str


async def remember(tx: Tx, *, agent_id: UUID, memories: Sequence[NewMemory]) -> set[UUID]:
    """Store memories and return the ids of those that are new.

    A memory is skipped if one of the same kind has its content or its `ref` (external id). A unique constraint ensures
    this, so concurrent writers are safe.
    """
    if not memories:
        return set()
    rows = await SQL["insert_memories"].fetch_all(
        tx, agent_id=agent_id, drafts=json.dumps(list(map(_to_row, memories)))
    )
    new = {row["memory_id"] for row in rows}
    if links := [(m.memory_id, source) for m in memories if m.memory_id in new for source in m.sources]:
        memory_ids, source_ids = zip(*links, strict=True)
        await SQL["insert_sources"].execute(tx, agent_id=agent_id, memory_ids=memory_ids, source_ids=source_ids)
    return new


async def find_by_ref(tx: Tx, refs: Sequence[tuple[str, bytes]], *, agent_id: UUID, kind: Kind) -> set[str]:
    """Return which of the refs (external ids) are stored already. Each is paired with the hash of its content.

    Raises ConflictError if a ref is stored, or occurs twice, with different contents.
    """
    hashes: dict[str, bytes] = {}
    for ref, content_hash in refs:
        if hashes.setdefault(ref, content_hash) != content_hash:
            raise ref_conflict_error(kind, ref)
    known: defaultdict[str, set[bytes]] = defaultdict(set)
    for row in await SQL["find_by_ref"].fetch_all(tx, agent_id=agent_id, kind=kind, refs=list(hashes)):
        known[row["ref"]].add(row["content_hash"])
    for ref, stored in known.items():
        if hashes[ref] not in stored:
            raise ref_conflict_error(kind, ref)
    return set(known)


def ref_conflict_error(kind: Kind, ref: str) -> ConflictError:
    return ConflictError(
        f"The {kind} with the ref {ref!r} exists with other content.", hint="Use another ref for the new content."
    )


async def confirm(tx: Tx, confirmations: Sequence[MemoryConfirmation], *, ctx: WriteContext) -> set[str]:
    """Store confirmations; return the refs of those that were not stored before."""
    if not confirmations:
        return set()
    rows = await SQL["insert_confirmations"].fetch_all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[item.memory_id for item in confirmations],
        refs=[item.ref for item in confirmations],
        sources=[item.source for item in confirmations],
        now=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
    )
    return {row["ref"] for row in rows}


async def add_links(tx: Tx, link_type: LinkType, pairs: Sequence[tuple[UUID, UUID]], *, ctx: WriteContext) -> None:
    """Link the first memory of each pair to the second; links that exist already stay unchanged."""
    if pairs:
        ids, others = zip(*pairs, strict=True)
        await SQL["insert_links"].execute(
            tx, agent_id=ctx.agent_id, memory_ids=ids, link=link_type, other_ids=others, now=ctx.now
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdate:
    """The new short forms of a memory. A `full_text` or `outcome` of None keeps the stored value."""

    memory_id: UUID
    forms: ShortForms
    full_text: str | None = None
    outcome: Outcome | None = None


async def update_memories(tx: Tx, updates: Sequence[MemoryUpdate], *, ctx: WriteContext) -> None:
    """Replace short forms, full texts and outcomes of memories; the former values are kept as versions.

    The search index is not changed.
    """
    memory_ids = [item.memory_id for item in updates]
    await SQL["lock_texts"].execute(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    await SQL["update_texts"].execute(
        tx,
        agent_id=ctx.agent_id,
        version_ids=[new_id() for _ in updates],
        now=ctx.now,
        memory_ids=memory_ids,
        micros=[item.forms.micro for item in updates],
        summaries=[item.forms.summary for item in updates],
        micro_tokens=[item.forms.micro_tokens for item in updates],
        summary_tokens=[item.forms.summary_tokens for item in updates],
        full_texts=[item.full_text for item in updates],
        outcomes=[item.outcome for item in updates],
    )


async def record_access(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID, now: datetime) -> None:
    """Increment the use counts of these memories and set their times of last access."""
    if memory_ids:
        await SQL["record_access"].execute(tx, agent_id=agent_id, memory_ids=memory_ids, now=now)


async def count_by_kind(tx: Tx, *, agent_id: UUID) -> Mapping[str, int]:
    """Return the number of memories of each kind."""
    return {row["kind"]: row["memories"] for row in await SQL["count_by_kind"].fetch_all(tx, agent_id=agent_id)}


async def count_by_language(tx: Tx, *, agent_id: UUID) -> Mapping[str, int]:
    """Return the number of searchable memories by the code of their language, the most frequent first."""
    rows = await SQL["count_by_language"].fetch_all(tx, agent_id=agent_id)
    return {row["language"]: row["memories"] for row in rows}


def _to_row(memory: NewMemory) -> dict[str, object]:
    """Return a memory as the JSON object that the SQL statement `insert_memories` reads."""
    language = detect_language(memory.embedding_text or memory.indexed_text)
    return {
        "memory_id": str(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "micro": memory.forms.micro,
        "summary": memory.forms.summary,
        "full_text": memory.full_text,
        "micro_tokens": memory.forms.micro_tokens,
        "summary_tokens": memory.forms.summary_tokens,
        "language": language,
        "words": prepare_words(memory.indexed_text, max_characters=MAX_TEXT_CHARACTERS, language=language),
        "cue": memory.embedding_text,
        "occurred_at": memory.occurred_at.isoformat(),
        "created_at": memory.ctx.now.isoformat(),
        "origin": memory.ctx.origin,
        "trust": memory.ctx.trust,
        "quarantined": is_quarantined(memory.ctx.trust, needs_approval=memory.needs_approval),
        "prefix_length": memory.long_forms.prefix_length if memory.long_forms else 0,
        "full_tokens": memory.long_forms.full_tokens if memory.long_forms else None,
        "windows": [
            [window.text, window.tokens, prepare_words(window.text, language=language)]
            for window in (memory.long_forms.windows if memory.long_forms else ())
        ],
        "content_hash": memory.content_hash.hex(),
        "ref": memory.ref,
        "confidence": memory.confidence,
        "importance": memory.importance,
        "outcome": memory.outcome,
        "thread": str(memory.thread_id) if memory.thread_id else None,
        "place": memory.position,
        "standing": memory.standing,
        "times": [
            {"starts": s.start.isoformat(), "ends": s.end.isoformat()}
            for s in memory.mentioned_times
            if s.start and s.end
        ],
    }


async def lock_entities(tx: Tx, *, agent_id: UUID) -> None:
    """Make other writers of the agent's entities, relations and mentions wait until the transaction ends."""
    await SQL["lock_entities"].execute(tx, agent_id=agent_id)
