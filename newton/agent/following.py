"""Finds where a conversation that is sent as a whole each time goes on: what of it is new, and in which session.

Each message has a sign, made of the messages before it and its own words, and the log keeps it with the line. So a
history that was edited leaves the session at the last line that is the same.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.conversations import begun
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.dialogue import branches, holding, log
from newton.dialogue.holding import Signed
from newton.dialogue.lines import Line, Role
from newton.errors import InputError
from newton.ids import new_id
from newton.memory.hygiene import MAX_MESSAGE, clean, mended
from newton.memory.memory import digest
from newton.providers.chat import Call

BEGINNING = "newton"
MARK = "chat:"
SILENCE = "…"  # what a message without a word is kept as


class Sent(NamedTuple):
    """A message as a caller sends it. One that calls may have no words."""

    role: Role
    text: str
    calls: tuple[Call, ...] = ()
    answers: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """Where it goes on: the session, and the lines that it does not have yet. The `sign` is of the last message."""

    session_id: UUID
    fresh: Sequence[Line]
    sign: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """For one agent; `origin` names the door."""

    scope: AgentScope

    async def place(self, sent: Sequence[Sent], *, ref: str, named: bool) -> Followed:
        """The session, begun if there is none, or as a branch if its log goes on in another way; the session `ref`
        itself where it can be. To one that the caller has `named`, a single message is one more.

        Raises InputError when nobody is to be answered, or a message cannot be kept.
        """
        if not sent or sent[-1].role not in ("user", "tool") or all(one.role != "user" for one in sent):
            raise InputError("The last message is nobody's to answer.", hint="End with a user's or a tool's message.")
        signs = signed(sent)
        async with self.scope.transaction() as tx:
            base = await begun(tx, ref, agent_id=self.scope.agent_id, now=self.scope.now())
            await log.lock(tx, agent_id=self.scope.agent_id, session_id=base)
            found = await holding.signed(tx, signs, agent_id=self.scope.agent_id, ref=ref)
            if found:
                return await self._gone_on(tx, found, sent, signs, ref)
            spoken = await log.end(tx, agent_id=self.scope.agent_id, session_id=base) >= 0
            if spoken and not (named and len(sent) == 1):
                base = await begun(tx, _other(ref), agent_id=self.scope.agent_id, now=self.scope.now())
        return Followed(session_id=base, fresh=self._lines(sent, signs, 0), sign=signs[-1])

    async def _gone_on(
        self, tx: Tx, found: Sequence[Signed], sent: Sequence[Sent], signs: Sequence[str], ref: str
    ) -> Followed:
        known = max(signs.index(one.sign) for one in found)
        last = [one for one in found if one.sign == signs[known]]
        fresh = self._lines(sent, signs, known + 1)
        for one in last:
            if await log.end(tx, agent_id=self.scope.agent_id, session_id=one.session_id) == one.position:
                return Followed(session_id=one.session_id, fresh=fresh, sign=signs[-1])
        ctx = self.scope.write_context("user")
        at = last[0]
        branch = await branches.branch(tx, _other(ref), parent_id=at.session_id, at=at.position, ctx=ctx)
        about = {"session_id": str(branch), "parent_id": str(at.session_id)}
        self.scope.publish("session.branched", about)
        return Followed(session_id=branch, fresh=fresh, sign=signs[-1])

    def _lines(self, sent: Sequence[Sent], signs: Sequence[str], first: int) -> list[Line]:
        at = self.scope.now()
        return [_line(one, sign, at) for one, sign in zip(sent[first:], signs[first:], strict=True)]


def signed(sent: Sequence[Sent]) -> list[str]:
    """The sign of each message, in order."""
    signs: list[str] = []
    for one in sent:
        signs.append(sign(signs[-1] if signs else BEGINNING, one))
    return signs


def sign(before: str, sent: Sent) -> str:
    """That of a message behind the one with the sign `before`. White space around its words does not count, nor how
    the arguments of its calls are written."""
    calls = [(call.id, call.name, _canonical(call.arguments)) for call in sent.calls]
    said = digest(before, sent.role, sent.text.strip(), json.dumps(calls), sent.answers or "")
    return MARK + said.hex()[:40]


def _canonical(arguments: str) -> str:
    with suppress(ValueError, RecursionError):
        return json.dumps(json.loads(arguments), sort_keys=True)
    return arguments


def _other(ref: str) -> str:
    return f"{ref}~{new_id().hex[-8:]}"


def _line(sent: Sent, sign: str, at: datetime) -> Line:
    nothing = "" if sent.calls else SILENCE
    said = bool(sent.text.strip()) or sent.role == "user"
    text = clean(sent.text, what="message", most=MAX_MESSAGE) if said else nothing
    calls = tuple(call._replace(arguments=mended(call.arguments)) for call in sent.calls)
    return Line(role=sent.role, content=text, said_at=at, name=sent.name, ref=sign, calls=calls, answers=sent.answers)
