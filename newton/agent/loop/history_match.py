"""Matching of a conversation sent in full to a stored session: which messages are new, and to which session they
belong.

Each message has a fingerprint, a hash of the previous fingerprint and its own content, stored with the message. An
edited history therefore branches from the last message that is unchanged.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.agent.services.sessions import get_or_create_session
from newton.db.pool import Tx
from newton.dialogue import branches, leases, log
from newton.dialogue.leases import MessageFingerprint
from newton.dialogue.messages import Message, Role
from newton.errors import InputError
from newton.ids import new_id
from newton.memory.hygiene import MAX_MESSAGE_CHARACTERS, clean_model_text, clean_text
from newton.memory.memory import digest
from newton.providers.chat import ToolCall

INITIAL_FINGERPRINT = "newton"
FINGERPRINT_PREFIX = "chat:"
EMPTY_MESSAGE_TEXT = "…"  # stored in place of an empty message


class IncomingMessage(NamedTuple):
    """A message as the caller sends it. A message with tool calls may have no text."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMatch:
    """The session to continue, the messages that it lacks, and the fingerprint of the last message."""

    session_id: UUID
    new_messages: Sequence[Message]
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMatcher:
    """Matches histories to the sessions of one agent."""

    scope: AgentScope

    async def match(self, messages: Sequence[IncomingMessage], *, session_ref: str, explicit_ref: bool) -> HistoryMatch:
        """Find or create the session that the messages continue; branch when its log continues differently.

        The session `session_ref` itself is used where possible. If the caller named it (`explicit_ref`), a single
        message is appended to it. Raises InputError when there is no user message, the last message is not a user's or
        a tool's, or a message cannot be stored.
        """
        if not messages or messages[-1].role not in ("user", "tool") or all(one.role != "user" for one in messages):
            raise InputError("The last message needs no reply.", hint="End with a message of the role user or tool.")
        fingerprints = fingerprint_messages(messages)
        async with self.scope.transaction() as tx:
            base = await get_or_create_session(tx, session_ref, agent_id=self.scope.agent_id, now=self.scope.now())
            await log.lock_session(tx, agent_id=self.scope.agent_id, session_id=base)
            matches = await leases.find_by_fingerprint(tx, fingerprints, agent_id=self.scope.agent_id, ref=session_ref)
            if matches:
                return await self._continue_session(tx, matches, messages, fingerprints, session_ref)
            has_messages = await log.get_last_position(tx, agent_id=self.scope.agent_id, session_id=base) >= 0
            if has_messages and not (explicit_ref and len(messages) == 1):
                base = await get_or_create_session(
                    tx, _new_session_ref(session_ref), agent_id=self.scope.agent_id, now=self.scope.now()
                )
        return HistoryMatch(
            session_id=base, new_messages=self._to_lines(messages, fingerprints, 0), fingerprint=fingerprints[-1]
        )

    async def _continue_session(
        self,
        tx: Tx,
        matches: Sequence[MessageFingerprint],
        messages: Sequence[IncomingMessage],
        fingerprints: Sequence[str],
        session_ref: str,
    ) -> HistoryMatch:
        last_known = max(fingerprints.index(one.fingerprint) for one in matches)
        last = [one for one in matches if one.fingerprint == fingerprints[last_known]]
        new_messages = self._to_lines(messages, fingerprints, last_known + 1)
        for one in last:
            if await log.get_last_position(tx, agent_id=self.scope.agent_id, session_id=one.session_id) == one.position:
                return HistoryMatch(session_id=one.session_id, new_messages=new_messages, fingerprint=fingerprints[-1])
        ctx = self.scope.write_context("user")
        branch_point = last[0]
        branch = await branches.create_branch(
            tx,
            _new_session_ref(session_ref),
            parent_id=branch_point.session_id,
            from_position=branch_point.position,
            ctx=ctx,
        )
        payload = {"session_id": str(branch), "parent_id": str(branch_point.session_id)}
        self.scope.publish("session.branched", payload)
        return HistoryMatch(session_id=branch, new_messages=new_messages, fingerprint=fingerprints[-1])

    def _to_lines(self, messages: Sequence[IncomingMessage], fingerprints: Sequence[str], first: int) -> list[Message]:
        now = self.scope.now()
        return [
            _to_line(one, message_fingerprint, now)
            for one, message_fingerprint in zip(messages[first:], fingerprints[first:], strict=True)
        ]


def fingerprint_messages(messages: Sequence[IncomingMessage]) -> list[str]:
    """Return the fingerprint of each message, in order."""
    fingerprints: list[str] = []
    for one in messages:
        fingerprints.append(fingerprint(fingerprints[-1] if fingerprints else INITIAL_FINGERPRINT, one))
    return fingerprints


def fingerprint(previous: str, message: IncomingMessage) -> str:
    """Return the fingerprint of a message that follows `previous`.

    Surrounding white space and the JSON formatting of call arguments do not count.
    """
    calls = [(call.id, call.name, _canonical_json(call.arguments)) for call in message.calls]
    hashed = digest(previous, message.role, message.text.strip(), json.dumps(calls), message.tool_call_id or "")
    return FINGERPRINT_PREFIX + hashed.hex()[:40]


def _canonical_json(arguments: str) -> str:
    with suppress(ValueError, RecursionError):
        return json.dumps(json.loads(arguments), sort_keys=True)
    return arguments


def _new_session_ref(ref: str) -> str:
    return f"{ref}~{new_id().hex[-8:]}"


def _to_line(message: IncomingMessage, message_fingerprint: str, said_at: datetime) -> Message:
    empty = "" if message.calls else EMPTY_MESSAGE_TEXT
    has_text = bool(message.text.strip()) or message.role == "user"
    text = clean_text(message.text, what="message", max_chars=MAX_MESSAGE_CHARACTERS) if has_text else empty
    calls = tuple(call._replace(arguments=clean_model_text(call.arguments)) for call in message.calls)
    return Message(
        role=message.role,
        content=text,
        said_at=said_at,
        name=message.name,
        ref=message_fingerprint,
        calls=calls,
        tool_call_id=message.tool_call_id,
    )
