"""Compaction of sessions: runs the strategies, summarizes blocks, and stores each entry as it is ready."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from newton.agent.compaction.block_summarizer import BlockSummarizer, CallBudget, ModelCircuitBreaker, merge_summaries
from newton.agent.llm.structured import StructuredLLM
from newton.agent.scope import AgentScope
from newton.clock import monotonic_ms
from newton.db.pool import in_transaction
from newton.dialogue import leases, log, tasks
from newton.dialogue.compaction import entry_store as entries
from newton.dialogue.compaction import extractive_summary, llm_summary
from newton.dialogue.compaction.entry_store import CompactionRun
from newton.dialogue.compaction.progress_events import (
    CompactionCompleted,
    CompactionEvent,
    CompactionFailed,
    CompactionProgressed,
    CompactionStarted,
)
from newton.dialogue.compaction.strategies import (
    CompactionBlock,
    CompactionPreset,
    CompactionStrategy,
    SummarizeOldest,
    ViewState,
    refusal_reason,
)
from newton.dialogue.log import LoadedView
from newton.dialogue.view import (
    MESSAGE_TOKENS,
    CompactionEntry,
    ViewMessage,
    apply_entries,
    count_view_tokens,
    outermost_entries,
)
from newton.errors import ConflictError, NewtonError
from newton.ids import new_id

LEASE_SECONDS = 120.0  # much longer than a model call; renewed with every stored entry
MAX_ROUNDS = 4  # of one strategy, as long as each reduces the view


@dataclass(slots=True, kw_only=True)
class _CompactionState:
    """State of one compaction run. `entry_count` counts stored entries; `budget` limits model calls."""

    session_id: UUID
    max_tokens: int
    holder: UUID
    loaded: LoadedView
    entry_count: int = 0
    budget: CallBudget = field(default_factory=CallBudget)

    def event_payload(self, entries: Sequence[CompactionEntry]) -> dict[str, object]:
        return {"session_id": str(self.session_id), "entries": len(entries)}

    def record(self, entries: Sequence[CompactionEntry]) -> None:
        """Count stored entries."""
        seen = self.loaded.sources
        self.loaded = replace(self.loaded, sources=seen._replace(entries=outermost_entries([*seen.entries, *entries])))
        self.entry_count += len(entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionService:
    """Compaction for one agent. Without a model, or when it fails, summaries are extracted from the text."""

    scope: AgentScope
    preset: CompactionPreset
    model: StructuredLLM | None = None
    window: int = 128_000
    on_event: Callable[[CompactionEvent], None] = lambda event: None
    breaker: ModelCircuitBreaker = field(default_factory=ModelCircuitBreaker)
    new_budget: Callable[[], CallBudget] = CallBudget

    async def load_view(self, session_id: UUID, *, max_tokens: int) -> Sequence[ViewMessage]:
        """Return the view, compacted first if a strategy is due for `max_tokens`. It may still be longer."""
        assert not in_transaction()
        read = await self._fold_ended_tasks(session_id)
        if not any(strategy.plan(self._view_state(read, max_tokens)) for strategy in self.preset.strategies):
            return read.view
        holder, of = new_id(), {"agent_id": self.scope.agent_id, "session_id": session_id}
        async with self.scope.transaction() as tx:
            held = await leases.acquire(tx, holder, "compaction", **of, seconds=LEASE_SECONDS)
        if not held:
            return read.view
        work = _CompactionState(
            session_id=session_id, max_tokens=max_tokens, holder=holder, loaded=read, budget=self.new_budget()
        )
        try:
            await self._run_strategies(work)
        finally:
            async with self.scope.transaction() as tx:
                await leases.release(tx, holder, "compaction", **of)
        return work.loaded.view

    async def preview(self, session_id: UUID, *, max_tokens: int) -> Sequence[ViewMessage]:
        """Return the view that `load_view` would produce without a model. Writes nothing."""
        alone, none = replace(self, model=None, on_event=_ignore_event), CallBudget(calls=0)
        read = await self._load(session_id)
        for strategy in self.preset.strategies:
            for _ in range(MAX_ROUNDS):
                sight = self._view_state(read, max_tokens)
                blocks = [block for block in strategy.plan(sight) if refusal_reason(block, sight) is None]
                told = [await alone._summarize_block(strategy, block, session_id, none) for block in blocks]
                if not any(told):
                    break
                read = replace(read, view=apply_entries(read.view, [entry for entry in told if entry]))
        return read.view

    async def _run_strategies(self, state: _CompactionState) -> None:
        for strategy in self.preset.strategies:
            for _ in range(MAX_ROUNDS):
                blocks = strategy.plan(self._view_state(state.loaded, state.max_tokens))
                if not blocks or not await self._run_strategy(strategy, blocks, state):
                    break

    async def _run_strategy(
        self, strategy: CompactionStrategy, blocks: Sequence[CompactionBlock], state: _CompactionState
    ) -> bool:
        started, before = monotonic_ms(), count_view_tokens(state.loaded.view)
        room = self._view_state(state.loaded, state.max_tokens).max_tokens
        self.on_event(CompactionStarted(strategy=strategy.name, current=before, max=room, time=self.scope.now()))
        state.entry_count, why, after, exhausted = 0, None, before, False
        try:
            await self._summarize_blocks(strategy, blocks, state)
        except NewtonError as error:
            why = error.what if isinstance(error, ConflictError) else str(error)
        if state.entry_count:
            state.loaded = await self._load(state.session_id)
            after = count_view_tokens(state.loaded.view)
            sight = self._view_state(state.loaded, state.max_tokens)
            full = isinstance(strategy, SummarizeOldest) and after >= strategy.share * sight.max_tokens
            exhausted = full and not strategy.plan(sight)
        elif why is None:
            why = "nothing came out shorter"
        run = CompactionRun(strategy.name, self.scope.now(), monotonic_ms() - started, before, after, why)
        await self._record_run(run, state.session_id, exhausted=exhausted)
        return why is None

    async def _summarize_blocks(
        self, strategy: CompactionStrategy, blocks: Sequence[CompactionBlock], state: _CompactionState
    ) -> None:
        """Store the entries that replace the blocks. Raises ConflictError after a concurrent change."""
        sight, made, saved = self._view_state(state.loaded, state.max_tokens), list[CompactionEntry](), 0
        asked = state.budget.select_blocks(blocks)
        for number, block in enumerate(blocks, start=1):
            allowance = state.budget if block.first in asked else CallBudget(calls=0)
            entry = refusal_reason(block, sight) is None and await self._summarize_block(
                strategy, block, state.session_id, allowance
            )
            if entry:
                made.append(entry)
                saved += block.tokens - entry.tokens - MESSAGE_TOKENS
            if made and ((entry and entry.model) or number == len(blocks)):
                await self._save_entries(made, state)
                made = []
            self.on_event(
                CompactionProgressed(
                    strategy=strategy.name, processed=number, total=len(blocks), saved=saved, time=self.scope.now()
                )
            )

    async def _save_entries(self, new_entries: Sequence[CompactionEntry], state: _CompactionState) -> None:
        where = {"agent_id": self.scope.agent_id, "session_id": state.session_id}
        async with self.scope.transaction() as tx:
            held = await leases.acquire(tx, state.holder, "compaction", **where, seconds=LEASE_SECONDS)
            if not held or not await entries.save_if_unchanged(tx, new_entries, **where, sources=state.loaded.sources):
                raise ConflictError("the session was changed meanwhile", hint="It is compacted with the next request.")
            self.scope.publish("session.compacted", state.event_payload(new_entries))
        state.record(new_entries)

    async def _summarize_block(
        self, strategy: CompactionStrategy, block: CompactionBlock, session_id: UUID, budget: CallBudget
    ) -> CompactionEntry | None:
        items = await self._unmask(block, session_id)
        if block.kind == "mask":
            text, model = self._mask(block, items), None
        else:
            text, model = await self._render_summary(strategy, block, items, budget)
        tokens = self.scope.count_tokens(text)
        if tokens + MESSAGE_TOKENS >= block.tokens:
            return None
        return CompactionEntry(
            entry_id=new_id(),
            kind=block.kind,
            first=block.first,
            last=block.last,
            text=text,
            tokens=tokens,
            before=block.tokens,
            strategy=strategy.name,
            prompt=extractive_summary.RULES_VERSION if model is None else llm_summary.PROMPT_VERSION,
            model=model,
            made_at=self.scope.now(),
        )

    def _mask(self, block: CompactionBlock, items: Sequence[ViewMessage]) -> str:
        return extractive_summary.mask_output(
            items[0]._replace(tokens=block.tokens), max_tokens=block.max_tokens, count_tokens=self.scope.count_tokens
        )

    async def _unmask(self, block: CompactionBlock, session_id: UUID) -> Sequence[ViewMessage]:
        masked = [item for item in block.items if item.kind == "mask"]
        if not masked:
            return block.items
        async with self.scope.transaction() as tx:
            parts = [log.MessageRange(item.first, item.last) for item in masked]
            rows = await log.load_messages(tx, parts, agent_id=self.scope.agent_id, session_id=session_id)
        words = {placed.position: placed.message.content for placed in rows}
        return [item._replace(text=words[item.first]) if item.kind == "mask" else item for item in block.items]

    async def _render_summary(
        self, strategy: CompactionStrategy, block: CompactionBlock, items: Sequence[ViewMessage], budget: CallBudget
    ) -> tuple[str, str | None]:
        found = extractive_summary.summarize_block(items)
        told, why = await self._summarizer.summarize(block, items, budget)
        if why:
            self.on_event(CompactionFailed(strategy=strategy.name, error=why, time=self.scope.now()))
        name = self.model.name if self.model and told else None
        account = merge_summaries(told, found) if told else found
        return extractive_summary.render_summary(
            block.kind, account, items, max_tokens=block.max_tokens, count_tokens=self.scope.count_tokens
        ), name

    @property
    def _summarizer(self) -> BlockSummarizer:
        scope = self.scope
        return BlockSummarizer(
            clock=scope.clock,
            count_tokens=scope.count_tokens,
            model=self.model,
            window=self.window,
            breaker=self.breaker,
        )

    async def _fold_ended_tasks(self, session_id: UUID) -> LoadedView:
        of = {"agent_id": self.scope.agent_id, "session_id": session_id}
        async with self.scope.transaction() as tx:
            return await tasks.fold_ended_tasks(tx, **of, now=self.scope.now(), count_tokens=self.scope.count_tokens)

    async def _load(self, session_id: UUID) -> LoadedView:
        async with self.scope.transaction() as tx:
            return await log.load_view(tx, agent_id=self.scope.agent_id, session_id=session_id)

    def _view_state(self, loaded: LoadedView, max_tokens: int) -> ViewState:
        return ViewState(loaded.view, min(max_tokens, self.preset.max_tokens), loaded.pinned)

    async def _record_run(self, run: CompactionRun, session_id: UUID, *, exhausted: bool) -> None:
        async with self.scope.transaction() as tx:
            await entries.record_run(tx, run, agent_id=self.scope.agent_id, session_id=session_id)
        if run.error:
            self.on_event(CompactionFailed(strategy=run.strategy, error=run.error, time=run.at))
            return
        self.on_event(
            CompactionCompleted(
                strategy=run.strategy,
                saved=run.tokens_before - run.tokens_after,
                new_count=run.tokens_after,
                duration_ms=run.duration_ms,
                time=run.at,
                exhausted=exhausted,
            )
        )


def _ignore_event(event: CompactionEvent) -> None:
    """Discard the events of a preview."""
