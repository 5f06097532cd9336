"""Accounts in a model's words: few calls before somebody is answered, and none for a while when it keeps failing."""

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

MAX_CALLS = 3  # of the model at most in one making shorter: somebody waits for a reply meanwhile
MAX_SECONDS = 20.0  # that they may take in sum
FAILURE_THRESHOLD = 3  # failures of the model in a row, after which it is left alone for a while
COOLDOWN = timedelta(minutes=5)
ANSWER_TOKENS_FACTOR = (
    2  # times the tokens of a block that a model may answer with: the form around the words costs too
)
MIN_ANSWER_TOKENS = 300  # tokens; the form alone takes a good part of them
MAX_PROMPT_TOKENS = 24_000  # tokens of a prompt at most: more of it makes no better account, and takes long
MAX_WINDOW_SHARE = 0.6  # of a model's window that a prompt may take by our count; models count in their own ways
FALLBACK_NOTICE = "Accounts are put together from the words themselves until it answers."


@dataclass(slots=True)
class ModelCircuitBreaker:
    """Counts the failures of a model in a row. With too many it is left alone for a while; then one try shows whether
    it answers again."""

    failures: int = 0
    failed_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        return self.failed_at is not None and self.failures >= FAILURE_THRESHOLD and now < self.failed_at + COOLDOWN

    def record(self, now: datetime, *, failed: bool) -> bool:
        """Whether it fails for the first time since it last answered."""
        self.failures = self.failures + 1 if failed else 0
        self.failed_at = now if failed else None
        return self.failures == 1


@dataclass(slots=True)
class CallBudget:
    """What the model may still do in one making shorter."""

    calls: int = MAX_CALLS
    seconds: float = MAX_SECONDS

    def select_blocks(self, blocks: Iterable[CompactionBlock]) -> set[int]:
        """The first lines of the blocks that it is asked about, if it may: those from which most is left out."""
        told = sorted((block for block in blocks if block.kind != "mask"), key=lambda block: -block.tokens)
        return {block.first for block in told[: self.calls]} if self.seconds > 0 else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSummarizer:
    """Of one agent. `window` is all that the model reads and writes in one call, in tokens."""

    clock: Clock
    count_tokens: TokenCounter
    model: StructuredLLM | None = None
    window: int = 128_000
    breaker: ModelCircuitBreaker = field(default_factory=ModelCircuitBreaker)

    async def summarize(
        self, block: CompactionBlock, items: Sequence[ViewMessage], budget: CallBudget
    ) -> tuple[SummaryOutput | None, str | None]:
        """The block in the model's words, or None when it is not asked, fails or gives nothing of use. When it has just
        begun to fail, what to tell of that."""
        if self.model is None or budget.calls < 1 or budget.seconds <= 0 or self.breaker.is_open(self.clock.now()):
            return None, None
        started, told, why = monotonic_ms(), None, f"{self.model.name} gave nothing that can be used."
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
    """A model's items, and of what was found the parts that have to be exact: decisions, errors, artifacts. Pure."""
    account = BlockSummary()
    for part in PARTS:
        for words in model_output.items(part):
            account.add(part, clean_model_text(words))
    exact: tuple[SummaryPart, ...] = ("decided", "failed", "thing")
    for part in exact:
        for words in extracted.items(part):
            account.add(part, words)
    return account
