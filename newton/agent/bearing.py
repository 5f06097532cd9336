"""The identity of an agent as a person keeps it, and what waits for their yes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from newton.agent.scope import AgentScope
from newton.agent.telling import tell
from newton.db.pool import Tx
from newton.errors import InputError
from newton.heart import identity
from newton.heart.identity import Hand, Proposal, Spot, Version, Written
from newton.heart.tenets import Identity, Part, Tenet
from newton.heart.wishes import Wish, wishes
from newton.memory.hygiene import clean
from newton.memory.memory import Trust

# The doors behind which a person stands. An agent that could change its identity would have none.
PERSONAL = frozenset({"cli", "chat"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearing:
    """For one agent; `origin` names the door. A line is named by its id or the end of it.

    What changes the identity raises InputError at a door behind which no person stands.
    """

    scope: AgentScope

    async def identity(self) -> Identity:
        async with self.scope.transaction() as tx:
            return await identity.read(tx, agent_id=self.scope.agent_id)

    async def history(self) -> tuple[list[Version], list[Written]]:
        """Every version, and every line that they speak of."""
        async with self.scope.transaction() as tx:
            versions = await identity.history(tx, agent_id=self.scope.agent_id)
            return versions, await identity.written(tx, agent_id=self.scope.agent_id)

    async def proposals(self) -> list[Written]:
        """What waits for a yes, the first one first."""
        async with self.scope.transaction() as tx:
            written = await identity.written(tx, agent_id=self.scope.agent_id)
        return [one for one in written if one.state == "PROPOSED"]

    async def add(self, part: Part, words: str, *, because: str | None = None, beside: bool = False) -> bool:
        """False when it says so already; `beside` has it stand beside what goes against it."""
        hand = self._hand(because)
        return await self._told("added", lambda tx: identity.add(tx, part, words, hand=hand, beside=beside))

    async def change(self, given: str, words: str, *, part: Part | None = None, because: str | None = None) -> bool:
        """False when these are its words already."""
        hand = self._hand(because)
        return await self._told("changed", lambda tx: identity.change(tx, given, words, part=part, hand=hand))

    async def remove(self, given: str, *, because: str | None = None) -> Tenet:
        hand = self._hand(because)
        return await self._told("removed", lambda tx: identity.remove(tx, given, hand=hand))

    async def roll_back(self, version: int, *, because: str | None = None) -> bool:
        """False when the identity is as it was then."""
        hand = self._hand(because)
        return await self._told("rolled_back", lambda tx: identity.roll_back(tx, version, hand=hand))

    async def accept(self, given: str) -> Proposal:
        """With what stood and went against it: it has taken the place of that."""
        hand = self._hand(None)
        return await self._told("accepted", lambda tx: identity.accept(tx, given, hand=hand))

    async def reject(self, given: str) -> Tenet:
        hand = self._hand(None)
        return await self._told("rejected", lambda tx: identity.reject(tx, given, hand=hand))

    async def erase(self, given: str, *, because: str) -> int:
        """Takes its words away for good, wherever they were written here; returns how often they were."""
        hand = self._hand(because)
        return await self._told("erased", lambda tx: identity.erase(tx, given, hand=hand))

    async def propose(self, part: Part, words: str, *, trust: Trust = "agent") -> bool:
        """What an agent wishes for itself; it waits for a person's yes. False when it stands already.

        `trust` is of whose words these are. Raises InputError for those of a tool or the web.
        """
        hand = Hand(ctx=self.scope.write_context(trust))
        wish = Wish(part, words)
        return bool(await self._told("proposed", lambda tx: identity.propose(tx, [wish], spot=None, hand=hand)))

    async def _told(self, what: str, act: Callable[[Tx], Awaitable[T]]) -> T:
        """Does it, and tells of it if it changed anything."""
        async with self.scope.transaction() as tx:
            done = await act(tx)
            if done:
                self.scope.publish(f"identity.{what}", {})
            return done

    def _hand(self, because: str | None) -> Hand:
        if self.scope.origin not in PERSONAL:
            raise InputError(
                "Only a person may change the identity.", hint="Propose it; `newton identity accept` is theirs."
            )
        why = None if because is None else clean(because, what="reason")
        return Hand(ctx=self.scope.write_context("user"), because=why)


async def listen(tx: Tx, said: str, spot: Spot, *, hand: Hand) -> Sequence[Proposal]:
    """What a person said just now that is meant to hold from now on, and does not stand yet; it waits for their yes."""
    heard = [wish for wish in wishes(said) if identity.is_line(wish, hand.ctx.count_tokens)]
    proposed = await identity.propose(tx, heard, spot=spot, hand=hand) if heard else ()
    if proposed:
        tell("identity.proposed", {}, agent_id=hand.ctx.agent_id, now=hand.ctx.now)
    return proposed
