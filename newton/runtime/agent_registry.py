"""The agents of one process: they share its database and models, and nothing else."""

import asyncio
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID
from weakref import WeakValueDictionary

from newton.errors import DatabaseError
from newton.ids import derive_agent_id
from newton.memory import agents
from newton.runtime.bootstrap import open_for_agent
from newton.runtime.model_factory import build_chat_model
from newton.runtime.wiring import AgentServices

if TYPE_CHECKING:
    from newton.providers.chat import ChatModel

MAX_LOADED = 256  # agents at hand; what one leaves behind here is a few objects, and it is made again in a millisecond
READY_SECONDS = 2


class AgentRegistry:
    """Newton for each agent that is asked for, made once."""

    def __init__(self, newton: AgentServices) -> None:
        self.default = newton
        self._agents: OrderedDict[UUID, AgentServices] = OrderedDict()
        self._locks: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._ready_check: asyncio.Task[bool] | None = None

    @cached_property
    def chat_model(self) -> "ChatModel | None":
        """The model that all of them talk with; None when none is set."""
        return build_chat_model(self.default.settings)

    async def get(self, name: str) -> AgentServices:
        """Newton for the agent of that name. Raises NotFoundError when there is none."""
        known = derive_agent_id(name)
        if known == self.default.scope.agent_id:
            return self.default
        if known in self._agents:
            self._agents.move_to_end(known)
            return self._agents[known]
        async with self._lock(known):
            return self._agents.get(known) or self._cache(await open_for_agent(self.default, name))

    async def create(self, name: str) -> AgentServices:
        """The same, begun if it is new: on purpose only, since a slip of the pen would be a mind of its own."""
        await agents.get_or_create_agent(self.default.scope.db, name, now=self.default.scope.now())
        return await self.get(name)

    async def reload(self, newton: AgentServices) -> AgentServices:
        """The agent anew, as after a change of its embedding model. What was begun with the old one goes on with it."""
        name = newton.settings.agent
        async with self._lock(newton.scope.agent_id):
            made = await open_for_agent(self.default, name)
            if newton.scope.agent_id != self.default.scope.agent_id:
                return self._cache(made)
            self.default = made
        return made

    def _lock(self, key: UUID) -> asyncio.Lock:
        """One for each agent, kept while somebody holds it or waits: nobody waits for the opening of another agent."""
        return self._locks.setdefault(key, asyncio.Lock())

    def _cache(self, newton: AgentServices) -> AgentServices:
        self._agents[newton.scope.agent_id] = newton
        self._agents.move_to_end(newton.scope.agent_id)
        while len(self._agents) > MAX_LOADED:
            self._agents.popitem(last=False)
        return newton

    @property
    def loaded_agents(self) -> list[AgentServices]:
        """Those that were asked for of late."""
        return [self.default, *self._agents.values()]

    async def is_ready(self) -> bool:
        """Whether the database answers within two seconds.

        One question is open at a time, and it is left open: to call it off waits for the database as well.
        """
        asked = self._ready_check
        if asked is None or asked.done():
            asked = self._ready_check = asyncio.create_task(self._ping_database())
        await asyncio.wait({asked}, timeout=READY_SECONDS)
        return asked.done() and asked.result()

    async def _ping_database(self) -> bool:
        try:
            async with self.default.scope.db.transaction(self.default.scope.agent_id) as tx:
                return await tx.fetchval("select true") is True
        except DatabaseError:
            return False
