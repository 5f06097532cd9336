"""A cache of agents, with those of the users of an agent. They share one database and the models of the process."""

import asyncio
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from uuid import UUID
from weakref import WeakValueDictionary

from newton.clock import monotonic_ms
from newton.content.ui_tasks import UiTask, load_ui_tasks
from newton.errors import DatabaseError, ForbiddenError, InputError, NotFoundError, OverloadedError
from newton.heart import censors
from newton.heart.censors import CensorRule
from newton.heart.identity import identity_store
from newton.heart.identity.identity_store import IdentityEdit
from newton.heart.procedures import DISK_ORIGIN
from newton.ids import derive_agent_id
from newton.memory import agents, vectors
from newton.memory.redaction.redactor import redact_secrets
from newton.runtime.access.tokens import MAX_USERS, read_max_users
from newton.runtime.bootstrap import open_for_agent
from newton.runtime.wiring import AgentServices

MAX_USER_LENGTH, MAX_PROJECT_LENGTH = 500, 100
MAX_PROJECTS = 200  # of an agent: whoever may write chooses the names
USERS_PER_HOUR = 60  # new ones; in proportion for a token that may add more than `MAX_USERS`
ORIGIN = "user memory"
CREATION_REASON = "copied from the parent agent when the memory of the user was created"


def clean_user(user: str) -> str:
    """Return the name of a user without surrounding white space.

    Raises InputError unless the name is one line of 1 to `MAX_USER_LENGTH` printable characters.
    """
    cleaned = user.strip()
    if not cleaned or len(cleaned) > MAX_USER_LENGTH or not cleaned.isprintable():
        what = f"The name of the user is not one line of 1 to {MAX_USER_LENGTH} printable characters."
        raise InputError(what, hint="Send a stable id of the user, such as an account number.", param="user")
    return cleaned


def clean_project(project: str) -> str:
    """Return the name of a project without surrounding white space.

    Raises InputError unless the name is one line of 1 to `MAX_PROJECT_LENGTH` printable characters.
    """
    cleaned = project.strip()
    if not cleaned or len(cleaned) > MAX_PROJECT_LENGTH or not cleaned.isprintable():
        what = f"The name of the project is not one line of 1 to {MAX_PROJECT_LENGTH} printable characters."
        raise InputError(what, hint="Give a short name, such as that of a repository.", param="project")
    return cleaned


async def check_user_limits(parent: AgentServices, max_users: int) -> None:
    """Raise an error if the agent has the users that a token may add, or got too many in the last hour.

    A user costs rows in most tables, and whoever holds a token chooses the names. Raises ForbiddenError and
    OverloadedError.
    """
    hourly = max(USERS_PER_HOUR, max_users * USERS_PER_HOUR // MAX_USERS)
    since = parent.scope.now() - timedelta(hours=1)
    total, recent = await agents.count_user_agents(parent.scope.db, parent.scope.agent_id, since=since)
    if total >= max_users:
        what = f"The agent has {total:,} users with a memory of their own; this token may add none above {max_users:,}."
        hint = "`newton tokens create NAME --per-user --max-users NUMBER` creates a token for more users."
        raise ForbiddenError(what, hint=hint, param="user")
    if recent >= hourly:
        what = f"{recent:,} users got a memory of their own within an hour; this token may add {hourly:,} an hour."
        raise OverloadedError(what, hint="Try again later. Known users are served meanwhile.", param="user")


async def create_project(parent: AgentServices, project: str) -> None:
    """Create a project of an agent or of a user. Raises ForbiddenError if there are `MAX_PROJECTS` already."""
    scope = parent.scope
    async with scope.transaction() as tx:
        if len(await agents.list_projects(tx, agent_id=scope.agent_id)) >= MAX_PROJECTS:
            hint = "`newton projects delete NAME` deletes one that is no longer needed."
            raise ForbiddenError(f"There are {MAX_PROJECTS} projects already.", hint=hint, param="project")
        name, now = parent.settings.agent, scope.now()
        await agents.create_project(tx, project, parent_id=scope.agent_id, parent=name, now=now)


async def create_user_memory(parent: AgentServices, user: str, *, max_users: int = MAX_USERS) -> str:
    """Return the name of the agent that stores the memory of a user; create this agent if it does not exist.

    A new agent gets a copy of the parent's identity and censors, so that the operator's rules apply from the first
    message. Raises the errors of `check_user_limits`.
    """
    name = agents.name_user_agent(parent.settings.agent, user)
    db, now = parent.scope.db, parent.scope.now()
    if await agents.exists(db, name):
        return name
    await check_user_limits(parent, max_users)
    identity = await parent.identity(ORIGIN).get()
    listed = await parent.censors(ORIGIN).list_censors()
    scope = replace(parent.scope.at(ORIGIN, "user"), agent_id=derive_agent_id(name))
    async with scope.write() as (tx, ctx):
        if not await agents.insert_user_agent(tx, name, parent_id=parent.scope.agent_id, user=user, now=now):
            return name
        edit = IdentityEdit(ctx=ctx, reason=CREATION_REASON)
        for tenet in identity.tenets:
            await identity_store.add(tx, tenet.part, tenet.text, edit=edit, keep_conflicting=True)
        await censors.add_rules(tx, [_to_rule(one) for one in listed if one.is_in_force], ctx=ctx)
    return name


def _to_rule(censor: censors.CensorSummary) -> CensorRule:
    return CensorRule(
        trigger=censor.trigger,
        reason=censor.reason,
        match_mode=censor.match_mode,
        action=censor.action,
        domain=censor.domain,
        threshold=censor.threshold,
    )


MAX_LOADED = 256  # maximum number of cached agents
MODEL_AGE_MS = 1_000.0  # for which the default model of an agent is not read again
MIN_FREE_BYTES = 32_000_000  # of the disk with the data folder
READY_SECONDS = 2  # timeout of the readiness check


class AgentRegistry:
    """A cache of the services of agents: the default agent, and at most `MAX_LOADED` others, opened on first use."""

    def __init__(self, newton: AgentServices) -> None:
        self.default = newton
        self._agents: OrderedDict[UUID, AgentServices] = OrderedDict()
        self._locks: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._read_at: dict[UUID, float] = {}
        self._ready_check: asyncio.Task[bool] | None = None

    @cached_property
    def ui_tasks(self) -> Sequence[UiTask]:
        """Return the operator's patterns of requests that chat programs send by themselves, such as for a title.

        Raises ConfigError for an invalid file.
        """
        return load_ui_tasks(self.default.settings.home / "ui_tasks")

    async def get(self, name: str) -> AgentServices:
        """Return the services of the named agent. Raises NotFoundError if there is no such agent."""
        agent_id = derive_agent_id(name)
        if agent_id == self.default.scope.agent_id:
            return await self._refresh_model(self.default)
        if agent_id in self._agents:
            self._agents.move_to_end(agent_id)
            return await self._refresh_model(self._agents[agent_id])
        async with self._lock(agent_id):
            return self._agents.get(agent_id) or self._cache(await open_for_agent(self.default, name))

    async def set_model(self, newton: AgentServices, model: str | None) -> AgentServices:
        """Set the default chat model of an agent, or remove it if `model` is None; return the changed services.

        Raises ModelNotFoundError for an unknown model.
        """
        if model is not None:
            await newton.models.select(newton.chat_model, model)
        await agents.set_model(newton.scope.db, newton.scope.agent_id, model)
        return self._replace(replace(newton, default_model=model))

    async def _refresh_model(self, newton: AgentServices) -> AgentServices:
        """Return the services with the agent's default model as stored now, because another process may have set it.

        If another process has deleted the agent, remove it from the cache and raise NotFoundError.
        """
        now, agent_id = monotonic_ms(), newton.scope.agent_id
        if now - self._read_at.get(agent_id, -MODEL_AGE_MS) < MODEL_AGE_MS:
            return newton
        try:
            model = (await agents.read_agent(newton.scope.db, agent_id)).model
        except NotFoundError:
            self.discard(agent_id)
            raise
        self._read_at[agent_id] = now
        return newton if model == newton.default_model else self._replace(replace(newton, default_model=model))

    def _replace(self, newton: AgentServices) -> AgentServices:
        if newton.scope.agent_id != self.default.scope.agent_id:
            return self._cache(newton)
        self.default = newton
        return newton

    async def create(self, name: str) -> AgentServices:
        """Create the named agent unless it exists, and return its services."""
        await agents.get_or_create_agent(self.default.scope.db, name, now=self.default.scope.now())
        return await self.get(name)

    async def get_for_user(self, parent: AgentServices, user: str, *, token: str) -> AgentServices:
        """Return the services of the separate memory that the agent `parent` keeps for one user; create it if needed.

        The memory uses the default chat model of `parent`, unless it has a default model itself. `token` limits the
        number of users. Raises the errors of `check_user_limits`.
        """
        name = agents.name_user_agent(parent.settings.agent, user)
        if derive_agent_id(name) not in self._agents:
            async with parent.scope.transaction() as tx:
                max_users = await read_max_users(tx, token)
            async with self._lock(parent.scope.agent_id):  # so that concurrent requests do not exceed the number
                await create_user_memory(parent, user, max_users=max_users)
        newton = await self.get(name)
        return replace(newton, default_model=newton.default_model or parent.default_model, is_user_memory=True)

    async def get_for_project(self, parent: AgentServices, project: str, *, creates: bool) -> AgentServices:
        """Return the services of the separate memory that an agent, or a user of it, keeps for a project.

        If `creates`, an unknown project is created. It uses the default chat model of `parent`, unless it has a default
        model itself. Raises InputError for an invalid name, NotFoundError for an unknown project, and ForbiddenError if
        `parent` is another project.
        """
        project = clean_project(project)
        if parent.scope.project is not None:
            if redact_secrets(project) == parent.scope.project:
                return parent
            what = f"The project {parent.scope.project!r} is in use, so {project!r} cannot be used."
            raise ForbiddenError(what, hint="Name no project, or use a token of the agent that has the projects.")
        name, scope = agents.name_project_agent(parent.settings.agent, project), parent.scope
        if not await agents.exists(scope.db, name):
            self.discard(derive_agent_id(name))
            if not creates:
                hint = "`newton projects` lists the projects; what is stored first in a project creates it."
                raise NotFoundError(f"There is no project {project!r}.", hint=hint, param="project")
            await create_project(parent, project)
        newton = await self.get(name)
        model = newton.default_model or parent.default_model
        is_user = parent.is_user_memory
        return replace(newton, default_model=model, is_user_memory=is_user, may_leave_project=True)

    async def enter_project(
        self, newton: AgentServices, project: str | None, *, on_new: Callable[[str], None] | None
    ) -> AgentServices:
        """Return the services of a project of an agent for a command; without a `project`, those of the agent.

        If `on_new` is given, an unknown project is created, and `on_new` called with its name. Raises the errors of
        `get_for_project`.
        """
        if project is None:
            return newton
        project = clean_project(project)
        name = agents.name_project_agent(newton.settings.agent, project)
        is_new = on_new is not None and not await agents.exists(newton.scope.db, name)
        entered = await self.get_for_project(newton, project, creates=is_new)
        if is_new and on_new:
            on_new(project)
        return entered

    async def get_current(self, name: str) -> AgentServices:
        """Return the services of the named agent as a newly started process would load them.

        If another process has changed the agent's embedding model, open the agent again. Also update the stored
        procedures from the skill files. Raises NotFoundError if there is no such agent.
        """
        newton = await self.get(name)
        embedder, configured = newton.scope.embedder, newton.configured_embedder
        if embedder is not None and configured is not None:
            async with newton.scope.transaction() as tx:
                active = await vectors.read_active_model(tx, agent_id=newton.scope.agent_id)
            if embedder.identity != (active or configured.identity):
                return await self.reload(newton)
        await newton.procedures(DISK_ORIGIN).sync_from_disk(newton.skills)
        return newton

    def discard(self, agent_id: UUID) -> None:
        """Remove a deleted agent from the cache."""
        self._agents.pop(agent_id, None)
        self._read_at.pop(agent_id, None)

    async def reload(self, newton: AgentServices) -> AgentServices:
        """Open an agent again, for example after a change of its embedding model, and return the new services."""
        async with self._lock(newton.scope.agent_id):
            reloaded = await open_for_agent(self.default, newton.settings.agent)
            if newton.scope.agent_id != self.default.scope.agent_id:
                return self._cache(reloaded)
            self.default = reloaded
        return reloaded

    def _lock(self, agent_id: UUID) -> asyncio.Lock:
        """Return the lock that serializes the opening of one agent; other agents can be opened meanwhile."""
        return self._locks.setdefault(agent_id, asyncio.Lock())

    def _cache(self, newton: AgentServices) -> AgentServices:
        self._agents[newton.scope.agent_id] = newton
        self._agents.move_to_end(newton.scope.agent_id)
        while len(self._agents) > MAX_LOADED:
            self._agents.popitem(last=False)
        return newton

    @property
    def loaded_agents(self) -> list[AgentServices]:
        """Return the services of the default agent and of all cached agents."""
        return [self.default, *self._agents.values()]

    async def is_ready(self) -> bool:
        """Return True if the database answers within two seconds and its disk is not full.

        Concurrent calls share one pending check.
        """
        check = self._ready_check
        if check is None or check.done():
            check = self._ready_check = asyncio.create_task(self._ping_database())
        await asyncio.wait({check}, timeout=READY_SECONDS)  # cancelling the check would wait for the database
        return check.done() and check.result() and self._has_disk_space()

    def _has_disk_space(self) -> bool:
        is_full = shutil.disk_usage(self.default.settings.home).free < MIN_FREE_BYTES
        return not is_full and not self.default.scope.db.is_disk_full

    async def _ping_database(self) -> bool:
        try:
            async with self.default.scope.db.transaction(self.default.scope.agent_id) as tx:
                return await tx.fetchval("select true") is True
        except DatabaseError:
            return False
