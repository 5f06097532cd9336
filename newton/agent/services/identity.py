"""The identity of an agent: lines, versions, and proposals that wait for a person's confirmation."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from newton.agent.events import publish
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.errors import InputError
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit, IdentityVersion, MessageRef, TenetProposal, TenetRecord
from newton.heart.identity.standing_instructions import StandingInstruction, detect_instructions
from newton.heart.identity.tenets import Identity, IdentityPart, Tenet
from newton.memory.hygiene import clean_text
from newton.memory.memory import Trust

# Interfaces that only a person uses. An agent that could change its identity would have none.
PERSONAL_ORIGINS = frozenset({"cli", "chat"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityService:
    """Identity of one agent. A line is named by its id or the end of it.

    Changes raise InputError through an interface that is not a person's.
    """

    scope: AgentScope

    async def get(self) -> Identity:
        async with self.scope.transaction() as tx:
            return await identity_store.read_identity(tx, agent_id=self.scope.agent_id)

    async def history(self) -> tuple[list[IdentityVersion], list[TenetRecord]]:
        """Return every version, and every line they contain."""
        async with self.scope.transaction() as tx:
            versions = await identity_store.list_versions(tx, agent_id=self.scope.agent_id)
            return versions, await identity_store.list_tenets(tx, agent_id=self.scope.agent_id)

    async def list_proposals(self) -> list[TenetRecord]:
        """Return the pending proposals, oldest first."""
        async with self.scope.transaction() as tx:
            written = await identity_store.list_tenets(tx, agent_id=self.scope.agent_id)
        return [one for one in written if one.state == "PROPOSED"]

    async def add(
        self, part: IdentityPart, text: str, *, reason: str | None = None, allow_conflict: bool = False
    ) -> bool:
        """Add a line; False if it exists. `allow_conflict` keeps conflicting lines in force."""
        edit_ctx = self._edit_context(reason)
        return await self._run_and_publish(
            "added", lambda tx: identity_store.add(tx, part, text, edit=edit_ctx, keep_conflicting=allow_conflict)
        )

    async def change(
        self, line_ref: str, text: str, *, part: IdentityPart | None = None, reason: str | None = None
    ) -> bool:
        """Change a line; False if it has this text."""
        edit_ctx = self._edit_context(reason)
        return await self._run_and_publish(
            "changed", lambda tx: identity_store.change(tx, line_ref, text, part=part, edit=edit_ctx)
        )

    async def remove(self, line_ref: str, *, reason: str | None = None) -> Tenet:
        edit_ctx = self._edit_context(reason)
        return await self._run_and_publish("removed", lambda tx: identity_store.remove(tx, line_ref, edit=edit_ctx))

    async def roll_back(self, version: int, *, reason: str | None = None) -> bool:
        """Restore a version; False if the identity is unchanged."""
        edit_ctx = self._edit_context(reason)
        return await self._run_and_publish(
            "rolled_back", lambda tx: identity_store.roll_back(tx, version, edit=edit_ctx)
        )

    async def accept(self, line_ref: str) -> TenetProposal:
        """Accept a proposal. Return it with the conflicting lines that it replaces."""
        edit_ctx = self._edit_context(None)
        return await self._run_and_publish("accepted", lambda tx: identity_store.accept(tx, line_ref, edit=edit_ctx))

    async def reject(self, line_ref: str) -> Tenet:
        edit_ctx = self._edit_context(None)
        return await self._run_and_publish("rejected", lambda tx: identity_store.reject(tx, line_ref, edit=edit_ctx))

    async def erase(self, line_ref: str, *, reason: str) -> int:
        """Permanently delete the text of a line wherever it is stored; return the number of places."""
        edit_ctx = self._edit_context(reason)
        return await self._run_and_publish("erased", lambda tx: identity_store.erase(tx, line_ref, edit=edit_ctx))

    async def propose(self, part: IdentityPart, text: str, *, trust: Trust = "agent") -> bool:
        """Propose a line for a person to accept. Return False if it exists.

        `trust` is that of the author of the text. Raises InputError for text of a tool or the web.
        """
        edit_ctx = IdentityEdit(ctx=self.scope.write_context(trust))
        instruction = StandingInstruction(part, text)
        return bool(
            await self._run_and_publish(
                "proposed", lambda tx: identity_store.propose(tx, [instruction], message_ref=None, edit=edit_ctx)
            )
        )

    async def _run_and_publish(self, event: str, operation: Callable[[Tx], Awaitable[T]]) -> T:
        """Run the operation, and publish an event if it changed anything."""
        async with self.scope.transaction() as tx:
            done = await operation(tx)
            if done:
                self.scope.publish(f"identity.{event}", {})
            return done

    def _edit_context(self, reason: str | None) -> IdentityEdit:
        if self.scope.origin not in PERSONAL_ORIGINS:
            raise InputError(
                "Only a person may change the identity.",
                hint="Propose the change; a person accepts it with `newton identity accept`.",
            )
        why = None if reason is None else clean_text(reason, what="reason")
        return IdentityEdit(ctx=self.scope.write_context("user"), reason=why)


async def detect_proposals(
    tx: Tx, text: str, message_ref: MessageRef, *, edit: IdentityEdit
) -> Sequence[TenetProposal]:
    """Propose the standing instructions in a user message that are not in force yet."""
    instructions = [
        instruction
        for instruction in detect_instructions(text)
        if identity_store.is_valid_line(instruction, edit.ctx.count_tokens)
    ]
    proposed = (
        await identity_store.propose(tx, instructions, message_ref=message_ref, edit=edit) if instructions else ()
    )
    if proposed:
        publish("identity.proposed", {}, agent_id=edit.ctx.agent_id, now=edit.ctx.now)
    return proposed
