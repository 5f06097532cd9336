"""Storage of bundles and of the turns that they served."""

import functools
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Literal
from uuid import UUID

from newton.cognition.assembly import (
    always_on,
    assembler,
    assembly_input,
    candidate_sections,
    exclusion_rules,
    fact_labels,
    fill,
    relevance_floor,
    render,
    scored_candidate,
    sections,
)
from newton.cognition.bundles.bundle import Bundle, RefreshMethod
from newton.cognition.bundles.replay import MemoryHistory
from newton.cognition.bundles.trace import StoredBundle, decode_candidates, decode_trace, encode_bundle
from newton.cognition.scoring import score
from newton.content import profiles
from newton.db.pool import Tx, note_stored_context, visit_agent
from newton.db.queries import load
from newton.dialogue.log import MessageRange
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory import memory_reader
from newton.memory.lookup import MIN_ID_DIGITS
from newton.memory.search_types import BestWindow
from newton.memory.store import record_access

SQL = load("newton.cognition.bundles", "bundle_store.sql")

AnsweredBy = Literal["model", "memory", "censor", "will"]
LATEST, PREVIOUS = "latest", "previous"
RULE_MODULES: Sequence[ModuleType] = (
    score,
    always_on,
    assembler,
    assembly_input,
    candidate_sections,
    exclusion_rules,
    fact_labels,
    fill,
    relevance_floor,
    render,
    scored_candidate,
    sections,
    profiles,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleSummary:
    """A bundle (stored context) in a list of bundles."""

    bundle_id: UUID
    created_at: datetime
    as_of: datetime | None
    session: str | None
    frame: str
    tokens: int
    budget: int
    input: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A finished turn: its bundle (stored context), and the positions of its input and its reply in the session."""

    agent_id: UUID
    session_id: UUID
    bundle_id: UUID
    created_at: datetime
    method: RefreshMethod
    reason: str
    answered_by: AnsweredBy
    input_position: int
    reply_position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage:
    """The tokens of a stored context: all, the budget, and those of each layer that is not empty."""

    bundle_id: UUID
    created_at: datetime
    tokens: int
    budget: int
    layers: Mapping[str, int]


async def read_latest_usage(tx: Tx, *, agent_id: UUID, session_id: UUID) -> ContextUsage | None:
    """Return the tokens of the latest context of a session, by layer; None if the session has no stored context."""
    row = await SQL["get_latest_usage"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    if row is None:
        return None
    used = {name: layer["used"] for name, layer in json.loads(row["layers"]).items() if layer["used"]}
    return ContextUsage(
        bundle_id=row["bundle_id"],
        created_at=row["created_at"],
        tokens=row["tokens"],
        budget=row["budget"],
        layers=used,
    )


async def insert_bundle(tx: Tx, bundle: Bundle, *, records_access: bool = False, parent_id: UUID | None = None) -> None:
    """Store the bundle and, with `records_access`, the use of its memories, those of the agent above a project too.

    It must be the first write of the transaction, which then invalidates no cached context.
    """
    if records_access:
        used = [item.memory_id for item in bundle.items]
        await record_access(tx, used, agent_id=bundle.agent_id, now=bundle.created_at)
        if parent_id:
            async with visit_agent(tx, parent_id, home=bundle.agent_id):
                await record_access(tx, used, agent_id=parent_id, now=bundle.created_at)
    encoded = encode_bundle(bundle, rules_hash=compute_rules_hash())
    row = await SQL["insert_bundle"].fetch_one(
        tx,
        agent_id=bundle.agent_id,
        bundle_id=bundle.bundle_id,
        session_id=bundle.session_id,
        created_at=bundle.created_at,
        as_of=bundle.as_of,
        input=bundle.input,
        frame=bundle.frame_choice.frame,
        profile=bundle.profile.name,
        budget=bundle.budget,
        tokens=bundle.tokens,
        text=bundle.text,
        memory_ids=encoded.memory_ids,
        candidates=encoded.candidates,
        trace=encoded.trace.decode(),
    )
    assert row is not None
    note_stored_context(row["transaction_id"])


@functools.cache
def compute_rules_hash() -> str:
    """Return the rules hash: eight hex digits that change with the source code of scoring and assembly."""
    digest = hashlib.sha256()
    for module in RULE_MODULES:
        assert module.__file__
        digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()[:8]


async def insert_turn(tx: Tx, turn: TurnRecord) -> None:
    """Store a finished turn with a reference to its bundle."""
    await SQL["insert_turn"].execute(tx, turn_id=new_id(), **asdict(turn))


async def list_shown_procedures(
    tx: Tx, span: MessageRange, inner: Sequence[MessageRange], *, agent_id: UUID, session_id: UUID
) -> list[UUID]:
    """Return the ids of the procedures in the contexts of a range of messages.

    Messages in the `inner` ranges are skipped.
    """
    rows = await SQL["list_shown_procedures"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        first=span.first,
        last=span.last,
        inner_first=[one.first for one in inner],
        inner_last=[one.last for one in inner],
    )
    return [row["memory_id"] for row in rows]


async def resolve_bundle_ref(tx: Tx, bundle_ref: str, *, agent_id: UUID) -> UUID:
    """Return the id of a bundle. `bundle_ref` is `latest`, `previous`, an id, or its first or last six or more digits.

    Raises InputError for any other reference, NotFoundError if no bundle matches, ConflictError if several do.
    """
    if bundle_ref in (LATEST, PREVIOUS):
        row = await SQL["get_nth_last"].fetch_one(tx, agent_id=agent_id, rows_to_skip=int(bundle_ref == PREVIOUS))
        if row is None:
            missing = "no context yet" if bundle_ref == LATEST else "no context before the latest"
            raise NotFoundError(f"There is {missing}.", hint='`newton context "…"` builds a context.')
        return row["bundle_id"]
    letters = bundle_ref.strip().lower().replace("-", "")
    if len(letters) < MIN_ID_DIGITS or not set(letters) <= set("0123456789abcdef"):
        raise InputError(
            f"{bundle_ref!r} is not the id of a stored context (bundle).",
            hint=f"Give `latest`, the id or at least its last {MIN_ID_DIGITS} digits; `newton bundles` lists the ids.",
        )
    rows = await SQL["find_by_id_part"].fetch_all(tx, agent_id=agent_id, id_part=letters, max_rows=2)
    if not rows:
        raise NotFoundError(
            f"There is no stored context (bundle) {bundle_ref}.",
            hint="`newton bundles` lists the stored contexts. One that expires or has a forgotten memory is deleted.",
        )
    if len(rows) > 1:
        raise ConflictError(
            f"Several stored contexts (bundles) match {bundle_ref}.", hint="Give more digits of the id."
        )
    return rows[0]["bundle_id"]


async def load_bundle(tx: Tx, bundle_id: UUID, *, agent_id: UUID) -> StoredBundle:
    """Load a bundle. Raises NotFoundError if there is none, and ConflictError if it cannot be decoded."""
    row = await SQL["get_bundle"].fetch_one(tx, agent_id=agent_id, bundle_id=bundle_id)
    if row is None:
        raise NotFoundError(
            f"There is no stored context (bundle) {bundle_id}.", hint="`newton bundles` lists the stored contexts."
        )
    columns = dict(row)
    ids, packed, encoded_trace = (columns.pop(name) for name in ("memory_ids", "candidates", "trace"))
    try:
        trace = decode_trace(encoded_trace, input_text=columns["input"])
        candidates, focus = decode_candidates(trace, ids, packed)
    except (ValueError, LookupError) as error:
        raise ConflictError(
            f"The stored context (bundle) {bundle_id} cannot be read: {str(error).splitlines()[0]}.",
            hint="Another version of Newton stored the context, or the database was changed. Build a new context.",
        ) from None
    return StoredBundle(**columns, trace=trace, candidates=candidates, focus=focus)


async def list_bundles(
    tx: Tx, *, agent_id: UUID, limit: int, before: UUID | None = None, session_id: UUID | None = None
) -> list[BundleSummary]:
    """Return the latest bundles, newest first; with `before`, the latest of those older than that bundle.

    `session_id` selects those of one session.
    """
    query = SQL["list_bundles"]
    rows = await query.fetch_all(tx, agent_id=agent_id, before=before, session_id=session_id, max_rows=limit)
    return [BundleSummary(**row) for row in rows]


async def load_memory_histories(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> Mapping[UUID, MemoryHistory]:
    """Return states, former short forms, sources and windows (parts of long texts) of memories that are not deleted."""
    memories = await memory_reader.fetch_memories(tx, memory_ids, agent_id=agent_id, moment=None)
    forms = await memory_reader.read_form_history(tx, agent_id=agent_id, memory_ids=memory_ids)
    sources: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for memory_id, source_id in await SQL["list_sources"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids):
        sources[memory_id].append(source_id)
    windows: defaultdict[UUID, dict[int, BestWindow]] = defaultdict(dict)
    for memory_id, *window in await SQL["list_windows"].fetch_all(tx, agent_id=agent_id, memory_ids=memory_ids):
        windows[memory_id][window[0]] = BestWindow(*window)
    return {
        f.memory_id: MemoryHistory(f, forms[f.memory_id], tuple(sources[f.memory_id]), windows[f.memory_id])
        for f in memories
    }


async def delete_bundles_before(tx: Tx, *, agent_id: UUID, before: datetime) -> int:
    """Delete the bundles created before a moment. Return the number of deleted bundles."""
    row = await SQL["delete_expired"].fetch_one(tx, agent_id=agent_id, moment=before)
    assert row is not None
    return row[0]
