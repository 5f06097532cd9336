"""Summaries of blocks of messages by a model, with limits on calls and time and with a circuit breaker."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from newton.agent.llm.structured import StructuredLLM
from newton.agent.llm.usage import SUMMARY_PURPOSE
from newton.agent.scope import AgentScope
from newton.clock import monotonic_ms
from newton.dialogue.compaction import llm_summary
from newton.dialogue.compaction.extractive_summary import BlockSummary
from newton.dialogue.compaction.llm_summary import SummaryOutput
from newton.dialogue.compaction.strategies import CompactionBlock
from newton.dialogue.compaction.summary_sections import PARTS, SummaryPart
from newton.dialogue.view import ViewMessage
from newton.errors import ProviderError
from newton.memory.hygiene import clean_model_text
from newton.providers.upstreams import CircuitBreaker

MAX_CALLS = 6  # model calls per compaction; the other blocks are summarized without the model
MAX_SECONDS = 60.0  # of all model calls of one compaction
FAILURE_THRESHOLD = 3  # consecutive failures that open the circuit breaker
COOLDOWN = timedelta(minutes=5)
ANSWER_TOKENS_FACTOR = 2  # the answer may have this many times the target tokens of the block, for the JSON around it
MIN_ANSWER_TOKENS = 300
MAX_PROMPT_TOKENS = 24_000  # longer prompts take more time without better summaries
MAX_WINDOW_SHARE = 0.6  # of the context window for prompt and answer, because models count tokens differently
FALLBACK_NOTICE = "Until the model answers, summaries are extracted from the text without it."


def create_breaker() -> CircuitBreaker:
    """Return a circuit breaker for the model calls that summarize the conversations of one agent."""
    return CircuitBreaker(failure_threshold=FAILURE_THRESHOLD, cooldown_seconds=COOLDOWN.total_seconds())


@dataclass(slots=True)
class CallBudget:
    """The number of model calls, and of seconds, that one compaction may still use.

    `spent` are the tokens that its calls used, by the local token counter. `failure` is why the model did not summarize
    a block; None if there was no failure.
    """

    calls: int = MAX_CALLS
    seconds: float = MAX_SECONDS
    spent: int = 0
    failure: str | None = None

    def select_blocks(self, blocks: Iterable[CompactionBlock]) -> set[int]:
        """Return the position of the first message of each block that the model shall summarize.

        These are the largest blocks, one for each call left; none if no time is left. A block of the kind `mask` (a
        shortened tool output) is never selected.
        """
        largest = sorted((block for block in blocks if block.kind != "mask"), key=lambda block: -block.tokens)
        return {block.first for block in largest[: self.calls]} if self.seconds > 0 else set()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSummarizer:
    """Summarizes blocks of messages for one agent."""

    scope: AgentScope
    model: StructuredLLM | None
    breaker: CircuitBreaker

    async def summarize(
        self, block: CompactionBlock, items: Sequence[ViewMessage], budget: CallBudget
    ) -> tuple[SummaryOutput | None, str | None]:
        """Ask the model for a summary of a block of messages, of which `items` have the whole texts; reduce `budget`.

        Return the summary and an error text, each of which may be None. There is no summary if no model may be called,
        the model fails, or its answer is empty. The error text is returned only for the first of several failures in a
        row.
        """
        if self.model is None or budget.calls < 1 or budget.seconds <= 0:
            return None, None
        if not self.breaker.allow_call(self.scope.now().timestamp()):
            budget.failure = self.breaker.last_failure
            return None, None
        started, summary, reason = monotonic_ms(), None, f"{self.model.name} returned no usable summary."
        error_text = reason
        budget.calls -= 1
        try:
            summary = await self._call_model(self.model, block, items, budget)
        except ProviderError as error:
            error_text, reason = str(error), error.summary
        budget.seconds -= (monotonic_ms() - started) / 1_000
        failed = summary is None or not any(summary.items(part) for part in PARTS)
        self.breaker.record_result(self.scope.now().timestamp(), failed=failed, failure=reason)
        budget.failure = reason if failed else budget.failure
        is_first = self.breaker.failures == 1
        return None if failed else summary, f"{error_text} {FALLBACK_NOTICE}" if is_first else None

    async def find_failure(self) -> str | None:
        """Test the model with a summary of a short message; return the failure, or None if it works."""
        text = "We decided to use PostgreSQL, because the team knows it. The deadline is 12 June."
        item = ViewMessage("user", text, self.scope.count_tokens(text), first=0, last=0)
        block = CompactionBlock("turn", (item,), max_tokens=MIN_ANSWER_TOKENS)
        _, error = await self.summarize(block, block.items, CallBudget(calls=1))
        return error

    async def _call_model(
        self, model: StructuredLLM, block: CompactionBlock, items: Sequence[ViewMessage], budget: CallBudget
    ) -> SummaryOutput | None:
        max_tokens = max(block.max_tokens * ANSWER_TOKENS_FACTOR, MIN_ANSWER_TOKENS)
        room = min(MAX_PROMPT_TOKENS, int(await model.find_window() * MAX_WINDOW_SHARE) - max_tokens)
        fence = f"=== {secrets.token_hex(8)} ==="
        prompt = llm_summary.build_prompt(
            block.kind, items, fence=fence, max_tokens=room, count_tokens=self.scope.count_tokens
        )
        budget.spent += self.scope.count_tokens(prompt)
        output, _ = await model.complete(
            prompt, SummaryOutput, purpose=SUMMARY_PURPOSE, max_tokens=max_tokens, timeout_seconds=budget.seconds
        )
        budget.spent += self.scope.count_tokens(output.model_dump_json(exclude_defaults=True)) if output else 0
        return output


def merge_summaries(model_output: SummaryOutput, extracted: BlockSummary) -> BlockSummary:
    """Return a summary of the model's items and of the decisions, failures and names extracted from the text. Pure.

    The extracted items are added because they are exact.
    """
    summary = BlockSummary()
    for part in PARTS:
        for text in model_output.items(part):
            summary.add(part, clean_model_text(text))
    exact: tuple[SummaryPart, ...] = ("decided", "failed", "thing")
    for part in exact:
        for text in extracted.items(part):
            summary.add(part, text)
    return summary
