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
from newton.dialogue.lines import Line, Placed
from newton.dialogue.view import MESSAGE_TOKENS, Entry, Injected, Shown, shown
from newton.memory.memory import Trust
from newton.providers.chat import Call

SQL = load("newton.dialogue", "log.sql")

END = 2**31 - 1


class Stretch(NamedTuple):
    """Lines from a place to a place; `bare` without their words."""

    first: int
    last: int
    bare: bool = False


class Origin(NamedTuple):
    """A session that a branch descends from, and the lines of it that the branch begins with."""

    session_id: UUID
    first: int
    last: int


class Injection(NamedTuple):
    """Lines of the session `ref`, both ends included, that are shown behind a place of another; and their tokens."""

    injection_id: UUID
    place: int
    ref: str
    first: int
    last: int
    tokens: int
    at: datetime
    other_id: UUID


class Seen(NamedTuple):
    """What a view was made of: the entries that are shown, and how many memories the agent had been told to forget."""

    entries: Sequence[Entry]
    forgotten: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A view as it was read, with what it was made of, and the lines that were restored."""

    view: Sequence[Shown]
    seen: Seen
    pinned: frozenset[int]


async def lock(tx: Tx, *, agent_id: UUID, session_id: UUID) -> None:
    """Until the end of the unit of work nobody else appends to the session, makes it shorter or branches off."""
    await SQL["lock_session"].run(tx, agent_id=agent_id, session_id=session_id)


async def read(tx: Tx, *, agent_id: UUID, session_id: UUID) -> Read:
    """The view of a session. Reads no line that an entry covers."""
    about, entries = await _about(tx, agent_id, session_id), await _outermost(tx, agent_id, session_id)
    log = await lines(tx, _uncovered(entries), agent_id=agent_id, session_id=session_id)
    injected = await _injected(tx, agent_id=agent_id, session_id=session_id) if about["injected"] else ()
    return Read(
        view=shown(log, entries, injected),
        seen=Seen(entries, about["forgotten"]),
        pinned=await _restored(tx, agent_id=agent_id, session_id=session_id) if about["restored"] else frozenset(),
    )


async def seen(tx: Tx, *, agent_id: UUID, session_id: UUID) -> Seen:
    """What a view of now is made of."""
    about = await _about(tx, agent_id, session_id)
    return Seen(await _outermost(tx, agent_id, session_id), about["forgotten"])


async def _about(tx: Tx, agent_id: UUID, session_id: UUID) -> Record:
    row = await SQL["describe_session"].one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return row


async def _outermost(tx: Tx, agent_id: UUID, session_id: UUID) -> list[Entry]:
    return [entry(row) for row in await SQL["list_outermost_entries"].all(tx, agent_id=agent_id, session_id=session_id)]


async def lines(tx: Tx, parts: Sequence[Stretch], *, agent_id: UUID, session_id: UUID) -> list[Placed]:
    """The lines between places of a conversation, in their order; of the bare ones all but the words."""
    rows = await SQL["list_message_ranges"].all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        firsts=[part.first for part in parts],
        lasts=[part.last for part in parts],
        bare=[part.bare for part in parts],
    )
    return [placed(row, session_id) for row in rows]


async def origins(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[Origin]:
    """The sessions that a branch descends from; none of one that is no branch."""
    rows = await SQL["list_ancestors"].all(tx, agent_id=agent_id, session_id=session_id)
    return [Origin(*row) for row in rows]


async def outside(tx: Tx, view: Sequence[Shown], *, agent_id: UUID, session_id: UUID) -> set[Trust]:
    """How far those lines behind a view are to be believed that are quarantined elsewhere; empty when none is."""
    own = [item for item in view if item.kind != "injected"]
    rows = await SQL["list_quarantined_trusts"].all(
        tx,
        agent_id=agent_id,
        session_id=session_id,
        firsts=[item.first for item in own],
        lasts=[item.last for item in own],
        positions=[item.first for item in view if item.kind == "injected"],
    )
    return {row["trust"] for row in rows}


async def end(tx: Tx, *, agent_id: UUID, session_id: UUID) -> int:
    """The place of its last line; -1 when it has none."""
    row = await SQL["get_last_position"].one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return -1 if row["position"] is None else row["position"]


async def size(tx: Tx, *, agent_id: UUID, session_id: UUID) -> int:
    """What all its lines would cost, with the marks around messages."""
    row = await SQL["measure_conversation"].one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return row["tokens"] + MESSAGE_TOKENS * row["lines"]


def placed(row: Record, session_id: UUID) -> Placed:
    """A line as the database has it."""
    calls = row["calls"]
    return Placed(
        session_id=session_id,
        position=row["position"],
        tokens=row["tokens"],
        line=Line(
            role=row["role"],
            name=row["name"],
            content=row["content"],
            said_at=row["said_at"],
            ref=row["ref"],
            aside=row["aside"],
            calls=tuple(Call(**call) for call in json.loads(calls)) if calls else (),
            answers=row["answers"],
        ),
    )


def entry(row: Record) -> Entry:
    """An entry as the database has it."""
    return Entry(
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


def _uncovered(chosen: Sequence[Entry]) -> list[Stretch]:
    """What has to be read: the lines between the entries, and of a masked line all but its words."""
    parts: list[Stretch] = []
    start = 0
    for one in chosen:
        if one.first > start:
            parts.append(Stretch(start, one.first - 1))
        parts.append(Stretch(one.first, one.first, bare=True))
        start = one.last + 1
    return [*parts, Stretch(start, END)]


async def _restored(tx: Tx, *, agent_id: UUID, session_id: UUID) -> frozenset[int]:
    rows = await SQL["list_restored_ranges"].all(tx, agent_id=agent_id, session_id=session_id)
    return frozenset(place for row in rows for place in range(row[0], row[1] + 1))


async def injections(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[Injection]:
    """Those that are shown in a session."""
    return [Injection(*row) for row in await SQL["list_injections"].all(tx, agent_id=agent_id, session_id=session_id)]


async def _injected(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[Injected]:
    injected: list[Injected] = []
    for one in await injections(tx, agent_id=agent_id, session_id=session_id):
        other = await lines(tx, [Stretch(one.first, one.last)], agent_id=agent_id, session_id=one.other_id)
        injected.append(Injected(one.place, told(one.ref, other), one.tokens))
    return injected


def told(ref: str, other: Sequence[Placed]) -> str:
    """Lines of another branch as they are shown in one. Pure."""
    said = [f"{p.line.speaker}: {' '.join(filter(None, (p.line.content, *map(_called, p.line.calls))))}" for p in other]
    return "\n".join([f"[From {ref}]", *said])


def _called(call: Call) -> str:
    return f"→ {call.name} {call.arguments}"
