"""The identity of an agent as a person keeps it, and what waits for their yes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from newton.agent.events import publish
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import InputError
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import (
    IdentityEdit,
    IdentityVersion,
    MessageRef,
    TenetProposal,
    TenetRecord,
)
from newton.heart.identity.standing_instructions import StandingInstruction, detect_instructions
from newton.heart.identity.tenets import Identity, IdentityPart, Tenet
from newton.memory.hygiene import clean_text
from newton.memory.memory import Trust

# The doors behind which a person stands. An agent that could change its identity would have none.
PERSONAL_ORIGINS = frozenset({"cli", "chat"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityService:
    """For one agent; `origin` names the door. A line is named by its id or the end of it.

    What changes the identity raises InputError at a door behind which no person stands.
    """

    scope: AgentScope

    async def get(self) -> Identity:
        async with self.scope.transaction() as tx:
            return await identity_store.read_identity(tx, agent_id=self.scope.agent_id)

    async def history(self) -> tuple[list[IdentityVersion], list[TenetRecord]]:
        """Every version, and every line that they speak of."""
        async with self.scope.transaction() as tx:
            versions = await identity_store.list_versions(tx, agent_id=self.scope.agent_id)
            return versions, await identity_store.list_tenets(tx, agent_id=self.scope.agent_id)

    async def list_proposals(self) -> list[TenetRecord]:
        """What waits for a yes, the first one first."""
        async with self.scope.transaction() as tx:
            written = await identity_store.list_tenets(tx, agent_id=self.scope.agent_id)
        return [one for one in written if one.state == "PROPOSED"]

    async def add(
        self, part: IdentityPart, text: str, *, reason: str | None = None, allow_conflict: bool = False
    ) -> bool:
        """False when it says so already; `beside` has it stand beside what goes against it."""
        hand = self._edit_context(reason)
        return await self._run_and_publish(
            "added", lambda tx: identity_store.add(tx, part, text, edit=hand, keep_conflicting=allow_conflict)
        )

    async def change(
        self, line_ref: str, text: str, *, part: IdentityPart | None = None, reason: str | None = None
    ) -> bool:
        """False when these are its words already."""
        hand = self._edit_context(reason)
        return await self._run_and_publish(
            "changed", lambda tx: identity_store.change(tx, line_ref, text, part=part, edit=hand)
        )

    async def remove(self, line_ref: str, *, reason: str | None = None) -> Tenet:
        hand = self._edit_context(reason)
        return await self._run_and_publish("removed", lambda tx: identity_store.remove(tx, line_ref, edit=hand))

    async def roll_back(self, version: int, *, reason: str | None = None) -> bool:
        """False when the identity is as it was then."""
        hand = self._edit_context(reason)
        return await self._run_and_publish("rolled_back", lambda tx: identity_store.roll_back(tx, version, edit=hand))

    async def accept(self, line_ref: str) -> TenetProposal:
        """With what stood and went against it: it has taken the place of that."""
        hand = self._edit_context(None)
        return await self._run_and_publish("accepted", lambda tx: identity_store.accept(tx, line_ref, edit=hand))

    async def reject(self, line_ref: str) -> Tenet:
        hand = self._edit_context(None)
        return await self._run_and_publish("rejected", lambda tx: identity_store.reject(tx, line_ref, edit=hand))

    async def erase(self, line_ref: str, *, reason: str) -> int:
        """Takes its words away for good, wherever they were written here; returns how often they were."""
        hand = self._edit_context(reason)
        return await self._run_and_publish("erased", lambda tx: identity_store.erase(tx, line_ref, edit=hand))

    async def propose(self, part: IdentityPart, text: str, *, trust: Trust = "agent") -> bool:
        """What an agent wishes for itself; it waits for a person's yes. False when it stands already.

        `trust` is of whose words these are. Raises InputError for those of a tool or the web.
        """
        hand = IdentityEdit(ctx=self.scope.write_context(trust))
        wish = StandingInstruction(part, text)
        return bool(
            await self._run_and_publish(
                "proposed", lambda tx: identity_store.propose(tx, [wish], message_ref=None, edit=hand)
            )
        )

    async def _run_and_publish(self, event: str, operation: Callable[[Tx], Awaitable[T]]) -> T:
        """Does it, and tells of it if it changed anything."""
        async with self.scope.transaction() as tx:
            done = await operation(tx)
            if done:
                self.scope.publish(f"identity.{event}", {})
            return done

    def _edit_context(self, reason: str | None) -> IdentityEdit:
        if self.scope.origin not in PERSONAL_ORIGINS:
            raise InputError(
                "Only a person may change the identity.", hint="Propose it; `newton identity accept` is theirs."
            )
        why = None if reason is None else clean_text(reason, what="reason")
        return IdentityEdit(ctx=self.scope.write_context("user"), reason=why)


async def detect_proposals(
    tx: Tx, text: str, message_ref: MessageRef, *, edit: IdentityEdit
) -> Sequence[TenetProposal]:
    """What a person said just now that is meant to hold from now on, and does not stand yet; it waits for their yes."""
    heard = [wish for wish in detect_instructions(text) if identity_store.is_valid_line(wish, edit.ctx.count_tokens)]
    proposed = await identity_store.propose(tx, heard, message_ref=message_ref, edit=edit) if heard else ()
    if proposed:
        publish("identity.proposed", {}, agent_id=edit.ctx.agent_id, now=edit.ctx.now)
    return proposed
