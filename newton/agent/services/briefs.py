"""The brief of a session: its goals, deadlines, rules, constraints and open items, listed and closed by a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from newton.agent.scope import AgentScope
from newton.dialogue import log, sessions
from newton.dialogue.brief import brief_store
from newton.dialogue.brief.brief_items import BriefItem
from newton.errors import InputError, NotFoundError

ClosedStatus = Literal["done", "dropped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefService:
    """Briefs of the sessions of one agent. Sessions are identified by name (`ref`)."""

    scope: AgentScope

    async def list_items(self, ref: str, *, only_open: bool = False) -> Sequence[BriefItem]:
        """Return the items of a session, in the order in which they were said. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            agent_id = self.scope.agent_id
            session_id = await sessions.get_session_id(tx, agent_id=agent_id, ref=ref)
            return await brief_store.list_items(tx, agent_id=agent_id, session_id=session_id, only_open=only_open)

    async def close(self, ref: str, item_ref: str, status: ClosedStatus) -> BriefItem:
        """Close an open item of a session; return it as it was.

        `item_ref` is the id of the item or the end of the id. Raises NotFoundError for an unknown or closed item, and
        InputError if several ids end so.
        """
        async with self.scope.write() as (tx, ctx):
            session_id = await sessions.get_session_id(tx, agent_id=ctx.agent_id, ref=ref)
            await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
            update = await brief_store.load_update(tx, session_id=session_id, ctx=ctx)
            item = _find_item(item_ref, update.items, ref)
            last = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=session_id)
            update.close(item, status, last, None)
            await brief_store.save(tx, update, session_id=session_id, ctx=ctx)
            self.scope.publish("session.brief_closed", {"session_id": str(session_id), "item_id": str(item.item_id)})
            return item


def _find_item(suffix: str, items: Sequence[BriefItem], ref: str) -> BriefItem:
    end = suffix.replace("-", "").lower()
    matches = [item for item in items if end and item.item_id.hex.endswith(end)]
    if len(matches) > 1:
        raise InputError(f"The id {suffix!r} is ambiguous: {len(matches)} ids end in it.", hint="Give more of the id.")
    if not matches:
        hint = f"`newton sessions brief {ref}` lists the open items."
        raise NotFoundError(f"The brief of the session {ref!r} has no open item {suffix!r}.", hint=hint)
    return matches[0]
