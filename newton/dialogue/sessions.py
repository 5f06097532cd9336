"""Sessions and their messages: append-only, in order, each line once. Every new line becomes an exchange, and what a
tool put out is kept in short as well."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import entries, log
from newton.dialogue.artifacts import Writer
from newton.dialogue.compaction.telling import RULES, trimmed
from newton.dialogue.condensing import USUAL, Sizes
from newton.dialogue.lines import Line, Placed, exchange, in_short, written
from newton.dialogue.view import Entry
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Count, Teller
from newton.providers.chat import Call

SQL = load("newton.dialogue", "sessions.sql")

# From so many tokens on a line is shown in so many at most, its beginning and its end: what a tool gave or was given,
# what was said.
TRIMMED_TOOL = (5_000, 2_000)
TRIMMED = (20_000, 8_000)
CALLED = "[What I gave to the tool is shown in short.]"


async def session(tx: Tx, *, agent_id: UUID, ref: str, now: datetime) -> UUID:
    """The session the caller calls `ref`; begun if there is none yet."""
    return (await begun(tx, agent_id=agent_id, ref=ref, now=now))[0]


async def begun(tx: Tx, *, agent_id: UUID, ref: str, now: datetime) -> tuple[UUID, bool]:
    """The session the caller calls `ref`, and whether it has just begun."""
    session_id = new_id()
    await SQL["insert_session"].run(tx, agent_id=agent_id, session_id=session_id, ref=ref, now=now)
    row = await SQL["find_by_ref"].one(tx, agent_id=agent_id, ref=ref)
    assert row is not None
    return row["session_id"], row["session_id"] == session_id


async def known(tx: Tx, *, agent_id: UUID, ref: str) -> UUID:
    """The session the caller calls `ref`. Raises NotFoundError when none has begun."""
    row = await SQL["find_by_ref"].one(tx, agent_id=agent_id, ref=ref)
    if row is None:
        raise NotFoundError(f"There is no session {ref!r}.", hint=f"`newton chat --session {ref}` begins it.")
    return row["session_id"]


async def ref_of(tx: Tx, *, agent_id: UUID, session_id: UUID) -> str:
    """What the caller calls a session that has begun."""
    row = await SQL["get_ref"].one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return row["ref"]


async def append(tx: Tx, lines: Sequence[Line], *, session_id: UUID, ctx: Teller, sizes: Sizes = USUAL) -> list[Placed]:
    """Adds the lines the session does not have yet, in order, and returns them at their places.

    A line sent again (same ref) is left out. Raises ConflictError when a known ref comes with other words, and
    InputError for what a tool answers to a call that nobody made, or that has its answer.
    """
    await log.lock(tx, agent_id=ctx.agent_id, session_id=session_id)
    fresh = await _unknown(tx, lines, session_id=session_id, ctx=ctx)
    if not fresh:
        return []
    calls = await _answered(tx, fresh, session_id=session_id, ctx=ctx)
    start = await log.end(tx, agent_id=ctx.agent_id, session_id=session_id) + 1
    placed = [
        Placed(session_id=session_id, position=start + i, tokens=_tokens(line, ctx.count_tokens), line=line)
        for i, line in enumerate(fresh)
    ]
    rows = json.dumps([_row(p, ctx.now) for p in placed])
    await SQL["insert_messages"].run(tx, agent_id=ctx.agent_id, session_id=session_id, messages=rows)
    memory_ids = {p.position: new_id() for p in placed if p.line.content and not p.line.aside}
    memorable = [p for p in placed if p.position in memory_ids]
    drafts = [
        exchange(p, memory_id=memory_ids[p.position], ctx=ctx, call=calls.get(p.line.answers or "")) for p in memorable
    ]
    new = await store.remember(tx, agent_id=ctx.agent_id, drafts=drafts)
    writer = Writer(session_id=session_id, ctx=ctx, sizes=sizes)
    await writer.keep_outputs(tx, memorable, {p: one for p, one in memory_ids.items() if one in new}, calls)
    trims = [entry for p in placed if (entry := trim(p, at=ctx.now, count=ctx.count_tokens))]
    await entries.insert(tx, trims, agent_id=ctx.agent_id, session_id=session_id)
    return placed


async def _unknown(tx: Tx, lines: Sequence[Line], *, session_id: UUID, ctx: Teller) -> list[Line]:
    by_ref: dict[str, Line] = {}
    for line in lines:
        _same_words(line, by_ref.setdefault(line.own_ref, line).words)
    rows = await SQL["find_messages"].all(tx, agent_id=ctx.agent_id, session_id=session_id, refs=list(by_ref))
    for row in rows:
        _same_words(by_ref.pop(row["ref"]), log.placed(row, session_id).line.words)
    return list(by_ref.values())


async def _answered(tx: Tx, fresh: Sequence[Line], *, session_id: UUID, ctx: Teller) -> Mapping[str, Call]:
    """The calls that are answered, by id.

    Every answer needs its call before it, once: no model reads a conversation in which they do not match.
    """
    wanted = [line.answers for line in fresh if line.answers]
    if not wanted:
        return {}
    rows = await SQL["find_tool_calls"].all(tx, agent_id=ctx.agent_id, session_id=session_id, call_ids=wanted)
    open_ = {row["id"]: Call(row["id"], row["name"], row["arguments"]) for row in rows if not row["answered"]}
    answered: dict[str, Call] = {}
    for line in fresh:
        if line.answers:
            if line.answers not in open_:
                raise InputError(
                    f"A tool answers the call {line.answers!r}, which is not open in this session.",
                    hint="Send the assistant's message with that call first, and one answer to each call.",
                )
            answered[line.answers] = open_.pop(line.answers)
        open_ |= {call.id: call for call in line.calls}
    return answered


def trim(placed: Placed, *, at: datetime, count: Count) -> Entry | None:
    """What is shown of a line that is too long to be shown whole; None for one that is not. Pure."""
    line = placed.line
    longest, shown = TRIMMED_TOOL if line.role == "tool" else TRIMMED
    given = _given(line.calls, count)
    said = placed.tokens - given
    if said <= longest and given <= TRIMMED_TOOL[0]:
        return None
    text = trimmed(line.content, most=shown, count=count) if said > longest else line.content or CALLED
    tokens = count(text) + _given(in_short(line.calls), count)
    if tokens >= placed.tokens:
        return None
    return Entry(
        entry_id=new_id(),
        kind="mask",
        first=placed.position,
        last=placed.position,
        text=text,
        tokens=tokens,
        before=placed.tokens,
        strategy="trim",
        prompt=RULES,
        model=None,
        made_at=at,
    )


def _tokens(line: Line, count: Count) -> int:
    return max(count(line.content) + _given(line.calls, count), 1)


def _given(calls: Sequence[Call], count: Count) -> int:
    text = written(calls)
    return count(text) if text else 0


def _same_words(line: Line, known: object) -> None:
    if line.words != known:
        raise ConflictError(
            f"The line {line.own_ref!r} of this session is there with other words.",
            hint="Messages are never changed; send the new words under a ref of their own.",
        )


def _row(placed: Placed, now: datetime) -> dict[str, object]:
    line = placed.line
    return {
        "position": placed.position,
        "ref": line.own_ref,
        "role": line.role,
        "name": line.name,
        "content": line.content,
        "aside": line.aside,
        "calls": [call._asdict() for call in line.calls] or None,
        "answers": line.answers,
        "tokens": placed.tokens,
        "said_at": line.said_at.isoformat(),
        "recorded_at": now.isoformat(),
    }
