"""The composition root: the only place where the parts meet by name."""

import asyncio
import gc
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.acquaintance import Acquaintance
from newton.agent.bearing import Bearing
from newton.agent.compacting import Compacting
from newton.agent.conversations import Conversations
from newton.agent.curation import Curation
from newton.agent.deciding import Deciding
from newton.agent.gate import Gate
from newton.agent.hindsight import Hindsight
from newton.agent.practice import Practice
from newton.agent.tasks import Tasks
from newton.agent.tools import Toolbox
from newton.agent.turn import Turns
from newton.agent.upkeep import Upkeep
from newton.agent.verbs import Verbs
from newton.agent.working import WorkingMemory, session_at_work
from newton.brain.headnote import HeadNotes, place_of
from newton.clock import Clock, SystemClock
from newton.cognition.context import Contexts
from newton.cognition.exemplars import learnt
from newton.cognition.framing import Choice, choose
from newton.cognition.measuring import Measuring
from newton.cognition.opening import substance
from newton.cognition.refresh import Covering
from newton.cognition.render import headers
from newton.cognition.score import check_expression
from newton.concurrency import together
from newton.content.frames import Frame
from newton.content.packs import Pack, load_outlook
from newton.content.profiles import Profile, load_profiles
from newton.content.shipped import shipped
from newton.content.skills import Skill, load_skills
from newton.db.door import open_database
from newton.db.pool import Database
from newton.dialogue import closing, sessions
from newton.dialogue.compaction.events import Event
from newton.dialogue.compaction.strategies import preset
from newton.heart.comparing import Bounds
from newton.heart.lifecycle.thresholds import Thresholds
from newton.heart.procedures import FROM_DISK
from newton.ids import model_id, new_id
from newton.memory import agents, reembedding
from newton.memory.memory import Teller
from newton.memory.outbox import Outbox
from newton.memory.representations import Count
from newton.runtime.models import asked_by, asking, loaded, web
from newton.runtime.transfer.importing import Importer
from newton.runtime.transfer.whole import Carrier
from newton.runtime.tuning import check, limits, room, selecting, sizes, thresholds
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.agent.growing import Growing
    from newton.agent.guarding import Guarding
    from newton.agent.ingest import Ingest
    from newton.agent.learning import Learning
    from newton.providers.chat import ChatModel
    from newton.providers.embedding import Embedder

COLLECTED_AFTER = 10_000  # objects more than before; Python's own 700 are made and dropped many times in a context


@dataclass(frozen=True, slots=True, kw_only=True)
class Newton:
    """Everything that works, for the agent that the settings name."""

    settings: Settings
    agent_id: UUID
    db: Database
    clock: Clock
    count: Count
    embedder: "Embedder | None"
    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    contexts: Contexts
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    pack: Pack | None = None
    configured: "Embedder | None" = None

    def verbs(self, origin: str) -> Verbs:
        return Verbs(
            agent_id=self.agent_id,
            origin=origin,
            db=self.db,
            clock=self.clock,
            count=self.count,
            thresholds=self.thresholds,
            embedder=self.embedder,
        )

    def curation(self, origin: str) -> Curation:
        return Curation(
            agent_id=self.agent_id,
            origin=origin,
            db=self.db,
            clock=self.clock,
            count=self.count,
            thresholds=self.thresholds,
        )

    def practice(self, origin: str) -> Practice:
        return Practice(
            agent_id=self.agent_id,
            origin=origin,
            db=self.db,
            clock=self.clock,
            count=self.count,
            thresholds=self.thresholds,
        )

    def bearing(self, origin: str) -> Bearing:
        return Bearing(agent_id=self.agent_id, origin=origin, db=self.db, clock=self.clock, count=self.count)

    def tasks(self, origin: str) -> Tasks:
        return Tasks(agent_id=self.agent_id, origin=origin, db=self.db, clock=self.clock, count=self.count)

    def acquaintance(self) -> Acquaintance:
        return Acquaintance(agent_id=self.agent_id, db=self.db, clock=self.clock)

    def gate(self, origin: str) -> Gate:
        return Gate(
            agent_id=self.agent_id,
            origin=origin,
            db=self.db,
            clock=self.clock,
            count=self.count,
            thresholds=self.thresholds,
            embedder=self.embedder,
        )

    def guarding(self, origin: str) -> "Guarding":
        """Raises ConfigError for a guardrail file that cannot be used."""
        # CEL takes a fifth of a second to load, and most commands judge no choice
        module = import_module("newton.agent.guarding")
        folder = module.from_files(self.settings.guardrails_dir)
        return module.Guarding(agent_id=self.agent_id, origin=origin, db=self.db, clock=self.clock, folder=folder)

    def deciding(self, origin: str) -> Deciding:
        return Deciding(
            agent_id=self.agent_id,
            origin=origin,
            db=self.db,
            clock=self.clock,
            count=self.count,
            gate=self.gate(origin),
            judge=lambda tx, choice, standing: self.guarding(origin).judge(tx, choice, standing),
            notes=self.notes,
            embedder=self.embedder,
            verifiers=self.settings.verifiers,
            verifier_seconds=self.settings.verifier_seconds,
        )

    def hindsight(self) -> Hindsight:
        return Hindsight(agent_id=self.agent_id, db=self.db, frames=self.frames, profiles=self.profiles)

    def growing(self) -> "Growing":
        module = import_module("newton.agent.growing")
        return module.Growing(agent_id=self.agent_id, db=self.db, clock=self.clock)

    def measuring(self) -> Measuring:
        return Measuring(agent_id=self.agent_id, db=self.db, clock=self.clock)

    @property
    def notes(self) -> HeadNotes:
        """Where the ends of the ledgers of this database are noted."""
        url = self.settings.database_url
        return HeadNotes(self.settings.home / "ledger", place_of(url.get_secret_value() if url else None))

    def ingest(self, origin: str) -> "Ingest":
        module = import_module("newton.agent.ingest")
        return module.Ingest(
            agent_id=self.agent_id,
            origin=origin,
            db=self.db,
            clock=self.clock,
            count=self.count,
            sizes=sizes(self.settings),
        )

    async def working(self, session: str | None) -> WorkingMemory:
        """What the session of that name has at hand, or without a name, the last one at work. Raises NotFoundError."""
        return await _working(self, session)

    def learning(self) -> "Learning":
        module = import_module("newton.agent.learning")
        return module.Learning(
            agent_id=self.agent_id, db=self.db, clock=self.clock, profiles=self.profiles, frames=self.frames
        )

    def upkeep(self, origin: str) -> Upkeep:
        return Upkeep(
            agent_id=self.agent_id,
            origin=origin,
            db=self.db,
            clock=self.clock,
            count=self.count,
            thresholds=self.thresholds,
            bundle_days=self.settings.bundle_days,
            bounds=Bounds(same=self.settings.same_fact, near=self.settings.near_fact),
            embedder=self.embedder,
            asking=asking(self.settings, agent_id=self.agent_id, db=self.db, clock=self.clock, count=self.count),
            working_days=self.settings.working_days,
            sizes=sizes(self.settings),
        )

    @property
    def thresholds(self) -> Thresholds:
        return thresholds(self.settings)

    def importer(self) -> Importer:
        outbox = Outbox(self.db, self.embedder, self.agent_id) if self.embedder else None
        return Importer(
            db=self.db,
            agent_id=self.agent_id,
            clock=self.clock,
            count=self.count,
            thresholds=self.thresholds,
            outbox=outbox,
            notes=self.notes,
            sizes=sizes(self.settings),
        )

    async def session(self, name: str | None) -> UUID:
        """The session of that name, begun if it is new; without a name, a new one."""
        now = self.clock.now()
        async with self.db.work(self.agent_id) as tx:
            return await sessions.session(tx, agent_id=self.agent_id, ref=name or str(new_id()), now=now)

    async def close_session(self, session_id: UUID, *, origin: str) -> None:
        """The conversation is over: what was said becomes an episode."""
        by = Teller(agent_id=self.agent_id, now=self.clock.now(), origin=origin, trust="agent")
        async with self.db.work(self.agent_id) as tx:
            await closing.close(tx, session_id=session_id, by=by, count=self.count)

    def compacting(self, tell: Callable[[Event], None] = lambda event: None) -> Compacting:
        """What makes conversations shorter; `tell` hears of it while it runs."""
        return _compacting(self, tell)

    def conversations(self, origin: str, tell: Callable[[Event], None] = lambda event: None) -> Conversations:
        return Conversations(
            agent_id=self.agent_id,
            origin=origin,
            db=self.db,
            clock=self.clock,
            count=self.count,
            compacting=self.compacting(tell),
            room=room(self.settings),
        )

    def toolbox(self, origin: str) -> Toolbox:
        return _toolbox(self, origin)

    def turns(
        self, model: "ChatModel | None", *, origin: str = "chat", tell: Callable[[Event], None] = lambda event: None
    ) -> Turns:
        return _turns(self, model, origin, tell)


@asynccontextmanager
async def opened(settings: Settings, *, for_long: bool = False, as_found: bool = False) -> AsyncGenerator[Newton]:
    """Newton, ready to work. What is wrong with files or settings is said before the database is touched. `for_long` is
    for a process that outlives its database server; `as_found` leaves the procedures of the agent as they are."""
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
        agent_id, embedder = await _begun(db, settings, configured, clock)
        own = asking(settings, agent_id=agent_id, db=db, clock=clock, count=count)
        newton = Newton(
            settings=settings,
            agent_id=agent_id,
            db=db,
            clock=clock,
            count=count,
            embedder=embedder,
            configured=configured,
            frames=outlook.frames,
            profiles=outlook.profiles,
            pack=outlook.pack,
            skills=skills,
            contexts=Contexts(
                db=db,
                clock=clock,
                count=count,
                frames=outlook.frames,
                profiles=outlook.profiles,
                embedder=embedder,
                likeness=await learnt(outlook.frames, embedder, cache=settings.home / "cache"),
                header_tokens=headers(count),
                source_seconds=settings.source_seconds,
                tiebreak=own.frame if own and settings.frame_tiebreak else None,
                covering=Covering(cosine=settings.covered, words=settings.covered_words),
                selecting=selecting(settings),
                web=web(settings, db=db, count=count),
            ),
        )
        await _settled(newton, as_found=as_found)
        yield newton


async def for_agent(newton: Newton, name: str) -> Newton:
    """The same for another agent, which is begun if it is new. Nothing of one agent reaches another."""
    settings, db, clock = newton.settings.model_copy(update={"agent": name}), newton.db, newton.clock
    agent_id, embedder = await _begun(db, settings, newton.configured, clock)
    own = asking(settings, agent_id=agent_id, db=db, clock=clock, count=newton.count)
    contexts = replace(newton.contexts, tiebreak=own.frame if own and settings.frame_tiebreak else None)
    if embedder is not newton.embedder:
        likeness = await learnt(newton.frames, embedder, cache=settings.home / "cache")
        contexts = replace(contexts, embedder=embedder, likeness=likeness)
    other = replace(newton, settings=settings, agent_id=agent_id, contexts=contexts, embedder=embedder)
    await other.practice(FROM_DISK).follow(other.skills)
    return other


async def _begun(
    db: Database, settings: Settings, configured: "Embedder | None", clock: Clock
) -> "tuple[UUID, Embedder | None]":
    """The agent that the settings name, and by whose vectors its memories are found."""
    agent_id = await agents.agent(db, settings.agent, now=clock.now())
    async with db.work(agent_id) as tx:
        identity = await reembedding.active(tx, agent_id=agent_id)
    return agent_id, asked_by(identity, settings, configured)


def carrier(newton: Newton) -> Carrier:
    """What carries the agent to a file and back."""
    return Carrier(
        db=newton.db, agent_id=newton.agent_id, agent=newton.settings.agent, clock=newton.clock, notes=newton.notes
    )


async def _settled(newton: Newton, *, as_found: bool) -> None:
    """What is loaded by now stays: looking through all of it for circles that nobody holds, as often as a context makes
    a few thousand tuples, took a fifth of the time of a context."""
    if not as_found:
        await newton.practice(FROM_DISK).follow(newton.skills)
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER, *gc.get_threshold()[1:])


def _compacting(newton: Newton, tell: Callable[[Event], None]) -> Compacting:
    """The model that tells of what is made shorter may be another one, at the same endpoint."""
    settings = newton.settings
    other = settings.model_copy(update={"openai_model": settings.compaction_model or settings.openai_model})
    return Compacting(
        agent_id=newton.agent_id,
        db=newton.db,
        clock=newton.clock,
        count=newton.count,
        preset=preset(settings.compaction),
        model=asking(other, agent_id=newton.agent_id, db=newton.db, clock=newton.clock, count=newton.count),
        window=settings.window_tokens,
        tell=tell,
    )


def _toolbox(newton: Newton, origin: str) -> Toolbox:
    return Toolbox(
        verbs=newton.verbs(origin),
        curation=newton.curation(origin),
        deciding=newton.deciding(origin),
        tasks=newton.tasks(origin),
        gate=newton.gate(origin),
    ).heard(())


def _turns(newton: Newton, model: "ChatModel | None", origin: str, tell: Callable[[Event], None]) -> Turns:
    return Turns(
        agent_id=newton.agent_id,
        db=newton.db,
        clock=newton.clock,
        count=newton.count,
        contexts=newton.contexts,
        compacting=newton.compacting(tell),
        gate=newton.gate(origin),
        model=model,
        limits=limits(newton.settings),
        sizes=sizes(newton.settings),
        origin=origin,
        tools=newton.toolbox("agent"),
    )


async def _working(newton: Newton, session: str | None) -> WorkingMemory:
    return WorkingMemory(
        agent_id=newton.agent_id,
        session_id=await session_at_work(newton.db, session, agent_id=newton.agent_id),
        db=newton.db,
        clock=newton.clock,
        profiles=newton.profiles,
        frames=newton.frames,
        capacity=newton.settings.working_tokens,
        model_id=model_id(newton.embedder.identity) if newton.embedder else None,
    )


async def framed(settings: Settings, text: str) -> Choice:
    """The frame that an input of its own gets, without a database."""
    profiles = load_profiles(settings.profiles_dir, check_expression)
    outlook = load_outlook(profiles, settings.frames_dir, settings.pack)
    embedder, _ = await asyncio.to_thread(loaded, settings)
    likeness = await learnt(outlook.frames, embedder, cache=settings.home / "cache")
    vector = (await embedder.embed([substance(text)]))[0] if embedder else None
    return choose(outlook.frames, text, vector=vector, likeness=likeness, prior=None)
