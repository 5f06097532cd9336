"""Injections: memories and texts in the contexts of a session, and messages of other sessions in its view."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from newton.agent.scope import AgentScope
from newton.agent.services.sessions import SessionService, get_or_create_session, match_id
from newton.dialogue import context_injections, log, sessions
from newton.dialogue.context_injections import ContextInjection
from newton.dialogue.log import InjectedRange
from newton.errors import ConflictError, InputError, NotFoundError
from newton.memory.hygiene import clean_text
from newton.memory.lookup import read_memory, resolve_id, short_id
from newton.memory.memory import RECALLABLE_KINDS, Trust, past_reason
from newton.memory.memory_reader import fetch_memories
from newton.memory.search_types import RetrievedMemory

InjectionType = Literal["memory", "text", "messages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInjection:
    """A memory or a text that is in every context of a session, or messages of another session that it shows.

    `tokens` are those of a text or of the messages, and for a memory those of its summary. `session`, `first` and
    `last` say which messages. `text` is no part of the response to a request that writes, because that is stored.
    `trust` is that of whoever put it in; of messages it is not known.
    """

    injection_id: UUID
    type: InjectionType
    text: Annotated[str, Field(exclude=True)] = ""
    trust: Annotated[Trust, Field(exclude=True)] = "agent"
    tokens: int
    created_at: datetime
    memory_id: UUID | None = None
    session: str | None = None
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownInjection(SessionInjection):
    """A memory, a text or messages that were put into a session, with the text."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionService:
    """Puts memories, texts and messages into the sessions of one agent, and takes them out again.

    `max_text_tokens` limits all texts of a session together.
    """

    scope: AgentScope
    sessions: SessionService
    max_text_tokens: int

    async def inject_memory(self, session: str, memory_ref: str) -> ShownInjection:
        """Put a memory into every context of a session, which is created if needed; return the injection.

        `memory_ref` is the id of the memory or its end. Raises NotFoundError for an unknown one, InputError for a kind
        that no context shows, and ConflictError for a past or quarantined memory.
        """
        async with self.scope.write() as (tx, ctx):
            memory_id = await resolve_id(tx, memory_ref, agent_id=ctx.agent_id)
            memory = await read_memory(tx, memory_id, agent_id=ctx.agent_id)
            if memory.kind not in RECALLABLE_KINDS or memory.kind == "censor":
                what = f"A memory of the kind {memory.kind} cannot be put into a context."
                raise InputError(what, hint="Give a fact, a message, a decision or another memory that a search finds.")
            reason = past_reason(memory.kind, memory.state) or ("quarantined" if memory.quarantined else None)
            if reason:
                what = f"The memory {short_id(memory_id)} is {reason}, so no context shows it."
                raise ConflictError(
                    what, hint="`newton confirm` ends a quarantine; of a superseded fact, use the newer."
                )
            session_id = await get_or_create_session(tx, session, agent_id=ctx.agent_id, now=ctx.now)
            await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
            injection = await context_injections.add_memory(tx, memory_id, session_id=session_id, ctx=ctx)
            self._publish("injected", session_id, injection.injection_id)
            found = await fetch_memories(tx, [memory_id], agent_id=ctx.agent_id, moment=None)
            return _to_injection(injection, {one.memory_id: one for one in found})

    async def inject_text(self, session: str, text: str) -> ShownInjection:
        """Put a text into every context of a session, which is created if needed; return the injection.

        A text that no person gives is marked as a note of an agent. Raises InputError for a text that is too long.
        """
        cleaned = clean_text(text, what="text")
        async with self.scope.write() as (tx, ctx):
            session_id = await get_or_create_session(tx, session, agent_id=ctx.agent_id, now=ctx.now)
            await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
            injection = await context_injections.add_text(
                tx, cleaned, session_id=session_id, ctx=ctx, max_tokens=self.max_text_tokens
            )
            self._publish("injected", session_id, injection.injection_id)
            return _to_injection(injection, {})

    async def inject_messages(self, session: str, other: str, *, first: int, last: int) -> ShownInjection:
        """Show messages of another session at the end of this one. Raises as `SessionService.inject`."""
        return _from_range(await self.sessions.inject(session, other, first=first, last=last))

    async def list_injections(self, session: str) -> Sequence[ShownInjection]:
        """Return what was put into a session and not taken out, oldest first.

        Raises NotFoundError for an unknown session.
        """
        async with self.scope.transaction() as tx:
            agent_id = self.scope.agent_id
            session_id = await sessions.get_session_id(tx, agent_id=agent_id, ref=session)
            key = {"agent_id": agent_id, "session_id": session_id}
            in_context = await context_injections.list_injections(tx, agent_id=agent_id, session_id=session_id)
            ranges = await log.list_injections(tx, **key)
            ids = [one.memory_id for one in in_context if one.memory_id]
            found = {f.memory_id: f for f in await fetch_memories(tx, ids, agent_id=agent_id, moment=None)}
        injections = [*(_to_injection(one, found) for one in in_context), *map(_from_range, ranges)]
        return sorted(injections, key=lambda one: (one.created_at, one.injection_id))

    async def find(self, session: str, injection_ref: str) -> ShownInjection:
        """Return what was put into a session, by the id of the injection or of the memory, or the end of it.

        Raises NotFoundError if nothing has this id.
        """
        known = await self.list_injections(session)
        by_id = {one.injection_id: one for one in known} | {one.memory_id: one for one in known if one.memory_id}
        return by_id[match_id(injection_ref, list(by_id), session, "injection", "eject")]

    async def eject(self, session: str, injection_ref: str) -> ShownInjection:
        """Take out what was put into a session, and return it. Raises as `find`."""
        injection = await self.find(session, injection_ref)
        if injection.type == "messages":
            await self.sessions.eject(session, str(injection.injection_id))
            return injection
        async with self.scope.write() as (tx, ctx):
            session_id = await sessions.get_session_id(tx, agent_id=ctx.agent_id, ref=session)
            await context_injections.remove(tx, injection.injection_id, session_id=session_id, ctx=ctx)
            self._publish("ejected", session_id, injection.injection_id)
        return injection

    def _publish(self, event: str, session_id: UUID, injection_id: UUID) -> None:
        payload = {"session_id": str(session_id), "injection_id": str(injection_id)}
        self.scope.publish(f"session.{event}", payload)


def _to_injection(injection: ContextInjection, memories: dict[UUID, RetrievedMemory]) -> ShownInjection:
    build = partial(
        ShownInjection, injection_id=injection.injection_id, created_at=injection.created_at, trust=injection.trust
    )
    if injection.memory_id is None:
        return build(type="text", text=injection.text or "", tokens=sum(injection.line_tokens or ()))
    memory = memories.get(injection.memory_id)
    if memory is None:
        raise NotFoundError(f"The memory {short_id(injection.memory_id)} was forgotten.", hint="Repeat the call.")
    return build(type="memory", text=memory.summary, tokens=memory.summary_tokens, memory_id=memory.memory_id)


def _from_range(injected: InjectedRange) -> ShownInjection:
    return ShownInjection(
        injection_id=injected.injection_id,
        type="messages",
        text=f"messages {injected.first}-{injected.last} of {injected.ref}",
        tokens=injected.tokens,
        created_at=injected.at,
        session=injected.ref,
        first=injected.first,
        last=injected.last,
    )
