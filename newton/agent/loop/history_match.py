"""Matching of a conversation, which an API client sends in full with each request, to a stored session.

Each message is stored with a fingerprint: a hash of the previous message's fingerprint and of its own content. If a
client edits an earlier message, the conversation therefore branches from the last unchanged message.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.agent.services.sessions import get_or_create_session
from newton.db.pool import Tx
from newton.dialogue import branches, log, sessions
from newton.dialogue.log import MessageFingerprint
from newton.dialogue.messages import Message, Role, dump_calls
from newton.dialogue.view import ViewMessage, to_view_message
from newton.ids import new_id
from newton.memory.hygiene import MAX_MESSAGE_CHARACTERS, clean_model_text, clean_text, is_blank
from newton.memory.memory import PERSON_TIERS, WriteContext, digest
from newton.providers.chat import ContentPart, ToolCall

INITIAL_FINGERPRINT = "newton"
FINGERPRINT_PREFIX = "chat:"
EMPTY_MESSAGE_TEXT = "…"  # stored in place of an empty message


class IncomingMessage(NamedTuple):
    """A message as the caller sent it. A message with tool calls may have no text.

    `name` is the speaker, if the caller names several. `parts` is the content if there is more than text, such as an
    image; `text` then describes it, and `attachment_digest` is a hash of the parts that are not text.
    """

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    parts: tuple[ContentPart, ...] = ()
    attachment_digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMatch:
    """The session that a request continues, the messages to append to it, and the fingerprints of all sent messages.

    A fingerprint is a hash of a message and all before it. `last_input` is the last stored message of the user. It is
    used if the request has no user message, only tool results.
    """

    session_id: UUID
    new_messages: Sequence[Message]
    fingerprints: Sequence[str]
    last_input: str = ""

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the last message; of a conversation without messages, INITIAL_FINGERPRINT."""
        return self.fingerprints[-1] if self.fingerprints else INITIAL_FINGERPRINT


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMatcher:
    """Finds the stored session of one agent that a sent conversation continues."""

    scope: AgentScope

    async def match(self, messages: Sequence[IncomingMessage], *, session_ref: str, explicit_ref: bool) -> HistoryMatch:
        """Find the session that the messages continue; branch it, or create one, if the stored messages differ.

        A new session is named `session_ref`, or `session_ref` with a suffix if that name is in use. If the caller chose
        the name (`explicit_ref`), a single message is appended to the session of that name. A person's conversation
        continues none that a model handed over. Raises InputError if a message cannot be stored.
        """
        fingerprints = fingerprint_messages(messages)
        async with self.scope.write("user") as (tx, ctx):
            session_id = await get_or_create_session(tx, session_ref, agent_id=ctx.agent_id, now=ctx.now)
            await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
            found = await log.find_by_fingerprint(tx, fingerprints, agent_id=ctx.agent_id, ref=session_ref)
            matches = [one for one in found if not one.is_reported or self.scope.trust not in PERSON_TIERS]
            first_new = max((fingerprints.index(match.fingerprint) + 1 for match in matches), default=0)
            new_ref = f"{session_ref}~{new_id().hex[-8:]}"
            if matches:
                last = [match for match in matches if match.fingerprint == fingerprints[first_new - 1]]
                session_id = await self._continue_or_branch(tx, last, new_ref, ctx=ctx)
            elif found or (not (explicit_ref and len(messages) == 1) and await self._has_messages(tx, session_id)):
                session_id = await get_or_create_session(tx, new_ref, agent_id=ctx.agent_id, now=ctx.now)
            pairs = zip(messages[first_new:], fingerprints[first_new:], strict=True)
            lines = [to_log_line(message, ref, ctx.now) for message, ref in pairs]
            lines = await sessions.detach_results(tx, lines, session_id=session_id, agent_id=ctx.agent_id)
        return HistoryMatch(session_id=session_id, new_messages=lines, fingerprints=fingerprints)

    async def _has_messages(self, tx: Tx, session_id: UUID) -> bool:
        return await log.get_last_position(tx, agent_id=self.scope.agent_id, session_id=session_id) >= 0

    async def _continue_or_branch(
        self, tx: Tx, matches: Sequence[MessageFingerprint], new_ref: str, *, ctx: WriteContext
    ) -> UUID:
        """Return a session whose last message is one of the matches; if there is none, branch from the first match."""
        for match in matches:
            session_id, position = match.session_id, match.position
            if not await log.has_later_messages(tx, agent_id=ctx.agent_id, session_id=session_id, position=position):
                return session_id
        parent_id, position = matches[0].session_id, matches[0].position
        branch_id = await branches.create_branch(tx, new_ref, parent_id=parent_id, from_position=position, ctx=ctx)
        self.scope.publish("session.branched", {"session_id": str(branch_id), "parent_id": str(parent_id)})
        return branch_id


def fingerprint_messages(messages: Sequence[IncomingMessage], *, previous: str = INITIAL_FINGERPRINT) -> list[str]:
    """Return the fingerprints of consecutive messages. `previous` is the fingerprint of the message before them."""
    return list(accumulate(messages, fingerprint, initial=previous))[1:]


def fingerprint(previous: str, message: IncomingMessage) -> str:
    """Return the fingerprint of a message. `previous` is the fingerprint of the message before it.

    White space around the text and the JSON formatting of call arguments do not matter.
    """
    named = ["name", message.name] if message.name else []
    calls = [(call.id, call.name, _canonical_json(call.arguments)) for call in message.calls]
    attachments = [message.attachment_digest] if message.attachment_digest else []
    content = (message.role, message.text.strip(), json.dumps(calls), message.tool_call_id or "")
    hashed = digest(previous, *content, *attachments, *named)
    return FINGERPRINT_PREFIX + hashed.hex()[:40]


def to_private_view(messages: Sequence[IncomingMessage], *, scope: AgentScope) -> list[ViewMessage]:
    """Convert messages that are not stored to the form that a prompt is built from.

    Raises InputError for a message that is invalid.
    """
    view: list[ViewMessage] = []
    for position, (message, ref) in enumerate(zip(messages, fingerprint_messages(messages), strict=True)):
        line = to_log_line(message, ref, scope.now())
        tokens = scope.count_tokens(line.content + (dump_calls(line.calls) or ""))
        view.append(to_view_message(line, position, tokens))
    return view


def _canonical_json(arguments: str) -> str:
    with suppress(ValueError, RecursionError):
        return json.dumps(json.loads(arguments), sort_keys=True)
    return arguments


def to_log_line(message: IncomingMessage, ref: str, said_at: datetime) -> Message:
    """Convert a sent message to the form in which it is stored, cleaned and without secrets.

    Raises InputError if the text is too long.
    """
    empty = "" if message.calls else EMPTY_MESSAGE_TEXT
    text = (
        empty if is_blank(message.text) else clean_text(message.text, what="message", max_chars=MAX_MESSAGE_CHARACTERS)
    )
    calls = tuple(call._replace(arguments=clean_model_text(call.arguments)) for call in message.calls)
    return Message(
        role=message.role,
        content=text,
        said_at=said_at,
        name=message.name,
        ref=ref,
        calls=calls,
        tool_call_id=message.tool_call_id,
    )
