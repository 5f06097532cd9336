"""Replies that quote memories in place of a model's reply, without quotes that a censor blocks."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.fallback import quote_memories, render_reply
from newton.agent.loop.turn_state import RunningTurn
from newton.cognition.bundles.bundle_store import AnsweredBy
from newton.cognition.session_context.service import SessionContext
from newton.errors import CensorError, NewtonError


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuoter:
    """Quotes memories for one agent. `has_model` says whether a model is configured."""

    gate: ActionGate
    has_model: bool

    async def quote(
        self,
        turn: RunningTurn,
        context: SessionContext | None,
        reason: NewtonError,
        *,
        exempt: Collection[UUID],
    ) -> tuple[str, AnsweredBy] | None:
        """Return a reply that quotes the context, and its author, "memory" or "censor"; None without any quotes.

        An API caller gets `reason` before the quotes, and no reply that memory has nothing, unless no model is
        configured. Censors in `exempt` are not applied.
        """
        if context is None:
            return None
        quotes = quote_memories(context.bundle)
        if turn.is_api_call and not quotes and self.has_model:
            return None
        allowed = await self.gate.omit_blocked(quotes, exempt=exempt)
        reply = render_reply(allowed or quotes, context.bundle, is_stored=turn.private is None)
        if turn.is_api_call:  # its clients show nothing but the text
            reply = f"({reason.what} This answer only quotes memory.)\n\n{reply}"
        try:
            await self.gate.check_reply(reply, exempt=exempt)
        except CensorError as error:
            return str(error), "censor"
        return reply, "memory"
