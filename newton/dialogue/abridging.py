"""Lines of dialogue too long for their short form: which they are, and how a model has told them shorter."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory import store
from newton.memory.memory import Count, Forms, Teller, digest
from newton.memory.representations import SUMMARY_TOKENS, bullet
from newton.memory.store import Retold

SQL = load("newton.dialogue", "abridging.sql")


class Long(NamedTuple):
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


async def cut(tx: Tx, *, agent_id: UUID, most: int) -> list[Long]:
    """Lines of more words than a short form holds that none has told shorter, those shown most often first."""
    return [
        Long(*row)
        for row in await SQL["list_long_messages"].all(tx, agent_id=agent_id, max_rows=most, form_tokens=SUMMARY_TOKENS)
    ]


async def known(tx: Tx, content: str, *, agent_id: UUID, most: int) -> tuple[bool, str | None]:
    """Whether these words were told in so many tokens before, and how; None when that was of no use."""
    row = await SQL["find_by_hash"].one(tx, agent_id=agent_id, content_hash=digest(content), max_tokens=most)
    return (True, row["words"]) if row else (False, None)


async def keep(tx: Tx, content: str, words: str | None, *, of: UUID, most: int, ctx: Teller) -> None:
    """Keeps how words were told in so many tokens, or that it was of no use, as long as the memory is kept."""
    await SQL["insert_summary"].run(
        tx, agent_id=ctx.agent_id, memory_id=of, content_hash=digest(content), max_tokens=most, text=words, now=ctx.now
    )


def room(line: Long, *, count: Count) -> int:
    """Tokens that a line may have to be told in: a third of its own, and no more than a short form holds. Pure."""
    return min(line.tokens // 3, SUMMARY_TOKENS - count(bullet(line.prefix)))


async def retell(tx: Tx, told: Sequence[tuple[Long, str]], *, ctx: Teller) -> None:
    """From now on contexts show these lines so. What was said, who said it and how it is found stay as they are."""
    retold = [
        Retold(
            memory_id=line.memory_id,
            forms=Forms(
                micro=line.micro,
                summary=line.prefix + words,
                micro_tokens=line.micro_tokens,
                summary_tokens=ctx.count_tokens(bullet(line.prefix + words)),
            ),
        )
        for line, words in told
    ]
    await store.retell(tx, retold, ctx=ctx)
