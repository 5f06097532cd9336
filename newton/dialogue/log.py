"""The log of a conversation as it is read: a branch begins with the lines of those it descends from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import MESSAGE_TOKENS, CompactionEntry, InjectedText, ViewMessage, build_view
from newton.memory.memory import Trust
from newton.providers.chat import ToolCall

SQL = load("newton.dialogue", "log.sql")

MAX_POSITION = 2**31 - 1


class MessageRange(NamedTuple):
    """Lines from a place to a place; `bare` without their words."""

    first: int
    last: int
    without_text: bool = False


class AncestorRange(NamedTuple):
    """A session that a branch descends from, and the lines of it that the branch begins with."""

    session_id: UUID
    first: int
    last: int


class InjectedRange(NamedTuple):
    """Lines of the session `ref`, both ends included, that are shown behind a place of another; and their tokens."""

    injection_id: UUID
    place: int
    ref: str
    first: int
    last: int
    tokens: int
    at: datetime
    other_id: UUID


class ViewSources(NamedTuple):
    """What a view was made of: the entries that are shown, and how many memories the agent had been told to forget."""

    entries: Sequence[CompactionEntry]
    forgotten_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedView:
    """A view as it was read, with what it was made of, and the lines that were restored."""

    view: Sequence[ViewMessage]
    sources: ViewSources
    pinned: frozenset[int]


async def lock_session(tx: Tx, *, agent_id: UUID, session_id: UUID) -> None:
    """Until the end of the unit of work nobody else appends to the session, makes it shorter or branches off."""
    await SQL["lock_session"].execute(tx, agent_id=agent_id, session_id=session_id)


async def load_view(tx: Tx, *, agent_id: UUID, session_id: UUID) -> LoadedView:
    """The view of a session. Reads no line that an entry covers."""
    about, entries = await _load_flags(tx, agent_id, session_id), await _load_outermost(tx, agent_id, session_id)
    log = await load_messages(tx, _uncovered_ranges(entries), agent_id=agent_id, session_id=session_id)
    injected = await _load_injected(tx, agent_id=agent_id, session_id=session_id) if about["injected"] else ()
    return LoadedView(
        view=build_view(log, entries, injected),
        sources=ViewSources(entries, about["forgotten"]),
        pinned=await _load_restored(tx, agent_id=agent_id, session_id=session_id) if about["restored"] else frozenset(),
    )


async def load_sources(tx: Tx, *, agent_id: UUID, session_id: UUID) -> ViewSources:
    """What a view of now is made of."""
    about = await _load_flags(tx, agent_id, session_id)
    return ViewSources(await _load_outermost(tx, agent_id, session_id), about["forgotten"])


async def _load_flags(tx: Tx, agent_id: UUID, session_id: UUID) -> Record:
    row = await SQL["describe_session"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return row


async def _load_outermost(tx: Tx, agent_id: UUID, session_id: UUID) -> list[CompactionEntry]:
    return [
        to_entry(row)
        for row in await SQL["list_outermost_entries"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    ]


async def load_messages(
    tx: Tx, ranges: Sequence[MessageRange], *, agent_id: UUID, session_id: UUID
) -> list[StoredMessage]:
    """The lines between places of a conversation, in their order; of the bare ones all but the words."""
    rows = await SQL["list_message_ranges"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        firsts=[part.first for part in ranges],
        lasts=[part.last for part in ranges],
        bare=[part.without_text for part in ranges],
    )
    return [to_stored_message(row, session_id) for row in rows]


async def list_ancestors(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[AncestorRange]:
    """The sessions that a branch descends from; none of one that is no branch."""
    rows = await SQL["list_ancestors"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return [AncestorRange(*row) for row in rows]


async def find_quarantined_trust(
    tx: Tx, view: Sequence[ViewMessage], *, agent_id: UUID, session_id: UUID
) -> set[Trust]:
    """How far those lines behind a view are to be believed that are quarantined elsewhere; empty when none is."""
    own = [item for item in view if item.kind != "injected"]
    rows = await SQL["list_quarantined_trusts"].fetch_all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        firsts=[item.first for item in own],
        lasts=[item.last for item in own],
        positions=[item.first for item in view if item.kind == "injected"],
    )
    return {row["trust"] for row in rows}


async def get_last_position(tx: Tx, *, agent_id: UUID, session_id: UUID) -> int:
    """The place of its last line; -1 when it has none."""
    row = await SQL["get_last_position"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return -1 if row["position"] is None else row["position"]


async def get_token_count(tx: Tx, *, agent_id: UUID, session_id: UUID) -> int:
    """What all its lines would cost, with the marks around messages."""
    row = await SQL["measure_conversation"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return row["tokens"] + MESSAGE_TOKENS * row["lines"]


def to_stored_message(row: Record, session_id: UUID) -> StoredMessage:
    """A line as the database has it."""
    calls = row["calls"]
    return StoredMessage(
        session_id=session_id,
        position=row["position"],
        tokens=row["tokens"],
        message=Message(
            role=row["role"],
            name=row["name"],
            content=row["content"],
            said_at=row["said_at"],
            ref=row["ref"],
            is_notice=row["aside"],
            calls=tuple(ToolCall(**call) for call in json.loads(calls)) if calls else (),
            tool_call_id=row["answers"],
        ),
    )


def to_entry(row: Record) -> CompactionEntry:
    """An entry as the database has it."""
    return CompactionEntry(
        entry_id=row["entry_id"],
        kind=row["kind"],
        first=row["first_position"],
        last=row["last_position"],
        text=row["text"],
        tokens=row["tokens"],
        before=row["before"],
        strategy=row["strategy"],
        prompt=row["prompt"],
        model=row["model"],
        made_at=row["made_at"],
    )


def _uncovered_ranges(entries: Sequence[CompactionEntry]) -> list[MessageRange]:
    """What has to be read: the lines between the entries, and of a masked line all but its words."""
    parts: list[MessageRange] = []
    start = 0
    for one in entries:
        if one.first > start:
            parts.append(MessageRange(start, one.first - 1))
        parts.append(MessageRange(one.first, one.first, without_text=True))
        start = one.last + 1
    return [*parts, MessageRange(start, MAX_POSITION)]


async def _load_restored(tx: Tx, *, agent_id: UUID, session_id: UUID) -> frozenset[int]:
    rows = await SQL["list_restored_ranges"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return frozenset(place for row in rows for place in range(row[0], row[1] + 1))


async def list_injections(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[InjectedRange]:
    """Those that are shown in a session."""
    return [
        InjectedRange(*row)
        for row in await SQL["list_injections"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    ]


async def _load_injected(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[InjectedText]:
    injected: list[InjectedText] = []
    for one in await list_injections(tx, agent_id=agent_id, session_id=session_id):
        other = await load_messages(tx, [MessageRange(one.first, one.last)], agent_id=agent_id, session_id=one.other_id)
        injected.append(InjectedText(one.place, render_injection(one.ref, other), one.tokens))
    return injected


def render_injection(ref: str, messages: Sequence[StoredMessage]) -> str:
    """Lines of another branch as they are shown in one. Pure."""
    said = [
        f"{p.message.speaker}: {' '.join(filter(None, (p.message.content, *map(_render_call, p.message.calls))))}"
        for p in messages
    ]
    return "\n".join([f"[From {ref}]", *said])


def _render_call(call: ToolCall) -> str:
    return f"→ {call.name} {call.arguments}"
