"""Long words told shorter by a model, off the hot path, once for the same words."""

import re

from newton.agent.llm.structured import StructuredLLM
from newton.db.pool import in_transaction
from newton.dialogue import long_messages
from newton.errors import TokenQuotaError
from newton.heart.extraction_schema import ShortenedOutput, build_shortening_prompt
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import TokenCounter, WriteContext
from newton.memory.representations import one_line

SCHEMA_OVERHEAD_TOKENS = 50  # what the form around the words costs, and more than most models pass a limit by
MAX_INPUT_CHARS = 24_000  # characters that a model is asked to read


async def summarize_text(llm: StructuredLLM, content: str, max_tokens: int) -> str | None:
    """The content in at most so many tokens, as one line; None when what the model gave is not short enough.

    Raises SpendError when the call could pass the day's ceiling, and ProviderError when no answer comes.
    """
    assert not in_transaction()
    answer = await llm.complete(
        build_shortening_prompt(content[:MAX_INPUT_CHARS], max_tokens=max_tokens),
        ShortenedOutput,
        purpose="compress",
        max_tokens=max_tokens + SCHEMA_OVERHEAD_TOKENS,
    )
    return accept_summary(
        answer.words if answer else "", content, max_tokens=max_tokens, count_tokens=llm.scope.count_tokens
    )


def accept_summary(text: str, content: str, *, max_tokens: int, count_tokens: TokenCounter) -> str | None:
    """The words as a form may hold them, if they are any, not more than `most` tokens, and shorter than the content.
    Pure."""
    line = one_line(clean_model_text(text))
    if not re.search(r"\w", line) or count_tokens(line) > max_tokens or count_tokens(line) >= count_tokens(content):
        return None
    return line


async def summarize_lines(llm: StructuredLLM, ctx: WriteContext, *, limit: int) -> int:
    """Has a model tell at most so many lines shorter, of those that no short form holds; how many it did.

    It ends early when the day's ceiling is reached. Raises ProviderError when the model fails; what was told until then
    is kept.
    """
    async with llm.scope.db.transaction(ctx.agent_id) as tx:
        lines = await long_messages.find(tx, agent_id=ctx.agent_id, limit=limit)
    told = 0
    for line in lines:
        room = long_messages.token_budget(line, count_tokens=llm.scope.count_tokens)
        async with llm.scope.db.transaction(ctx.agent_id) as tx:
            before, words = await long_messages.find_summary(
                tx, line.content, agent_id=ctx.agent_id, max_tokens=max(room, 1)
            )
        if not before and room > 0:
            try:
                words = await summarize_text(llm, line.content, room)
            except TokenQuotaError:
                break
        async with llm.scope.db.transaction(ctx.agent_id) as tx:
            await long_messages.save_summary(
                tx, line.content, words, memory_id=line.memory_id, max_tokens=max(room, 1), ctx=ctx
            )
            if words:
                await long_messages.apply_summaries(tx, [(line, words)], ctx=ctx)
                told += 1
    return told
