"""Sessions and their append-only messages.

Each new message is also stored as a memory of the kind `exchange`, and the result of a tool as an event.
"""

import asyncio
import json
import shlex
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from newton.concurrency import compute
from newton.db.driver import STATEMENT_ERRORS
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.artifact_recorder import ArtifactRecorder, DigestInput, NewArtifacts, render_digest
from newton.dialogue.artifacts import ArtifactWriter
from newton.dialogue.brief import brief_store
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.extractive_summary import RULES_VERSION, truncate_middle
from newton.dialogue.messages import Message, StoredMessage, dump_calls, shorten_calls, to_memory, to_observations
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.dialogue.veils import leave_out_forgotten, withhold
from newton.dialogue.view import CompactionEntry
from newton.errors import ConflictError, InputError, NotFoundError
from newton.fault_isolation import OPERATION_ERRORS, run_part
from newton.heart.events import event_store
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import (
    PERSON_TIERS,
    UNTRUSTED_TIERS,
    NewMemory,
    TokenCounter,
    Trust,
    WriteContext,
    lowest_known_trust,
)
from newton.memory.tombstones import is_redacted, seal_ref
from newton.providers.chat import ToolCall

SQL = load("newton.dialogue", "sessions.sql")

# A message with more tokens than the first number is truncated to the second: tool output and arguments, other text.
TRIM_TOOL_TOKENS = (5_000, 2_000)
TRIM_TOKENS = (20_000, 8_000)
MESSAGE_CHARS = 200  # the work for a message besides its text, as characters
MAX_FOLDER_SESSIONS = 50
STORED_FIELDS = ("role", "name", "content", "is_notice", "tool_call_id", "min_trust")
SHORTENED_CALL_NOTE = "[What I gave to the tool is shown in short.]"


async def ensure_session(tx: Tx, *, agent_id: UUID, ref: str, now: datetime) -> UUID:
    """Return the id of the session `ref`. Create the session if it does not exist."""
    return (await get_or_create(tx, agent_id=agent_id, ref=ref, now=now))[0]


async def get_or_create(tx: Tx, *, agent_id: UUID, ref: str, now: datetime) -> tuple[UUID, bool]:
    """Return the id of the session `ref`, and whether it was created just now."""
    session_id = new_id()
    row = await SQL["get_or_create"].fetch_one(tx, agent_id=agent_id, session_id=session_id, ref=ref, now=now)
    row = row or await SQL["find_by_ref"].fetch_one(tx, agent_id=agent_id, ref=ref)
    assert row is not None
    return row["session_id"], row["session_id"] == session_id


async def get_session_id(tx: Tx, *, agent_id: UUID, ref: str) -> UUID:
    """Return the id of the session `ref`. Raises NotFoundError if there is none."""
    row = await SQL["find_by_ref"].fetch_one(tx, agent_id=agent_id, ref=ref)
    if row is None:
        hint = f"`newton sessions` lists the sessions; `newton chat --session {shlex.quote(ref)}` creates this session."
        raise NotFoundError(f"There is no session {ref!r}.", hint=hint)
    return row["session_id"]


async def list_folder(tx: Tx, *, agent_id: UUID, ref: str) -> list[UUID]:
    """Return the latest sessions whose names begin with the same folder: the part of `ref` before the first slash.

    A name without a slash has no folder, so the result is empty.
    """
    folder, slash, _ = ref.partition("/")
    if not (folder and slash):
        return []
    rows = await SQL["list_folder"].fetch_all(tx, agent_id=agent_id, folder=folder, max_rows=MAX_FOLDER_SESSIONS)
    return [row["session_id"] for row in rows]


async def get_ref(tx: Tx, *, agent_id: UUID, session_id: UUID) -> str:
    """Return the name (ref) of a session."""
    row = await SQL["get_ref"].fetch_one(tx, agent_id=agent_id, session_id=session_id)
    assert row is not None
    return row["ref"]


async def append(
    tx: Tx,
    messages: Sequence[Message],
    *,
    session_id: UUID,
    ctx: WriteContext,
    sizes: SummarySizes = DEFAULT_SIZES,
    missing: MutableMapping[str, str] | None = None,
) -> list[StoredMessage]:
    """Append the messages that are new to the session, in order, and return them with their positions.

    A message whose caller's id (`ref`) is stored is skipped. A reply with unknown `min_trust` gets the lowest trust of
    the tool and web text before it. Records derived from the messages, such as the brief and summaries of `sizes`, are
    stored too; one that fails is entered in `missing`. What persons want left out is replaced by a
    mark. Raises ConflictError if a skipped message has other content, and InputError for a tool result whose call is
    unknown or has a result already.
    """
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
    new_messages, last_position = await _filter_new(tx, messages, session_id=session_id, ctx=ctx)
    if not new_messages:
        return []
    new_messages = await _mark_replies(tx, new_messages, session_id=session_id, ctx=ctx)
    new_messages = await leave_out_forgotten(tx, new_messages, ctx=ctx)
    calls = await _match_tool_results(tx, new_messages, session_id=session_id, ctx=ctx)
    withheld = await withhold(tx, new_messages, session_id=session_id, ctx=ctx)
    new_messages, wills = [line for line, _ in withheld], [will for _, will in withheld]
    count, chars = ctx.count_tokens, sum(MESSAGE_CHARS + len(message.content) for message in new_messages)
    tokens = await compute(lambda: [_count_tokens(message, count) for message in new_messages], chars=chars)
    stored = [
        StoredMessage(session_id=session_id, position=position, tokens=size, message=message, will=will)
        for position, (message, size, will) in enumerate(
            zip(new_messages, tokens, wills, strict=True), last_position + 1
        )
    ]
    rows = json.dumps([_to_row(item, ctx.now) for item in stored])
    await SQL["insert_messages"].execute(tx, agent_id=ctx.agent_id, session_id=session_id, messages=rows)
    ids = {item.position: new_id() for item in stored if item.message.is_remembered}
    exchanges = [item for item in stored if item.position in ids]
    memories = await compute(lambda: _to_memories(exchanges, ids, calls, ctx), chars=chars)
    new = await store.remember(tx, agent_id=ctx.agent_id, memories=memories)
    new_ids = {position: memory_id for position, memory_id in ids.items() if memory_id in new}
    derived = DerivedRecords(tx=tx, session_id=session_id, ctx=ctx, sizes=sizes, stored=stored, calls=calls)
    await derived.record(new_ids, missing={} if missing is None else missing)
    return stored


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedRecords:
    """Stores what is derived from new messages: chunks of outputs, brief, observations, artifacts and short forms.

    If the computation of one kind of record fails, only this kind is lost. An error of a database statement aborts the
    transaction.
    """

    tx: Tx
    session_id: UUID
    ctx: WriteContext
    sizes: SummarySizes
    stored: Sequence[StoredMessage]
    calls: Mapping[str, ToolCall]

    async def record(self, new_ids: Mapping[int, UUID], *, missing: MutableMapping[str, str]) -> None:
        """Store the records. `new_ids` are the new memories by positions of messages; failures go to `missing`."""
        tx, ctx, session_id = self.tx, self.ctx, self.session_id
        exchanges = [item for item in self.stored if item.message.is_remembered]
        chars = sum(MESSAGE_CHARS + len(item.message.content) for item in exchanges)
        passed = (*OPERATION_ERRORS, *STATEMENT_ERRORS)
        writer = ArtifactWriter(session_id=session_id, ctx=ctx, sizes=self.sizes)
        splitting = writer.split_tool_outputs(exchanges, new_ids, self.calls)
        await writer.store(tx, await run_part("stored outputs", splitting, default=[], missing=missing))
        reading = brief_store.compute_update(tx, self.stored, new_ids, session_id=session_id, ctx=ctx)
        brief = await run_part("brief of the session", reading, default=None, missing=missing, passed=passed)
        if brief:
            await brief_store.save(tx, brief, session_id=session_id, ctx=ctx)
        observing = compute(lambda: to_observations(exchanges, new_ids, self.calls), chars=chars)
        observations = await run_part("observations", observing, default=[], missing=missing)
        await event_store.record_events(tx, observations, ctx=ctx)
        recorder = ArtifactRecorder(session_id=session_id, ctx=ctx)
        finding = recorder.find_new(tx, self.stored, self.calls)
        found = await run_part("artifacts", finding, default=NewArtifacts(), missing=missing, passed=passed)
        digests = await recorder.store(tx, found)
        # in a thread: the digest of a very long text takes a second
        trimming = asyncio.to_thread(
            _trim_messages, self.stored, digests, created_at=ctx.now, count_tokens=ctx.count_tokens
        )
        trims = await run_part("digests", trimming, default=[], missing=missing)
        await entry_store.insert(tx, trims, agent_id=ctx.agent_id, session_id=session_id)


def _to_memories(
    exchanges: Sequence[StoredMessage], ids: Mapping[int, UUID], calls: Mapping[str, ToolCall], ctx: WriteContext
) -> list[NewMemory]:
    return [
        to_memory(item, memory_id=ids[item.position], ctx=ctx, call=calls.get(item.message.tool_call_id or ""))
        for item in exchanges
    ]


async def _filter_new(
    tx: Tx, messages: Sequence[Message], *, session_id: UUID, ctx: WriteContext
) -> tuple[list[Message], int]:
    """Return the messages that are not stored, and the position of the last stored message; -1 if there is none."""
    by_ref: dict[str, Message] = {}
    for line in messages:
        _check_unchanged(line, by_ref.setdefault(line.stable_ref, line).immutable_fields)
    sealed = {seal_ref(ref, agent_id=ctx.agent_id): ref for ref, line in by_ref.items() if line.ref is None}
    refs = [*by_ref, *sealed]
    rows = await SQL["find_messages"].fetch_all(tx, agent_id=ctx.agent_id, session_id=session_id, refs=refs)
    for row in rows:
        if row["ref"] is not None:
            line = by_ref.pop(sealed.get(row["ref"], row["ref"]))
            stored = log.to_stored_message(row, session_id).message
            if not is_redacted(stored.content):
                _check_unchanged(line, stored.immutable_fields)
    last_position = rows[0]["last_position"]
    return list(by_ref.values()), -1 if last_position is None else last_position


async def _mark_replies(tx: Tx, messages: Sequence[Message], *, session_id: UUID, ctx: WriteContext) -> list[Message]:
    """Return the messages; replies with unknown `min_trust` get the lowest trust of foreign text before them."""
    if not any(map(_is_unmarked_reply, messages)):
        return list(messages)
    lowest = await find_foreign_trust(tx, session_id=session_id, agent_id=ctx.agent_id)
    marked = list[Message]()
    for line in messages:
        marked.append(replace(line, min_trust=lowest) if _is_unmarked_reply(line) else line)
        if line.trust in UNTRUSTED_TIERS and not line.is_notice:
            lowest = lowest_known_trust([lowest, line.trust])
    return marked


def cap_trust(messages: Sequence[Message], trust: Trust) -> list[Message]:
    """Return the messages as a writer of this trust hands them over: what a model says of a user is its own report."""
    if trust in PERSON_TIERS:
        return list(messages)
    return [
        replace(one, min_trust=lowest_known_trust([one.min_trust, trust])) if one.role == "user" else one
        for one in messages
    ]


async def find_foreign_trust(tx: Tx, *, session_id: UUID, agent_id: UUID) -> Trust | None:
    """Return the lowest trust of the messages with text of tools or the web in a session; None if it has none."""
    rows = await SQL["list_foreign_trusts"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return lowest_known_trust(row["trust"] for row in rows)


def _is_unmarked_reply(line: Message) -> bool:
    return line.role == "assistant" and line.min_trust is None and not line.is_notice


async def _match_tool_results(
    tx: Tx, messages: Sequence[Message], *, session_id: UUID, ctx: WriteContext
) -> Mapping[str, ToolCall]:
    """Return the calls to which the messages contain results, by id.

    Raises InputError unless each result has a preceding call without a result, because model APIs reject other
    conversations.
    """
    open_calls = await _find_open_calls(tx, messages, session_id=session_id, agent_id=ctx.agent_id)
    answered: dict[str, ToolCall] = {}
    for line in messages:
        if line.tool_call_id:
            if line.tool_call_id not in open_calls:
                raise InputError(
                    f"The tool result answers the call {line.tool_call_id!r}, which is not open in this session.",
                    hint="Send the assistant's message with that call first, and one result for each call.",
                )
            answered[line.tool_call_id] = open_calls.pop(line.tool_call_id)
        open_calls |= {call.id: call for call in line.calls}
    return answered


async def _find_open_calls(
    tx: Tx, messages: Sequence[Message], *, session_id: UUID, agent_id: UUID
) -> dict[str, ToolCall]:
    """Return the calls of the session that have no result yet and to which one of the messages is the result, by id."""
    call_ids = [line.tool_call_id for line in messages if line.tool_call_id]
    if not call_ids:
        return {}
    rows = await SQL["find_tool_calls"].fetch_all(tx, agent_id=agent_id, session_id=session_id, call_ids=call_ids)
    return {row["id"]: ToolCall(row["id"], row["name"], row["arguments"]) for row in rows if not row["answered"]}


async def detach_results(tx: Tx, messages: Sequence[Message], *, session_id: UUID, agent_id: UUID) -> list[Message]:
    """Return the messages, without the call ids of tool results that have no open call.

    Such results occur if the client has cut the call away, or if the call has a result already.
    """
    open_calls = {*await _find_open_calls(tx, messages, session_id=session_id, agent_id=agent_id)}
    detached: list[Message] = []
    for line in messages:
        is_open = line.tool_call_id is None or line.tool_call_id in open_calls
        detached.append(line if is_open else replace(line, tool_call_id=None))
        open_calls = (open_calls - {line.tool_call_id}) | {call.id for call in line.calls}
    return detached


def _trim_messages(
    stored: Sequence[StoredMessage],
    digests: Mapping[int, DigestInput],
    *,
    created_at: datetime,
    count_tokens: TokenCounter,
) -> list[CompactionEntry]:
    trims = [
        trim_message(item, digests.get(item.position), created_at=created_at, count_tokens=count_tokens)
        for item in stored
    ]
    return [entry for entry in trims if entry]


def trim_message(
    stored: StoredMessage, digest: DigestInput | None, *, created_at: datetime, count_tokens: TokenCounter
) -> CompactionEntry | None:
    """Return a short form, as a compaction entry, of a message that is too long to be sent whole; else None. Pure.

    It is the digest of the artifact that holds the text or, without one, the beginning and the end of the text.
    """
    line = stored.message
    trigger, limit = TRIM_TOOL_TOKENS if line.role == "tool" else TRIM_TOKENS
    call_tokens = _count_call_tokens(line.calls, count_tokens)
    text_tokens = stored.tokens - call_tokens
    if text_tokens <= trigger and call_tokens <= TRIM_TOOL_TOKENS[0]:
        return None
    text = line.content or SHORTENED_CALL_NOTE
    if text_tokens > trigger:
        text = (
            render_digest(digest, max_tokens=limit, count_tokens=count_tokens)
            if digest
            else truncate_middle(line.content, max_tokens=limit, count_tokens=count_tokens)
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


def _count_tokens(message: Message, count_tokens: TokenCounter) -> int:
    return max(count_tokens(message.content) + _count_call_tokens(message.calls, count_tokens), 1)


def _count_call_tokens(calls: Sequence[ToolCall], count_tokens: TokenCounter) -> int:
    text = dump_calls(calls)
    return count_tokens(text) if text else 0


def _check_unchanged(message: Message, stored_fields: object) -> None:
    if message.immutable_fields != stored_fields:
        raise ConflictError(
            f"The message {message.stable_ref!r} of this session exists with other content.",
            hint="Messages are immutable; send the new content with another ref.",
        )


def _to_row(stored: StoredMessage, now: datetime) -> dict[str, object]:
    message = stored.message
    return {
        **{name: getattr(message, name) for name in STORED_FIELDS},
        "position": stored.position,
        "ref": message.stable_ref,
        "calls": [call._asdict() for call in message.calls] or None,
        "tokens": stored.tokens,
        "said_at": message.said_at.isoformat(),
        "recorded_at": now.isoformat(),
    }
