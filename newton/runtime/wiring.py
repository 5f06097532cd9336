"""The composition root: the only place where the parts meet by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.acquaintance import Acquaintance
from newton.agent.bearing import Bearing
from newton.agent.compacting import Compacting
from newton.agent.conversations import Conversations, begun
from newton.agent.curation import Curation
from newton.agent.deciding import Deciding
from newton.agent.gate import Gate
from newton.agent.hindsight import Hindsight
from newton.agent.practice import Practice
from newton.agent.tasks import Tasks
from newton.agent.telling import tell
from newton.agent.tools import Toolbox
from newton.agent.turn import Turns
from newton.agent.upkeep import Upkeep
from newton.agent.verbs import Verbs
from newton.agent.working import WorkingMemory, session_at_work
from newton.brain.headnote import HeadNotes, place_of
from newton.clock import Clock
from newton.cognition.context import Contexts
from newton.cognition.measuring import Measuring
from newton.content.frames import Frame
from newton.content.packs import Pack
from newton.content.profiles import Profile
from newton.content.skills import Skill
from newton.db.pool import Database
from newton.dialogue import closing
from newton.dialogue.compaction.events import Event
from newton.dialogue.compaction.strategies import preset
from newton.heart.comparing import Bounds
from newton.heart.lifecycle.thresholds import Thresholds
from newton.ids import model_id, new_id
from newton.memory.memory import Teller
from newton.memory.outbox import Outbox
from newton.memory.representations import Count
from newton.runtime.models import asking
from newton.runtime.transfer.importing import Importer
from newton.runtime.transfer.whole import Carrier
from newton.runtime.tuning import limits, room, sizes, thresholds
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.agent.growing import Growing
    from newton.agent.guarding import Guarding
    from newton.agent.ingest import Ingest
    from newton.agent.learning import Learning
    from newton.providers.chat import ChatModel
    from newton.providers.embedding import Embedder


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
            return await begun(tx, name or str(new_id()), agent_id=self.agent_id, now=now)

    async def close_session(self, session_id: UUID, *, origin: str) -> None:
        """The conversation is over: what was said becomes an episode."""
        by = Teller(agent_id=self.agent_id, now=self.clock.now(), origin=origin, trust="agent")
        async with self.db.work(self.agent_id) as tx:
            made = await closing.close(tx, session_id=session_id, by=by, count=self.count)
            tell("session.closed", {"session_id": str(session_id), "episodes": made}, agent_id=by.agent_id, now=by.now)

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


def carrier(newton: Newton) -> Carrier:
    """What carries the agent to a file and back."""
    return Carrier(
        db=newton.db, agent_id=newton.agent_id, agent=newton.settings.agent, clock=newton.clock, notes=newton.notes
    )


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
