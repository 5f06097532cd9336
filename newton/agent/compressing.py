"""Long words told shorter by a model, off the hot path, once for the same words."""

import re

from newton.agent.asking import Asking
from newton.db.pool import in_unit_of_work
from newton.dialogue import abridging
from newton.errors import SpendError
from newton.heart.extracting import Shortened, shortening_prompt
from newton.memory.hygiene import mended
from newton.memory.memory import Count, Teller
from newton.memory.representations import one_line

FORM_TOKENS = 50  # what the form around the words costs, and more than most models pass a limit by
LONGEST = 24_000  # characters that a model is asked to read


async def compress(asking: Asking, content: str, max_tokens: int) -> str | None:
    """The content in at most so many tokens, as one line; None when what the model gave is not short enough.

    Raises SpendError when the call could pass the day's ceiling, and ProviderError when no answer comes.
    """
    assert not in_unit_of_work()
    answer = await asking.fill(
        shortening_prompt(content[:LONGEST], most=max_tokens),
        Shortened,
        purpose="compress",
        max_tokens=max_tokens + FORM_TOKENS,
    )
    return accepted(answer.words if answer else "", content, most=max_tokens, count=asking.scope.count_tokens)


def accepted(words: str, content: str, *, most: int, count: Count) -> str | None:
    """The words as a form may hold them, if they are any, not more than `most` tokens, and shorter than the content.
    Pure."""
    line = one_line(mended(words))
    if not re.search(r"\w", line) or count(line) > most or count(line) >= count(content):
        return None
    return line


async def shorten(asking: Asking, ctx: Teller, *, most: int) -> int:
    """Has a model tell at most so many lines shorter, of those that no short form holds; how many it did.

    It ends early when the day's ceiling is reached. Raises ProviderError when the model fails; what was told until then
    is kept.
    """
    async with asking.scope.db.work(ctx.agent_id) as tx:
        lines = await abridging.cut(tx, agent_id=ctx.agent_id, most=most)
    told = 0
    for line in lines:
        room = abridging.room(line, count=asking.scope.count_tokens)
        async with asking.scope.db.work(ctx.agent_id) as tx:
            before, words = await abridging.known(tx, line.content, agent_id=ctx.agent_id, most=max(room, 1))
        if not before and room > 0:
            try:
                words = await compress(asking, line.content, room)
            except SpendError:
                break
        async with asking.scope.db.work(ctx.agent_id) as tx:
            await abridging.keep(tx, line.content, words, of=line.memory_id, most=max(room, 1), ctx=ctx)
            if words:
                await abridging.retell(tx, [(line, words)], ctx=ctx)
                told += 1
    return told
