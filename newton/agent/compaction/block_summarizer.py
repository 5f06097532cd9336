"""Block summaries by a model: few calls per compaction, and none for a while after repeated failures."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from newton.agent.llm.structured import StructuredLLM
from newton.clock import Clock, monotonic_ms
from newton.dialogue.compaction import llm_summary
from newton.dialogue.compaction.extractive_summary import BlockSummary
from newton.dialogue.compaction.llm_summary import SummaryOutput
from newton.dialogue.compaction.strategies import CompactionBlock
from newton.dialogue.compaction.summary_sections import PARTS, SummaryPart
from newton.dialogue.view import ViewMessage
from newton.errors import ProviderError
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import TokenCounter

MAX_CALLS = 3  # model calls per compaction: a caller waits for the reply meanwhile
MAX_SECONDS = 20.0  # of all calls of one compaction
FAILURE_THRESHOLD = 3  # consecutive failures that open the circuit breaker
COOLDOWN = timedelta(minutes=5)
ANSWER_TOKENS_FACTOR = 2  # times the block's target tokens may be answered: the JSON around the text costs too
MIN_ANSWER_TOKENS = 300  # the JSON alone takes much of them
MAX_PROMPT_TOKENS = 24_000  # a longer prompt takes time and improves no summary
MAX_WINDOW_SHARE = 0.6  # of the window, by the local counter; models count differently
FALLBACK_NOTICE = "Summaries are extracted from the text until it answers."


@dataclass(slots=True)
class ModelCircuitBreaker:
    """A circuit breaker for a model. While it is open, one call per cooldown probes whether the model has recovered."""

    failures: int = 0
    failed_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        return self.failed_at is not None and self.failures >= FAILURE_THRESHOLD and now < self.failed_at + COOLDOWN

    def record(self, now: datetime, *, failed: bool) -> bool:
        """Record the result of a call. Return whether it is the first failure since the last success."""
        self.failures = self.failures + 1 if failed else 0
        self.failed_at = now if failed else None
        return self.failures == 1


@dataclass(slots=True)
class CallBudget:
    """The model calls and seconds left in one compaction."""

    calls: int = MAX_CALLS
    seconds: float = MAX_SECONDS

    def select_blocks(self, blocks: Iterable[CompactionBlock]) -> set[int]:
        """Return the first positions of the blocks to summarize by the model: those that lose the most tokens."""
        told = sorted((block for block in blocks if block.kind != "mask"), key=lambda block: -block.tokens)
        return {block.first for block in told[: self.calls]} if self.seconds > 0 else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSummarizer:
    """Summarizes blocks for one agent. `window` is the context window of the model, in tokens."""

    clock: Clock
    count_tokens: TokenCounter
    model: StructuredLLM | None = None
    window: int = 128_000
    breaker: ModelCircuitBreaker = field(default_factory=ModelCircuitBreaker)

    async def summarize(
        self, block: CompactionBlock, items: Sequence[ViewMessage], budget: CallBudget
    ) -> tuple[SummaryOutput | None, str | None]:
        """Summarize a block by the model. Returns the summary, or None without a usable answer, and an error text at
        the first failure."""
        if self.model is None or budget.calls < 1 or budget.seconds <= 0 or self.breaker.is_open(self.clock.now()):
            return None, None
        started, told, why = monotonic_ms(), None, f"{self.model.name} returned no usable summary."
        budget.calls -= 1
        try:
            told = await self._call_model(self.model, block, items, budget.seconds)
        except ProviderError as error:
            why = str(error)
        budget.seconds -= (monotonic_ms() - started) / 1_000
        failed = told is None or not any(told.items(part) for part in PARTS)
        begins = self.breaker.record(self.clock.now(), failed=failed)
        return None if failed else told, f"{why} {FALLBACK_NOTICE}" if begins else None

    async def _call_model(
        self, model: StructuredLLM, block: CompactionBlock, items: Sequence[ViewMessage], timeout_seconds: float
    ) -> SummaryOutput | None:
        answer = max(block.max_tokens * ANSWER_TOKENS_FACTOR, MIN_ANSWER_TOKENS)
        room = min(MAX_PROMPT_TOKENS, int(self.window * MAX_WINDOW_SHARE) - answer)
        fence = f"=== {secrets.token_hex(8)} ==="
        prompt = llm_summary.build_prompt(
            block.kind, items, fence=fence, max_tokens=room, count_tokens=self.count_tokens
        )
        return await model.complete(
            prompt, SummaryOutput, purpose="compact", max_tokens=answer, timeout_seconds=timeout_seconds
        )


def merge_summaries(model_output: SummaryOutput, extracted: BlockSummary) -> BlockSummary:
    """Merge the model's items with the extracted ones that must be exact: decisions, errors, artifacts. Pure."""
    account = BlockSummary()
    for part in PARTS:
        for words in model_output.items(part):
            account.add(part, clean_model_text(words))
    exact: tuple[SummaryPart, ...] = ("decided", "failed", "thing")
    for part in exact:
        for words in extracted.items(part):
            account.add(part, words)
    return account
