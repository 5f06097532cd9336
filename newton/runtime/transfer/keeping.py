"""Writes what lines of an import file ask for, each kind through the store that it belongs to."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar
from uuid import UUID

from newton.content.skills import Skill
from newton.db.pool import Tx
from newton.dialogue import sessions
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
from newton.memory.representations import Count
from newton.runtime.transfer.given import Happened, Item, Paper, Said

T = TypeVar("T")


async def keep(tx: Tx, items: Sequence[Item], *, ground: Ground, count: Count) -> int:
    """Keeps all of them in the caller's unit of work and returns how many said something new.

    Raises InputError and ConflictError for one that cannot be kept.
    """
    by = ground.by
    new = await _append(tx, _of(items, Said), ground=ground, count=count)
    if statements := _of(items, Statement):
        learnt = await facts.learn(tx, statements, ground=ground, count=count)
        new += sum(what == "new" for what in learnt)
    if experiences := _of(items, Experience):
        new += await episodes.keep(tx, experiences, by=by, count=count)
    for skill in _of(items, Skill):
        new += await procedures.learn(tx, skill, ground=ground, count=count) is not None
    if rules := _of(items, Rule):
        new += len(await censors.forbid(tx, rules, ground=ground, count=count))
    if introductions := _of(items, Introduction):
        new += await introducing.introduce(tx, introductions, by=by, count=count)
    if bonds := _of(items, Bond):
        new += await introducing.bind(tx, bonds, by=by, count=count)
    new += await _happen(tx, _of(items, Happened), ground=ground, count=count)
    for paper in _of(items, Paper):
        new += await _take(tx, paper, ground=ground, count=count)
    return new


async def _append(tx: Tx, said: Sequence[Said], *, ground: Ground, count: Count) -> int:
    new = 0
    for ref, group in groupby(sorted(said, key=lambda item: item.session), key=lambda item: item.session):
        session_id = await _session(tx, ref, ground)
        lines = [item.line for item in group]
        new += len(await sessions.append(tx, lines, session_id=session_id, by=ground.by, count=count))
    return new


async def _happen(tx: Tx, happened: Sequence[Happened], *, ground: Ground, count: Count) -> int:
    if not happened:
        return 0
    names = {one.session for one in happened if one.session}
    ids = {name: await _session(tx, name, ground) for name in sorted(names)}
    happenings = [
        Happening(ref=one.ref, event=one.event, session_id=ids[one.session] if one.session else None)
        for one in happened
    ]
    return await events.record(tx, happenings, by=ground.by, count=count)


async def _take(tx: Tx, paper: Paper, *, ground: Ground, count: Count) -> bool:
    source = Source(ref=paper.ref, title=paper.title, format=paper.format)
    chunks = passages(paper.reading.sections, count=count)
    taken = await documents.take(tx, source, chunks, by=ground.by, count=count)
    return bool(taken.new or taken.replaced)


async def _session(tx: Tx, ref: str, ground: Ground) -> UUID:
    return await sessions.session(tx, agent_id=ground.by.agent_id, ref=ref, now=ground.by.now)


def _of(items: Iterable[Item], kind: type[T]) -> list[T]:
    return [item for item in items if isinstance(item, kind)]
