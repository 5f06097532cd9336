"""Lines of dialogue too long for their short form: which they are, and how a model has told them shorter."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory import store
from newton.memory.memory import ShortForms, TokenCounter, WriteContext, digest
from newton.memory.representations import SUMMARY_TOKENS, to_bullet
from newton.memory.store import MemoryUpdate

SQL = load("newton.dialogue", "long_messages.sql")


class LongMessage(NamedTuple):
    """A line of more words than a short form holds, with all of them."""

    memory_id: UUID
    micro: str
    micro_tokens: int
    speaker: str
    content: str
    tokens: int
    said_at: datetime

    @property
    def prefix(self) -> str:
        """Who says it, and that these are not their own words."""
        return f"[{self.said_at:%Y-%m-%d}] {self.speaker}, in short: "


async def find(tx: Tx, *, agent_id: UUID, limit: int) -> list[LongMessage]:
    """Lines of more words than a short form holds that none has told shorter, those shown most often first."""
    return [
        LongMessage(*row)
        for row in await SQL["list_long_messages"].fetch_all(
            tx, agent_id=agent_id, max_rows=limit, form_tokens=SUMMARY_TOKENS
        )
    ]


async def find_summary(tx: Tx, content: str, *, agent_id: UUID, max_tokens: int) -> tuple[bool, str | None]:
    """Whether these words were told in so many tokens before, and how; None when that was of no use."""
    row = await SQL["find_by_hash"].fetch_one(
        tx, agent_id=agent_id, content_hash=digest(content), max_tokens=max_tokens
    )
    return (True, row["words"]) if row else (False, None)


async def save_summary(
    tx: Tx, content: str, summary: str | None, *, memory_id: UUID, max_tokens: int, ctx: WriteContext
) -> None:
    """Keeps how words were told in so many tokens, or that it was of no use, as long as the memory is kept."""
    await SQL["insert_summary"].execute(
        tx,
        agent_id=ctx.agent_id,
        memory_id=memory_id,
        content_hash=digest(content),
        max_tokens=max_tokens,
        text=summary,
        now=ctx.now,
    )


def token_budget(message: LongMessage, *, count_tokens: TokenCounter) -> int:
    """Tokens that a line may have to be told in: a third of its own, and no more than a short form holds. Pure."""
    return min(message.tokens // 3, SUMMARY_TOKENS - count_tokens(to_bullet(message.prefix)))


async def apply_summaries(tx: Tx, summaries: Sequence[tuple[LongMessage, str]], *, ctx: WriteContext) -> None:
    """From now on contexts show these lines so. What was said, who said it and how it is found stay as they are."""
    retold = [
        MemoryUpdate(
            memory_id=line.memory_id,
            forms=ShortForms(
                micro=line.micro,
                summary=line.prefix + words,
                micro_tokens=line.micro_tokens,
                summary_tokens=ctx.count_tokens(to_bullet(line.prefix + words)),
            ),
        )
        for line, words in summaries
    ]
    await store.update_memories(tx, retold, ctx=ctx)
