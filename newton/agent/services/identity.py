"""The identity of an agent: its lines, their versions, and proposed lines that wait for a person's approval."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import InputError
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit, IdentityVersion, TenetProposal, TenetRecord
from newton.heart.identity.standing_wishes import StandingInstruction
from newton.heart.identity.tenets import Identity, IdentityPart, IdentityTenet
from newton.memory.hygiene import clean_text
from newton.memory.memory import PERSON_TIERS, Trust

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityService:
    """Shows and changes the identity of one agent: lines that say who it is and what always applies.

    A line is identified by its id or the end of its id. A caller who is no person can only propose lines; other changes
    raise InputError.
    """

    scope: AgentScope

    async def get(self) -> Identity:
        """Return the current identity."""
        async with self.scope.transaction() as tx:
            return await identity_store.read_identity(tx, agent_id=self.scope.agent_id)

    async def history(self) -> tuple[list[IdentityVersion], list[TenetRecord]]:
        """Return all versions of the identity, and all lines that occur in them."""
        async with self.scope.transaction() as tx:
            versions = await identity_store.list_versions(tx, agent_id=self.scope.agent_id)
            return versions, await identity_store.list_tenets(tx, agent_id=self.scope.agent_id)

    async def list_proposals(self) -> list[TenetRecord]:
        """Return the proposed lines that are neither accepted nor rejected, oldest first."""
        async with self.scope.transaction() as tx:
            tenets = await identity_store.list_tenets(tx, agent_id=self.scope.agent_id)
        return [tenet for tenet in tenets if tenet.state == "PROPOSED"]

    async def add(
        self, part: IdentityPart, text: str, *, reason: str | None = None, allow_conflict: bool = False
    ) -> bool:
        """Add a line to a part of the identity; return False if the identity has it already.

        Raises InputError for an invalid line, and ConflictError if the identity is full or, unless `allow_conflict`,
        the line contradicts a line in force.
        """
        async with self._edit(reason) as (tx, edit):
            added = await identity_store.add(tx, part, text, edit=edit, keep_conflicting=allow_conflict)
            return self._publish("added", added)

    async def change(
        self, line_ref: str, text: str, *, part: IdentityPart | None = None, reason: str | None = None
    ) -> bool:
        """Change the text of a line and, with `part`, its part of the identity; return False if it is so already."""
        async with self._edit(reason) as (tx, edit):
            return self._publish("changed", await identity_store.change(tx, line_ref, text, part=part, edit=edit))

    async def remove(self, line_ref: str, *, reason: str | None = None) -> IdentityTenet:
        """Remove a line from the identity, and return it. Earlier versions keep it."""
        async with self._edit(reason) as (tx, edit):
            return self._publish("removed", await identity_store.remove(tx, line_ref, edit=edit))

    async def roll_back(self, version: int, *, reason: str | None = None) -> bool:
        """Restore the lines of an earlier version; return False if they are the current ones."""
        async with self._edit(reason) as (tx, edit):
            return self._publish("rolled_back", await identity_store.roll_back(tx, version, edit=edit))

    async def accept(self, line_ref: str) -> TenetProposal:
        """Accept a proposed line; return it with the lines that it replaces because they contradict it."""
        async with self._edit(None) as (tx, edit):
            return self._publish("accepted", await identity_store.accept(tx, line_ref, edit=edit))

    async def reject(self, line_ref: str) -> IdentityTenet:
        """Reject a proposed line, and return it."""
        async with self._edit(None) as (tx, edit):
            return self._publish("rejected", await identity_store.reject(tx, line_ref, edit=edit))

    async def erase(self, line_ref: str, *, reason: str) -> int:
        """Permanently delete the text of a line from all versions; return the number of texts deleted."""
        async with self._edit(reason) as (tx, edit):
            return self._publish("erased", await identity_store.erase(tx, line_ref, edit=edit))

    async def propose(self, part: IdentityPart, text: str, *, trust: Trust = "agent") -> bool:
        """Propose a line, which a person can accept; return False if the line exists already.

        `trust` is the trust tier of the text's author. Raises InputError for text of a tool or the web.
        """
        async with self.scope.write(trust) as (tx, ctx):
            instructions = [StandingInstruction(part, text)]
            proposed = await identity_store.propose(tx, instructions, message_ref=None, edit=IdentityEdit(ctx=ctx))
            return bool(self._publish("proposed", proposed))

    def _publish(self, event: str, result: T) -> T:
        """Publish the event if `result` is true, that is, if the operation changed anything. Return `result`."""
        if result:
            self.scope.publish(f"identity.{event}", {})
        return result

    @asynccontextmanager
    async def _edit(self, reason: str | None) -> AsyncGenerator[tuple[Tx, IdentityEdit]]:
        """Open a transaction for a change by a person. Raises InputError for the trust of another caller."""
        if self.scope.trust not in PERSON_TIERS:
            raise InputError(
                "Only a person may change the identity.",
                hint="Propose the change; a person accepts it with `newton identity accept`.",
            )
        reason = None if reason is None else clean_text(reason, what="reason")
        async with self.scope.write("user") as (tx, ctx):
            yield tx, IdentityEdit(ctx=ctx, reason=reason)
