"""Maintenance of an agent's memory: pending embeddings, deduplication, generalization, lifecycle, retention."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.agent.llm.structured import StructuredLLM
from newton.agent.maintenance.extraction import ExtractionResult, extract
from newton.agent.maintenance.line_summaries import summarize_lines
from newton.agent.scope import AgentScope
from newton.cognition.bundles import bundle_store
from newton.cognition.working_set import working_set_store
from newton.db.pool import Tx
from newton.dialogue import artifacts
from newton.dialogue.artifacts import ArtifactWriter
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.errors import ConfigError
from newton.heart.entities import entity_store
from newton.heart.facts.deduplication import SimilarityThresholds, deduplicate_facts
from newton.heart.facts.generalization import generalize_facts
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import LifecycleScope
from newton.ids import derive_model_id
from newton.memory.outbox import DrainResult, EmbeddingOutbox
from newton.memory.transitions import PlannedTransition, list_applied_since

if TYPE_CHECKING:
    pass

# Pending memories processed after a write, before the response; the rest follows in the background.
BATCH_SIZE = 64


class LifecycleReport(NamedTuple):
    """The applied transitions, and the number of expired contexts deleted."""

    steps: Sequence[PlannedTransition]
    expired_contexts: int


class RetentionReport(NamedTuple):
    """Numbers of contexts deleted and of working sets expired."""

    contexts: int
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceService:
    """Maintenance for one agent. Contexts are kept for `bundle_retention_days`; 0 keeps them forever."""

    scope: AgentScope
    bundle_retention_days: int
    similarity_thresholds: SimilarityThresholds
    llm: StructuredLLM | None
    working_set_idle_days: int = 30
    sizes: SummarySizes = DEFAULT_SIZES

    async def process_pending(self, limit: int | None = BATCH_SIZE) -> DrainResult:
        """Extract entities, embed pending memories, and compare facts with known ones.

        Each step processes up to `limit` items, or all.
        """
        await self._index_mentions(single_batch=limit is not None)
        if self.scope.embedder is None:
            return DrainResult(0, 0, stopped_by="no embedding model is set")
        drained = await EmbeddingOutbox(self.scope.db, self.scope.embedder, self.scope.agent_id).drain(limit=limit)
        model = derive_model_id(self.scope.embedder.identity)
        await deduplicate_facts(
            self.scope.db,
            self.scope.write_context(),
            self.similarity_thresholds,
            model_id=model,
            judge=self.llm,
            limit=limit,
        )
        return drained

    async def _index_mentions(self, *, single_batch: bool) -> None:
        ctx = self.scope.write_context()
        after: UUID | None = None
        while True:
            async with self.scope.transaction() as tx:
                read = await entity_store.index_mentions(tx, ctx=ctx, after=after)
            if single_batch or not read.memories:
                return
            after = read.last

    async def run_lifecycle(self, *, dry_run: bool = False) -> LifecycleReport:
        """Run daily maintenance: merge duplicate facts, generalize, apply due transitions, apply retention.

        Returns all transitions, or with `dry_run` those that are due now.
        """
        if dry_run:
            return LifecycleReport(
                await engine.run_lifecycle(self.scope.db, self.scope.write_context(), dry_run=True), 0
            )
        began = self.scope.now()
        await self.process_pending(limit=None)
        await self.generalize_facts()
        await self.apply_transitions()
        async with self.scope.transaction() as tx:
            released = await self.apply_retention(tx)
        async with self.scope.transaction() as tx:
            changed = await list_applied_since(tx, began, agent_id=self.scope.agent_id, origin=self.scope.origin)
            if changed:
                about = {"job": "lifecycle", "result": Counter(change.transition.event for change in changed)}
                self.scope.publish("job.completed", about)
        return LifecycleReport([change.transition for change in changed], released.contexts)

    async def generalize_facts(self) -> int:
        """Generalize groups of facts over their limit; return the number of facts concerned."""
        return await generalize_facts(self.scope.db, self.scope.write_context())

    async def apply_transitions(self, kind: LifecycleScope | None = None) -> list[PlannedTransition]:
        """Apply all due transitions, caps included, of one kind or of all."""
        return await engine.run_lifecycle(self.scope.db, self.scope.write_context(), only=kind)

    async def apply_retention(self, tx: Tx) -> RetentionReport:
        """Delete expired contexts and working sets of idle sessions."""
        now, agent_id = self.scope.now(), self.scope.agent_id
        sets = await working_set_store.expire_working_sets(
            tx, agent_id=agent_id, before=now - timedelta(days=self.working_set_idle_days)
        )
        if not self.bundle_retention_days:
            return RetentionReport(0, sets)
        before = now - timedelta(days=self.bundle_retention_days)
        return RetentionReport(await bundle_store.delete_bundles_before(tx, agent_id=agent_id, before=before), sets)

    async def update_summaries(self) -> int:
        """Update stale session summaries; return the number of sessions."""
        async with self.scope.transaction() as tx:
            late = await artifacts.find_sessions_due(
                tx, agent_id=self.scope.agent_id, sizes=self.sizes, limit=BATCH_SIZE
            )
        for session_id in late:
            writer = ArtifactWriter(session_id=session_id, ctx=self.scope.write_context(), sizes=self.sizes)
            async with self.scope.transaction() as tx:
                await writer.update(tx)
        return len(late)

    async def extract(self) -> ExtractionResult:
        """Extract from unread conversations. Raises ConfigError without a model."""
        if self.llm is None:
            raise ConfigError("Extraction needs a model.", hint="Set OPENAI_API_KEY or OPENAI_BASE_URL.")
        return await extract(self.llm, self.scope.write_context(), limit=BATCH_SIZE)

    async def summarize_lines(self) -> int:
        """Summarize long messages by the model; return their number. Does nothing without a model."""
        return 0 if self.llm is None else await summarize_lines(self.llm, self.scope.write_context(), limit=BATCH_SIZE)
