"""Structured output of the chat model for background work, within a daily token limit. Records the tokens used."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

from newton.agent.llm import failing_models, usage
from newton.agent.llm.usage import UsageRecord
from newton.agent.scope import AgentScope
from newton.cognition.frames.selection import FrameOutput, build_tiebreak_prompt
from newton.content.frames import Frame
from newton.db.pool import in_transaction
from newton.errors import ProviderError, TokenQuotaError
from newton.fault_isolation import isolate_failure
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.context_windows import find_window
from newton.providers.model_output.output_parser import ParsedOutput, parse_output
from newton.providers.structured_output import StructuredModel

F = TypeVar("F", bound=BaseModel)

MAX_JUDGMENT_TOKENS = 50
UNUSABLE_ANSWER = "Its answer has no part that was asked for."

_answer_counts = Counter[tuple[str, str]]()


def count_answers() -> Counter[tuple[str, str]]:
    """Return the number of model answers in this process by (purpose, "complete", "incomplete" or "unusable").

    An answer is incomplete if an invalid part of it was left out.
    """
    return _answer_counts.copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredLLM:
    """Calls of the chat model in the background for one agent; each answer is parsed by a pydantic model.

    Calls that summarize conversations (`is_for_summaries`) and all other calls have a limit of `tokens_per_day` each.
    """

    scope: AgentScope
    model: StructuredModel
    tokens_per_day: int
    is_for_summaries: bool = False

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self.model.name

    async def find_window(self) -> int:
        """Return the context window of the model in tokens."""
        return (await find_window(self.model)).tokens

    async def complete(
        self, prompt: str, schema: type[F], *, purpose: str, max_tokens: int, timeout_seconds: float | None = None
    ) -> ParsedOutput[F]:
        """Ask the model; return the valid part of its answer by `schema`. The rest is logged, without its text.

        Raises TokenQuotaError when the call could exceed the daily limit, and ProviderError when the model fails or
        does not answer within `timeout_seconds`. `purpose` is recorded with the tokens used.
        """
        parsed = ParsedOutput[F](None, {})

        def read(text: str) -> bool:
            nonlocal parsed
            parsed = parse_output(text, schema)
            _count_answer(parsed, purpose=purpose)
            if parsed.left_out:
                fields = {"purpose": purpose, "model": self.name, "left_out": dict(parsed.left_out)}
                failing_models.log.warning("answer_incomplete", extra=fields)
            return parsed.value is not None

        await self.ask(
            [ChatMessage("user", prompt)],
            schema,
            purpose=purpose,
            max_tokens=max_tokens,
            timeout_seconds=timeout_seconds,
            is_usable=read,
        )
        return parsed

    async def ask(
        self,
        messages: Sequence[ChatMessage],
        schema: type[BaseModel],
        *,
        purpose: str,
        max_tokens: int,
        is_usable: Callable[[str], bool],
        timeout_seconds: float | None = None,
    ) -> ChatReply | None:
        """Send messages to the model, and return its answer; None if it gave none. Raises as `complete`.

        If `is_usable` rejects the text of the answer, the model counts as failing until it gives a usable one.
        """
        assert not in_transaction()
        request = _ModelRequest(messages, schema, purpose, max_tokens, timeout_seconds)
        prompt_tokens = sum(self.scope.count_tokens(message.text) for message in messages)
        has_failed = await self._check_quota(prompt_tokens + max_tokens, purpose)
        try:
            reply = await self._call_model(request, prompt_tokens)
        except ProviderError as error:
            await self._record_failure(purpose, error.summary)
            raise
        text = reply.text if reply else ""
        if not is_usable(text):
            await self._record_failure(purpose, UNUSABLE_ANSWER)
        elif has_failed:
            with isolate_failure("record of a working model", {}, passed=()):
                await failing_models.record_success(self.scope, purpose, model=self.name)
        return reply

    async def _record_failure(self, purpose: str, failure: str) -> None:
        with isolate_failure("record of a failing model", {}, passed=()):
            await failing_models.record_failure(self.scope, purpose, model=self.name, failure=failure)

    async def _check_quota(self, tokens: int, purpose: str) -> bool:
        """Return whether the latest call for this purpose failed.

        Raises TokenQuotaError if `tokens` are more than the agent may use today.
        """
        async with self.scope.transaction() as tx:
            used = await usage.count_tokens_today(
                tx, agent_id=self.scope.agent_id, now=self.scope.now(), of_summaries=self.is_for_summaries
            )
            has_failed = await failing_models.has_failed(tx, agent_id=self.scope.agent_id, purpose=purpose)
        if used + tokens > self.tokens_per_day:
            raise TokenQuotaError(
                f"This call needs more model tokens than are left of today's {self.tokens_per_day:,}.",
                hint="Raise NEWTON_LLM_TOKENS_PER_DAY, or wait until tomorrow.",
            )
        return has_failed

    async def _call_model(self, request: "_ModelRequest", prompt_tokens: int) -> ChatReply | None:
        """Call the model once, and record the tokens used, also of a call that is cancelled or times out."""
        received, reply, failed, seconds = list[str](), None, False, request.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                async for piece in self.model.stream(
                    request.messages, max_tokens=request.max_tokens, schema=request.schema
                ):
                    if isinstance(piece, ChatReply):
                        reply = piece
                    else:
                        received.append(piece)
        except TimeoutError:
            what = f"The model {self.name} did not answer in {seconds:.0f} seconds."
            raise ProviderError(what, hint="Configure a faster model for background work, or none.") from None
        except ProviderError:
            failed = True  # a failing model has reported its usage already, or has none
            raise
        finally:
            # Shielded, because the tokens are used even when the caller is cancelled.
            if reply or not failed:
                spent = reply or self._estimate_reply(prompt_tokens, received)
                await asyncio.shield(self._record_usage(spent, prompt_tokens, request.purpose))
        return reply

    def _estimate_reply(self, prompt_tokens: int, received: Sequence[str]) -> ChatReply:
        count_tokens = self.scope.count_tokens
        return usage.estimate_reply(self.name, prompt_tokens, "".join(received), count_tokens=count_tokens)

    async def _record_usage(self, reply: ChatReply, prompt_tokens: int, purpose: str) -> None:
        reply = usage.correct_usage(reply, prompt_tokens, count_tokens=self.scope.count_tokens)
        async with self.scope.write() as (tx, ctx):
            await usage.record(tx, UsageRecord(reply, purpose), agent_id=ctx.agent_id, now=ctx.now)

    async def pick_frame(self, text: str, candidates: Sequence[Frame]) -> str | None:
        """Ask the model which frame (kind of input) fits a text best; return its name, None without an answer."""
        prompt = build_tiebreak_prompt(text, candidates)
        try:
            answer, _ = await self.complete(prompt, FrameOutput, purpose="frame", max_tokens=MAX_JUDGMENT_TOKENS)
        except ProviderError:
            return None
        words = re.findall(r"[\w-]+", answer.frame.lower()) if answer else []
        named = [frame.name for frame in candidates if frame.name.lower() in words]
        return named[0] if len(named) == 1 else None


class _ModelRequest(NamedTuple):
    messages: Sequence[ChatMessage]
    schema: type[BaseModel]
    purpose: str
    max_tokens: int
    timeout_seconds: float | None


def _count_answer(parsed: ParsedOutput[F], *, purpose: str) -> None:
    result = "unusable" if parsed.value is None else "incomplete" if parsed.left_out else "complete"
    _answer_counts[purpose, result] += 1
