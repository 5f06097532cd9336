"""Writes what lines of an import file ask for, each kind through the store that it belongs to."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar
from uuid import UUID

from newton.brain import decisions
from newton.brain.stating import Intent
from newton.content.skills import Skill
from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.condensing import USUAL, Sizes
from newton.heart import censors, documents, episodes, events, facts, introducing, procedures
from newton.heart.censors import Rule
from newton.heart.chunking import passages
from newton.heart.documents import Source
from newton.heart.entities import Introduction
from newton.heart.episodes import Experience
from newton.heart.events import Happening
from newton.heart.facts import Statement
from newton.heart.introducing import Bond
from newton.heart.lifecycle.engine import Ground
from newton.memory.memory import Count
from newton.runtime.transfer.given import Happened, Item, Paper, Said

T = TypeVar("T")
Items = Sequence[Item]


@dataclass(frozen=True, slots=True)
class Cutting:
    """How tokens are counted, and into pieces of how many what is long is cut."""

    count: Count
    sizes: Sizes = USUAL


Keep = Callable[[Tx, Items, Ground, Cutting], Awaitable[int]]


async def keep(tx: Tx, items: Items, *, ctx: Ground, sizes: Sizes = USUAL) -> int:
    """Keeps all of them in the caller's unit of work and returns how many said something new.

    Raises InputError and ConflictError for one that cannot be kept.
    """
    cutting = Cutting(ctx.count_tokens, sizes)
    return sum([await kept(tx, items, ctx, cutting) for kept in KEEPERS])


async def _say(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    new = 0
    for ref, group in groupby(sorted(_of(items, Said), key=lambda item: item.session), key=lambda item: item.session):
        session_id = await _session(tx, ref, ctx)
        lines = [item.line for item in group]
        new += len(await sessions.append(tx, lines, session_id=session_id, ctx=ctx, sizes=cutting.sizes))
    return new


async def _state(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    statements = _of(items, Statement)
    learnt = await facts.learn(tx, statements, ctx=ctx) if statements else []
    return sum(what == "new" for what in learnt)


async def _live(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    experiences = _of(items, Experience)
    return await episodes.keep(tx, experiences, ctx=ctx) if experiences else 0


async def _decide(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    intents = _of(items, Intent)
    recorded = await decisions.record(tx, intents, ctx=ctx) if intents else []
    return sum(one.new for one in recorded)


async def _practise(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    learnt = [await procedures.learn(tx, skill, ctx=ctx) for skill in _of(items, Skill)]
    return sum(one is not None for one in learnt)


async def _forbid(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    rules = _of(items, Rule)
    return len(await censors.forbid(tx, rules, ctx=ctx)) if rules else 0


async def _introduce(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    introductions = _of(items, Introduction)
    return await introducing.introduce(tx, introductions, ctx=ctx) if introductions else 0


async def _bind(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    bonds = _of(items, Bond)
    return await introducing.bind(tx, bonds, ctx=ctx) if bonds else 0


async def _happen(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    happened = _of(items, Happened)
    if not happened:
        return 0
    names = {one.session for one in happened if one.session}
    ids = {name: await _session(tx, name, ctx) for name in sorted(names)}
    happenings = [
        Happening(ref=one.ref, event=one.event, session_id=ids[one.session] if one.session else None)
        for one in happened
    ]
    return await events.record(tx, happenings, ctx=ctx)


async def _take(tx: Tx, items: Items, ctx: Ground, cutting: Cutting) -> int:
    new = 0
    for paper in _of(items, Paper):
        source = Source(ref=paper.ref, title=paper.title, format=paper.format)
        chunks = passages(
            paper.reading.sections, count=cutting.count, size=cutting.sizes.chunk, overlap=cutting.sizes.overlap
        )
        taken = await documents.take(tx, source, chunks, ctx=ctx)
        new += bool(taken.new or taken.replaced)
    return new


async def _session(tx: Tx, ref: str, ctx: Ground) -> UUID:
    return await sessions.session(tx, agent_id=ctx.agent_id, ref=ref, now=ctx.now)


def _of(items: Iterable[Item], kind: type[T]) -> list[T]:
    return [item for item in items if isinstance(item, kind)]


# In this order: an entity is introduced before it is bound to others.
KEEPERS: tuple[Keep, ...] = (_say, _state, _live, _decide, _practise, _forbid, _introduce, _bind, _happen, _take)
