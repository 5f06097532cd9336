"""Extraction of facts from what users said in conversations, by the statement parser instead of a model."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from newton.agent.maintenance.extracted_facts import ExtractionResult, restates_request, store_facts
from newton.db.pool import Database, Tx
from newton.dialogue import extraction_queue as conversations
from newton.dialogue.extraction_queue import EpisodeLines, EpisodeMessage
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity import identity_store
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.statements.told_statements import ToldStatement, select_statements
from newton.memory.memory import digest


async def extract_statements(
    db: Database, ctx: LifecycleContext, *, limit: int, ended_before: datetime | None = None
) -> ExtractionResult:
    """Extract from up to `limit` unread conversations, oldest first; with `ended_before`, as `find_unread`.

    A fact has the origin and the trust of the message that states it.
    """
    result = ExtractionResult()
    async with db.transaction(ctx.agent_id) as tx:
        unread = await conversations.find_unread(tx, agent_id=ctx.agent_id, limit=limit, ended_before=ended_before)
    for conversation in unread:
        async with db.transaction(ctx.agent_id) as tx:
            if await conversations.mark_read(tx, conversation.memory_id, ctx=ctx):
                result += ExtractionResult(1, await store_statements(tx, conversation, ctx=ctx))
    return result


async def store_statements(tx: Tx, conversation: EpisodeLines, *, ctx: LifecycleContext) -> int:
    """Store the facts that users state in a conversation; return the number of new ones.

    A fact has the origin and the trust of the message that states it.
    """
    requests = await identity_store.list_requested_lines(tx, conversation.memory_id, agent_id=ctx.agent_id)
    count = 0
    for message in conversation.messages:
        if facts := _select_facts(message, requests, source=conversation.source):
            own_ctx = replace(ctx, trust=message.trust, origin=message.origin)
            count += await store_facts(tx, facts, conversation.memory_id, ctx=own_ctx)
    return count


def _select_facts(message: EpisodeMessage, requests: Sequence[str], *, source: str) -> list[NewFact]:
    """Return the facts that a user states in a message, without proposed lines of the identity. Pure."""
    if message.role != "user":
        return []
    statements = select_statements(message.content, speaker=message.name)
    return [_to_fact(message, one, source) for one in statements if not restates_request(one.content, requests)]


def _to_fact(message: EpisodeMessage, statement: ToldStatement, source: str) -> NewFact:
    return NewFact(
        ref=f"told:{message.memory_id}:{digest(statement.content).hex()[:16]}",
        content=statement.content,
        valid_from=message.said_at,
        subject=statement.subject,
        attribute=statement.attribute,
        source=source,
        sources=(message.memory_id,),
    )
