"""The message log of a session, with the stored blocks of its prompts and the leases that serialize its turns."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import FAILURE_PREFIX, Message, StoredMessage
from newton.dialogue.view import (
    MESSAGE_TOKENS,
    CompactionEntry,
    InjectedText,
    MemoryBlock,
    ViewMessage,
    add_memory_blocks,
    build_view,
)
from newton.memory.memory import Trust
from newton.providers.chat import ToolCall

SQL = load("newton.dialogue", "log.sql")

BlockKind = Literal["system", "memory"]
FORGOTTEN = "[forgotten]"  # the text of a block of which a memory was forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlock:
    """A text that Newton added to a prompt of a session, as it was sent: the system message, or text before an input.

    `position` is that of the input. `edition` names what a system message was made for. `min_trust` is the lowest trust
    of the quarantined memories in it, `memory_ids` are the memories that it may state, and `bundle_id` is the context
    from which it was made.
    """

    kind: BlockKind
    position: int
    text: str
    tokens: int
    edition: str = ""
    min_trust: Trust | None = None
    bundle_id: UUID | None = None
    memory_ids: tuple[UUID, ...] = ()


async def insert_block(tx: Tx, block: PromptBlock, *, session_id: UUID, agent_id: UUID, now: datetime) -> None:
    """Store a block of a prompt, unless an earlier model call of the turn has stored one for its kind and position."""
    await SQL["insert_block"].execute(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        position=block.position,
        kind=block.kind,
        edition=block.edition,
        text=block.text,
        tokens=block.tokens,
        min_trust=block.min_trust,
        now=now,
        bundle_id=block.bundle_id,
        memory_ids=list(block.memory_ids),
    )


async def find_system_block(tx: Tx, *, session_id: UUID, agent_id: UUID) -> tuple[datetime, PromptBlock | None]:
    """Return the time when a session began, and its latest system message; None if none or a part was forgotten."""
    row = await SQL["get_system_block"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    if row["text"] in (None, FORGOTTEN):
        return row["created_at"], None
    own = {name: row[name] for name in ("position", "text", "tokens", "edition")}
    return row["created_at"], PromptBlock(kind="system", **own)


async def load_memory_blocks(
    tx: Tx, ranges: Sequence[tuple[int, int]], *, session_id: UUID, agent_id: UUID
) -> Mapping[int, MemoryBlock]:
    """Return the memory texts that were sent before the inputs in these ranges, by the positions of the inputs."""
    rows = await SQL["list_memory_blocks"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        firsts=[first for first, _ in ranges],
        lasts=[last for _, last in ranges],
    )
    return {row["position"]: MemoryBlock(row["text"], row["tokens"], row["min_trust"]) for row in rows}


async def load_blocks(tx: Tx, *, session_id: UUID, agent_id: UUID) -> Mapping[tuple[BlockKind, int], str]:
    """Return the texts that Newton added to the prompts of a session, by kind (system or memory) and position."""
    rows = await SQL["list_blocks"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return {(row["kind"], row["position"]): row["text"] for row in rows}


MAX_POSITION = 2**31 - 1
MESSAGE_COLUMNS = ("role", "name", "content", "said_at", "ref", "is_notice", "tool_call_id", "min_trust")


class MessageRange(NamedTuple):
    """The messages `first` to `last` (inclusive) of a session; `without_text` omits their content."""

    first: int
    last: int
    without_text: bool = False


class AncestorRange(NamedTuple):
    """A session from which a branch continues, and the range of its messages that the branch includes."""

    session_id: UUID
    first: int
    last: int


class InjectedRange(NamedTuple):
    """The messages `first` to `last` of session `ref`, shown after position `place` of another session."""

    injection_id: UUID
    place: int
    ref: str
    first: int
    last: int
    tokens: int
    at: datetime
    other_id: UUID


class ViewSources(NamedTuple):
    """The data that change whenever a view (the messages that a model is sent) changes.

    `entries` are the compaction entries in it; `forgotten_count` counts the deleted memories of the agent.
    """

    entries: Sequence[CompactionEntry]
    forgotten_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedView:
    """The messages of a session for a model (its view), with the data that change whenever the view changes.

    `pinned` are the positions of messages that a person restored after they had been summarized.
    """

    view: Sequence[ViewMessage]
    sources: ViewSources
    pinned: frozenset[int]


async def lock_session(tx: Tx, *, agent_id: UUID, session_id: UUID) -> None:
    """Lock the session until the transaction ends, so that no other can append, compact or branch."""
    await SQL["lock_session"].execute(tx, agent_id=agent_id, session_id=session_id)


async def load_view(tx: Tx, *, agent_id: UUID, session_id: UUID) -> LoadedView:
    """Load the view of a session: its messages as a model is sent them, some replaced by summaries (entries).

    Messages that an entry replaces are not read.
    """
    flags, sources = await _load_sources(tx, agent_id, session_id)
    entries = sources.entries
    ranges = _uncovered_ranges(entries)
    log = await load_messages(tx, ranges, agent_id=agent_id, session_id=session_id)
    shown = [(part.first, part.last) for part in ranges if not part.without_text]
    blocks = await load_memory_blocks(tx, shown, agent_id=agent_id, session_id=session_id)
    injected = await _load_injected(tx, agent_id=agent_id, session_id=session_id) if flags["injected"] else ()
    return LoadedView(
        view=add_memory_blocks(build_view(log, entries, injected), blocks),
        sources=sources,
        pinned=await _load_restored(tx, agent_id=agent_id, session_id=session_id) if flags["restored"] else frozenset(),
    )


async def load_sources(tx: Tx, *, agent_id: UUID, session_id: UUID) -> ViewSources:
    """Return the data that change whenever the view (the messages that a model is sent) changes, to compare them."""
    return (await _load_sources(tx, agent_id, session_id))[1]


async def _load_sources(tx: Tx, agent_id: UUID, session_id: UUID) -> tuple[Record, ViewSources]:
    """Return whether the session has restored entries or injected messages, and the data of `load_sources`."""
    rows = await SQL["read_view_sources"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    entries = [to_entry(row) for row in rows if row["entry_id"] is not None]
    return rows[0], ViewSources(entries, rows[0]["forgotten"])


async def load_messages(
    tx: Tx, ranges: Sequence[MessageRange], *, agent_id: UUID, session_id: UUID
) -> list[StoredMessage]:
    """Return the messages in these ranges, in order."""
    rows = await SQL["list_message_ranges"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        firsts=[part.first for part in ranges],
        lasts=[part.last for part in ranges],
        bare=[part.without_text for part in ranges],
    )
    return [to_stored_message(row, session_id) for row in rows]


async def find_quarantined_trust(
    tx: Tx, view: Sequence[ViewMessage], *, agent_id: UUID, session_id: UUID
) -> set[Trust]:
    """Return the trust levels of the quarantined messages in a view (the messages that a model is sent).

    Quarantined messages are not found by searches of other sessions.
    """
    session_items = [item for item in view if item.kind != "injected"]
    rows = await SQL["list_quarantined_trusts"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        firsts=[item.first for item in session_items],
        lasts=[item.last for item in session_items],
        positions=[item.first for item in view if item.kind == "injected"],
    )
    return {row["trust"] for row in rows}


async def list_quarantined_replies(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[UUID]:
    """Return the memories of the quarantined replies of a session, also of those that a branch inherits.

    Searches in the session include them, because they repeat only texts that its model has read.
    """
    rows = await SQL["list_quarantined_replies"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return [row["memory_id"] for row in rows]


async def get_last_position(tx: Tx, *, agent_id: UUID, session_id: UUID) -> int:
    """Return the position of the last message; -1 if there is none."""
    row = await SQL["get_last_position"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return -1 if row["position"] is None else row["position"]


async def has_later_messages(tx: Tx, *, agent_id: UUID, session_id: UUID, position: int) -> bool:
    """Return whether messages follow a position. Notices of Newton that a message has no reply do not count."""
    key = {"agent_id": agent_id, "session_id": session_id, "position": position}
    row = await SQL["has_later_messages"].fetch_one(tx, **key, failure_prefix=FAILURE_PREFIX)
    assert row is not None
    return row["exists"]


async def get_token_count(tx: Tx, *, agent_id: UUID, session_id: UUID) -> int:
    """Return the tokens of all messages of a session, including the overhead of each message."""
    row = await SQL["measure_conversation"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return row["tokens"] + MESSAGE_TOKENS * row["lines"]


def to_stored_message(row: Record, session_id: UUID) -> StoredMessage:
    """Convert a database row to a message."""
    calls = tuple(ToolCall(**call) for call in json.loads(row["calls"] or "[]"))
    message = Message(**{name: row[name] for name in MESSAGE_COLUMNS}, calls=calls)
    return StoredMessage(session_id=session_id, position=row["position"], tokens=row["tokens"], message=message)


def to_entry(row: Record) -> CompactionEntry:
    """Convert a database row to a compaction entry."""
    return CompactionEntry(**{field.name: row[field.name] for field in fields(CompactionEntry)})


def _uncovered_ranges(entries: Sequence[CompactionEntry]) -> list[MessageRange]:
    """Return the ranges of messages to read: those outside of entries, and the first message of each entry.

    The first message of an entry is read without its text.
    """
    ranges: list[MessageRange] = []
    start = 0
    for one in entries:
        if one.first > start:
            ranges.append(MessageRange(start, one.first - 1))
        ranges.append(MessageRange(one.first, one.first, without_text=True))
        start = one.last + 1
    return [*ranges, MessageRange(start, MAX_POSITION)]


async def _load_restored(tx: Tx, *, agent_id: UUID, session_id: UUID) -> frozenset[int]:
    rows = await SQL["list_restored_ranges"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return frozenset(place for row in rows for place in range(row[0], row[1] + 1))


async def list_injections(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[InjectedRange]:
    """Return the ranges of messages of other sessions that are shown in a session."""
    rows = await SQL["list_injections"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return [InjectedRange(*row) for row in rows]


async def _load_injected(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[InjectedText]:
    injected: list[InjectedText] = []
    for one in await list_injections(tx, agent_id=agent_id, session_id=session_id):
        other = await load_messages(tx, [MessageRange(one.first, one.last)], agent_id=agent_id, session_id=one.other_id)
        injected.append(InjectedText(one.place, render_injection(one.ref, other), one.tokens))
    return injected


def render_injection(ref: str, messages: Sequence[StoredMessage]) -> str:
    """Render messages of another session as one text. Pure."""
    lines = [
        f"{p.message.speaker}: {' '.join(filter(None, (p.message.content, *map(_render_call, p.message.calls))))}"
        for p in messages
    ]
    return "\n".join([f"[From {ref}]", *lines])


def _render_call(call: ToolCall) -> str:
    return f"→ {call.name} {call.arguments}"


LeasePurpose = Literal["turn", "compaction"]


class MessageFingerprint(NamedTuple):
    """A message with its fingerprint, a hash of the message and all messages before it.

    `is_reported` means that a model, and no person, handed over a line of the user up to it.
    """

    session_id: UUID
    position: int
    fingerprint: str
    is_reported: bool


class TurnStart(NamedTuple):
    """The first data of a turn: the tool calls of the session without a result, in order, and a branch's ancestors.

    `ancestors` are the sessions from which a branch continues, with the messages that it includes.
    """

    open_calls: Sequence[ToolCall]
    ancestors: Sequence[AncestorRange]


async def acquire_lease(
    tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID, seconds: float
) -> bool:
    """Acquire the lease of a session (only its holder runs a turn or a compaction there) for `seconds`, or extend it.

    Return False if another holder has it.
    """
    key = {"agent_id": agent_id, "session_id": session_id, "purpose": purpose, "holder": holder}
    return await SQL["acquire"].fetch_one(tx, **key, seconds=seconds) is not None


async def renew_lease(
    tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID, seconds: float
) -> bool:
    """Extend the lease of a session by `seconds` from now. Return False if it was released or another holder has it."""
    key = {"agent_id": agent_id, "session_id": session_id, "purpose": purpose, "holder": holder}
    return await SQL["renew"].fetch_one(tx, **key, seconds=seconds) is not None


async def release_lease(tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID) -> bool:
    """Release the lease of a session. Return False if `holder` does not have it."""
    key = {"agent_id": agent_id, "session_id": session_id, "purpose": purpose, "holder": holder}
    return await SQL["release"].fetch_one(tx, **key) is not None


async def read_turn_start(tx: Tx, *, agent_id: UUID, session_id: UUID) -> TurnStart:
    """Return the first data of a turn: the session's tool calls without a result, and the ancestors of a branch."""
    rows = await SQL["read_turn_start"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return TurnStart(
        open_calls=[ToolCall(*row[:3]) for row in rows if row["ancestor_id"] is None],
        ancestors=[AncestorRange(*row[3:]) for row in rows if row["ancestor_id"] is not None],
    )


async def find_by_fingerprint(
    tx: Tx, fingerprints: Sequence[str], *, agent_id: UUID, ref: str
) -> list[MessageFingerprint]:
    """Return the messages of session `ref` and its branches (`ref~…`) with one of these fingerprints.

    A fingerprint is a hash of a message and all messages before it.
    """
    query = SQL["find_by_fingerprint"]
    rows = await query.fetch_all(tx, agent_id=agent_id, ref=ref, fingerprints=list(fingerprints))
    return [MessageFingerprint(*row) for row in rows]
