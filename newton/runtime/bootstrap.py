"""Startup: build the services of one or more agents from settings, files, models and the database."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.clock import Clock, SystemClock
from newton.cognition.assembly.render import count_header_tokens
from newton.cognition.bundles.cache import CoverageThresholds
from newton.cognition.frames.selection import FrameChoice, choose_frame
from newton.cognition.frames.training import load_or_train
from newton.cognition.greetings import strip_greeting
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.scoring.score import check_expression
from newton.concurrency import task_group
from newton.content.package_data import data_folder
from newton.content.packs import FrameSet, load_frame_set
from newton.content.profiles import load_profiles
from newton.content.skills import load_skills
from newton.db.connection import open_database
from newton.db.pool import Database
from newton.heart.procedures import DISK_ORIGIN
from newton.memory import agents, reembedding
from newton.runtime.model_factory import build_structured_llm, build_web_source, embedder_for, load_models
from newton.runtime.settings_mapping import build_artifact_policy, build_thresholds, check_settings
from newton.runtime.wiring import AgentServices
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.agent.llm.structured import StructuredLLM
    from newton.providers.embedding import Embedder

GC_THRESHOLD = 10_000  # garbage collection threshold in objects; Python's 700 triggers many collections per context


@asynccontextmanager
async def open_newton(
    settings: Settings, *, long_running: bool = False, skip_procedure_sync: bool = False, create_agent: bool = True
) -> AsyncGenerator[AgentServices]:
    """Yield the services of the configured agent. Settings and files are validated before the database is opened.

    `long_running` restarts a dead embedded server; `skip_procedure_sync` leaves the agent's procedures unchanged;
    without `create_agent` an unknown agent raises NotFoundError.
    """
    check_settings(settings)
    outlook = load_frame_set(load_profiles(settings.profiles_dir, check_expression), settings.frames_dir, settings.pack)
    skills = load_skills(settings.procedures_dir)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        async with task_group() as tasks:
            loading = tasks.create_task(asyncio.to_thread(load_models, settings))
            database = open_database(settings, schema=data_folder("schema"), keep_alive=long_running)
            opening = tasks.create_task(stack.enter_async_context(database))
        (configured, count), db = loading.result(), opening.result()
        agent_id, embedder = await _resolve_agent(db, settings, configured, clock, create_agent=create_agent)
        scope = AgentScope(
            agent_id=agent_id,
            db=db,
            clock=clock,
            count_tokens=count,
            thresholds=build_thresholds(settings),
            embedder=embedder,
        )
        own = build_structured_llm(settings, scope)
        newton = AgentServices(
            settings=settings,
            scope=scope,
            configured_embedder=configured,
            frames=outlook.frames,
            profiles=outlook.profiles,
            pack=outlook.pack,
            skills=skills,
            context_builder=await _contexts(scope, settings, outlook, own),
        )
        await _finish_startup(newton, skip_procedure_sync=skip_procedure_sync)
        yield newton


async def _contexts(
    scope: AgentScope, settings: Settings, outlook: FrameSet, own: "StructuredLLM | None"
) -> ContextBuilder:
    return ContextBuilder(
        db=scope.db,
        clock=scope.clock,
        count_tokens=scope.count_tokens,
        frames=outlook.frames,
        profiles=outlook.profiles,
        embedder=scope.embedder,
        classifier=await load_or_train(outlook.frames, scope.embedder, cache=settings.home / "cache"),
        header_tokens=count_header_tokens(scope.count_tokens),
        source_timeout_seconds=settings.source_timeout_seconds,
        tiebreak=own.pick_frame if own and settings.frame_tiebreak else None,
        coverage_thresholds=CoverageThresholds(
            min_cosine=settings.context_reuse_min_cosine, min_word_overlap=settings.context_reuse_min_word_overlap
        ),
        artifact_policy=build_artifact_policy(settings),
        web=build_web_source(settings, db=scope.db, count_tokens=scope.count_tokens),
    )


async def open_for_agent(newton: AgentServices, name: str) -> AgentServices:
    """Return the services of another agent, isolated from this one. Raises NotFoundError when there is none."""
    settings = newton.settings.model_copy(update={"agent": name})
    agent_id, embedder = await _resolve_agent(
        newton.scope.db, settings, newton.configured_embedder, newton.scope.clock, create_agent=False
    )
    scope = replace(newton.scope, agent_id=agent_id, embedder=embedder)
    own = build_structured_llm(settings, scope)
    contexts = replace(newton.context_builder, tiebreak=own.pick_frame if own and settings.frame_tiebreak else None)
    if embedder is not newton.scope.embedder:
        likeness = await load_or_train(newton.frames, embedder, cache=settings.home / "cache")
        contexts = replace(contexts, embedder=embedder, classifier=likeness)
    other = replace(newton, settings=settings, scope=scope, context_builder=contexts)
    await other.procedures(DISK_ORIGIN).sync_from_disk(other.skills)
    return other


async def _resolve_agent(
    db: Database, settings: Settings, configured: "Embedder | None", clock: Clock, *, create_agent: bool = True
) -> "tuple[UUID, Embedder | None]":
    """Return the id of the configured agent and the embedder of its active model."""
    named = settings.agent
    agent_id = await (
        agents.get_or_create_agent(db, named, now=clock.now()) if create_agent else agents.get_agent_id(db, named)
    )
    async with db.transaction(agent_id) as tx:
        identity = await reembedding.read_active_model(tx, agent_id=agent_id)
    return agent_id, await asyncio.to_thread(embedder_for, identity, settings, configured)


async def _finish_startup(newton: AgentServices, *, skip_procedure_sync: bool) -> None:
    """Sync procedures and freeze loaded objects: full garbage collections took a fifth of a context's time."""
    if not skip_procedure_sync:
        await newton.procedures(DISK_ORIGIN).sync_from_disk(newton.skills)
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])


async def choose_frame_for(settings: Settings, text: str) -> FrameChoice:
    """Return the frame for an input, without a database."""
    profiles = load_profiles(settings.profiles_dir, check_expression)
    outlook = load_frame_set(profiles, settings.frames_dir, settings.pack)
    embedder, _ = await asyncio.to_thread(load_models, settings)
    likeness = await load_or_train(outlook.frames, embedder, cache=settings.home / "cache")
    vector = (await embedder.embed([strip_greeting(text)]))[0] if embedder else None
    return choose_frame(outlook.frames, text, vector=vector, classifier=likeness, session_frame=None)
