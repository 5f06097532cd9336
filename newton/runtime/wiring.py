"""The composition root: factories of all services of one agent, from its scope, settings and content files."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from newton.agent.actions.action_service import ActionService
from newton.agent.actions.permissions import PermissionService
from newton.agent.background_runs import BackgroundCompactions, BackgroundRuns, create_readings
from newton.agent.compaction.service import CompactionService
from newton.agent.loop.tools import AgentToolset
from newton.agent.loop.turn import TurnRunner
from newton.agent.loop.turn_status import ProgressCallback
from newton.agent.maintenance.artifact_vectors import has_artifacts_to_embed
from newton.agent.maintenance.service import BATCH_SIZE, MaintenanceService
from newton.agent.prompt_records.service import PromptService
from newton.agent.services.bundles import BundleService
from newton.agent.services.censors import CensorService
from newton.agent.services.decisions import DecisionService
from newton.agent.services.erasure import ErasureService
from newton.agent.services.sessions import SessionService
from newton.agent.services.working_memory import SessionUseRecorder, WorkingMemory, find_active_session
from newton.agent.session_data.injections import InjectionService
from newton.agent.session_data.session_stats import SessionStatsService
from newton.brain.hash_chain import ChainHeadFiles
from newton.brain.pack_hooks import HookRunner
from newton.cognition.pipeline import ContextBuilder
from newton.content.frames import Frame
from newton.content.profiles import Profile
from newton.content.skills import SkillSet
from newton.db.pool import Tx
from newton.db.server_paths import find_server_logs
from newton.dialogue.compaction.progress_events import ignore_progress
from newton.environment import CHAT_HISTORY
from newton.fault_isolation import isolate_failure, run_part
from newton.heart.identity.wish_models import find_standing_by_vector
from newton.ids import derive_model_id
from newton.memory.memory import Trust
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.context_windows import get_known_window
from newton.runtime import settings_mapping as options
from newton.runtime.access.secret_values import SecretFiles
from newton.runtime.mcp_servers.servers import McpServerPool
from newton.runtime.model_directory import ModelDirectory
from newton.runtime.model_factory import build_structured_llm
from newton.runtime.scope_services import ScopeServices
from newton.runtime.transfer.export_file import AgentArchive
from newton.runtime.transfer.importer import MemoryImporter
from newton.runtime.transfer.mirror.mirror_export import MirrorExporter
from newton.runtime.transfer.mirror.mirror_import import MirrorImporter
from newton.settings import Settings

if TYPE_CHECKING:
    from newton.agent.llm.structured import StructuredLLM
    from newton.agent.maintenance.relevance_fitter import RelevanceFitter
    from newton.agent.services.guardrails import GuardrailService
    from newton.agent.services.ingest import IngestService
    from newton.providers.chat import ChatModel
    from newton.providers.embedding import Embedder

LOCAL_PROVIDERS = ("local", "multilingual")  # of embeddings, which are computed in this process
PROCESS_SECONDS = 20.0  # for the embedding of what a request wrote, before it is answered
INJECTED_TEXT_DIVISOR = 4  # the texts in the context of a session may take at most this part of the context


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentServices(ScopeServices):
    """Factories of all services of one agent. The argument `origin` names the interface of the caller.

    `models`, `compactions`, `readings` and `mcp_servers` are shared by the agents of the process. `default_model` names
    the agent's own default model, or is None. `is_user_memory` is True for the memory of one user of another agent,
    `may_leave_project` for a project that the caller chose and that no token prescribes. `author` names the caller.
    """

    settings: Settings
    models: ModelDirectory
    default_model: str | None = None
    frames: dict[str, Frame]
    profiles: dict[str, Profile]
    context_builder: ContextBuilder
    skills: SkillSet = field(default_factory=SkillSet)
    configured_embedder: "Embedder | None" = None
    compactions: BackgroundCompactions = field(default_factory=BackgroundCompactions)
    readings: BackgroundRuns = field(default_factory=create_readings)
    mcp_servers: McpServerPool = field(default_factory=lambda: McpServerPool(servers={}))
    is_user_memory: bool = False
    may_leave_project: bool = False
    author: str = "the user"  # who acts without a token

    def within(self, tx: Tx) -> "AgentServices":
        """Return a copy whose services write in the open transaction `tx`; they neither begin nor commit one."""
        return replace(self, scope=self.scope.within(tx))

    def with_trust(self, trust: Trust) -> "AgentServices":
        """Return a copy whose services store texts of callers with this trust."""
        return replace(self, scope=self.scope.at(self.scope.origin, trust))

    def guardrails(self, origin: str) -> "GuardrailService":
        """Return the service for guardrails, the rules on decisions. Raises ConfigError for an invalid file."""
        # imported late: CEL takes 0.2 s to load, and most commands evaluate no decision
        module = import_module("newton.agent.services.guardrails")
        files = module.load_file_guardrails(self.settings.guardrails_dir)
        return module.GuardrailService(scope=self.scope.at(origin), file_guardrails=files)

    def censors(self, origin: str) -> CensorService:
        return CensorService(scope=self.scope.at(origin), domains=self.domains)

    def erasure(self, origin: str) -> ErasureService:
        """Return the service that erases people. Only at the command line, it also changes files that agents share."""
        logs = () if self.settings.database_url else find_server_logs(self.settings.home)
        files = [file for file in (*logs, self.settings.home / CHAT_HISTORY) if origin == "cli" and file.is_file()]
        return ErasureService(scope=self.scope.at(origin), logs=tuple(files))

    @property
    def hooks(self) -> HookRunner:
        """Return the hooks: functions of the pack (kind of work) that run around contexts, events and sessions."""
        return self.context_builder.hooks

    @property
    def domains(self) -> frozenset[str]:
        """Return all subject domains that the frames (kinds of input) define."""
        return frozenset(domain for frame in self.frames.values() for domain in frame.domains)

    def decisions(self, origin: str) -> DecisionService:
        return DecisionService(
            scope=self.scope.at(origin),
            gate=self.action_gate(origin),
            evaluate_guardrails=lambda tx, draft, record: self.guardrails(origin).evaluate(tx, draft, record),
            chain_heads=self.chain_heads,
            verifiers=self.settings.verifiers,
            verifier_timeout_seconds=self.settings.verifier_timeout_seconds,
        )

    def bundles(self) -> BundleService:
        return BundleService(scope=self.scope, frames=self.frames, profiles=self.profiles)

    def prompts(self) -> PromptService:
        return PromptService(scope=self.scope)

    def relevance_fitter(self) -> "RelevanceFitter":
        module = import_module("newton.agent.maintenance.relevance_fitter")
        return module.RelevanceFitter(scope=self.scope)

    def ingest(self, origin: str) -> "IngestService":
        module = import_module("newton.agent.services.ingest")
        sizes, is_secret = options.build_summary_sizes(self.settings), SecretFiles(self.settings).contains
        return module.IngestService(scope=self.scope.at(origin), sizes=sizes, is_secret=is_secret)

    def maintenance(self, origin: str) -> MaintenanceService:
        return MaintenanceService(
            scope=self.scope.at(origin, "agent"),
            bundle_retention_days=self.settings.bundle_retention_days,
            llm=self.structured_llm(),
            session_idle_minutes=self.settings.session_idle_minutes,
            sizes=options.build_summary_sizes(self.settings),
            hooks=self.hooks,
        )

    @property
    def chat_model(self) -> "ChatModel | None":
        """Return the chat model that the agent uses by default; None if no model is configured."""
        return self.models.get(self.default_model)

    @property
    def conversation_tokens(self) -> int:
        """Return the maximum tokens of a conversation in a request to the default model, as far as its window is
        known.
        """
        window = get_known_window(self.chat_model).tokens if self.chat_model else None
        return options.conversation_budget(self.settings, window)

    def structured_llm(self) -> "StructuredLLM | None":
        """Return a client for model calls with structured output; None if no model is configured."""
        limit = self.settings.llm_tokens_per_day
        return build_structured_llm(self.models, self.scope, model=self.default_model, tokens_per_day=limit)

    async def process_written(self, origin: str, *, reads_now: bool = False) -> bool:
        """Embed and index new memories now, so that the next search finds them, if embeddings are computed locally.

        Then store the facts that new messages state, and let the chat model read these messages in the background: at
        once with `reads_now`. Return False if something is left for the job `embed`.
        """
        try:
            return await self._process_written(origin)
        finally:
            self.read_soon(reads_now=reads_now)

    def read_soon(self, *, reads_now: bool = False) -> None:
        """Let the chat model say in the background what new messages change in memory, now and when they pause.

        Unless `reads_now`, it now reads only sessions with enough new messages.
        """
        if self.chat_model is not None:
            run, key = self.maintenance("reconciliation").reconcile, (self.scope.agent_id, self.scope.agent_id)
            self.readings.start(key, partial(run, only_due=not reads_now, only_recent=True))
            self.readings.start_when_idle(key, partial(run, only_due=True, only_recent=True))

    async def _process_written(self, origin: str) -> bool:
        maintenance, failed = self.maintenance(origin), dict[str, str]()
        passed = (TimeoutError,)
        with suppress(*passed), isolate_failure("processing of new memories", failed, passed=passed):
            async with asyncio.timeout(PROCESS_SECONDS):
                if self.settings.embedding_provider not in LOCAL_PROVIDERS:
                    learning = maintenance.learn_statements(only_recent=True)
                    await run_part("statements", learning, default=0, missing=failed)
                    return False
                drained = await maintenance.process_recent(failed=failed)
                is_complete = drained and not (drained.failed or drained.stopped_by) and drained.embedded < BATCH_SIZE
                return bool(is_complete) and not failed and not await has_artifacts_to_embed(self.scope)
        return False

    @property
    def chain_heads(self) -> ChainHeadFiles:
        """Return the files, outside the database, with the last hash of each agent's decision log."""
        return options.build_chain_heads(self.settings)

    def importer(self) -> MemoryImporter:
        return MemoryImporter(
            scope=self.scope,
            outbox=self.outbox(),
            chain_heads=self.chain_heads,
            domains=self.domains,
            sizes=options.build_summary_sizes(self.settings),
        )

    def outbox(self) -> EmbeddingOutbox | None:
        """Return the service that embeds the texts waiting in the agent's outbox; None without an embedding model."""
        scope = self.scope
        if scope.embedder is None:
            return None
        return EmbeddingOutbox(scope.db, scope.embedder, scope.agent_id, find_standing=find_standing_by_vector)

    def archive(self, max_trust: Trust = "operator") -> AgentArchive:
        """Return the export and restore of the agent. Restored rows have at most the trust `max_trust`."""
        return AgentArchive(
            scope=self.scope, agent=self.settings.agent, chain_heads=self.chain_heads, max_trust=max_trust
        )

    def mirror(self, origin: str) -> MirrorImporter:
        """Return the importer of the agent's mirror (memories as Markdown files); its `exporter` writes one."""
        exporter = MirrorExporter(
            agent=self.settings.agent,
            lists=self.memory_lists(origin),
            curation=self.curation(origin),
            identity=self.identity(origin),
            procedures=self.procedures(origin),
            decisions=self.decisions(origin),
        )
        return MirrorImporter(
            exporter=exporter,
            memories=self.memories(origin),
            maintenance=self.maintenance(origin),
            curation=exporter.curation,
            identity=exporter.identity,
        )

    def compaction(self, on_event: ProgressCallback = ignore_progress) -> CompactionService:
        """Return the service that shortens long conversations. `on_event` receives a progress event for each step."""
        model = build_structured_llm(
            self.models,
            self.scope,
            model=self.settings.compaction_model or self.default_model,
            tokens_per_day=options.summary_tokens_per_day(self.settings),
            is_for_summaries=True,
        )
        return CompactionService(
            scope=self.scope,
            preset=options.build_preset(self.settings),
            model=model,
            on_event=on_event,
            breaker=self.compactions.get_breaker(self.scope.agent_id, model.name if model else ""),
            background=self.compactions,
        )

    def sessions(self, origin: str, on_event: ProgressCallback = ignore_progress) -> SessionService:
        budget, compaction = self.conversation_tokens, self.compaction(on_event)
        return SessionService(
            scope=self.scope.at(origin),
            compaction=compaction,
            conversation_tokens=budget,
            working_set_tokens=self.settings.working_set_tokens,
            hooks=self.hooks,
        )

    def injections(self, origin: str, trust: Trust | None = None) -> InjectionService:
        """Return the service for texts and memories that a caller adds to the prompts of a session.

        `origin` is the interface of the caller, and `trust` is that of the caller's texts.
        """
        return InjectionService(
            scope=self.scope.at(origin, trust),
            sessions=self.sessions(origin),
            max_text_tokens=self.settings.context_tokens // INJECTED_TEXT_DIVISOR,
        )

    def session_stats(self) -> SessionStatsService:
        return SessionStatsService(scope=self.scope, conversation_tokens=self.conversation_tokens)

    def session_use(self, origin: str) -> SessionUseRecorder:
        return SessionUseRecorder(scope=self.scope.at(origin), capacity=self.settings.working_set_tokens)

    def toolset(self, origin: str) -> AgentToolset:
        return AgentToolset(
            memories=self.memories(origin),
            curation=self.curation(origin),
            decisions=self.decisions(origin),
            tasks=replace(self.tasks(origin), scope=self.scope.at(origin, "agent")),
            gate=self.action_gate(origin),
            maintenance=self.maintenance(origin),
            session_use=self.session_use(origin),
            artifacts=self.artifacts(origin),
        ).with_trust(())

    def actions(self, origin: str, on_event: ProgressCallback = ignore_progress) -> ActionService:
        """Return the service that calls the tools of MCP servers."""
        return ActionService(
            scope=self.scope.at(origin),
            agent=self.settings.agent,
            source=self.mcp_servers,
            gate=self.action_gate(origin),
            check_guardrails=self.decisions(origin).check_guardrails,
            is_user_memory=self.is_user_memory,
            on_event=on_event,
        )

    def permissions(self, origin: str) -> PermissionService:
        return PermissionService(scope=self.scope.at(origin))

    def turn_runner(
        self, model: "ChatModel | None", *, origin: str = "chat", on_event: ProgressCallback = ignore_progress
    ) -> TurnRunner:
        return TurnRunner(
            scope=self.scope.at(origin),
            contexts=self.context_builder,
            compaction=self.compaction(on_event),
            gate=self.action_gate(origin),
            model=model,
            limits=options.build_turn_limits(self.settings),
            sizes=options.build_summary_sizes(self.settings),
            tools=self.toolset("agent"),
            actions=self.actions(origin, on_event) if self.mcp_servers.servers else None,
            quotes_for_clients=self.settings.quote_without_model,
            on_event=on_event,
            read_soon=partial(self.read_soon, reads_now=True),
        )

    async def working_memory(self, session: str | None) -> WorkingMemory:
        """Return the working memory of the named session, or of the last active one, if `session` is None.

        The working memory is the memories that the session has used lately. Raises NotFoundError for an unknown
        session.
        """
        return WorkingMemory(
            scope=self.scope,
            session_id=await find_active_session(self.scope.db, session, agent_id=self.scope.agent_id),
            profiles=self.profiles,
            frames=self.frames,
            capacity=self.settings.working_set_tokens,
            model_id=derive_model_id(self.scope.embedder.identity) if self.scope.embedder else None,
        )
