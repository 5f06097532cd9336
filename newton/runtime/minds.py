"""The agents of one process: they share its database and models, and nothing else."""

import asyncio
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID
from weakref import WeakValueDictionary

from newton.errors import DatabaseError
from newton.ids import agent_id
from newton.memory import agents
from newton.runtime.models import chat_model
from newton.runtime.opening import for_agent
from newton.runtime.wiring import Newton

if TYPE_CHECKING:
    from newton.providers.chat import ChatModel

MOST = 256  # agents at hand; what one leaves behind here is a few objects, and it is made again in a millisecond
READY_SECONDS = 2


class Minds:
    """Newton for each agent that is asked for, made once."""

    def __init__(self, newton: Newton) -> None:
        self.first = newton
        self._at_hand: OrderedDict[UUID, Newton] = OrderedDict()
        self._locks: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._asked: asyncio.Task[bool] | None = None

    @cached_property
    def model(self) -> "ChatModel | None":
        """The model that all of them talk with; None when none is set."""
        return chat_model(self.first.settings)

    async def of(self, name: str) -> Newton:
        """Newton for the agent of that name. Raises NotFoundError when there is none."""
        known = agent_id(name)
        if known == self.first.scope.agent_id:
            return self.first
        if known in self._at_hand:
            self._at_hand.move_to_end(known)
            return self._at_hand[known]
        async with self._lock(known):
            return self._at_hand.get(known) or self._kept(await for_agent(self.first, name))

    async def begin(self, name: str) -> Newton:
        """The same, begun if it is new: on purpose only, since a slip of the pen would be a mind of its own."""
        await agents.agent(self.first.scope.db, name, now=self.first.scope.now())
        return await self.of(name)

    async def renew(self, newton: Newton) -> Newton:
        """The agent anew, as after a change of its embedding model. What was begun with the old one goes on with it."""
        name = newton.settings.agent
        async with self._lock(newton.scope.agent_id):
            made = await for_agent(self.first, name)
            if newton.scope.agent_id != self.first.scope.agent_id:
                return self._kept(made)
            self.first = made
        return made

    def _lock(self, known: UUID) -> asyncio.Lock:
        """One for each agent, kept while somebody holds it or waits: nobody waits for the opening of another agent."""
        return self._locks.setdefault(known, asyncio.Lock())

    def _kept(self, made: Newton) -> Newton:
        self._at_hand[made.scope.agent_id] = made
        self._at_hand.move_to_end(made.scope.agent_id)
        while len(self._at_hand) > MOST:
            self._at_hand.popitem(last=False)
        return made

    @property
    def at_hand(self) -> list[Newton]:
        """Those that were asked for of late."""
        return [self.first, *self._at_hand.values()]

    async def ready(self) -> bool:
        """Whether the database answers within two seconds.

        One question is open at a time, and it is left open: to call it off waits for the database as well.
        """
        asked = self._asked
        if asked is None or asked.done():
            asked = self._asked = asyncio.create_task(self._answers())
        await asyncio.wait({asked}, timeout=READY_SECONDS)
        return asked.done() and asked.result()

    async def _answers(self) -> bool:
        try:
            async with self.first.scope.db.work(self.first.scope.agent_id) as tx:
                return await tx.fetchval("select true") is True
        except DatabaseError:
            return False
