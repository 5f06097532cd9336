"""The agents of one process, which share its database and models."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID
from weakref import WeakValueDictionary

from newton.content.ui_tasks import UiTask, load_ui_tasks
from newton.errors import DatabaseError
from newton.ids import derive_agent_id
from newton.memory import agents
from newton.providers.chat import ModelSelector
from newton.runtime.bootstrap import open_for_agent
from newton.runtime.model_factory import build_chat_model
from newton.runtime.user_memory import create_user_memory
from newton.runtime.wiring import AgentServices

if TYPE_CHECKING:
    from newton.providers.chat import ChatModel

MAX_LOADED = 256  # maximum number of cached agents
READY_SECONDS = 2  # timeout of the readiness check


class AgentRegistry:
    """A cache of the services of each agent."""

    def __init__(self, newton: AgentServices) -> None:
        self.default = newton
        self._agents: OrderedDict[UUID, AgentServices] = OrderedDict()
        self._locks: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._ready_check: asyncio.Task[bool] | None = None

    @cached_property
    def chat_model(self) -> "ChatModel | None":
        """Return the chat model of the default agent; None when none is configured."""
        return build_chat_model(self.default.settings)

    @cached_property
    def ui_tasks(self) -> Sequence[UiTask]:
        """Return the kinds of requests that programs send by themselves, with those of the operator.

        Raises ConfigError for an invalid file.
        """
        own = self.default.settings.home / "ui_tasks"
        return load_ui_tasks(own if own.is_dir() else None)

    def chat_model_of(self, newton: AgentServices) -> "ChatModel | None":
        """Return the chat model of an agent; None when none is configured. All agents share one connection."""
        settings, model = newton.settings, self.chat_model
        if isinstance(model, ModelSelector):
            return model.with_model(settings.agent_models.get(settings.agent))
        return model

    async def get(self, name: str) -> AgentServices:
        """Return the services of the named agent. Raises NotFoundError when there is none."""
        agent_id = derive_agent_id(name)
        if agent_id == self.default.scope.agent_id:
            return self.default
        if agent_id in self._agents:
            self._agents.move_to_end(agent_id)
            return self._agents[agent_id]
        async with self._lock(agent_id):
            return self._agents.get(agent_id) or self._cache(await open_for_agent(self.default, name))

    async def create(self, name: str) -> AgentServices:
        """Create the named agent unless it exists, and return its services."""
        await agents.get_or_create_agent(self.default.scope.db, name, now=self.default.scope.now())
        return await self.get(name)

    async def get_for_user(self, parent: AgentServices, user: str) -> AgentServices:
        """Return the services of the memory of a user of an agent; create it on first use.

        Its chat model is the one of the agent.
        """
        name = agents.name_user_agent(parent.settings.agent, user)
        if derive_agent_id(name) not in self._agents:
            await create_user_memory(parent, user)
        newton, models = await self.get(name), parent.settings.agent_models
        if model := models.get(parent.settings.agent):
            return replace(
                newton, settings=newton.settings.model_copy(update={"agent_models": {**models, name: model}})
            )
        return newton

    def discard(self, agent_id: UUID) -> None:
        """Remove a deleted agent from the cache."""
        self._agents.pop(agent_id, None)

    async def reload(self, newton: AgentServices) -> AgentServices:
        """Replace the services of an agent, for example after a change of its embedding model."""
        async with self._lock(newton.scope.agent_id):
            reloaded = await open_for_agent(self.default, newton.settings.agent)
            if newton.scope.agent_id != self.default.scope.agent_id:
                return self._cache(reloaded)
            self.default = reloaded
        return reloaded

    def _lock(self, agent_id: UUID) -> asyncio.Lock:
        """Return the lock of one agent, so that opening an agent does not block the others."""
        return self._locks.setdefault(agent_id, asyncio.Lock())

    def _cache(self, newton: AgentServices) -> AgentServices:
        self._agents[newton.scope.agent_id] = newton
        self._agents.move_to_end(newton.scope.agent_id)
        while len(self._agents) > MAX_LOADED:
            self._agents.popitem(last=False)
        return newton

    @property
    def loaded_agents(self) -> list[AgentServices]:
        """The default agent and the cached ones."""
        return [self.default, *self._agents.values()]

    async def is_ready(self) -> bool:
        """Return True when the database answers within two seconds. At most one check is pending at a time."""
        check = self._ready_check
        if check is None or check.done():
            check = self._ready_check = asyncio.create_task(self._ping_database())
        await asyncio.wait({check}, timeout=READY_SECONDS)  # cancelling the check would wait for the database
        return check.done() and check.result()

    async def _ping_database(self) -> bool:
        try:
            async with self.default.scope.db.transaction(self.default.scope.agent_id) as tx:
                return await tx.fetchval("select true") is True
        except DatabaseError:
            return False
