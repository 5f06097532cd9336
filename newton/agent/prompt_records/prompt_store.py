"""Storage of records of prompts."""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, cast
from uuid import UUID

from newton.agent.prompt_records.prefix import LAST_PROMPTS
from newton.agent.prompt_records.prompt_encoder import KeptText, SentRequest, TextKind, encode_prompt, hash_sent_request
from newton.agent.prompt_records.spans import PartTokens, PromptOrigin
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log, sessions
from newton.dialogue.log import BlockKind
from newton.dialogue.messages import StoredMessage
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory.lookup import MIN_ID_DIGITS

SQL = load("newton.agent.prompt_records", "prompt_store.sql")

LATEST, PREVIOUS = "latest", "previous"
SALT_BYTES = 16

PromptFinish = Literal["stop", "length", "interrupted", "failed"]


class CallOutcome(NamedTuple):
    """The end of a model call: its id, which its record and its usage share, and the code of its error, if any."""

    call_id: UUID
    finish: PromptFinish
    error: str | None = None


class TurnPlace(NamedTuple):
    """A turn: its session, and the position of its input in the log."""

    session_id: UUID
    input_position: int


class StoredText(NamedTuple):
    """A text of a prompt that is stored nowhere else. `is_exact` is False if a secret was removed from it."""

    kind: TextKind
    content: str
    is_exact: bool


class StoredEntry(NamedTuple):
    """A compaction entry that a prompt contained."""

    entry_id: UUID
    kind: str
    first: int
    last: int
    strategy: str
    model: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecord:
    """The record of the prompt of one model call.

    `input_tokens` and `output_tokens` are what the call cost, as the model reported or, if `estimated`, as counted.
    `served_model` is the model that the server named; null if it reported no usage. `edition_id` names the messages
    before the input: two prompts with the same one differ only in how far the conversation had come. The first
    `identical_chars` of the `message_chars` of its messages were in the prompt before it too, so that a server can
    reuse its prompt cache; `difference` is why that prompt was not repeated to its end. They are null for the first
    prompt of a session, and of a process.
    """

    prompt_id: UUID
    created_at: datetime
    model: str
    served_model: str | None
    finish: PromptFinish
    error: str | None
    max_tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    estimated: bool | None
    tokens: PartTokens
    message_chars: int | None
    identical_chars: int | None
    difference: str | None
    bundle_id: UUID | None
    edition_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPrompt(PromptRecord):
    """A prompt with its turn, and the references from which it is reproduced."""

    session_id: UUID
    session: str
    input_position: int
    view_last: int | None
    tail: str
    text_ids: Sequence[UUID]
    stable_chars: int
    salt: bytes | None
    hash: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSources:
    """The stored data to which the prompts of a turn refer. A key is missing if its text was deleted."""

    texts: Mapping[UUID, StoredText]
    entries: Mapping[UUID, StoredEntry]
    contexts: Mapping[UUID, str]
    blocks: Mapping[tuple[BlockKind, int], str]
    lines: Mapping[int, StoredMessage]


async def insert_prompt(
    tx: Tx,
    sent: SentRequest,
    origin: PromptOrigin,
    outcome: CallOutcome,
    *,
    agent_id: UUID,
    now: datetime,
) -> None:
    """Store the record of a sent prompt; before it, the texts (blocks) that it is the first of the session to send."""
    for block in origin.new_blocks:
        await log.insert_block(tx, block, session_id=origin.session_id, agent_id=agent_id, now=now)
    encoded, salt = encode_prompt(sent, origin), secrets.token_bytes(SALT_BYTES)
    edition = KeptText("edition", encoded.edition)
    prefix = LAST_PROMPTS.replace(agent_id, origin.session_id, sent)
    await SQL["insert_prompt"].execute(
        tx,
        agent_id=agent_id,
        prompt_id=outcome.call_id,
        session_id=origin.session_id,
        input_position=origin.input_position,
        now=now,
        view_last=encoded.view_last,
        tail=encoded.tail,
        bundle_id=origin.bundle_id,
        stable_chars=0,
        model=sent.model,
        max_tokens=sent.max_tokens,
        part_tokens=list(astuple(sent.part_tokens)),
        finish=outcome.finish,
        error=outcome.error,
        salt=salt,
        hash=hash_sent_request(salt, sent),
        text_hashes=[text.hash for text in encoded.texts],
        text_rows=json.dumps([_to_row(text) for text in (*encoded.texts, edition)]),
        edition_hash=edition.hash,
        message_chars=prefix and prefix.message_chars,
        identical_chars=prefix and prefix.identical_chars,
        difference=prefix and prefix.difference,
    )


def _to_row(text: KeptText) -> dict[str, object]:
    return {
        "text_id": str(new_id()),
        "hash": text.hash.hex(),
        "kind": text.kind,
        "content": text.content,
        "is_exact": text.is_exact,
        "session_id": text.session_id and str(text.session_id),
        "first_position": text.first,
        "last_position": text.last,
    }


async def find_turn(tx: Tx, turn: str, *, session: str | None, agent_id: UUID) -> TurnPlace:
    """Return the turn that `turn` names: `latest`, `previous`, the position of one of its messages, or a prompt's id.

    Of an id, six digits of either end suffice. Without a `session`, the latest session with a record is meant. Raises
    InputError for another reference, NotFoundError if there is no such record, ConflictError if several match.
    """
    session_id = await sessions.get_session_id(tx, agent_id=agent_id, ref=session) if session else None
    if turn in (LATEST, PREVIOUS):
        return await _find_nth_last(tx, session_id, int(turn == PREVIOUS), agent_id=agent_id)
    if turn.isdecimal() and len(turn) < MIN_ID_DIGITS:
        place = await _find_nth_last(tx, session_id, 0, agent_id=agent_id)
        position = {"session_id": place.session_id, "position": int(turn)}
        row = await SQL["find_turn_at"].fetch_one(tx, agent_id=agent_id, **position)
        if row is None:
            hint = "Records begin with the first call of a model, and expire after NEWTON_BUNDLE_RETENTION_DAYS."
            raise NotFoundError(f"There is no record of a prompt at or before the message {turn}.", hint=hint)
        return TurnPlace(place.session_id, row["input_position"])
    return await _find_by_id(tx, turn, agent_id=agent_id)


async def _find_nth_last(tx: Tx, session_id: UUID | None, skip: int, *, agent_id: UUID) -> TurnPlace:
    row = await SQL["find_nth_last_turn"].fetch_one(tx, agent_id=agent_id, session_id=session_id, rows_to_skip=skip)
    if row is None:
        what = "There is no record of a prompt" + (" before the latest." if skip else " yet.")
        raise NotFoundError(what, hint='`newton ask "…"` asks the model; private turns leave no record.')
    return TurnPlace(*row)


async def _find_by_id(tx: Tx, turn: str, *, agent_id: UUID) -> TurnPlace:
    digits = turn.strip().lower().replace("-", "")
    if len(digits) < MIN_ID_DIGITS or not set(digits) <= set("0123456789abcdef"):
        hint = (
            "Give `latest`, `previous`, the position of a message as `newton sessions log` prints it, or the id of a"
            f" prompt or its last {MIN_ID_DIGITS} digits."
        )
        raise InputError(f"{turn!r} does not name a turn.", hint=hint)
    rows = await SQL["find_by_id_part"].fetch_all(tx, agent_id=agent_id, id_part=digits, max_rows=2)
    if not rows:
        raise NotFoundError(f"There is no record of a prompt {turn}.", hint="`newton prompt` shows the latest one.")
    if len(rows) > 1:
        raise ConflictError(f"Several records of prompts match {turn}.", hint="Give more digits of the id.")
    return TurnPlace(*rows[0])


async def list_prompts(tx: Tx, place: TurnPlace, *, agent_id: UUID) -> list[StoredPrompt]:
    """Return the records of the model calls of a turn, in their order."""
    rows = await SQL["list_prompts"].fetch_all(tx, agent_id=agent_id, **place._asdict())
    return [_to_prompt({**row, "tokens": PartTokens(*row["tokens"])}) for row in rows]


def _to_prompt(fields: Mapping[str, Any]) -> StoredPrompt:
    return StoredPrompt(**fields)


async def load_sources(tx: Tx, prompts: Sequence[StoredPrompt], *, agent_id: UUID) -> PromptSources:
    """Load all stored texts to which the prompts of one turn refer, and all messages of its session."""
    place = TurnPlace(prompts[0].session_id, prompts[0].input_position)
    text_ids = {text_id for one in prompts for text_id in (*one.text_ids, one.edition_id)}
    rows = await SQL["list_texts"].fetch_all(tx, agent_id=agent_id, text_ids=list(text_ids))
    texts = {text_id: StoredText(*text) for text_id, *text in rows}
    documents = [one.tail for one in prompts]
    documents += [texts[one.edition_id].content for one in prompts if one.edition_id in texts]
    entry_ids = {entry_id for document in documents for entry_id in _iter_entry_ids(json.loads(document))}
    entries = await SQL["list_entries"].fetch_all(
        tx, agent_id=agent_id, session_id=place.session_id, entry_ids=list(entry_ids)
    )
    contexts: dict[UUID, str] = {}
    for bundle_id in {one.bundle_id for one in prompts if one.bundle_id}:
        if row := await SQL["get_context"].fetch_one(tx, agent_id=agent_id, bundle_id=bundle_id):
            contexts[bundle_id] = row["text"]
    whole = [log.MessageRange(0, log.MAX_POSITION)]
    lines = await log.load_messages(tx, whole, agent_id=agent_id, session_id=place.session_id)
    return PromptSources(
        texts=texts,
        entries={row["entry_id"]: StoredEntry(**dict(row)) for row in entries},
        contexts=contexts,
        blocks=await log.load_blocks(tx, agent_id=agent_id, session_id=place.session_id),
        lines={line.position: line for line in lines},
    )


def _iter_entry_ids(value: object) -> list[UUID]:
    """Return the ids of all compaction entries that the JSON of a record names, at any depth."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        own = [UUID(one) for name, one in fields.items() if name == "entry"]
        return own + [found for one in fields.values() for found in _iter_entry_ids(one)]
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [found for one in items for found in _iter_entry_ids(one)]


async def delete_prompts_before(tx: Tx, *, agent_id: UUID, before: datetime) -> int:
    """Delete the records of prompts created before a moment, and texts no longer used. Return the number of records."""
    row = await SQL["delete_expired"].fetch_one(tx, agent_id=agent_id, moment=before)
    assert row is not None
    return row["deleted"]
