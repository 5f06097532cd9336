"""The agents of one process: they share its database and models, and nothing else."""

import asyncio
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID

from newton.errors import DatabaseError
from newton.ids import agent_id
from newton.runtime.models import chat_model
from newton.runtime.opening import for_agent
from newton.runtime.wiring import Newton

if TYPE_CHECKING:
    from newton.providers.chat import ChatModel

MOST = 256  # agents at hand; what one leaves behind here is a few objects, and it is made again in a millisecond


class Minds:
    """Newton for each agent that is asked for, made once."""

    def __init__(self, newton: Newton) -> None:
        self.first = newton
        self._at_hand: OrderedDict[UUID, Newton] = OrderedDict()
        self._lock = asyncio.Lock()

    @cached_property
    def model(self) -> "ChatModel | None":
        """The model that all of them talk with; None when none is set."""
        return chat_model(self.first.settings)

    async def of(self, name: str) -> Newton:
        """Newton for the agent of that name, begun if it is new."""
        known = agent_id(name)
        if known == self.first.agent_id:
            return self.first
        async with self._lock:
            if known not in self._at_hand:
                self._at_hand[known] = await for_agent(self.first, name)
                while len(self._at_hand) > MOST:
                    self._at_hand.popitem(last=False)
            self._at_hand.move_to_end(known)
            return self._at_hand[known]

    async def renew(self, newton: Newton) -> Newton:
        """The agent anew, as after a change of its embedding model. What was begun with the old one goes on with it."""
        name = newton.settings.agent
        async with self._lock:
            made = await for_agent(self.first, name)
            if newton.agent_id == self.first.agent_id:
                self.first = made
            else:
                self._at_hand[newton.agent_id] = made
        return made

    @property
    def at_hand(self) -> list[Newton]:
        """Those that were asked for of late."""
        return [self.first, *self._at_hand.values()]

    async def ready(self) -> bool:
        """Whether the database answers."""
        try:
            async with self.first.db.work(self.first.agent_id) as tx:
                return await tx.fetchval("select true") is True
        except DatabaseError:
            return False
