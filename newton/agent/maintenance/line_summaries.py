"""One-line summaries of long messages, written by a model in the background. Equal texts are summarized once."""

import re

from newton.agent.llm.structured import StructuredLLM
from newton.db.pool import in_transaction
from newton.dialogue import message_queues
from newton.dialogue.message_queues import LongMessage
from newton.errors import TokenQuotaError
from newton.heart.reconciliation.prompt import ShortenedOutput, build_shortening_prompt
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import TokenCounter, WriteContext
from newton.memory.representations import one_line

SCHEMA_OVERHEAD_TOKENS = 50  # for the JSON around the text
MAX_INPUT_CHARS = 24_000  # of a text in the prompt


async def summarize_text(llm: StructuredLLM, message: LongMessage, max_tokens: int) -> str | None:
    """Return a one-line summary of at most `max_tokens`; None if the model's answer is too long or empty.

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
    """Return the cleaned summary, or None if it has no words, or too many tokens. Pure.

    It may have at most `max_tokens`, and must have fewer tokens than `content`.
    """
    line = one_line(clean_model_text(text))
    if not re.search(r"\w", line) or count_tokens(line) > max_tokens or count_tokens(line) >= count_tokens(content):
        return None
    return line


async def summarize_lines(llm: StructuredLLM, ctx: WriteContext, *, limit: int) -> int:
    """Summarize up to `limit` long messages that have no summary; return the number of summaries stored.

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
