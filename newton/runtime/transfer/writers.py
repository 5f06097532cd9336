"""Functions that store the items of an import, one for each kind of item."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from newton.agent.reconciliation.unkept_lines import hide_unkept
from newton.brain import decision_versions, decisions
from newton.brain.codec import NewDecision
from newton.brain.decisions import DecisionLinkDraft
from newton.content.skills import SkillFile
from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.heart import censors, documents, episodes, procedures
from newton.heart.censors import CensorRule
from newton.heart.chunking import split_passages
from newton.heart.documents import DocumentSource
from newton.heart.entities import entity_declarations
from newton.heart.entities.entity_declarations import RelationDeclaration
from newton.heart.entities.entity_store import EntityDeclaration
from newton.heart.episodes import NewEpisode
from newton.heart.events import event_store
from newton.heart.events.event_store import NewEvent
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext
from newton.runtime.transfer.import_lines import DocumentItem, EventItem, ImportItem, MessageItem


async def write_items(
    tx: Tx, items: Sequence[ImportItem], *, ctx: LifecycleContext, sizes: SummarySizes = DEFAULT_SIZES
) -> int:
    """Store the items in the caller's transaction and return the number of items that are new.

    Raises InputError or ConflictError for an item that cannot be stored.
    """
    new = 0
    for item_type, write in WRITERS.items():
        if of_type := [item for item in items if isinstance(item, item_type)]:
            new += await write(tx, of_type, ctx, sizes)
    return new


async def _write_messages(tx: Tx, items: Sequence[MessageItem], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    new, session = 0, attrgetter("session")
    for ref, group in groupby(sorted(items, key=session), key=session):
        session_id = await _get_session(tx, ref, ctx)
        messages = [item.message for item in group]
        stored = await sessions.append(tx, messages, session_id=session_id, ctx=ctx, sizes=sizes)
        await hide_unkept(tx, stored, ctx=ctx)
        new += len(stored)
    return new


async def _write_facts(tx: Tx, facts: Sequence[NewFact], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    return sum(status == "new" for status in await fact_store.add_facts(tx, facts, ctx=ctx))


async def _write_decisions(tx: Tx, items: Sequence[NewDecision], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    numbered = await decision_versions.number_versions(tx, items, ctx=ctx)
    return sum(result.is_new for result in await decisions.record(tx, numbered, ctx=ctx))


async def _write_procedures(tx: Tx, skills: Sequence[SkillFile], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    added = [await procedures.add_procedure(tx, skill, ctx=ctx) for skill in skills]
    return sum(one is not None for one in added)


async def _write_censors(tx: Tx, rules: Sequence[CensorRule], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    return len(await censors.add_rules(tx, rules, ctx=ctx))


async def _write_events(tx: Tx, items: Sequence[EventItem], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    names = sorted({item.session for item in items if item.session})
    ids = {name: await _get_session(tx, name, ctx) for name in names}
    events = [
        NewEvent(ref=item.ref, event=item.event, session_id=ids[item.session] if item.session else None)
        for item in items
    ]
    return await event_store.record_events(tx, events, ctx=ctx)


async def _write_documents(tx: Tx, items: Sequence[DocumentItem], ctx: LifecycleContext, sizes: SummarySizes) -> int:
    new = 0
    for item in items:
        source = DocumentSource(ref=item.ref, title=item.title, format=item.format)
        chunks = split_passages(
            item.content.sections, count_tokens=ctx.count_tokens, size=sizes.chunk_tokens, overlap=sizes.overlap_tokens
        )
        result = await documents.replace_passages(tx, source, chunks, ctx=ctx)
        new += bool(result.new or result.replaced)
    return new


async def _get_session(tx: Tx, ref: str, ctx: LifecycleContext) -> UUID:
    return await sessions.ensure_session(tx, agent_id=ctx.agent_id, ref=ref, now=ctx.now)


ItemWriter = Callable[[Tx, Sequence[Any], LifecycleContext, SummarySizes], Awaitable[int]]
# Applied in this order: entities before their relations.
WRITERS: Mapping[type, ItemWriter] = {
    MessageItem: _write_messages,
    NewFact: _write_facts,
    NewEpisode: lambda tx, items, ctx, sizes: episodes.add_episodes(tx, items, ctx=ctx),
    NewDecision: _write_decisions,
    DecisionLinkDraft: lambda tx, items, ctx, sizes: decisions.link_by_ref(tx, items, ctx=ctx),
    SkillFile: _write_procedures,
    CensorRule: _write_censors,
    EntityDeclaration: lambda tx, items, ctx, sizes: entity_declarations.declare_entities(tx, items, ctx=ctx),
    RelationDeclaration: lambda tx, items, ctx, sizes: entity_declarations.declare_relations(tx, items, ctx=ctx),
    EventItem: _write_events,
    DocumentItem: _write_documents,
}
