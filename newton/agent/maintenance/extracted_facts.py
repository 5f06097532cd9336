"""Storage of facts that the statement classifier extracts from conversations."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from uuid import UUID

from newton.db.pool import Tx
from newton.dialogue.message_queues import EpisodeMessage
from newton.heart.facts import conflicts, fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity.standing_wishes import detect_instructions
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.statements.statement_selection import SelectedStatement
from newton.memory import store
from newton.memory.memory import digest
from newton.text.chat_lines import quote_line, quoted_name
from newton.text.time_expressions import move_to_day
from newton.text.words import extract_content_words

MIN_WORD_OVERLAP = 0.6  # share of the shorter text's content words from which a fact restates a request


@dataclass(frozen=True, slots=True)
class ExtractionResult:
    """The number of conversations that were read for facts, and of new facts in them."""

    conversations: int = 0
    facts: int = 0

    def __add__(self, other: "ExtractionResult") -> "ExtractionResult":
        return ExtractionResult(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


async def store_facts(tx: Tx, facts: Sequence[NewFact], episode_id: UUID | None, *, ctx: LifecycleContext) -> int:
    """Store facts, as parts of an episode if there is one; return how many were not known before."""
    unique = list({fact.content_hash: fact for fact in facts}.values())
    statuses = await fact_store.add_facts(tx, unique, ctx=ctx)
    if episode_id:
        fact_ids = [await fact_store.find_fact_id(tx, fact, agent_id=ctx.agent_id) for fact in unique]
        await link_to_episode(tx, fact_ids, episode_id, ctx=ctx)
    return statuses.count("new")


async def link_to_episode(tx: Tx, fact_ids: Sequence[UUID], episode_id: UUID, *, ctx: LifecycleContext) -> None:
    """Record that facts are part of an episode."""
    await store.add_links(tx, "part_of", [(fact_id, episode_id) for fact_id in fact_ids], ctx=ctx)


async def keep_speakers_apart(tx: Tx, limit: int, *, ctx: LifecycleContext) -> int:
    """Settle that both facts of a pair hold if two persons say them of themselves; return the number of pairs.

    The `limit` latest pairs are read.
    """
    pairs = await conflicts.list_conflicts(tx, agent_id=ctx.agent_id, limit=limit)
    apart = [one for one in pairs if quoted_name(one.newer.text) != quoted_name(one.older.text)]
    for pair in apart:
        await conflicts.settle(tx, pair, "both", ctx=ctx)
    return len(apart)


def restates_request(content: str, requests: Sequence[str]) -> bool:
    """Return whether `content` is an instruction, and shares most of its content words with one of the `requests`."""
    if not detect_instructions(content):
        return False
    words, request_words = extract_content_words(content), map(extract_content_words, requests)
    return any(len(words & other) > MIN_WORD_OVERLAP * min(len(words), len(other)) for other in request_words)


def to_fact(message: EpisodeMessage, statement: SelectedStatement, source: str) -> NewFact:
    """Return a statement of a message as a fact with the message as its source; one by another speaker names them."""
    content = quote_line(message.name or "", statement.content) if message.is_reported else statement.content
    return NewFact(
        ref=f"told:{message.memory_id}:{digest(content).hex()[:16]}",
        content=content,
        valid_from=move_to_day(message.said_at, message.said_on),
        subject=statement.subject,
        attribute=statement.attribute,
        source=source,
        sources=(message.memory_id,),
    )
