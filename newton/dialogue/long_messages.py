"""Messages that are longer than their short form, and summaries that a model wrote of them."""

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

MIN_USES = 6  # in contexts; a summary saves up to 70 tokens each time it is shown, and its call takes 430


class LongMessage(NamedTuple):
    """A message that is too long for a short form, with its whole text."""

    memory_id: UUID
    micro: str
    micro_tokens: int
    speaker: str
    content: str
    tokens: int
    said_at: datetime

    @property
    def prefix(self) -> str:
        """Return date and speaker, with a note that the text is shortened."""
        return f"[{self.said_at:%Y-%m-%d}] {self.speaker}, in short: "


async def find(tx: Tx, *, agent_id: UUID, limit: int) -> list[LongMessage]:
    """Return messages that are often shown, too long for that, and without a summary, the most shown ones first."""
    limits = {"max_rows": limit, "form_tokens": SUMMARY_TOKENS, "min_uses": MIN_USES}
    return [LongMessage(*row) for row in await SQL["list_long_messages"].fetch_all(tx, agent_id=agent_id, **limits)]


async def find_summary(tx: Tx, content: str, *, agent_id: UUID, max_tokens: int) -> tuple[bool, str | None]:
    """Return (True, summary) if a summary of this text in `max_tokens` is stored, else (False, None).

    The summary is None if the model's answer was unusable.
    """
    key = {"agent_id": agent_id, "content_hash": digest(content), "max_tokens": max_tokens}
    row = await SQL["find_by_hash"].fetch_one(tx, **key)
    return (True, row["text"]) if row else (False, None)


async def save_summary(
    tx: Tx, content: str, summary: str | None, *, memory_id: UUID, max_tokens: int, ctx: WriteContext
) -> None:
    """Store the summary of a text, None if the model's answer was unusable.

    The summary is deleted together with the memory `memory_id`.
    """
    key = {"agent_id": ctx.agent_id, "content_hash": digest(content), "max_tokens": max_tokens}
    await SQL["insert_summary"].execute(tx, **key, memory_id=memory_id, text=summary, now=ctx.now)


def token_budget(message: LongMessage, *, count_tokens: TokenCounter) -> int:
    """Return the maximum tokens of a summary: a third of the message, at most those of a short form. Pure."""
    return min(message.tokens // 3, SUMMARY_TOKENS - count_tokens(to_bullet(message.prefix)))


async def apply_summaries(tx: Tx, summaries: Sequence[tuple[LongMessage, str]], *, ctx: WriteContext) -> None:
    """Replace the short forms of messages by summaries. Texts and search index do not change."""
    updates: list[MemoryUpdate] = []
    for message, text in summaries:
        summary = message.prefix + text
        tokens = {"micro_tokens": message.micro_tokens, "summary_tokens": ctx.count_tokens(to_bullet(summary))}
        forms = ShortForms(micro=message.micro, summary=summary, **tokens)
        updates.append(MemoryUpdate(memory_id=message.memory_id, forms=forms))
    await store.update_memories(tx, updates, ctx=ctx)
