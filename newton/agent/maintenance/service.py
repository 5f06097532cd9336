"""Keeps a mind in order: vectors for what waits, facts compared and generalised, every memory in its right state."""

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

# After writing, so many waiting memories are seen to before the door answers; the rest follows later.
BATCH_SIZE = 64


class LifecycleReport(NamedTuple):
    """What the daily upkeep did: the steps it took, and how many old contexts it let go of."""

    steps: Sequence[PlannedTransition]
    expired_contexts: int


class RetentionReport(NamedTuple):
    """How many contexts were let go of, and how many sessions have nothing at hand any more."""

    contexts: int
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceService:
    """For one agent; `origin` names who asks for it. Contexts are kept for `bundle_days`, or for ever if that is 0."""

    scope: AgentScope
    bundle_days: int
    similarity_thresholds: SimilarityThresholds
    llm: StructuredLLM | None
    working_days: int = 30
    sizes: SummarySizes = DEFAULT_SIZES

    async def process_pending(self, limit: int | None = BATCH_SIZE) -> DrainResult:
        """Reads what was written for names, embeds what waits in the outbox, and compares the facts with what is known.

        At most so many of each, or all.
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
        """All of the daily upkeep, one part after the other: joins facts that say the same, generalises what has grown
        too many, takes every step that is due, and lets go of what is too old. Returns all steps taken, or with `dry`
        those that the record asks for as it is."""
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
        """Tells in few what has grown too many; how many facts that concerned."""
        return await generalize_facts(self.scope.db, self.scope.write_context())

    async def apply_transitions(self, kind: LifecycleScope | None = None) -> list[PlannedTransition]:
        """Takes every step that is due, of memories of that kind, beyond the caps, or of all."""
        return await engine.run_lifecycle(self.scope.db, self.scope.write_context(), only=kind)

    async def apply_retention(self, tx: Tx) -> RetentionReport:
        """Lets go of contexts that are too old, and of what sessions had at hand that nobody touches any more."""
        now, agent_id = self.scope.now(), self.scope.agent_id
        sets = await working_set_store.expire_working_sets(
            tx, agent_id=agent_id, before=now - timedelta(days=self.working_days)
        )
        if not self.bundle_days:
            return RetentionReport(0, sets)
        before = now - timedelta(days=self.bundle_days)
        return RetentionReport(await bundle_store.delete_bundles_before(tx, agent_id=agent_id, before=before), sets)

    async def update_summaries(self) -> int:
        """Brings summaries up to date that doors have left behind; of how many sessions."""
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
        """Has the model read the conversations that none has read. Raises ConfigError when no model is set."""
        if self.llm is None:
            raise ConfigError("No model is set to read with.", hint="Set OPENAI_API_KEY or OPENAI_BASE_URL.")
        return await extract(self.llm, self.scope.write_context(), limit=BATCH_SIZE)

    async def summarize_lines(self) -> int:
        """Has the model tell long lines shorter; how many it did. Without a model nothing happens."""
        return 0 if self.llm is None else await summarize_lines(self.llm, self.scope.write_context(), limit=BATCH_SIZE)
