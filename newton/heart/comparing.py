"""Facts told in other words: each new one is compared with what is known of its subject, and kept, joined or linked."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.heart.lifecycle.engine import Ground, review
from newton.heart.sameness import likeness
from newton.memory import store
from newton.memory.memory import Trust
from newton.memory.store import Telling

SQL = load("newton.heart", "comparing.sql")

BATCH = 64
NEAREST = 20


class Judge(Protocol):
    """Decides where likeness leaves it open."""

    async def same(self, told: str, known: str) -> bool:
        """Whether both say the same. Raises ProviderError when it cannot tell."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """From which likeness on two statements are one fact, and from which on they may be."""

    same: float
    near: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A fact that may be the same; `stands_for` is the one it tells, itself if it is not told in other words."""

    known_id: UUID
    stands_for: UUID
    text: str
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A new fact with what is known that comes nearest to it."""

    memory_id: UUID
    text: str
    origin: str
    trust: Trust
    source: str
    kin: tuple[Known, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a new fact turned out to be: the same as another, near others, or itself."""

    told: Told
    same_as: UUID | None = None
    near: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """How many facts were compared, how many of them were known in other words, and how many lie near another."""

    facts: int
    joined: int
    near: int


async def compare(
    db: Database, ctx: Ground, bounds: Bounds, *, model_id: UUID, judge: Judge | None = None, most: int | None = None
) -> Compared:
    """Compares the facts that have their vectors and were not compared yet, the oldest first, at most `most`.

    A fact only ever joins one told before it, so two that run at once agree. No transaction is open while a judge is
    asked.
    """
    facts = joined = near = 0
    while most is None or facts < most:
        async with db.work(ctx.agent_id) as tx:
            batch = await _batch(tx, ctx, model_id, BATCH if most is None else min(BATCH, most - facts))
        if not batch:
            break
        verdicts = rooted([await _judged(verdict(told, bounds), judge) for told in batch])
        async with db.work(ctx.agent_id) as tx:
            taken = await _keep(tx, ctx, verdicts)
        facts += len(taken)
        joined += sum(v.same_as is not None for v in taken)
        near += sum(bool(v.near) for v in taken)
    return Compared(facts, joined, near)


async def _batch(tx: Tx, ctx: Ground, model_id: UUID, most: int) -> list[Told]:
    agent_id = ctx.agent_id
    rows = await SQL["list_uncompared"].all(tx, agent_id=agent_id, model_id=model_id, max_rows=most)
    near: defaultdict[UUID, list[Known]] = defaultdict(list)
    kin = await SQL["find_similar"].all(
        tx, agent_id=agent_id, model_id=model_id, memory_ids=[row["memory_id"] for row in rows], max_rows=NEAREST
    )
    for row in kin:
        known = Known(
            known_id=row["known_id"], stands_for=row["stands_for"], text=row["full_text"], cosine=row["cosine"]
        )
        near[row["memory_id"]].append(known)
    return [Told(**row, kin=tuple(near[row["memory_id"]])) for row in rows]


def verdict(told: Told, bounds: Bounds) -> Verdict:
    """The known fact that it tells in other words, or else those that it is near to. Pure."""
    alike = [(likeness(told.text, k.text, cosine=k.cosine, same=bounds.same, near=bounds.near), k) for k in told.kin]
    same = [(like.similarity, k.stands_for) for like, k in alike if like.verdict == "same"]
    if same:
        return Verdict(told=told, same_as=max(same)[1])
    near = [k.stands_for for like, k in alike if like.verdict == "near"]
    return Verdict(told=told, near=tuple(dict.fromkeys(near)))


async def _judged(given: Verdict, judge: Judge | None) -> Verdict:
    """What likeness left open, as the judge sees it; what the judge cannot tell stays open."""
    if judge is None:
        return given
    texts = {k.stands_for: k.text for k in reversed(given.told.kin)}
    for near in given.near:
        try:
            if await judge.same(given.told.text, texts[near]):
                return Verdict(told=given.told, same_as=near)
        except ProviderError:
            return given
    return replace(given, near=())


def rooted(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts, the oldest first, as one after the other: what tells one that tells another, tells that. Pure."""
    roots: dict[UUID, UUID] = {}
    found: list[Verdict] = []
    for given in verdicts:
        same_as = given.same_as and roots.get(given.same_as, given.same_as)
        near = tuple(dict.fromkeys(roots.get(one, one) for one in given.near))
        if same_as:
            roots[given.told.memory_id] = same_as
        found.append(replace(given, same_as=same_as, near=near))
    return found


async def _keep(tx: Tx, ctx: Ground, verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Writes down what each turned out to be, unless somebody else has; a told fact counts for the one it tells."""
    rows = await SQL["mark_compared"].all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[v.told.memory_id for v in verdicts],
        duplicate_ids=[v.same_as for v in verdicts],
    )
    mine = {row["memory_id"] for row in rows}
    taken = [v for v in verdicts if v.told.memory_id in mine]
    await SQL["flatten_duplicates"].run(tx, agent_id=ctx.agent_id)
    await store.connect(tx, "near", [(v.told.memory_id, near) for v in taken for near in v.near], ctx=ctx)
    joined = [(v.told, v.same_as) for v in taken if v.same_as]
    await store.connect(tx, "corroborates", [(told.memory_id, known) for told, known in joined], ctx=ctx)
    for told, known in joined:
        telling = Telling(memory_id=known, ref=f"memory:{told.memory_id}", source=told.source)
        await store.confirm(tx, [telling], ctx=replace(ctx, origin=told.origin, trust=told.trust))
    await SQL["copy_confirmations"].run(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[told.memory_id for told, _ in joined],
        duplicate_ids=[known for _, known in joined],
    )
    await review(tx, ctx, "fact", [memory_id for told, known in joined for memory_id in (told.memory_id, known)])
    return taken
