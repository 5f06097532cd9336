"""Maintenance of an agent's memory: episodes of idle sessions, facts and summaries of lines, embedding, retention."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple
from uuid import UUID

from newton.agent.event_hooks import EventHooks
from newton.agent.llm.structured import StructuredLLM
from newton.agent.maintenance.extracted_facts import ExtractionResult, keep_speakers_apart
from newton.agent.maintenance.statement_extraction import StatementTools, extract_statements, learn_open_sessions
from newton.agent.prompt_records import prompt_store
from newton.agent.reconciliation.known_items import list_user_names
from newton.agent.reconciliation.reconciler import MemoryReconciler, ReconciliationResult
from newton.agent.scope import AgentScope
from newton.brain.pack_hooks import NO_HOOKS, HookRunner
from newton.cognition import working_set
from newton.cognition.bundles import bundle_store
from newton.db.pool import Tx, in_transaction
from newton.dialogue import artifacts, message_queues, session_close
from newton.dialogue.artifacts import ArtifactWriter
from newton.dialogue.message_queues import LongMessage
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.errors import ProviderError, TokenQuotaError
from newton.fault_isolation import run_part
from newton.heart.entities import entity_store
from newton.heart.facts.fact_comparison import ComparisonReport, compare_facts
from newton.heart.facts.fact_merges import generalize_facts
from newton.heart.identity.wish_models import find_standing_by_vector
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import LifecycleScope
from newton.heart.reconciliation.prompt import ShortenedOutput, build_shortening_prompt
from newton.ids import derive_model_id
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import TokenCounter, WriteContext
from newton.memory.representations import one_line
from newton.memory.store import PlannedTransition, list_applied_since
from newton.memory.vectors import RUN_TO_THE_END, DrainControl, DrainResult, EmbeddingOutbox

SCHEMA_OVERHEAD_TOKENS = 50  # for the JSON around the text
MAX_INPUT_CHARS = 24_000  # of a text in the prompt


async def summarize_text(llm: StructuredLLM, message: LongMessage, max_tokens: int) -> str | None:
    """Ask the model for a one-line summary of a long message; None if its answer is too long or empty.

    Raises TokenQuotaError if the call could exceed the daily limit, and ProviderError if the model fails.
    """
    assert not in_transaction()
    content = message.content
    answer, _ = await llm.complete(
        build_shortening_prompt(
            content[:MAX_INPUT_CHARS],
            speaker=message.speaker,
            said_on=message.said_at.date(),
            max_tokens=max_tokens,
        ),
        ShortenedOutput,
        purpose="compress",
        max_tokens=max_tokens + SCHEMA_OVERHEAD_TOKENS,
    )
    text, count_tokens = answer.words if answer else "", llm.scope.count_tokens
    return accept_summary(text, content, max_tokens=max_tokens, count_tokens=count_tokens)


def accept_summary(text: str, content: str, *, max_tokens: int, count_tokens: TokenCounter) -> str | None:
    """Clean the summary `text` of `content`; return None if it has no words, or too many tokens. Pure.

    It may have at most `max_tokens`, and must have fewer tokens than `content`.
    """
    line = one_line(clean_model_text(text))
    if not re.search(r"\w", line) or count_tokens(line) > max_tokens or count_tokens(line) >= count_tokens(content):
        return None
    return line


async def summarize_lines(llm: StructuredLLM, ctx: WriteContext, *, limit: int) -> int:
    """Let the model summarize up to `limit` long messages without a summary; return the number of summaries stored.

    Stops at the daily token limit. Raises ProviderError if the model fails; summaries stored before remain.
    """
    async with llm.scope.db.transaction(ctx.agent_id) as tx:
        lines = await message_queues.find(tx, agent_id=ctx.agent_id, limit=limit)
    count = 0
    for line in lines:
        room = message_queues.token_budget(line, count_tokens=llm.scope.count_tokens)
        size = max(room, 1)
        async with llm.scope.db.transaction(ctx.agent_id) as tx:
            is_known, text = await message_queues.find_summary(tx, line.content, agent_id=ctx.agent_id, max_tokens=size)
        if not is_known and room > 0:
            try:
                text = await summarize_text(llm, line, room)
            except TokenQuotaError:
                break
        async with llm.scope.db.transaction(ctx.agent_id) as tx:
            await message_queues.save_summary(
                tx, line.content, text, memory_id=line.memory_id, max_tokens=size, ctx=ctx
            )
            if text:
                await message_queues.apply_summaries(tx, [(line, text)], ctx=ctx)
                count += 1
    return count


BATCH_SIZE = 64  # items of one step; further pending items are processed in the background
BULK_KINDS = ("passage",)  # embedded by the ingestion itself or by a job
WORKING_SET_RETENTION = timedelta(days=30)  # of a session that is not used
MODEL_BATCH_SIZE = 4  # conversations that a model extracts from while a person waits


class LifecycleReport(NamedTuple):
    """The state changes that were applied, and the number of stored contexts deleted because they had expired."""

    steps: Sequence[PlannedTransition]
    expired_contexts: int


class RetentionReport(NamedTuple):
    """The numbers of deleted contexts, of sessions whose working memory was deleted, and of deleted prompt records."""

    contexts: int
    sessions: int
    prompts: int


class LearningReport(NamedTuple):
    """The results of learning: the number of new episodes, the facts that rules extracted, the model's changes.

    The facts include those stated in open sessions, which are not counted as conversations.
    """

    episodes: int
    extraction: ExtractionResult
    reconciliation: ReconciliationResult = ReconciliationResult()


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceService:
    """Maintenance of one agent's memory.

    A session without a message for `session_idle_minutes` becomes an episode. Stored contexts are deleted after
    `bundle_retention_days` (0: never), the working memory of a session after `WORKING_SET_RETENTION` without use.
    """

    scope: AgentScope
    bundle_retention_days: int
    llm: StructuredLLM | None
    session_idle_minutes: int = 15
    sizes: SummarySizes = DEFAULT_SIZES
    hooks: HookRunner = NO_HOOKS

    async def process_pending(
        self, limit: int | None = BATCH_SIZE, *, passages: bool = False, control: DrainControl = RUN_TO_THE_END
    ) -> DrainResult:
        """Find entities in new memories, embed the memories, and compare new facts with known ones.

        Each step processes up to `limit` items; None processes all. Passages of documents, of which thousands may wait,
        are embedded only with `passages`: a command that stores a fact must not wait for them. `control` observes the
        embedding, and stops it. Return the result of the embedding step.
        """
        await self._index_mentions(single_batch=limit is not None)
        if self.scope.embedder is None:
            return DrainResult(0, 0, stopped_by="no embedding model is set")
        outbox = EmbeddingOutbox(
            self.scope.db, self.scope.embedder, self.scope.agent_id, find_standing=find_standing_by_vector
        )
        drained = await outbox.drain(limit=limit, excluded=() if passages else BULK_KINDS, control=control)
        await self.compare_facts(limit)
        return drained

    async def process_recent(self, limit: int | None = BATCH_SIZE, *, failed: dict[str, str]) -> DrainResult | None:
        """Embed new memories, store the facts that the latest messages state, and embed these as well.

        Each step processes up to `limit` items; None processes all. A step that fails is named in `failed` with its
        error, and the others are done. Return the result of the last embedding, None if it failed.
        """
        drained = await run_part("embeddings", self.process_pending(limit), default=None, missing=failed)
        if await run_part("statements", self.learn_statements(only_recent=True), default=0, missing=failed):
            drained = await run_part("embeddings", self.process_pending(limit), default=None, missing=failed)
        return drained

    async def compare_facts(self, limit: int | None = None) -> ComparisonReport | None:
        """Compare up to `limit` new facts with known ones, to find repetitions, updates and contradictions; None: all.

        Return what was found, or None if no embedding model is configured.
        """
        if self.scope.embedder is None:
            return None
        ctx, model_id = self.scope.write_context(), derive_model_id(self.scope.embedder.identity)
        found = await compare_facts(self.scope.db, ctx, model_id=model_id, limit=limit)
        if found.contradicted:
            async with self.scope.transaction() as tx:
                kept = await keep_speakers_apart(tx, found.contradicted, ctx=ctx)
                if contradicted := found.contradicted - kept:
                    self.scope.publish("conflict.found", {"conflicts": contradicted})
        return found

    async def _index_mentions(self, *, single_batch: bool) -> None:
        ctx = self.scope.write_context()
        after: UUID | None = None
        while True:
            async with self.scope.transaction() as tx:
                batch = await entity_store.index_mentions(tx, ctx=ctx, after=after)
            if single_batch or not batch.memories:
                return
            after = batch.last

    async def run_lifecycle(self, *, dry_run: bool = False) -> LifecycleReport:
        """Run the daily maintenance: compare and generalize facts, apply due state changes, delete expired data.

        Return the state changes made. With `dry_run`, change nothing and return those that are due now.
        """
        if dry_run:
            due = await engine.run_lifecycle(self.scope.db, self.scope.write_context(), dry_run=True)
            return LifecycleReport(due, expired_contexts=0)
        started_at = self.scope.now()
        await self.process_pending(limit=None, passages=True)
        await self.generalize_facts()
        await self.apply_transitions()
        async with self.scope.transaction() as tx:
            retention = await self.apply_retention(tx)
        async with self.scope.transaction() as tx:
            changes = await list_applied_since(tx, started_at, agent_id=self.scope.agent_id, origin=self.scope.origin)
        return LifecycleReport([change.transition for change in changes], retention.contexts)

    async def generalize_facts(self) -> int:
        """Merge the facts of attributes that have too many into a few general facts; return how many were merged."""
        return await generalize_facts(self.scope.db, self.scope.write_context())

    async def apply_transitions(self, kind: LifecycleScope | None = None) -> list[PlannedTransition]:
        """Apply all due state changes, of memories of one kind or of all kinds; return the changes.

        Facts are extracted from an episode before it is archived.
        """
        if kind in (None, "episode"):
            await self._read_before_archiving(self.scope.now() - self.scope.thresholds.episode_archive_after)
        return await engine.run_lifecycle(self.scope.db, self.scope.write_context(), only=kind)

    async def _read_before_archiving(self, ended_before: datetime) -> None:
        """Learn from conversations and stored episodes that are about to be archived. A failing model is ignored."""
        await self._parse_closed(BATCH_SIZE, ended_before=ended_before)
        if self.llm is not None:
            with suppress(ProviderError):
                reconciler = await self._create_reconciler(self.llm)
                await reconciler.read_told_episodes(BATCH_SIZE, ended_before=ended_before)

    async def apply_retention(self, tx: Tx) -> RetentionReport:
        """Delete expired contexts and records of prompts, and the working memory of sessions not used for too long.

        A context is kept as long as the record of a prompt that contains it.
        """
        now, agent_id = self.scope.now(), self.scope.agent_id
        idle_since, bundles, prompts = now - WORKING_SET_RETENTION, 0, 0
        working_sets = await working_set.expire_working_sets(tx, agent_id=agent_id, before=idle_since)
        if self.bundle_retention_days:
            before = now - timedelta(days=self.bundle_retention_days)
            prompts = await prompt_store.delete_prompts_before(tx, agent_id=agent_id, before=before)
            bundles = await bundle_store.delete_bundles_before(tx, agent_id=agent_id, before=before)
        return RetentionReport(bundles, working_sets, prompts)

    async def update_summaries(self) -> int:
        """Update the session summaries that are out of date; return the number of sessions."""
        async with self.scope.transaction() as tx:
            agent_id = self.scope.agent_id
            due = await artifacts.find_sessions_due(tx, agent_id=agent_id, sizes=self.sizes, limit=BATCH_SIZE)
        for session_id in due:
            async with self.scope.write() as (tx, ctx):
                await ArtifactWriter(session_id=session_id, ctx=ctx, sizes=self.sizes).update(tx)
        return len(due)

    async def learn(self, limit: int = BATCH_SIZE, *, only_due: bool = False) -> LearningReport:
        """Close idle sessions, store the statements of users, and let the model reconcile them with what is known.

        The statements of up to `limit` sessions are stored with or without a model. They are compared with the known
        facts at once, before a context shows them. With `only_due`, the model reads open sessions only after a
        few lines or a pause. Raises TokenQuotaError, and ProviderError if the model fails.
        """
        episodes = await self.close_idle_sessions()
        parsed = await self._parse_closed(limit) + ExtractionResult(facts=await self.learn_statements(limit))
        if parsed.facts:
            await self.process_pending()
        return LearningReport(episodes, parsed, await self.reconcile(limit, only_due=only_due))

    async def reconcile(
        self, limit: int = BATCH_SIZE, *, only_due: bool = False, only_recent: bool = False
    ) -> ReconciliationResult:
        """Let the model read new lines of up to `limit` sessions, and apply the changes to memory that it finds.

        With `only_due`, it reads open sessions only after a few lines or a pause; with `only_recent`, only sessions of
        the latest memories. Raises TokenQuotaError, and ProviderError if the model fails. Without a model, nothing is
        done.
        """
        if self.llm is None:
            return ReconciliationResult()
        reconciler = await self._create_reconciler(self.llm)
        result = await reconciler.reconcile(limit, only_due=only_due, only_recent=only_recent)
        if result.kept:
            await self.process_pending()
        return result

    async def _create_reconciler(self, llm: StructuredLLM) -> MemoryReconciler:
        names = await self._read_user_names()
        return MemoryReconciler(llm=llm, user_names=names, parse=partial(self.process_recent, failed={}))

    async def _read_user_names(self) -> tuple[str, ...]:
        async with self.scope.transaction() as tx:
            return await list_user_names(tx, self.scope)

    async def learn_statements(self, limit: int = BATCH_SIZE, *, only_recent: bool = False) -> int:
        """Store the facts that users state in up to `limit` open sessions; return how many were not known before.

        With `only_recent`, only the sessions of the latest memories are read.
        """
        ctx, tools = self.scope.write_context(), StatementTools(self.scope.embedder, self._read_user_names)
        return await learn_open_sessions(self.scope.db, ctx, limit=limit, tools=tools, only_recent=only_recent)

    async def learn_if_possible(self) -> None:
        """Learn from a few conversations, after an interactive command. A failure of the model is ignored.

        A later run then asks the model again.
        """
        with suppress(ProviderError):
            await self.learn(BATCH_SIZE if self.llm is None else MODEL_BATCH_SIZE)

    async def close_idle_sessions(self) -> int:
        """Store the new messages of idle sessions as episodes; return the number of episodes."""
        before, episodes = self.scope.now() - timedelta(minutes=self.session_idle_minutes), 0
        async with self.scope.transaction() as tx:
            idle = await session_close.find_idle_sessions(
                tx, agent_id=self.scope.agent_id, before=before, limit=BATCH_SIZE
            )
        for session_id in idle:
            async with self.scope.write("agent") as (tx, ctx):
                if created := await session_close.close_session(tx, session_id=session_id, ctx=ctx):
                    self.scope.publish("session.closed", {"session_id": str(session_id), "episodes": created})
                    episodes += created
            await EventHooks(scope=self.scope, hooks=self.hooks).run_for_session("session_end", session_id)
        return episodes

    async def _parse_closed(self, limit: int, *, ended_before: datetime | None = None) -> ExtractionResult:
        """Store the statements of closed sessions; with `ended_before`, of all conversations that ended by then.

        With a model, which also reads them, the conversations are not counted.
        """
        ctx, is_final = self.scope.write_context(), self.llm is None
        found = await extract_statements(
            self.scope.db,
            ctx,
            limit=limit,
            tools=StatementTools(self.scope.embedder, self._read_user_names),
            ended_before=ended_before,
            is_final=is_final,
        )
        return found if is_final else ExtractionResult(facts=found.facts)

    async def summarize_lines(self) -> int:
        """Write one-line summaries of long messages; return their number, which is 0 without a model."""
        return 0 if self.llm is None else await summarize_lines(self.llm, self.scope.write_context(), limit=BATCH_SIZE)
