"""Extraction of facts from what users said in conversations, by the statement classifier, without a model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from newton.agent.maintenance.extracted_facts import ExtractionResult, restates_request, store_facts
from newton.db.pool import Database, Tx
from newton.dialogue import extraction_queue as conversations
from newton.dialogue.extraction_queue import EpisodeLines, EpisodeMessage
from newton.errors import ProviderError
from newton.heart.facts.fact_store import NewFact
from newton.heart.identity import identity_store
from newton.heart.lifecycle.engine import LifecycleContext
from newton.heart.statements.statement_selection import SelectedStatement, list_texts, load_model, select_statements
from newton.memory.memory import digest
from newton.providers.embedding import Embedder, Vector


async def extract_statements(
    db: Database,
    ctx: LifecycleContext,
    *,
    limit: int,
    embedder: Embedder | None = None,
    ended_before: datetime | None = None,
) -> ExtractionResult:
    """Extract facts from up to `limit` unread conversations, oldest first.

    With `ended_before`, only from those that ended before this time. A fact gets the origin and the trust tier of the
    message that states it.
    """
    result = ExtractionResult()
    async with db.transaction(ctx.agent_id) as tx:
        unread = await conversations.find_unread(tx, agent_id=ctx.agent_id, limit=limit, ended_before=ended_before)
    for conversation in unread:
        vectors = await embed_statements(embedder, conversation)
        async with db.transaction(ctx.agent_id) as tx:
            if await conversations.mark_read(tx, conversation.memory_id, ctx=ctx):
                result += ExtractionResult(1, await store_statements(tx, conversation, vectors, ctx=ctx))
    return result


async def embed_statements(embedder: Embedder | None, conversation: EpisodeLines) -> dict[str, Vector] | None:
    """Return the vectors of the statements of users in a conversation, by text.

    Return None if the embedder is not the one for which the classifier was trained, or if it fails.
    """
    if embedder is None or embedder.identity != load_model().vector_model:
        return None
    said = [message.content for message in conversation.messages if message.role == "user"]
    texts = list(dict.fromkeys(text for content in said for text in list_texts(content)))
    try:
        return dict(zip(texts, await embedder.embed(texts), strict=True)) if texts else {}
    except ProviderError:
        return None


async def store_statements(
    tx: Tx, conversation: EpisodeLines, vectors: Mapping[str, Vector] | None, *, ctx: LifecycleContext
) -> int:
    """Store the facts that users state in a conversation; return how many were not known before.

    `vectors` is the result of `embed_statements`. A fact gets the origin and trust tier of the message that states it.
    """
    requests = await identity_store.list_requested_lines(tx, conversation.memory_id, agent_id=ctx.agent_id)
    count = 0
    for message in conversation.messages:
        if facts := _select_facts(message, requests, vectors, source=conversation.source):
            own_ctx = replace(ctx, trust=message.trust, origin=message.origin)
            count += await store_facts(tx, facts, conversation.memory_id, ctx=own_ctx)
    return count


def _select_facts(
    message: EpisodeMessage, requests: Sequence[str], vectors: Mapping[str, Vector] | None, *, source: str
) -> list[NewFact]:
    """Return the facts that a user states in a message, without those that restate one of the `requests`. Pure."""
    if message.role != "user":
        return []
    statements = select_statements(message.content, speaker=message.name, vectors=vectors)
    return [_to_fact(message, one, source) for one in statements if not restates_request(one.content, requests)]


def _to_fact(message: EpisodeMessage, statement: SelectedStatement, source: str) -> NewFact:
    return NewFact(
        ref=f"told:{message.memory_id}:{digest(statement.content).hex()[:16]}",
        content=statement.content,
        valid_from=message.said_at,
        subject=statement.subject,
        attribute=statement.attribute,
        source=source,
        sources=(message.memory_id,),
    )
