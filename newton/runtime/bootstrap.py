"""Startup: load settings, content files and models, open the database, and build the services of agents."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.background_runs import open_compactions, open_readings
from newton.agent.scope import AgentScope
from newton.brain.pack_hooks import load_hooks
from newton.clock import Clock, SystemClock
from newton.cognition.assembly.render import count_header_tokens
from newton.cognition.frames.training import load_or_train
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.scoring.score import check_expression
from newton.concurrency import task_group
from newton.content.frames import Frame
from newton.content.package_data import data_folder
from newton.content.packs import FrameSet, load_frame_set
from newton.content.profiles import load_profiles
from newton.content.skills import SkillSet, load_skills
from newton.content.yaml_files import did_you_mean
from newton.db.connection import open_database
from newton.db.pool import Database
from newton.db.server_paths import find_database_folder
from newton.errors import NotFoundError
from newton.file_access import close_folder
from newton.heart.procedures import DISK_ORIGIN
from newton.ids import derive_agent_id
from newton.memory import agents, vectors
from newton.memory.agents import StoredAgent
from newton.memory.memory import TokenCounter
from newton.memory.redaction.redactor import keep_household_codes
from newton.memory.tombstones import KEY
from newton.providers.embedding_providers import embedder_for
from newton.runtime.access.operator_token import TOKEN_FILE
from newton.runtime.access.secret_values import register_secrets
from newton.runtime.mcp_servers.servers import McpServerPool, load_servers
from newton.runtime.model_directory import ModelDirectory
from newton.runtime.model_factory import build_structured_llm, build_web_source, load_models
from newton.runtime.settings_mapping import build_artifact_policy, build_storage_quota, build_thresholds, check_settings
from newton.runtime.wiring import AgentServices
from newton.settings import DEFAULT_AGENT, Settings

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

FrameTiebreak = Callable[[str, Sequence[Frame]], Awaitable[str | None]]

CLOSED_NOTICE = "Other users could read the data folder {folder}. It is readable only by you now."
ROOT_DATABASE_NOTICE = (
    "The database is in {folder}, because PostgreSQL does not run as root. Delete it together with the data folder."
)
MAX_LISTED_AGENTS = 10  # in the error for an unknown agent
GC_THRESHOLD = 10_000  # garbage collection threshold in objects; Python's 700 starts many collections per context


@asynccontextmanager
async def open_newton(
    settings: Settings,
    *,
    long_running: bool = False,
    skip_procedure_sync: bool = False,
    on_new_agent: Callable[[str], None] | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> AsyncGenerator[AgentServices]:
    """Validate settings and files, open the database, and yield the services of the agent that the settings name.

    With `long_running`, an embedded PostgreSQL server that stops is started again. With `skip_procedure_sync`, the
    stored procedures are not updated from the skill files. An agent that does not exist is created and its name passed
    to `on_new_agent`; without this callback only the default agent is created, and any other raises NotFoundError.
    `on_notice` receives a sentence for each skill file that cannot be read, and one that names the database folder if a
    new database lies outside the data folder.
    """
    is_closed, earlier_folder = close_data_folder(settings.home), _apply_settings(settings)
    frame_set = _load_frame_set(settings)
    servers = load_servers(settings)
    register_secrets(settings, servers)
    skills, clock = load_skills(settings.procedures_dir), SystemClock()
    async with AsyncExitStack() as stack:
        async with task_group() as tasks:
            model_task = tasks.create_task(asyncio.to_thread(load_models, settings))
            database = open_database(settings, schema=data_folder("schema"), keep_alive=long_running)
            database_task = tasks.create_task(stack.enter_async_context(database))
        (configured, count_tokens), db = model_task.result(), database_task.result()
        if on_notice and is_closed:
            on_notice(CLOSED_NOTICE.format(folder=settings.home))
        if on_notice:
            _report_files(settings, skills, earlier_folder, on_notice)
        agent_id = await find_or_create_agent(db, settings.agent, clock, on_new_agent)
        embedder = await _load_embedder(db, agent_id, settings, configured)
        models, stored = ModelDirectory(settings), await agents.read_agent(db, agent_id)
        scope = _within_project(_build_scope(settings, db, agent_id, count_tokens), stored)
        scope = replace(scope, clock=clock, embedder=embedder)
        mcp_servers = McpServerPool(servers=servers)
        stack.push_async_callback(mcp_servers.close)
        newton = AgentServices(
            settings=settings,
            models=models,
            compactions=await stack.enter_async_context(open_compactions(finishes=not long_running)),
            readings=await stack.enter_async_context(open_readings()),
            mcp_servers=mcp_servers,
            default_model=stored.model,
            scope=scope,
            configured_embedder=configured,
            frames=frame_set.frames,
            profiles=frame_set.profiles,
            skills=skills,
            context_builder=await _build_contexts(
                scope, settings, frame_set, _build_tiebreak(settings, scope, models, stored.model)
            ),
        )
        if not skip_procedure_sync:
            await newton.procedures(DISK_ORIGIN).sync_from_disk(newton.skills)
        _limit_garbage_collections()
        yield newton


def close_data_folder(home: Path) -> bool:
    """Take the access of other users to an existing data folder away. Return whether they had any.

    The operator's token is not touched: a token that others could read is refused.
    """
    try:
        return close_folder(home, kept=(TOKEN_FILE, "postgres"))
    except OSError:  # a start that cannot write says so itself
        return False


def _report_files(settings: Settings, skills: SkillSet, earlier_folder: Path, on_notice: Callable[[str], None]) -> None:
    for error in skills.errors.values():
        on_notice(f"{error} The skill is left out.")
    database_folder = find_database_folder(settings.home)
    if database_folder != earlier_folder:
        on_notice(ROOT_DATABASE_NOTICE.format(folder=database_folder))


def _build_scope(settings: Settings, db: Database, agent_id: UUID, count_tokens: TokenCounter) -> AgentScope:
    return AgentScope(
        agent_id=agent_id,
        db=db,
        clock=SystemClock(),
        count_tokens=count_tokens,
        thresholds=build_thresholds(settings),
        storage=build_storage_quota(settings),
    )


def _within_project(scope: AgentScope, stored: StoredAgent) -> AgentScope:
    """Return the scope of an agent with its project and the parent from which a project also reads."""
    return replace(scope, project=stored.project, parent_id=stored.parent_id if stored.project else None)


def _limit_garbage_collections() -> None:
    """Exclude the loaded objects from garbage collections, which would take a fifth of the time of a context."""
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])


def _load_frame_set(settings: Settings) -> FrameSet:
    return load_frame_set(load_profiles(settings.profiles_dir, check_expression), settings.frames_dir, settings.pack)


async def _build_contexts(
    scope: AgentScope, settings: Settings, frame_set: FrameSet, tiebreak: FrameTiebreak | None
) -> ContextBuilder:
    return ContextBuilder(
        db=scope.db,
        clock=scope.clock,
        count_tokens=scope.count_tokens,
        frames=frame_set.frames,
        profiles=frame_set.profiles,
        embedder=scope.embedder,
        parent_id=scope.parent_id,
        classifier=await load_or_train(frame_set.frames, scope.embedder, cache=settings.home / "cache"),
        header_tokens=count_header_tokens(scope.count_tokens),
        tiebreak=tiebreak,
        artifact_policy=build_artifact_policy(settings),
        hooks=load_hooks(frame_set.pack.hooks if frame_set.pack else ()),
        web=build_web_source(settings, db=scope.db, count_tokens=scope.count_tokens),
    )


def _apply_settings(settings: Settings) -> Path:
    """Check the settings, set what holds for the process, and return the present folder of the embedded database."""
    check_settings(settings)
    keep_household_codes(keep=not settings.redact_household_codes)
    folder = find_database_folder(settings.home)
    KEY.use_file(settings.home)
    return folder


async def open_for_agent(newton: AgentServices, name: str) -> AgentServices:
    """Return the services of the named agent, which share the database and the models of the opened agent `newton`.

    The default agent is created if it does not exist. For any other unknown name, NotFoundError is raised.
    """
    settings = newton.settings.model_copy(update={"agent": name})
    agent_id = await find_or_create_agent(newton.scope.db, name, newton.scope.clock, None)
    embedder = await _load_embedder(newton.scope.db, agent_id, settings, newton.configured_embedder)
    stored = await agents.read_agent(newton.scope.db, agent_id)
    scope = _within_project(replace(newton.scope, agent_id=agent_id, embedder=embedder), stored)
    tiebreak = _build_tiebreak(settings, scope, newton.models, stored.model)
    contexts = replace(newton.context_builder, tiebreak=tiebreak, parent_id=scope.parent_id)
    if embedder is not newton.scope.embedder:
        classifier = await load_or_train(newton.frames, embedder, cache=settings.home / "cache")
        contexts = replace(contexts, embedder=embedder, classifier=classifier)
    other = replace(newton, settings=settings, scope=scope, context_builder=contexts, default_model=stored.model)
    await other.procedures(DISK_ORIGIN).sync_from_disk(other.skills)
    return other


def _build_tiebreak(
    settings: Settings, scope: AgentScope, models: ModelDirectory, model: str | None
) -> FrameTiebreak | None:
    """Return a function that asks the model which frame (kind of input) fits an input, for uncertain cases.

    Return None if the setting `frame_tiebreak` is off or no model is configured.
    """
    if not settings.frame_tiebreak:
        return None
    llm = build_structured_llm(models, scope, model=model, tokens_per_day=settings.llm_tokens_per_day)
    return llm.pick_frame if llm else None


async def find_or_create_agent(
    db: Database, name: str, clock: Clock, on_new_agent: Callable[[str], None] | None
) -> UUID:
    """Return the id of the named agent. Create an unknown agent if it is the default or `on_new_agent` is given.

    Call `on_new_agent` with the name of a new agent. Raises NotFoundError for any other unknown name.
    """
    if await agents.exists(db, name):
        return derive_agent_id(name)
    if on_new_agent is None and name != DEFAULT_AGENT:
        return await _find_agent(db, name)
    agent_id = await agents.get_or_create_agent(db, name, now=clock.now())
    if on_new_agent:
        on_new_agent(name)
    return agent_id


async def _find_agent(db: Database, name: str) -> UUID:
    """Return the id of the named agent. Raises NotFoundError, which lists existing agents, for an unknown name."""
    if not await agents.exists(db, name):
        names = await agents.list_names(db)
        listed = ", ".join(names[:MAX_LISTED_AGENTS]) + (", …" if len(names) > MAX_LISTED_AGENTS else "")
        known = f"The agents are: {listed}. " if names else ""
        hint = f"{did_you_mean(name, names)} {known}`newton agents create NAME` creates an agent.".strip()
        raise NotFoundError(f"There is no agent {name!r}.", hint=hint)
    return derive_agent_id(name)


async def _load_embedder(
    db: Database, agent_id: UUID, settings: Settings, configured: "Embedder | None"
) -> "Embedder | None":
    """Return an embedder for the model that computed the agent's stored vectors; None if embeddings are off.

    If no such model is recorded, return the configured embedder.
    """
    async with db.transaction(agent_id) as tx:
        identity = await vectors.read_active_model(tx, agent_id=agent_id)
    return await asyncio.to_thread(embedder_for, identity, settings, configured)
