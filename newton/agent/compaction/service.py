"""Compaction of sessions: choose the blocks to shorten, summarize them, and store the summaries as entries."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from newton.agent.background_runs import BackgroundCompactions
from newton.agent.compaction.block_summarizer import BlockSummarizer, CallBudget, create_breaker, merge_summaries
from newton.agent.llm.structured import StructuredLLM
from newton.agent.scope import AgentScope
from newton.clock import monotonic_ms
from newton.db.pool import in_transaction
from newton.dialogue import log, tasks
from newton.dialogue.brief import brief_store
from newton.dialogue.brief.brief_items import BriefDraft, BriefItem
from newton.dialogue.compaction import entry_store, extractive_summary, llm_summary, progress_events
from newton.dialogue.compaction.entry_store import CompactionRun
from newton.dialogue.compaction.llm_summary import remove_brief_items
from newton.dialogue.compaction.presets import CompactionPreset, adapt_preset, list_without_model, parse_request_preset
from newton.dialogue.compaction.progress_events import CompactionEvent, ignore_progress
from newton.dialogue.compaction.strategies import (
    CompactionBlock,
    CompactionObstacle,
    CompactionStrategy,
    FitToLimit,
    SummarizeOldest,
    ViewState,
    list_obstacles,
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
from newton.providers.upstreams import CircuitBreaker

TURN_SECONDS = 2.0  # from the start of a compaction, for which a turn waits
NEAR_SHARE = 0.85  # of the limit: a view that is due at this size is compacted after a turn
IDLE_SHARE = 0.75  # the same for a session that has become idle
LEASE_SECONDS = 120.0  # much longer than a model call; renewed whenever entries are stored
MAX_ROUNDS = 4  # rounds of one strategy; it stops earlier when a round does not reduce the view


@dataclass(slots=True)
class _EventRelay:
    """Passes progress events on to `on_event`, which is replaced when the receiver waits no longer."""

    on_event: Callable[[CompactionEvent], None]

    def __call__(self, event: CompactionEvent) -> None:
        self.on_event(event)


@dataclass(slots=True, kw_only=True)
class _CompactionState:
    """State of one running compaction. `entry_count` is the number of summaries stored by the current strategy."""

    session_id: UUID
    max_tokens: int
    holder: UUID
    loaded: LoadedView
    budget: CallBudget
    entry_count: int = 0

    def record(self, entries: Sequence[CompactionEntry]) -> None:
        """Note that summaries were stored, and count them."""
        sources = self.loaded.sources
        merged = outermost_entries([*sources.entries, *entries])
        self.loaded = replace(self.loaded, sources=sources._replace(entries=merged))
        self.entry_count += len(entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionService:
    """Replaces old messages of an agent's sessions by shorter texts (entries) in what a model is sent.

    Without a model, or if it fails, summaries are extracted from the text. `background` runs the compactions that no
    turn waits for. The strategies in `without_model` use no model, because it cost more tokens than it saved.
    `configured` is the preset of the settings, set only if `preset` is a copy whose thresholds were adapted to
    feedback. `is_demanded` means that a person asks: then a small conversation is shortened too.
    """

    scope: AgentScope
    preset: CompactionPreset
    model: StructuredLLM | None = None
    on_event: Callable[[CompactionEvent], None] = ignore_progress
    breaker: CircuitBreaker = field(default_factory=create_breaker)
    new_budget: Callable[[], CallBudget] = CallBudget
    configured: CompactionPreset | None = None
    without_model: frozenset[str] = frozenset()
    background: BackgroundCompactions = field(default_factory=BackgroundCompactions)
    is_demanded: bool = False

    async def load_view(self, session_id: UUID, *, max_tokens: int) -> Sequence[ViewMessage]:
        """Return the messages of a session as a model is sent them, for a turn that begins now.

        If they exceed a limit, old ones are compacted. After TURN_SECONDS, the compaction continues in the background;
        summaries that are not stored by then are extracted from the text, for this turn only, and have no `entry_id`.
        The result may still have more than `max_tokens` tokens.
        """
        assert not in_transaction()
        key = (self.scope.agent_id, session_id)
        self.background.cancel_timer(key)
        loaded = await _fold_tasks(self.scope, session_id)
        if not self._is_due(loaded.view, max_tokens, loaded.pinned):
            return loaded.view
        service = await self._adapt(max_tokens)
        relay = _EventRelay(self.on_event)
        compact = partial(replace(service, on_event=relay).compact, session_id, max_tokens=max_tokens)
        await self.background.start(key, compact).wait(seconds=TURN_SECONDS)
        relay.on_event = ignore_progress
        return _drop_unstored_ids(await service._preview(session_id, max_tokens))

    def compact_ahead(self, session_id: UUID, view: Sequence[ViewMessage], *, new_tokens: int, max_tokens: int) -> None:
        """After a turn, start to compact its session in the background if the next turn may need it.

        Start now if the conversation is too large for NEAR_SHARE of `max_tokens`; if only for IDLE_SHARE, once the
        session is idle. `view` are the messages that the turn has loaded, `new_tokens` the tokens of those since then.
        """
        quiet = replace(self, on_event=ignore_progress)
        starts = ((NEAR_SHARE, self.background.start), (IDLE_SHARE, self.background.start_when_idle))  # largest first
        for share, start in starts:
            limit = int(max_tokens * share)
            if self._is_due(view, limit - new_tokens):
                start((self.scope.agent_id, session_id), partial(quiet.compact, session_id, max_tokens=limit))
                return

    async def compact(self, session_id: UUID, *, max_tokens: int) -> Sequence[ViewMessage]:
        """Replace old messages of a session by shorter texts if they exceed a limit; return the messages for a model.

        They may still have more than `max_tokens` tokens. While another process compacts the session, they are returned
        as they are.
        """
        assert not in_transaction()
        holder, key = new_id(), self._key(session_id)
        loaded = await _fold_tasks(self.scope, session_id)
        if not self._is_due(loaded.view, max_tokens, loaded.pinned):
            return loaded.view
        service = await self._adapt(max_tokens)
        if not service._is_due(loaded.view, max_tokens, loaded.pinned):
            return loaded.view
        async with self.scope.transaction() as tx:
            if not await log.acquire_lease(tx, holder, "compaction", **key, seconds=LEASE_SECONDS):
                return loaded.view
        state = _CompactionState(
            session_id=session_id, max_tokens=max_tokens, holder=holder, loaded=loaded, budget=self.new_budget()
        )
        try:
            await service._run_strategies(state)
        finally:
            async with self.scope.transaction() as tx:
                await log.release_lease(tx, holder, "compaction", **key)
        return state.loaded.view

    async def compact_to(self, session_id: UUID, *, max_tokens: int) -> Sequence[CompactionObstacle]:
        """Shorten the conversation of a session to a limit that a person asked for, beyond what the preset does.

        Return what keeps it above the limit; nothing if it is reached.
        """
        await replace(self, is_demanded=True).compact(session_id, max_tokens=max_tokens)
        await replace(self, preset=CompactionPreset((FitToLimit(),))).compact(session_id, max_tokens=max_tokens)
        loaded = await self._load(session_id)
        return list_obstacles(_to_view_state(loaded, max_tokens))

    async def _adapt(self, max_tokens: int) -> "CompactionService":
        """Return the service with strategies adapted to their wrong cuts and to the costs of their summaries."""
        configured = self.configured or self.preset
        async with self.scope.transaction() as tx:
            feedback = await entry_store.list_feedback(tx, agent_id=self.scope.agent_id)
        preset, without_model = adapt_preset(configured, feedback, max_tokens=max_tokens), list_without_model(feedback)
        return replace(self, preset=preset, configured=configured, without_model=without_model)

    def _is_due(self, view: Sequence[ViewMessage], max_tokens: int, pinned: Set[int] = frozenset()) -> bool:
        """Return whether the conversation is large enough to shorten, and a strategy finds something to shorten."""
        min_tokens = 0 if self.is_demanded else self.preset.min_share * max_tokens
        if max_tokens <= 0 or count_view_tokens(view) < min_tokens:
            return False
        return any(strategy.plan(ViewState(view, max_tokens, pinned)) for strategy in self.preset.strategies)

    async def preview(self, session_id: UUID, *, max_tokens: int) -> Sequence[ViewMessage]:
        """Return the messages that `compact` would return if it called no model. Stores nothing."""
        return (await self._preview(session_id, max_tokens)).view

    async def _preview(self, session_id: UUID, max_tokens: int) -> LoadedView:
        """Return the messages for a model after a compaction without a model and without storage."""
        service, budget = replace(await self._adapt(max_tokens), model=None), CallBudget(calls=0)
        async with self.scope.transaction() as tx:
            loaded = await tasks.preview_folded_view(
                tx, **self._key(session_id), now=self.scope.now(), count_tokens=self.scope.count_tokens
            )
        if not service._is_due(loaded.view, max_tokens, loaded.pinned):
            return loaded
        for strategy in service.preset.strategies:
            for _ in range(MAX_ROUNDS):
                state = _to_view_state(loaded, max_tokens)
                blocks = (block for block in strategy.plan(state) if refusal_reason(block, state) is None)
                entries = [await service._summarize_block(strategy, block, session_id, budget) for block in blocks]
                if not any(entries):
                    break
                loaded = replace(loaded, view=apply_entries(loaded.view, [entry for entry in entries if entry]))
        return loaded

    async def _run_strategies(self, state: _CompactionState) -> None:
        for strategy in self.preset.strategies:
            for _ in range(MAX_ROUNDS):
                blocks = strategy.plan(_to_view_state(state.loaded, state.max_tokens))
                if not blocks or not await self._run_strategy(strategy, blocks, state):
                    break

    async def _run_strategy(
        self, strategy: CompactionStrategy, blocks: Sequence[CompactionBlock], state: _CompactionState
    ) -> bool:
        """Shorten the blocks that a strategy chose, and record the run. Return False if nothing was shortened."""
        started, before, spent = monotonic_ms(), count_view_tokens(state.loaded.view), state.budget.spent
        self.on_event(
            progress_events.CompactionStarted(
                strategy=strategy.name, current=before, max=state.max_tokens, time=self.scope.now()
            )
        )
        state.entry_count, state.budget.failure, reason, after, exhausted = 0, None, None, before, False
        try:
            await self._summarize_blocks(strategy, blocks, state)
        except NewtonError as error:
            reason = error.what if isinstance(error, ConflictError) else str(error)
        if state.entry_count:
            state.loaded = await self._load(state.session_id)
            after = count_view_tokens(state.loaded.view)
            is_full = isinstance(strategy, SummarizeOldest) and after >= strategy.share * state.max_tokens
            exhausted = is_full and not strategy.plan(_to_view_state(state.loaded, state.max_tokens))
        elif reason is None:
            reason = "no summary is shorter than the messages that it would replace"
        duration_ms, spent = monotonic_ms() - started, state.budget.spent - spent
        error = reason or state.budget.failure
        run = CompactionRun(strategy.name, self.scope.now(), duration_ms, before, after, spent, error)
        await self._record_run(run, state.session_id, exhausted=exhausted)
        return reason is None

    async def _summarize_blocks(
        self, strategy: CompactionStrategy, blocks: Sequence[CompactionBlock], state: _CompactionState
    ) -> None:
        """Summarize the blocks and store the summaries. Raises ConflictError if the session was changed meanwhile."""
        view_state, unsaved, saved = _to_view_state(state.loaded, state.max_tokens), list[CompactionEntry](), 0
        selected = set[int]() if strategy.name in self.without_model else state.budget.select_blocks(blocks)
        for number, block in enumerate(blocks, start=1):
            budget, entry = state.budget if block.first in selected else CallBudget(calls=0), None
            if refusal_reason(block, view_state) is None:
                entry = await self._summarize_block(strategy, block, state.session_id, budget)
            if entry:
                unsaved.append(entry)
                saved += block.tokens - entry.tokens - MESSAGE_TOKENS
            if unsaved and ((entry and entry.model) or number == len(blocks)):
                await self._save_entries(unsaved, state)
                unsaved = []
            self.on_event(
                progress_events.CompactionProgressed(
                    strategy=strategy.name, processed=number, total=len(blocks), saved=saved, time=self.scope.now()
                )
            )

    async def _save_entries(self, new_entries: Sequence[CompactionEntry], state: _CompactionState) -> None:
        key, sources = self._key(state.session_id), state.loaded.sources
        async with self.scope.transaction() as tx:
            is_held = await log.acquire_lease(tx, state.holder, "compaction", **key, seconds=LEASE_SECONDS)
            if not is_held or not await entry_store.save_if_unchanged(tx, new_entries, **key, sources=sources):
                hint = "The session is compacted with the next request."
                raise ConflictError("another request changed the session during its compaction", hint=hint)
            payload = {"session_id": str(state.session_id), "entries": len(new_entries)}
            self.scope.publish("session.compacted", payload)
        state.record(new_entries)

    async def _summarize_block(
        self, strategy: CompactionStrategy, block: CompactionBlock, session_id: UUID, budget: CallBudget
    ) -> CompactionEntry | None:
        """Return the entry that replaces a block of messages; None if it would not be shorter."""
        if block.kind == "mask":
            items = await _unmask(block, session_id, scope=self.scope)
            item, count_tokens = items[0]._replace(tokens=block.tokens), self.scope.count_tokens
            text = extractive_summary.mask_output(item, max_tokens=block.max_tokens, count_tokens=count_tokens)
            model = None
        else:
            text, model = await self._render_summary(strategy, block, session_id, budget)
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

    async def _render_summary(
        self, strategy: CompactionStrategy, block: CompactionBlock, session_id: UUID, budget: CallBudget
    ) -> tuple[str, str | None]:
        """Return the summary of a block and the name of the model that wrote it; None for an extracted summary."""
        items = await _unmask(block, session_id, scope=self.scope)
        summary, model_name = extractive_summary.summarize_block(items), None
        summarizer = BlockSummarizer(scope=self.scope, model=self.model, breaker=self.breaker)
        output, error = await summarizer.summarize(block, items, budget)
        if error:
            self.on_event(progress_events.CompactionFailed(strategy=strategy.name, error=error, time=self.scope.now()))
        if output and self.model:
            summary, model_name = merge_summaries(output, summary), self.model.name
        proposals = [BriefDraft(one.kind, one.quote) for one in output.brief] if output else []
        remove_brief_items(summary, await _update_brief(self.scope, proposals, block, session_id))
        text = extractive_summary.render_summary(
            block.kind, summary, items, max_tokens=block.max_tokens, count_tokens=self.scope.count_tokens
        )
        return text, model_name

    def _key(self, session_id: UUID) -> dict[str, UUID]:
        return {"agent_id": self.scope.agent_id, "session_id": session_id}

    async def _load(self, session_id: UUID) -> LoadedView:
        async with self.scope.transaction() as tx:
            return await log.load_view(tx, **self._key(session_id))

    async def _record_run(self, run: CompactionRun, session_id: UUID, *, exhausted: bool) -> None:
        async with self.scope.transaction() as tx:
            await entry_store.record_run(tx, run, **self._key(session_id))
        self.on_event(_to_event(run, exhausted=exhausted))


def _to_event(run: CompactionRun, *, exhausted: bool) -> CompactionEvent:
    if run.error and run.tokens_after == run.tokens_before:
        return progress_events.CompactionFailed(strategy=run.strategy, error=run.error, time=run.at)
    return progress_events.CompactionCompleted(
        strategy=run.strategy,
        saved=run.tokens_before - run.tokens_after,
        new_count=run.tokens_after,
        duration_ms=run.duration_ms,
        time=run.at,
        exhausted=exhausted,
    )


def _to_view_state(loaded: LoadedView, max_tokens: int) -> ViewState:
    return ViewState(loaded.view, max_tokens, loaded.pinned)


async def _update_brief(
    scope: AgentScope, proposals: Sequence[BriefDraft], block: CompactionBlock, session_id: UUID
) -> Sequence[BriefItem]:
    """Add the proposed items that the block contains to the brief (goals, deadlines, rules); return the whole brief."""
    async with scope.write("agent") as (tx, ctx):
        await brief_store.add_proposals(
            tx, proposals, first=block.first, last=block.last, session_id=session_id, ctx=ctx
        )
        return await brief_store.list_items(tx, agent_id=ctx.agent_id, session_id=session_id)


def use_strategy(service: CompactionService, strategy: str | None) -> CompactionService:
    """Return a copy of the service with another preset or list of strategies; for None, the service itself.

    Raises InputError for an unknown name or setting, and for a strategy that can never fire or never ends.
    """
    return service if strategy is None else replace(service, preset=parse_request_preset(strategy))


async def _fold_tasks(scope: AgentScope, session_id: UUID) -> LoadedView:
    async with scope.write() as (tx, ctx):
        key = {"agent_id": scope.agent_id, "session_id": session_id}
        return await tasks.fold_ended_tasks(tx, **key, now=ctx.now, count_tokens=ctx.count_tokens)


def _drop_unstored_ids(preview: LoadedView) -> list[ViewMessage]:
    """Return the messages of a preview, in which only stored summaries have an `entry_id`."""
    stored = {None, *(entry.entry_id for entry in preview.sources.entries)}
    return [item if item.entry_id in stored else item._replace(entry_id=None) for item in preview.view]


async def _unmask(block: CompactionBlock, session_id: UUID, *, scope: AgentScope) -> Sequence[ViewMessage]:
    """Return the messages of a block, with the whole text of those that a compaction entry shortens."""
    masked = [item for item in block.items if item.kind == "mask"]
    if not masked:
        return block.items
    async with scope.transaction() as tx:
        parts = [log.MessageRange(item.first, item.last) for item in masked]
        messages = await log.load_messages(tx, parts, agent_id=scope.agent_id, session_id=session_id)
    texts = {stored.position: stored.message.content for stored in messages}
    return [item._replace(text=texts[item.first]) if item.kind == "mask" else item for item in block.items]
