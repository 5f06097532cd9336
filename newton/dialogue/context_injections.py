"""Memories and texts that a caller has put into the context of a session."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.ids import new_id
from newton.memory.memory import Trust, WriteContext
from newton.memory.representations import one_line, to_bullet
from newton.memory.source_marks import describe_source

SQL = load("newton.dialogue", "context_injections.sql")

MAX_INJECTIONS = 100  # of one session


class ContextInjection(NamedTuple):
    """A memory, or a text, that a caller has put into every context of a session; the other one is None.

    `line_tokens` are the tokens of each line of the text.
    """

    injection_id: UUID
    memory_id: UUID | None
    text: str | None
    line_tokens: Sequence[int] | None
    trust: Trust
    created_at: datetime

    @property
    def lines(self) -> list[tuple[str, int]]:
        """Return the lines of the text as a context shows them, each with its tokens; empty for a memory."""
        return list(zip(render_lines(self.text or "", trust=self.trust), self.line_tokens or (), strict=True))


def render_lines(text: str, *, trust: Trust) -> list[str]:
    """Return the lines of a text that are not empty, each after whose word it is unless a person gave the text.

    >>> render_lines("Use port 8700.\\n\\nAsk Ana.", trust="agent")
    ['said by the assistant: Use port 8700.', 'said by the assistant: Ask Ana.']
    """
    mark = describe_source(trust)
    return [f"{mark}: {line}" if mark else line for line in map(one_line, text.splitlines()) if line]


async def add_memory(tx: Tx, memory_id: UUID, *, session_id: UUID, ctx: WriteContext) -> ContextInjection:
    """Put a memory into every context of a session, and return the injection; if it is there already, the existing one.

    Raises InputError if the session has MAX_INJECTIONS.
    """
    known = await list_injections(tx, agent_id=ctx.agent_id, session_id=session_id)
    if existing := next((one for one in known if one.memory_id == memory_id), None):
        return existing
    return await _insert(
        tx, known, ContextInjection(new_id(), memory_id, None, None, ctx.trust, ctx.now), session_id, ctx
    )


async def add_text(tx: Tx, text: str, *, session_id: UUID, ctx: WriteContext, max_tokens: int) -> ContextInjection:
    """Put a text into every context of a session, and return the injection.

    Raises InputError if all texts of the session together have more than `max_tokens`, or if it has MAX_INJECTIONS.
    """
    known = await list_injections(tx, agent_id=ctx.agent_id, session_id=session_id)
    tokens = [ctx.count_tokens(to_bullet(line)) for line in render_lines(text, trust=ctx.trust)]
    used = sum(sum(one.line_tokens or ()) for one in known)
    if used + sum(tokens) > max_tokens:
        beside = f", in addition to the {used:,} tokens of other texts" if used else ""
        raise InputError(
            f"The text has {sum(tokens):,} tokens{beside}; the texts of a session may have {max_tokens:,}.",
            hint="Shorten the text, or remove other texts with `newton sessions eject`.",
        )
    return await _insert(tx, known, ContextInjection(new_id(), None, text, tokens, ctx.trust, ctx.now), session_id, ctx)


async def list_injections(
    tx: Tx, *, agent_id: UUID, session_id: UUID, moment: datetime | None = None
) -> list[ContextInjection]:
    """Return what is in every context of a session, oldest first; with `moment`, what was then."""
    rows = await SQL["list_injections"].fetch_all(tx, agent_id=agent_id, session_id=session_id, moment=moment)
    return [ContextInjection(*row) for row in rows]


async def remove(tx: Tx, injection_id: UUID, *, session_id: UUID, ctx: WriteContext) -> None:
    """Take a memory or a text out of the contexts of a session. An unknown id changes nothing."""
    ids = {"agent_id": ctx.agent_id, "session_id": session_id, "injection_id": injection_id}
    await SQL["remove_injection"].execute(tx, **ids, now=ctx.now)


async def _insert(
    tx: Tx, known: Sequence[ContextInjection], injection: ContextInjection, session_id: UUID, ctx: WriteContext
) -> ContextInjection:
    """Store an injection. Raises InputError for too many, and ConflictError if the same memory was put in meanwhile."""
    if len(known) >= MAX_INJECTIONS:
        raise InputError(
            f"The context of the session has {len(known)} injected memories and texts, which is the maximum.",
            hint="Remove some of them with `newton sessions eject`.",
        )
    row = await SQL["insert_injection"].fetch_one(
        tx,
        agent_id=ctx.agent_id,
        session_id=session_id,
        injection_id=injection.injection_id,
        memory_id=injection.memory_id,
        text=injection.text,
        line_tokens=injection.line_tokens,
        trust=injection.trust,
        origin=ctx.origin,
        now=injection.created_at,
    )
    if row is None:
        raise ConflictError("Another request has put the same memory into the context.", hint="List the injections.")
    return injection
