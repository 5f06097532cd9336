"""Sessions and their messages: append-only, in order, each line once. Every new line becomes an exchange, and what a
tool put out is kept in short as well."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.artifacts import ArtifactWriter
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.extractive_summary import RULES_VERSION, truncate_middle
from newton.dialogue.messages import Message, StoredMessage, dump_calls, shorten_calls, to_memory
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.dialogue.view import CompactionEntry
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import TokenCounter, WriteContext
from newton.providers.chat import ToolCall

SQL = load("newton.dialogue", "sessions.sql")

# From so many tokens on a line is shown in so many at most, its beginning and its end: what a tool gave or was given,
# what was said.
TRIM_TOOL_TOKENS = (5_000, 2_000)
TRIM_TOKENS = (20_000, 8_000)
SHORTENED_CALL_NOTE = "[What I gave to the tool is shown in short.]"


async def ensure_session(tx: Tx, *, agent_id: UUID, ref: str, now: datetime) -> UUID:
    """The session the caller calls `ref`; begun if there is none yet."""
    return (await get_or_create(tx, agent_id=agent_id, ref=ref, now=now))[0]


async def get_or_create(tx: Tx, *, agent_id: UUID, ref: str, now: datetime) -> tuple[UUID, bool]:
    """The session the caller calls `ref`, and whether it has just begun."""
    session_id = new_id()
    await SQL["insert_session"].execute(tx, agent_id=agent_id, session_id=session_id, ref=ref, now=now)
    row = await SQL["find_by_ref"].fetch_one(tx, agent_id=agent_id, ref=ref)
    assert row is not None
    return row["session_id"], row["session_id"] == session_id


async def get_session_id(tx: Tx, *, agent_id: UUID, ref: str) -> UUID:
    """The session the caller calls `ref`. Raises NotFoundError when none has begun."""
    row = await SQL["find_by_ref"].fetch_one(tx, agent_id=agent_id, ref=ref)
    if row is None:
        raise NotFoundError(f"There is no session {ref!r}.", hint=f"`newton chat --session {ref}` begins it.")
    return row["session_id"]


async def get_ref(tx: Tx, *, agent_id: UUID, session_id: UUID) -> str:
    """What the caller calls a session that has begun."""
    row = await SQL["get_ref"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return row["ref"]


async def append(
    tx: Tx, messages: Sequence[Message], *, session_id: UUID, ctx: WriteContext, sizes: SummarySizes = DEFAULT_SIZES
) -> list[StoredMessage]:
    """Adds the lines the session does not have yet, in order, and returns them at their places.

    A line sent again (same ref) is left out. Raises ConflictError when a known ref comes with other words, and
    InputError for what a tool answers to a call that nobody made, or that has its answer.
    """
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
    fresh = await _filter_new(tx, messages, session_id=session_id, ctx=ctx)
    if not fresh:
        return []
    calls = await _match_tool_results(tx, fresh, session_id=session_id, ctx=ctx)
    start = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=session_id) + 1
    placed = [
        StoredMessage(
            session_id=session_id,
            position=start + i,
            tokens=_count_message_tokens(line, ctx.count_tokens),
            message=line,
        )
        for i, line in enumerate(fresh)
    ]
    rows = json.dumps([_to_row(p, ctx.now) for p in placed])
    await SQL["insert_messages"].execute(tx, agent_id=ctx.agent_id, session_id=session_id, messages=rows)
    memory_ids = {p.position: new_id() for p in placed if p.message.content and not p.message.is_notice}
    memorable = [p for p in placed if p.position in memory_ids]
    drafts = [
        to_memory(p, memory_id=memory_ids[p.position], ctx=ctx, call=calls.get(p.message.tool_call_id or ""))
        for p in memorable
    ]
    new = await store.remember(tx, agent_id=ctx.agent_id, memories=drafts)
    writer = ArtifactWriter(session_id=session_id, ctx=ctx, sizes=sizes)
    await writer.add_tool_outputs(tx, memorable, {p: one for p, one in memory_ids.items() if one in new}, calls)
    trims = [entry for p in placed if (entry := trim_message(p, created_at=ctx.now, count_tokens=ctx.count_tokens))]
    await entry_store.insert(tx, trims, agent_id=ctx.agent_id, session_id=session_id)
    return placed


async def _filter_new(tx: Tx, messages: Sequence[Message], *, session_id: UUID, ctx: WriteContext) -> list[Message]:
    by_ref: dict[str, Message] = {}
    for line in messages:
        _check_unchanged(line, by_ref.setdefault(line.stable_ref, line).immutable_fields)
    rows = await SQL["find_messages"].fetch_all(tx, agent_id=ctx.agent_id, session_id=session_id, refs=list(by_ref))
    for row in rows:
        _check_unchanged(by_ref.pop(row["ref"]), log.to_stored_message(row, session_id).message.immutable_fields)
    return list(by_ref.values())


async def _match_tool_results(
    tx: Tx, messages: Sequence[Message], *, session_id: UUID, ctx: WriteContext
) -> Mapping[str, ToolCall]:
    """The calls that are answered, by id.

    Every answer needs its call before it, once: no model reads a conversation in which they do not match.
    """
    wanted = [line.tool_call_id for line in messages if line.tool_call_id]
    if not wanted:
        return {}
    rows = await SQL["find_tool_calls"].fetch_all(tx, agent_id=ctx.agent_id, session_id=session_id, call_ids=wanted)
    open_ = {row["id"]: ToolCall(row["id"], row["name"], row["arguments"]) for row in rows if not row["answered"]}
    answered: dict[str, ToolCall] = {}
    for line in messages:
        if line.tool_call_id:
            if line.tool_call_id not in open_:
                raise InputError(
                    f"A tool answers the call {line.tool_call_id!r}, which is not open in this session.",
                    hint="Send the assistant's message with that call first, and one answer to each call.",
                )
            answered[line.tool_call_id] = open_.pop(line.tool_call_id)
        open_ |= {call.id: call for call in line.calls}
    return answered


def trim_message(stored: StoredMessage, *, created_at: datetime, count_tokens: TokenCounter) -> CompactionEntry | None:
    """What is shown of a line that is too long to be shown whole; None for one that is not. Pure."""
    line = stored.message
    longest, shown = TRIM_TOOL_TOKENS if line.role == "tool" else TRIM_TOKENS
    given = _count_call_tokens(line.calls, count_tokens)
    said = stored.tokens - given
    if said <= longest and given <= TRIM_TOOL_TOKENS[0]:
        return None
    text = (
        truncate_middle(line.content, max_tokens=shown, count_tokens=count_tokens)
        if said > longest
        else line.content or SHORTENED_CALL_NOTE
    )
    tokens = count_tokens(text) + _count_call_tokens(shorten_calls(line.calls), count_tokens)
    if tokens >= stored.tokens:
        return None
    return CompactionEntry(
        entry_id=new_id(),
        kind="mask",
        first=stored.position,
        last=stored.position,
        text=text,
        tokens=tokens,
        before=stored.tokens,
        strategy="trim",
        prompt=RULES_VERSION,
        model=None,
        made_at=created_at,
    )


def _count_message_tokens(message: Message, count_tokens: TokenCounter) -> int:
    return max(count_tokens(message.content) + _count_call_tokens(message.calls, count_tokens), 1)


def _count_call_tokens(calls: Sequence[ToolCall], count_tokens: TokenCounter) -> int:
    text = dump_calls(calls)
    return count_tokens(text) if text else 0


def _check_unchanged(message: Message, stored_fields: object) -> None:
    if message.immutable_fields != stored_fields:
        raise ConflictError(
            f"The line {message.stable_ref!r} of this session exists with other content.",
            hint="Messages are never changed; send the new words under a ref of their own.",
        )


def _to_row(stored: StoredMessage, now: datetime) -> dict[str, object]:
    line = stored.message
    return {
        "position": stored.position,
        "ref": line.stable_ref,
        "role": line.role,
        "name": line.name,
        "content": line.content,
        "aside": line.is_notice,
        "calls": [call._asdict() for call in line.calls] or None,
        "answers": line.tool_call_id,
        "tokens": stored.tokens,
        "said_at": line.said_at.isoformat(),
        "recorded_at": now.isoformat(),
    }
