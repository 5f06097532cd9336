"""Write the items of an import, each kind through its store."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar
from uuid import UUID

from newton.brain import decisions
from newton.brain.codec import NewDecision
from newton.content.skills import Skill
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
from newton.memory.memory import TokenCounter
from newton.runtime.transfer.schema import DocumentItem, EventItem, ImportItem, MessageItem

T = TypeVar("T")
Items = Sequence[ImportItem]


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """The token counter and the chunk size in tokens."""

    count_tokens: TokenCounter
    sizes: SummarySizes = DEFAULT_SIZES


ItemWriter = Callable[[Tx, Items, LifecycleContext, ChunkOptions], Awaitable[int]]


async def write_items(tx: Tx, items: Items, *, ctx: LifecycleContext, sizes: SummarySizes = DEFAULT_SIZES) -> int:
    """Write the items in the caller's transaction and return the number of new ones.

    Raises InputError and ConflictError for an item that cannot be stored.
    """
    cutting = ChunkOptions(ctx.count_tokens, sizes)
    return sum([await kept(tx, items, ctx, cutting) for kept in WRITERS])


async def _write_messages(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    new = 0
    for ref, group in groupby(
        sorted(_of_type(items, MessageItem), key=lambda item: item.session), key=lambda item: item.session
    ):
        session_id = await _get_session(tx, ref, ctx)
        lines = [item.message for item in group]
        new += len(await sessions.append(tx, lines, session_id=session_id, ctx=ctx, sizes=options.sizes))
    return new


async def _write_facts(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    statements = _of_type(items, NewFact)
    learnt = await fact_store.add_facts(tx, statements, ctx=ctx) if statements else []
    return sum(what == "new" for what in learnt)


async def _write_episodes(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    experiences = _of_type(items, NewEpisode)
    return await episodes.add_episodes(tx, experiences, ctx=ctx) if experiences else 0


async def _write_decisions(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    intents = _of_type(items, NewDecision)
    recorded = await decisions.record(tx, intents, ctx=ctx) if intents else []
    return sum(one.is_new for one in recorded)


async def _write_procedures(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    learnt = [await procedures.add_procedure(tx, skill, ctx=ctx) for skill in _of_type(items, Skill)]
    return sum(one is not None for one in learnt)


async def _write_censors(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    rules = _of_type(items, CensorRule)
    return len(await censors.add_rules(tx, rules, ctx=ctx)) if rules else 0


async def _write_entities(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    introductions = _of_type(items, EntityDeclaration)
    return await entity_declarations.declare_entities(tx, introductions, ctx=ctx) if introductions else 0


async def _write_relations(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    bonds = _of_type(items, RelationDeclaration)
    return await entity_declarations.declare_relations(tx, bonds, ctx=ctx) if bonds else 0


async def _write_events(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    happened = _of_type(items, EventItem)
    if not happened:
        return 0
    names = {one.session for one in happened if one.session}
    ids = {name: await _get_session(tx, name, ctx) for name in sorted(names)}
    happenings = [
        NewEvent(ref=one.ref, event=one.event, session_id=ids[one.session] if one.session else None) for one in happened
    ]
    return await event_store.record_events(tx, happenings, ctx=ctx)


async def _write_documents(tx: Tx, items: Items, ctx: LifecycleContext, options: ChunkOptions) -> int:
    new = 0
    for paper in _of_type(items, DocumentItem):
        source = DocumentSource(ref=paper.ref, title=paper.title, format=paper.format)
        chunks = split_passages(
            paper.content.sections,
            count_tokens=options.count_tokens,
            size=options.sizes.chunk_tokens,
            overlap=options.sizes.overlap_tokens,
        )
        taken = await documents.replace_passages(tx, source, chunks, ctx=ctx)
        new += bool(taken.new or taken.replaced)
    return new


async def _get_session(tx: Tx, ref: str, ctx: LifecycleContext) -> UUID:
    return await sessions.ensure_session(tx, agent_id=ctx.agent_id, ref=ref, now=ctx.now)


def _of_type(items: Iterable[ImportItem], kind: type[T]) -> list[T]:
    return [item for item in items if isinstance(item, kind)]


# In this order: entities before their relations.
WRITERS: tuple[ItemWriter, ...] = (
    _write_messages,
    _write_facts,
    _write_episodes,
    _write_decisions,
    _write_procedures,
    _write_censors,
    _write_entities,
    _write_relations,
    _write_events,
    _write_documents,
)
