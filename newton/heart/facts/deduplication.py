"""Deduplication: compare each new fact with known facts of its subject, and merge it or link it to related ones."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import UUID

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.heart.statements.similarity import compare_statements
from newton.memory import store
from newton.memory.memory import Trust
from newton.memory.store import Confirmation

SQL = load("newton.heart.facts", "deduplication.sql")

BATCH = 64
MAX_CANDIDATES = 20


class SameFactJudge(Protocol):
    """A judge for pairs between the two similarity thresholds."""

    async def is_same_fact(self, new: str, known: str) -> bool:
        """Return whether both statements say the same. Raises ProviderError when there is no answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityThresholds:
    """Minimum similarity, in [0, 1], of duplicates and of related facts."""

    duplicate_min_cosine: float
    related_min_cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A candidate for a duplicate. `canonical_id` is the fact that it duplicates, or its own id."""

    known_id: UUID
    canonical_id: UUID
    text: str
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UncomparedFact:
    """A new fact with its nearest known facts."""

    memory_id: UUID
    text: str
    origin: str
    trust: Trust
    source: str
    candidates: tuple[KnownFact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupVerdict:
    """The result for a new fact: a duplicate, related to others, or neither."""

    fact: UncomparedFact
    duplicate_of: UUID | None = None
    related: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class DedupReport:
    """Numbers of facts compared, of duplicates, and of facts related to others."""

    facts: int
    duplicates: int
    related: int


async def deduplicate_facts(
    db: Database,
    ctx: LifecycleContext,
    thresholds: SimilarityThresholds,
    *,
    model_id: UUID,
    judge: SameFactJudge | None = None,
    limit: int | None = None,
) -> DedupReport:
    """Compare facts that have vectors and were not compared yet, oldest first, at most `limit`.

    A fact is only merged into an older one, so concurrent runs agree. No transaction is open during a call of the
    judge.
    """
    facts = joined = near = 0
    while limit is None or facts < limit:
        async with db.transaction(ctx.agent_id) as tx:
            batch = await _next_batch(tx, ctx, model_id, BATCH if limit is None else min(BATCH, limit - facts))
        if not batch:
            break
        verdicts = resolve_chains([await _ask_judge(decide_verdict(told, thresholds), judge) for told in batch])
        async with db.transaction(ctx.agent_id) as tx:
            taken = await _store_verdicts(tx, ctx, verdicts)
        facts += len(taken)
        joined += sum(v.duplicate_of is not None for v in taken)
        near += sum(bool(v.related) for v in taken)
    return DedupReport(facts, joined, near)


async def _next_batch(tx: Tx, ctx: LifecycleContext, model_id: UUID, limit: int) -> list[UncomparedFact]:
    agent_id = ctx.agent_id
    rows = await SQL["list_uncompared"].fetch_all(tx, agent_id=agent_id, model_id=model_id, max_rows=limit)
    near: defaultdict[UUID, list[KnownFact]] = defaultdict(list)
    kin = await SQL["find_similar"].fetch_all(
        tx, agent_id=agent_id, model_id=model_id, memory_ids=[row["memory_id"] for row in rows], max_rows=MAX_CANDIDATES
    )
    for row in kin:
        known = KnownFact(
            known_id=row["known_id"], canonical_id=row["canonical_id"], text=row["full_text"], cosine=row["cosine"]
        )
        near[row["memory_id"]].append(known)
    return [UncomparedFact(**row, candidates=tuple(near[row["memory_id"]])) for row in rows]


def decide_verdict(fact: UncomparedFact, thresholds: SimilarityThresholds) -> DedupVerdict:
    """Return the known fact that it duplicates, or else the facts related to it. Pure."""
    alike = [
        (
            compare_statements(
                fact.text,
                k.text,
                cosine=k.cosine,
                same_min=thresholds.duplicate_min_cosine,
                near_min=thresholds.related_min_cosine,
            ),
            k,
        )
        for k in fact.candidates
    ]
    same = [(like.similarity, k.canonical_id) for like, k in alike if like.verdict == "same"]
    if same:
        return DedupVerdict(fact=fact, duplicate_of=max(same)[1])
    near = [k.canonical_id for like, k in alike if like.verdict == "near"]
    return DedupVerdict(fact=fact, related=tuple(dict.fromkeys(near)))


async def _ask_judge(verdict: DedupVerdict, judge: SameFactJudge | None) -> DedupVerdict:
    """Ask the judge about related facts. A fact without an answer stays related."""
    if judge is None:
        return verdict
    texts = {k.canonical_id: k.text for k in reversed(verdict.fact.candidates)}
    for near in verdict.related:
        try:
            if await judge.is_same_fact(verdict.fact.text, texts[near]):
                return DedupVerdict(fact=verdict.fact, duplicate_of=near)
        except ProviderError:
            return verdict
    return replace(verdict, related=())


def resolve_chains(verdicts: Sequence[DedupVerdict]) -> list[DedupVerdict]:
    """Point each duplicate of a duplicate to the original fact; verdicts come oldest first. Pure."""
    roots: dict[UUID, UUID] = {}
    found: list[DedupVerdict] = []
    for given in verdicts:
        same_as = given.duplicate_of and roots.get(given.duplicate_of, given.duplicate_of)
        near = tuple(dict.fromkeys(roots.get(one, one) for one in given.related))
        if same_as:
            roots[given.fact.memory_id] = same_as
        found.append(replace(given, duplicate_of=same_as, related=near))
    return found


async def _store_verdicts(tx: Tx, ctx: LifecycleContext, verdicts: Sequence[DedupVerdict]) -> list[DedupVerdict]:
    """Store the verdicts of facts that no other process has compared, and confirm the originals."""
    rows = await SQL["mark_compared"].fetch_all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[v.fact.memory_id for v in verdicts],
        duplicate_ids=[v.duplicate_of for v in verdicts],
    )
    mine = {row["memory_id"] for row in rows}
    taken = [v for v in verdicts if v.fact.memory_id in mine]
    await SQL["flatten_duplicates"].execute(tx, agent_id=ctx.agent_id)
    await store.add_links(tx, "near", [(v.fact.memory_id, near) for v in taken for near in v.related], ctx=ctx)
    joined = [(v.fact, v.duplicate_of) for v in taken if v.duplicate_of]
    await store.add_links(tx, "corroborates", [(told.memory_id, known) for told, known in joined], ctx=ctx)
    for told, known in joined:
        telling = Confirmation(memory_id=known, ref=f"memory:{told.memory_id}", source=told.source)
        await store.confirm(tx, [telling], ctx=replace(ctx, origin=told.origin, trust=told.trust))
    await SQL["copy_confirmations"].execute(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[told.memory_id for told, _ in joined],
        duplicate_ids=[known for _, known in joined],
    )
    await review(tx, ctx, "fact", [memory_id for told, known in joined for memory_id in (told.memory_id, known)])
    return taken
