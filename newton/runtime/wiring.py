"""The composition root: the only place where the parts meet by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING

from newton.agent.acquaintance import Acquaintance
from newton.agent.bearing import Bearing
from newton.agent.compacting import Compacting
from newton.agent.conversations import Conversations
from newton.agent.curation import Curation
from newton.agent.deciding import Deciding
from newton.agent.erasing import Erasing
from newton.agent.following import Following
from newton.agent.gate import Gate
from newton.agent.hindsight import Hindsight
from newton.agent.practice import Practice
from newton.agent.scope import AgentScope
from newton.agent.tasks import Tasks
from newton.agent.tools import Toolbox
from newton.agent.turn import Turns
from newton.agent.upkeep import Upkeep
from newton.agent.verbs import Verbs
from newton.agent.working import WorkingMemory, session_at_work
from newton.brain.headnote import HeadNotes, place_of
from newton.cognition.context import Contexts
from newton.cognition.measuring import Measuring
from newton.content.frames import Frame
from newton.content.packs import Pack
from newton.content.profiles import Profile
from newton.content.skills import Skill
from newton.db.pool import Tx
from newton.dialogue.compaction.events import Event
from newton.dialogue.compaction.strategies import preset
from newton.heart.comparing import Bounds
from newton.ids import model_id
from newton.memory.outbox import Outbox
from newton.runtime.models import asking
from newton.runtime.transfer.importing import Importer
from newton.runtime.transfer.whole import Carrier
from newton.runtime.tuning import limits, room, sizes
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
    scope: AgentScope
    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    contexts: Contexts
    skills: Mapping[str, Skill] = field(default_factory=dict[str, Skill])
    pack: Pack | None = None
    configured: "Embedder | None" = None

    def within(self, tx: Tx) -> "Newton":
        """Return these services joined to an open transaction; see `AgentScope.within`."""
        return replace(self, scope=self.scope.within(tx))

    def verbs(self, origin: str) -> Verbs:
        return Verbs(scope=self.scope.at(origin))

    def curation(self, origin: str) -> Curation:
        return Curation(scope=self.scope.at(origin))

    def practice(self, origin: str) -> Practice:
        return Practice(scope=self.scope.at(origin))

    def bearing(self, origin: str) -> Bearing:
        return Bearing(scope=self.scope.at(origin))

    def tasks(self, origin: str) -> Tasks:
        return Tasks(scope=self.scope.at(origin))

    def acquaintance(self) -> Acquaintance:
        return Acquaintance(scope=self.scope)

    def gate(self, origin: str) -> Gate:
        return Gate(scope=self.scope.at(origin))

    def erasing(self, origin: str) -> Erasing:
        return Erasing(scope=self.scope.at(origin))

    def following(self, origin: str) -> Following:
        return Following(scope=self.scope.at(origin))

    def guarding(self, origin: str) -> "Guarding":
        """Return the guardrails. Raises ConfigError for a guardrail file that cannot be used."""
        # CEL takes a fifth of a second to load, and most commands evaluate no decision
        module = import_module("newton.agent.guarding")
        return module.Guarding(scope=self.scope.at(origin), folder=module.from_files(self.settings.guardrails_dir))

    def deciding(self, origin: str) -> Deciding:
        return Deciding(
            scope=self.scope.at(origin),
            gate=self.gate(origin),
            judge=lambda tx, choice, standing: self.guarding(origin).judge(tx, choice, standing),
            notes=self.notes,
            verifiers=self.settings.verifiers,
            verifier_seconds=self.settings.verifier_seconds,
        )

    def hindsight(self) -> Hindsight:
        return Hindsight(scope=self.scope, frames=self.frames, profiles=self.profiles)

    def growing(self) -> "Growing":
        return import_module("newton.agent.growing").Growing(scope=self.scope)

    def measuring(self) -> Measuring:
        return Measuring(agent_id=self.scope.agent_id, db=self.scope.db, clock=self.scope.clock)

    def learning(self) -> "Learning":
        module = import_module("newton.agent.learning")
        return module.Learning(scope=self.scope, profiles=self.profiles, frames=self.frames)

    def ingest(self, origin: str) -> "Ingest":
        module = import_module("newton.agent.ingest")
        return module.Ingest(scope=self.scope.at(origin), sizes=sizes(self.settings))

    def upkeep(self, origin: str) -> Upkeep:
        return Upkeep(
            scope=self.scope.at(origin, "agent"),
            bundle_days=self.settings.bundle_days,
            bounds=Bounds(same=self.settings.same_fact, near=self.settings.near_fact),
            asking=asking(self.settings, self.scope),
            working_days=self.settings.working_days,
            sizes=sizes(self.settings),
        )

    @property
    def notes(self) -> HeadNotes:
        """Return the file store that keeps the last hash of each agent's decision log outside the database."""
        url = self.settings.database_url
        return HeadNotes(self.settings.home / "ledger", place_of(url.get_secret_value() if url else None))

    def importer(self) -> Importer:
        scope = self.scope
        outbox = Outbox(scope.db, scope.embedder, scope.agent_id) if scope.embedder else None
        return Importer(scope=scope, outbox=outbox, notes=self.notes, sizes=sizes(self.settings))

    def carrier(self) -> Carrier:
        """Return what exports the agent to a file and imports it."""
        return Carrier(scope=self.scope, agent=self.settings.agent, notes=self.notes)

    def compacting(self, tell: Callable[[Event], None] = lambda event: None) -> Compacting:
        """Return the compaction of conversations; `tell` is called with its progress events.

        The model that summarizes may be another one than the chat model, at the same endpoint.
        """
        settings = self.settings
        other = settings.model_copy(update={"openai_model": settings.compaction_model or settings.openai_model})
        return Compacting(
            scope=self.scope,
            preset=preset(settings.compaction),
            model=asking(other, self.scope),
            window=settings.window_tokens,
            tell=tell,
        )

    def conversations(self, origin: str, tell: Callable[[Event], None] = lambda event: None) -> Conversations:
        return Conversations(scope=self.scope.at(origin), compacting=self.compacting(tell), room=room(self.settings))

    def toolbox(self, origin: str) -> Toolbox:
        return Toolbox(
            verbs=self.verbs(origin),
            curation=self.curation(origin),
            deciding=self.deciding(origin),
            tasks=self.tasks(origin),
            gate=self.gate(origin),
        ).heard(())

    def turns(
        self, model: "ChatModel | None", *, origin: str = "chat", tell: Callable[[Event], None] = lambda event: None
    ) -> Turns:
        return Turns(
            scope=self.scope.at(origin),
            contexts=self.contexts,
            compacting=self.compacting(tell),
            gate=self.gate(origin),
            model=model,
            limits=limits(self.settings),
            sizes=sizes(self.settings),
            tools=self.toolbox("agent"),
        )

    async def working(self, session: str | None) -> WorkingMemory:
        """Return the working memory of a session, or without a name of the last active one. Raises NotFoundError."""
        scope = self.scope
        return WorkingMemory(
            scope=scope,
            session_id=await session_at_work(scope.db, session, agent_id=scope.agent_id),
            profiles=self.profiles,
            frames=self.frames,
            capacity=self.settings.working_tokens,
            model_id=model_id(scope.embedder.identity) if scope.embedder else None,
        )
