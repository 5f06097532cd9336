"""Matching of a conversation, sent in full by an API client, to a stored session.

Each message is stored with a fingerprint: a hash of the previous fingerprint and its own content. An edited history
therefore branches from its last unchanged message.
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
from newton.dialogue import branches, leases, log
from newton.dialogue.leases import MessageFingerprint
from newton.dialogue.messages import Message, Role, dump_calls
from newton.dialogue.view import ViewMessage, to_view_message
from newton.errors import InputError
from newton.ids import new_id
from newton.memory.hygiene import MAX_MESSAGE_CHARACTERS, clean_model_text, clean_text
from newton.memory.memory import WriteContext, digest
from newton.providers.chat import ContentPart, ToolCall

INITIAL_FINGERPRINT = "newton"
FINGERPRINT_PREFIX = "chat:"
ENDING_HINT = "End with a message of the role user or tool."
EMPTY_MESSAGE_TEXT = "…"  # stored in place of an empty message


class IncomingMessage(NamedTuple):
    """A message as sent by the caller. A message with tool calls may have no text.

    `parts` are its content if there is more than text; then `text` describes them, and `attachment_digest` is a hash
    of what is no text.
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
    """The session to continue, the messages to append, and the fingerprints of all messages.

    `last_input` is the last stored message of the user, for a request that sends none, such as only results of tools.
    """

    session_id: UUID
    new_messages: Sequence[Message]
    fingerprints: Sequence[str]
    last_input: str = ""

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the last message."""
        return self.fingerprints[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMatcher:
    """Matches conversations to the sessions of one agent."""

    scope: AgentScope

    async def match(self, messages: Sequence[IncomingMessage], *, session_ref: str, explicit_ref: bool) -> HistoryMatch:
        """Find the session that the messages continue; create or branch a session if the stored log differs.

        New sessions are named after `session_ref`. If the caller set that name (`explicit_ref`), a single message is
        appended to the session. Raises InputError if there is no user message, the last message is not of a user or a
        tool, or a message cannot be stored.
        """
        roles = [message.role for message in messages]
        if "user" not in roles or roles[-1] not in ("user", "tool"):
            raise InputError(
                "There is no message to reply to: the last one is not from a user or a tool.",
                hint=ENDING_HINT,
                param="messages",
            )
        fingerprints = fingerprint_messages(messages)
        async with self.scope.write("user") as (tx, ctx):
            session_id = await get_or_create_session(tx, session_ref, agent_id=ctx.agent_id, now=ctx.now)
            await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
            matches = await leases.find_by_fingerprint(tx, fingerprints, agent_id=ctx.agent_id, ref=session_ref)
            first_new = max((fingerprints.index(match.fingerprint) + 1 for match in matches), default=0)
            new_ref = f"{session_ref}~{new_id().hex[-8:]}"
            if matches:
                last = [match for match in matches if match.fingerprint == fingerprints[first_new - 1]]
                session_id = await self._continue_or_branch(tx, last, new_ref, ctx=ctx)
            elif not (explicit_ref and len(messages) == 1) and await self._has_messages(tx, session_id):
                session_id = await get_or_create_session(tx, new_ref, agent_id=ctx.agent_id, now=ctx.now)
            pairs = zip(messages[first_new:], fingerprints[first_new:], strict=True)
            lines = [to_log_line(message, ref, ctx.now) for message, ref in pairs]
        return HistoryMatch(session_id=session_id, new_messages=lines, fingerprints=fingerprints)

    async def _has_messages(self, tx: Tx, session_id: UUID) -> bool:
        return await log.get_last_position(tx, agent_id=self.scope.agent_id, session_id=session_id) >= 0

    async def _continue_or_branch(
        self, tx: Tx, matches: Sequence[MessageFingerprint], new_ref: str, *, ctx: WriteContext
    ) -> UUID:
        """Return the session that ends with a match. If there is none, create a branch from the first match."""
        for match in matches:
            last_position = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=match.session_id)
            if last_position == match.position:
                return match.session_id
        parent_id, position = matches[0].session_id, matches[0].position
        branch_id = await branches.create_branch(tx, new_ref, parent_id=parent_id, from_position=position, ctx=ctx)
        self.scope.publish("session.branched", {"session_id": str(branch_id), "parent_id": str(parent_id)})
        return branch_id


def fingerprint_messages(messages: Sequence[IncomingMessage], *, previous: str = INITIAL_FINGERPRINT) -> list[str]:
    """Return the fingerprint of each message, in order, after the message with the fingerprint `previous`."""
    return list(accumulate(messages, fingerprint, initial=previous))[1:]


def fingerprint(previous: str, message: IncomingMessage) -> str:
    """Return the fingerprint of a message that follows the one with the fingerprint `previous`.

    Surrounding white space and the JSON formatting of call arguments are ignored.
    """
    calls = [(call.id, call.name, _canonical_json(call.arguments)) for call in message.calls]
    attachments = [message.attachment_digest] if message.attachment_digest else []
    content = (message.role, message.text.strip(), json.dumps(calls), message.tool_call_id or "")
    hashed = digest(previous, *content, *attachments)
    return FINGERPRINT_PREFIX + hashed.hex()[:40]


def to_private_view(messages: Sequence[IncomingMessage], *, scope: AgentScope) -> list[ViewMessage]:
    """Return messages that are not stored as a view. Raises InputError for a message that could not be stored."""
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
    """Return a message as it is stored."""
    empty = "" if message.calls else EMPTY_MESSAGE_TEXT
    has_text = bool(message.text.strip()) or message.role == "user"
    text = clean_text(message.text, what="message", max_chars=MAX_MESSAGE_CHARACTERS) if has_text else empty
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
