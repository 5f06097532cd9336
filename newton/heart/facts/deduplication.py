"""Comparison of each new fact with known facts: merge it, supersede what it replaces, or link it to related facts."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import ProviderError
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.heart.lifecycle.facts import may_supersede
from newton.heart.statements.change_detection import detect_change
from newton.heart.statements.similarity import compare_statements
from newton.memory import store
from newton.memory.memory import Trust
from newton.memory.store import Confirmation

SQL = load("newton.heart.facts", "deduplication.sql")

BATCH = 64
MAX_CANDIDATES = 20
MAX_COMPARED = 5  # of the candidates, for changes

# Facts that one statement never supersedes: allergies, medication and prohibitions.
_SAFETY_CRITICAL = re.compile(
    r"\b(?:allerg|anaphyla|epipen|medicat|insulin|must (?:not|never)|never|forbidden|prohibit)", re.I
)


class SameFactJudge(Protocol):
    """Decides whether two related facts are duplicates."""

    async def is_same_fact(self, new: str, known: str) -> bool:
        """Return whether both statements say the same. Raises ProviderError when the model does not answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityThresholds:
    """The minimum similarity, in [0, 1], of duplicates, and that of related facts."""

    duplicate_min_cosine: float
    related_min_cosine: float


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A known fact near a new one. `canonical_id` is the fact that it duplicates, or its own id.

    `mergeable` is True if the two may be one fact; `since` is when it was stated or renewed.
    """

    canonical_id: UUID
    text: str
    cosine: float
    mergeable: bool
    is_current: bool
    state: str
    trust: Trust
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UncomparedFact:
    """A new fact with the most similar known facts."""

    memory_id: UUID
    text: str
    origin: str
    trust: Trust
    source: str
    since: datetime
    candidates: tuple[KnownFact, ...]


class FactChanges(NamedTuple):
    """The known facts that a new fact supersedes, those that were stated later and supersede it, and contested ones."""

    supersedes: tuple[UUID, ...] = ()
    superseded_by: tuple[UUID, ...] = ()
    contradicts: tuple[UUID, ...] = ()

    def replace_ids(self, originals: Mapping[UUID, UUID]) -> "FactChanges":
        """Return the changes with duplicates replaced by their originals."""
        return FactChanges(*(tuple(dict.fromkeys(originals.get(one, one) for one in ids)) for ids in self))


NO_CHANGES = FactChanges()


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupVerdict:
    """The result for a new fact: a duplicate, or the facts that it changes or is related to."""

    fact: UncomparedFact
    duplicate_of: UUID | None = None
    related: tuple[UUID, ...] = ()
    changes: FactChanges = NO_CHANGES


@dataclass(frozen=True, slots=True)
class DedupReport:
    """The numbers of facts compared, duplicates, facts related to others, and superseded and contradicted facts."""

    facts: int
    duplicates: int
    related: int
    superseded: int = 0
    contradicted: int = 0


async def deduplicate_facts(
    db: Database,
    ctx: LifecycleContext,
    thresholds: SimilarityThresholds,
    *,
    model_id: UUID,
    judge: SameFactJudge | None = None,
    limit: int | None = None,
) -> DedupReport:
    """Compare up to `limit` facts that have vectors and were not compared yet, oldest first.

    A fact is merged only into an older one, so concurrent runs agree. No transaction is open while the judge works.
    """
    facts = duplicates = related = superseded = contradicted = 0
    while limit is None or facts < limit:
        async with db.transaction(ctx.agent_id) as tx:
            batch = await _next_batch(tx, ctx, model_id, BATCH if limit is None else min(BATCH, limit - facts))
        if not batch:
            break
        verdicts = resolve_chains([await _ask_judge(decide_verdict(fact, thresholds), judge) for fact in batch])
        async with db.transaction(ctx.agent_id) as tx:
            stored = await _store_verdicts(tx, ctx, verdicts)
        facts += len(stored)
        duplicates += sum(v.duplicate_of is not None for v in stored)
        related += sum(bool(v.related) for v in stored)
        superseded += sum(len(v.changes.supersedes) + len(v.changes.superseded_by) for v in stored)
        contradicted += sum(len(v.changes.contradicts) for v in stored)
    return DedupReport(facts, duplicates, related, superseded, contradicted)


async def _next_batch(tx: Tx, ctx: LifecycleContext, model_id: UUID, limit: int) -> list[UncomparedFact]:
    agent_id = ctx.agent_id
    rows = await SQL["list_uncompared"].fetch_all(tx, agent_id=agent_id, model_id=model_id, max_rows=limit)
    memory_ids = [row["memory_id"] for row in rows]
    similar: defaultdict[UUID, list[KnownFact]] = defaultdict(list)
    for memory_id, *known in await SQL["find_similar"].fetch_all(
        tx, agent_id=agent_id, model_id=model_id, memory_ids=memory_ids, max_rows=MAX_CANDIDATES
    ):
        similar[memory_id].append(KnownFact(*known))
    return [UncomparedFact(**row, candidates=tuple(similar[row["memory_id"]])) for row in rows]


def decide_verdict(fact: UncomparedFact, thresholds: SimilarityThresholds) -> DedupVerdict:
    """Return the known fact that it duplicates, or else the facts that it replaces, contests or is related to. Pure."""
    same_min, near_min = thresholds.duplicate_min_cosine, thresholds.related_min_cosine
    duplicates: list[tuple[float, UUID]] = []
    related: list[UUID] = []
    for known in (known for known in fact.candidates if known.mergeable):
        result = compare_statements(fact.text, known.text, cosine=known.cosine, same_min=same_min, near_min=near_min)
        if result.verdict == "same":
            duplicates.append((result.similarity, known.canonical_id))
        elif result.verdict == "near":
            related.append(known.canonical_id)
    if duplicates:
        return DedupVerdict(fact=fact, duplicate_of=max(duplicates)[1])
    changes = find_changes(fact)
    changed = {known_id for ids in changes for known_id in ids}
    others = tuple(one for one in dict.fromkeys(related) if one not in changed)
    return DedupVerdict(fact=fact, related=others, changes=changes)


def find_changes(fact: UncomparedFact) -> FactChanges:
    """Return the current facts that the new one supersedes, is superseded by, or contradicts. Pure."""
    changes = defaultdict[str, list[UUID]](list)
    for known in fact.candidates[:MAX_COMPARED]:
        if known.is_current and known.canonical_id != fact.memory_id:
            changes[_classify_change(fact, known)].append(known.canonical_id)
    return FactChanges(*(tuple(changes[name]) for name in FactChanges._fields))


def _classify_change(fact: UncomparedFact, known: KnownFact) -> str:
    """Return the field of FactChanges for a known fact, or "none"."""
    is_newer = fact.since >= known.since
    texts = (known.text, fact.text) if is_newer else (fact.text, known.text)
    kind = detect_change(*texts, cosine=known.cosine).kind
    if kind == "compatible":
        return "none"
    if kind == "update" and not is_newer:
        return "superseded_by"
    return "supersedes" if kind == "update" and may_replace(fact.trust, known) else "contradicts"


def may_replace(trust: Trust, known: KnownFact) -> bool:
    """Return whether a statement may replace the known fact. Pure.

    Core facts and facts on safety are replaced only by a person's decision; see also `may_supersede`.
    """
    if known.state == "CORE" or _SAFETY_CRITICAL.search(known.text):
        return False
    return may_supersede(trust, known=known.trust, is_confirmed=known.state == "CONFIRMED")


async def _ask_judge(verdict: DedupVerdict, judge: SameFactJudge | None) -> DedupVerdict:
    """Ask the judge whether related facts are duplicates. Without an answer, a fact stays related."""
    if judge is None:
        return verdict
    texts = {k.canonical_id: k.text for k in reversed(verdict.fact.candidates)}
    for related_id in verdict.related:
        try:
            if await judge.is_same_fact(verdict.fact.text, texts[related_id]):
                return DedupVerdict(fact=verdict.fact, duplicate_of=related_id)
        except ProviderError:
            return verdict
    return replace(verdict, related=())


def resolve_chains(verdicts: Sequence[DedupVerdict]) -> list[DedupVerdict]:
    """Make each duplicate of a duplicate refer to the original fact. Verdicts must come oldest first. Pure."""
    originals: dict[UUID, UUID] = {}
    resolved: list[DedupVerdict] = []
    for verdict in verdicts:
        original = verdict.duplicate_of and originals.get(verdict.duplicate_of, verdict.duplicate_of)
        related = tuple(dict.fromkeys(originals.get(one, one) for one in verdict.related))
        if original:
            originals[verdict.fact.memory_id] = original
        changes = verdict.changes.replace_ids(originals)
        resolved.append(replace(verdict, duplicate_of=original, related=related, changes=changes))
    return resolved


async def _store_verdicts(tx: Tx, ctx: LifecycleContext, verdicts: Sequence[DedupVerdict]) -> list[DedupVerdict]:
    """Store and return the verdicts on facts that no other process has compared, and confirm the originals."""
    rows = await SQL["mark_compared"].fetch_all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[v.fact.memory_id for v in verdicts],
        duplicate_ids=[v.duplicate_of for v in verdicts],
    )
    marked = {row["memory_id"] for row in rows}
    stored = [v for v in verdicts if v.fact.memory_id in marked]
    await SQL["flatten_duplicates"].execute(tx, agent_id=ctx.agent_id)
    changes = [(v.fact.memory_id, other) for v in stored for other in v.changes.supersedes]
    changes += [(other, v.fact.memory_id) for v in stored for other in v.changes.superseded_by]
    await store.add_links(tx, "supersedes", changes, ctx=ctx)
    contested = [(v.fact.memory_id, other) for v in stored for other in v.changes.contradicts]
    await store.add_links(tx, "contradicts", contested, ctx=ctx)
    await store.add_links(tx, "near", [(v.fact.memory_id, other) for v in stored for other in v.related], ctx=ctx)
    duplicates = {v.fact.memory_id: (v.fact, v.duplicate_of) for v in stored if v.duplicate_of}
    originals = [original for _, original in duplicates.values()]
    await store.add_links(tx, "corroborates", list(zip(duplicates, originals, strict=True)), ctx=ctx)
    for fact, original in duplicates.values():
        confirmation = Confirmation(memory_id=original, ref=f"memory:{fact.memory_id}", source=fact.source)
        await store.confirm(tx, [confirmation], ctx=replace(ctx, origin=fact.origin, trust=fact.trust))
    await SQL["copy_confirmations"].execute(
        tx, agent_id=ctx.agent_id, memory_ids=list(duplicates), duplicate_ids=originals
    )
    await review(tx, ctx, "fact", [*duplicates, *originals, *(fact_id for pair in changes for fact_id in pair)])
    return stored
