"""Opens Newton: settings, files, models and the database become one thing that works, for one agent or for more."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.clock import Clock, SystemClock
from newton.cognition.context import Contexts
from newton.cognition.exemplars import learnt
from newton.cognition.framing import Choice, choose
from newton.cognition.opening import substance
from newton.cognition.refresh import Covering
from newton.cognition.render import headers
from newton.cognition.score import check_expression
from newton.concurrency import together
from newton.content.packs import Outlook, load_outlook
from newton.content.profiles import load_profiles
from newton.content.shipped import shipped
from newton.content.skills import load_skills
from newton.db.door import open_database
from newton.db.pool import Database
from newton.heart.procedures import FROM_DISK
from newton.memory import agents, reembedding
from newton.runtime.models import asked_by, asking, loaded, web
from newton.runtime.tuning import check, selecting, thresholds
from newton.runtime.wiring import Newton
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.agent.asking import Asking
    from newton.providers.embedding import Embedder

COLLECTED_AFTER = 10_000  # objects more than before; Python's own 700 are made and dropped many times in a context


@asynccontextmanager
async def opened(
    settings: Settings, *, for_long: bool = False, as_found: bool = False, begin: bool = True
) -> AsyncGenerator[Newton]:
    """Newton, ready to work. What is wrong with files or settings is said before the database is touched. `for_long` is
    for a process that outlives its database server; `as_found` leaves the procedures of the agent as they are, and
    without `begin` none is begun: then an unknown one is a NotFoundError."""
    check(settings)
    outlook = load_outlook(load_profiles(settings.profiles_dir, check_expression), settings.frames_dir, settings.pack)
    skills = load_skills(settings.procedures_dir)
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        async with together() as tasks:
            loading = tasks.create_task(asyncio.to_thread(loaded, settings))
            database = open_database(settings, schema=shipped("schema"), for_long=for_long)
            opening = tasks.create_task(stack.enter_async_context(database))
        (configured, count), db = loading.result(), opening.result()
        agent_id, embedder = await _begun(db, settings, configured, clock, begin=begin)
        scope = AgentScope(
            agent_id=agent_id,
            db=db,
            clock=clock,
            count_tokens=count,
            thresholds=thresholds(settings),
            embedder=embedder,
        )
        own = asking(settings, scope)
        newton = Newton(
            settings=settings,
            scope=scope,
            configured=configured,
            frames=outlook.frames,
            profiles=outlook.profiles,
            pack=outlook.pack,
            skills=skills,
            contexts=await _contexts(scope, settings, outlook, own),
        )
        await _settled(newton, as_found=as_found)
        yield newton


async def _contexts(scope: AgentScope, settings: Settings, outlook: Outlook, own: "Asking | None") -> Contexts:
    return Contexts(
        db=scope.db,
        clock=scope.clock,
        count=scope.count_tokens,
        frames=outlook.frames,
        profiles=outlook.profiles,
        embedder=scope.embedder,
        likeness=await learnt(outlook.frames, scope.embedder, cache=settings.home / "cache"),
        header_tokens=headers(scope.count_tokens),
        source_seconds=settings.source_seconds,
        tiebreak=own.frame if own and settings.frame_tiebreak else None,
        covering=Covering(cosine=settings.covered, words=settings.covered_words),
        selecting=selecting(settings),
        web=web(settings, db=scope.db, count=scope.count_tokens),
    )


async def for_agent(newton: Newton, name: str) -> Newton:
    """The same for another agent. Nothing of one agent reaches another. Raises NotFoundError when there is none."""
    settings = newton.settings.model_copy(update={"agent": name})
    agent_id, embedder = await _begun(newton.scope.db, settings, newton.configured, newton.scope.clock, begin=False)
    scope = replace(newton.scope, agent_id=agent_id, embedder=embedder)
    own = asking(settings, scope)
    contexts = replace(newton.contexts, tiebreak=own.frame if own and settings.frame_tiebreak else None)
    if embedder is not newton.scope.embedder:
        likeness = await learnt(newton.frames, embedder, cache=settings.home / "cache")
        contexts = replace(contexts, embedder=embedder, likeness=likeness)
    other = replace(newton, settings=settings, scope=scope, contexts=contexts)
    await other.practice(FROM_DISK).follow(other.skills)
    return other


async def _begun(
    db: Database, settings: Settings, configured: "Embedder | None", clock: Clock, *, begin: bool = True
) -> "tuple[UUID, Embedder | None]":
    """The agent that the settings name, and by whose vectors its memories are found."""
    named = settings.agent
    agent_id = await (agents.agent(db, named, now=clock.now()) if begin else agents.known(db, named))
    async with db.work(agent_id) as tx:
        identity = await reembedding.active(tx, agent_id=agent_id)
    return agent_id, await asyncio.to_thread(asked_by, identity, settings, configured)


async def _settled(newton: Newton, *, as_found: bool) -> None:
    """What is loaded by now stays: looking through all of it for circles that nobody holds, as often as a context makes
    a few thousand tuples, took a fifth of the time of a context."""
    if not as_found:
        await newton.practice(FROM_DISK).follow(newton.skills)
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])


async def framed(settings: Settings, text: str) -> Choice:
    """The frame that an input of its own gets, without a database."""
    profiles = load_profiles(settings.profiles_dir, check_expression)
    outlook = load_outlook(profiles, settings.frames_dir, settings.pack)
    embedder, _ = await asyncio.to_thread(loaded, settings)
    likeness = await learnt(outlook.frames, embedder, cache=settings.home / "cache")
    vector = (await embedder.embed([substance(text)]))[0] if embedder else None
    return choose(outlook.frames, text, vector=vector, likeness=likeness, prior=None)
