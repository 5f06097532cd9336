"""Comparison of each new fact with similar known facts, which it may duplicate, supersede or contradict."""

import asyncio
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.heart.facts import fact_store
from newton.heart.facts.fact_edits import merge_duplicates
from newton.heart.facts.partial_changes import judge_parts, split_parts
from newton.heart.facts.restatements import compare_restated
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.heart.speakers import concerns_safety, may_replace
from newton.heart.statements.change_cues import load_cues
from newton.heart.statements.change_detection import (
    ChangeKind,
    ChangeVerdict,
    detect_change,
    is_comparable,
    load_model,
    names_topic,
)
from newton.ids import derive_model_id
from newton.memory import store
from newton.memory.memory import Trust
from newton.memory.store import MemoryConfirmation
from newton.providers.embedding import Vector
from newton.providers.minilm import read_pairs

SQL = load("newton.heart.facts", "fact_comparison.sql")

BATCH = 64  # facts that are listed at once
MAX_CANDIDATES = 32
MAX_COMPARED = 8  # of the current candidates, for changes
_GOING_ON = re.compile(
    r"\b(?:stays?|remains?|still|unchanged|as before|where it (?:is|was)|bleib(?:t|en)|weiterhin|nach wie vor"
    r"|sigue[ns]?|todavía|reste(?:nt)?|toujours)\b",
    re.IGNORECASE,
)
REPEATED_MIN_COSINE = 0.65  # of two statements of which one has all words of the other
SAFETY_UNSURE_MIN = 0.1  # probability from which a statement contests a fact on safety


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A known fact that is similar to a new one.

    `canonical_id` is its own id or, if it is a duplicate, that of the original. `mergeable` means that both may be one
    fact, `is_later` that it was stated after the new one, `is_multi_valued` that both have an attribute that a person
    declared multi-valued, and `is_vouched` that a person confirmed it. `since` is the time at which it was last stated.
    `vector` is None unless it is of the embedding model for which change detection was trained.
    """

    canonical_id: UUID
    text: str
    cosine: float
    mergeable: bool
    is_later: bool
    is_current: bool
    state: str
    trust: Trust
    since: datetime
    is_multi_valued: bool
    is_vouched: bool
    vector: Vector | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UncomparedFact:
    """A new fact, and the most similar known facts as `candidates`, which are empty until the search.

    `is_reconciled` means that a model stated the fact after it had seen the similar known facts.
    """

    memory_id: UUID
    source: str
    origin: str
    text: str
    state: str
    trust: Trust
    since: datetime
    is_vouched: bool
    is_reconciled: bool
    vector: Vector | None
    candidates: tuple[KnownFact, ...] = ()


IdPair = tuple[UUID, UUID]
Readings = Mapping[tuple[str, str], float]
NO_READINGS: Readings = {}


class FactChanges(NamedTuple):
    """The ids of known facts that cannot be current together with a new fact.

    `supersedes` are those that the new fact supersedes, `superseded_by` those that were stated later and supersede it,
    and `contradicts` those that contradict it, on which a person decides.
    """

    supersedes: tuple[UUID, ...] = ()
    superseded_by: tuple[UUID, ...] = ()
    contradicts: tuple[UUID, ...] = ()


NO_CHANGES = FactChanges()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonVerdict:
    """The result for a new fact: the fact that it duplicates, or else the facts that it changes or is related to.

    `repeats` are the current facts that it states again, while it says more or less. `rests` are what facts say besides
    what changes in them, by the id of the fact.
    """

    fact: UncomparedFact
    duplicate_of: UUID | None = None
    repeats: tuple[UUID, ...] = ()
    related: tuple[UUID, ...] = ()
    changes: FactChanges = NO_CHANGES
    rests: Mapping[UUID, Sequence[str]] = field(default_factory=dict[UUID, Sequence[str]])


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """The counts of facts compared, and of the duplicates, related, superseded and contradicted facts found."""

    facts: int
    duplicates: int
    related: int
    superseded: int = 0
    contradicted: int = 0


async def compare_facts(
    db: Database,
    ctx: LifecycleContext,
    *,
    model_id: UUID,
    limit: int | None = None,
) -> ComparisonReport:
    """Compare up to `limit` facts that have vectors and were not compared yet, in the order in which they were stated.

    Each fact is compared after the changes by those before it are stored, so the result does not depend on how many are
    compared at once.
    """
    counts = Counter[str]()
    while limit is None or counts["facts"] < limit:
        async with db.transaction(ctx.agent_id) as tx:
            batch = await _next_batch(
                tx, ctx, model_id, BATCH if limit is None else min(BATCH, limit - counts["facts"])
            )
        if not batch:
            break
        for fact in batch:
            async with db.transaction(ctx.agent_id) as tx:
                found = replace(fact, candidates=await _find_candidates(tx, ctx, model_id, fact.memory_id))
            readings = await asyncio.to_thread(read_changes, found)
            verdict = decide_verdict(found, readings)
            async with db.transaction(ctx.agent_id) as tx:
                if await _store_verdict(tx, ctx, verdict):
                    counts.update(
                        facts=1,
                        duplicates=verdict.duplicate_of is not None,
                        related=bool(verdict.related),
                        superseded=len(verdict.changes.supersedes) + len(verdict.changes.superseded_by),
                        contradicted=len(verdict.changes.contradicts),
                    )
    return ComparisonReport(
        *(counts[name] for name in ("facts", "duplicates", "related", "superseded", "contradicted"))
    )


async def _next_batch(tx: Tx, ctx: LifecycleContext, model_id: UUID, limit: int) -> list[UncomparedFact]:
    rows = await SQL["list_uncompared"].fetch_all(tx, agent_id=ctx.agent_id, model_id=model_id, max_rows=limit)
    return [UncomparedFact(**_to_fields(row, model_id)) for row in rows]


async def _find_candidates(tx: Tx, ctx: LifecycleContext, model_id: UUID, memory_id: UUID) -> tuple[KnownFact, ...]:
    rows = await SQL["find_similar"].fetch_all(
        tx, agent_id=ctx.agent_id, model_id=model_id, memory_id=memory_id, max_rows=MAX_CANDIDATES
    )
    return tuple(KnownFact(**_to_fields(row, model_id)) for row in rows)


def _to_fields(row: Record, model_id: UUID) -> dict[str, Any]:
    is_known = model_id == derive_model_id(load_model().vector_model)
    return {**row, "vector": row["vector"].to_numpy().astype("float32") if is_known else None}


def read_changes(fact: UncomparedFact) -> Readings:
    """Return the transformer's score by pair (older text, newer text) of the new fact and each comparable known one.

    Of a known fact that the new one changes in part, the pairs of each part and the new one count too.
    """
    compared = [(known, *_in_order(fact, known)) for known in _list_compared(fact)]
    pairs = [(old.text, new.text) for one, old, new in compared if is_comparable(old.text, new.text, cosine=one.cosine)]
    readings = read_pairs(pairs)
    partial = [(old.text, new.text) for one, old, new in compared if _detect(fact, one, readings).is_partial]
    return readings | read_pairs([(part.text, newer) for older, newer in partial for part in split_parts(older)])


def decide_verdict(fact: UncomparedFact, readings: Readings = NO_READINGS) -> ComparisonVerdict:
    """Return which known fact a new fact duplicates, or else which ones it changes or is related to. Pure."""
    duplicates: list[tuple[float, UUID]] = []
    related, repeated = list[UUID](), list[UUID]()
    for known in (known for known in fact.candidates if known.mergeable):
        result = compare_restated(fact.text, known.text, cosine=known.cosine)
        if result.verdict == "same":
            duplicates.append((result.similarity, known.canonical_id))
        elif result.verdict == "near":
            related.append(known.canonical_id)
        if result.contained and known.is_current and known.cosine >= REPEATED_MIN_COSINE:
            repeated += [known.canonical_id] if _detect(fact, known, readings).kind == "compatible" else []
    if duplicates:
        return ComparisonVerdict(fact=fact, duplicate_of=max(duplicates)[1])
    changes = find_changes(fact, readings)
    changed = {known_id for ids in changes for known_id in ids}
    others = tuple(one for one in dict.fromkeys(related) if one not in changed)
    repeats = tuple(one for one in dict.fromkeys(repeated) if one not in changed)
    replaced = {*changes.supersedes, *([fact.memory_id] if changes.superseded_by else [])}
    rests = {one: rest for one, rest in _list_rests(fact, readings) if one in replaced}
    return ComparisonVerdict(fact=fact, related=others, repeats=repeats, changes=changes, rests=rests)


def _list_rests(fact: UncomparedFact, readings: Readings) -> Iterator[tuple[UUID, Sequence[str]]]:
    """Yield the ids of facts that change only in part, each with what it says besides."""
    for known in _list_compared(fact):
        older, newer = _in_order(fact, known)
        if _detect(fact, known, readings).is_partial:
            rest = judge_parts(older.text, newer.text, readings)[1]
            yield known.canonical_id if older is known else fact.memory_id, rest


def find_changes(fact: UncomparedFact, readings: Readings = NO_READINGS) -> FactChanges:
    """Return the ids of current facts that the new one supersedes, is superseded by, or contradicts. Pure.

    A statement is assumed to change one thing. If some pairs of the new and a known fact are clear replacements, only
    the clearest one counts, with the other versions of its known fact: the one that the reader is surest of. If none is
    clear, the known fact with the highest probability of a replacement and all facts about safety count; those in doubt
    are in `contradicts`.
    `readings` are the scores from `read_changes`.
    """
    verdicts = [(known, _detect(fact, known, readings)) for known in _list_compared(fact)]
    clear = [
        (_read_or(readings, fact, known, verdict.probability), n)
        for n, (known, verdict) in enumerate(verdicts)
        if verdict.kind == "update"
    ]
    if clear:
        best = verdicts[max(clear)[1]][0]
        verdicts = [(k, v) for k, v in verdicts if k is best or (v.kind == "update" and _is_version(k, best))]
    else:
        highest = max((v.probability for _, v in verdicts), default=0.0)
        verdicts = [(k, v) for k, v in verdicts if v.probability == highest or concerns_safety(k.text)]
    changes = defaultdict[str, list[UUID]](list)
    for known, verdict in verdicts:
        changes[_classify_change(fact, known, verdict.kind)].append(known.canonical_id)
    return FactChanges(*(tuple(changes[name]) for name in FactChanges._fields))


def _list_compared(fact: UncomparedFact) -> list[KnownFact]:
    """Return the current known facts to compare with the new one, the nearest first.

    Facts that a model stated from the same line are not compared, because the model has told them apart.
    """
    compared = [k for k in fact.candidates if k.is_current and not k.is_multi_valued][:MAX_COMPARED]
    apart = [one for one in compared if not (fact.is_reconciled and one.since == fact.since)]
    return [known for known in apart if known.canonical_id != fact.memory_id]


def _in_order(fact: UncomparedFact, known: KnownFact) -> tuple[UncomparedFact | KnownFact, UncomparedFact | KnownFact]:
    return (fact, known) if known.is_later else (known, fact)


def _read_or(readings: Readings, fact: UncomparedFact, known: KnownFact, default: float) -> float:
    older, newer = _in_order(fact, known)
    return readings.get((older.text, newer.text), default)


def _detect(fact: UncomparedFact, known: KnownFact, readings: Readings) -> ChangeVerdict:
    """Return the verdict on whether the later of the two facts replaces the earlier one."""
    older, newer = _in_order(fact, known)
    reading = _read_or(readings, fact, known, math.nan)
    verdict = detect_change(older.text, newer.text, cosine=known.cosine, reading=reading)
    if verdict.is_partial:
        verdict = verdict._replace(kind=judge_parts(older.text, newer.text, readings)[0])
    if verdict.kind == "update" and _goes_on(older.text, newer.text):
        return verdict._replace(kind="compatible")
    if verdict.kind == "unsure" and _repeats(older, newer, known.cosine):
        return verdict._replace(kind="compatible")
    is_possible = verdict.kind == "compatible" and verdict.probability >= SAFETY_UNSURE_MIN
    if is_possible and concerns_safety(older.text) and names_topic(older.text, newer.text):
        return verdict._replace(kind="unsure")
    return verdict


def _repeats(older: UncomparedFact | KnownFact, newer: UncomparedFact | KnownFact, cosine: float) -> bool:
    """Return whether the newer statement says the older one again; on safety, only if it says all of it."""
    contained = compare_restated(newer.text, older.text, cosine=cosine).contained
    allowed = ("known",) if concerns_safety(older.text) else ("known", "new")
    return cosine >= REPEATED_MIN_COSINE and contained in allowed


def _goes_on(older: str, newer: str) -> bool:
    """Return whether the newer statement says that the older one still holds, without a new number."""
    if not _GOING_ON.search(newer) or load_cues().cues["negation"].search(newer):
        return False
    newer_numbers, older_numbers = (set(re.findall(r"\d+", text)) for text in (newer, older))
    return newer_numbers <= older_numbers


def _is_version(known: KnownFact, best: KnownFact) -> bool:
    """Return whether one of two known facts replaces the other, so that both are versions of one fact."""
    if known.vector is None or best.vector is None:
        return False
    return detect_change(known.text, best.text, cosine=float(known.vector @ best.vector)).kind == "update"


def _classify_change(fact: UncomparedFact, known: KnownFact, kind: ChangeKind) -> str:
    """Return the name of the field of FactChanges to which a known fact belongs, or "none"."""
    older, newer = _in_order(fact, known)
    # a model that read both facts knows better than a doubt of change detection, and names what a line replaces
    is_told_apart = fact.is_reconciled and (kind == "unsure" or not names_topic(older.text, newer.text))
    if kind == "compatible" or is_told_apart:
        return "none"
    vouched = older.is_vouched
    if kind == "unsure" or not may_replace(
        newer.trust, older.text, state=older.state, trust=older.trust, is_vouched=vouched
    ):
        return "contradicts"
    return "superseded_by" if known.is_later else "supersedes"


async def _recheck_changes(
    tx: Tx, ctx: LifecycleContext, fact_id: UUID, found: FactChanges
) -> tuple[list[IdPair], list[IdPair]]:
    """Read the facts of the changes again; return the pairs to link as superseding and as contradicting.

    A fact may have changed since the comparison, and the original of a duplicate may have another trust than the
    duplicate.
    """
    planned = [(fact_id, other) for other in found.supersedes] + [(other, fact_id) for other in found.superseded_by]
    contested = [(fact_id, other) for other in found.contradicts]
    ids = {memory_id for pair in (*planned, *contested) for memory_id in pair}
    rows = await SQL["lock_versions"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=sorted(ids)) if ids else []
    versions = {row["memory_id"]: row for row in rows if not row["is_retracted"]}
    planned = [pair for pair in planned if versions.keys() >= set(pair)]
    allowed = [pair for pair in planned if _may_follow(versions[pair[0]], versions[pair[1]])]
    contested = [pair for pair in (*contested, *planned) if versions.keys() >= set(pair) and pair not in allowed]
    return allowed, contested


def _may_follow(newer: Record, older: Record) -> bool:
    return may_replace(
        newer["trust"], older["text"], state=older["state"], trust=older["trust"], is_vouched=older["is_vouched"]
    )


async def _store_verdict(tx: Tx, ctx: LifecycleContext, verdict: ComparisonVerdict) -> bool:
    """Store the verdict, and return True, unless another process has compared the fact meanwhile."""
    memory_id = verdict.fact.memory_id
    if not await SQL["mark_compared"].fetch_all(tx, agent_id=ctx.agent_id, memory_id=memory_id):
        return False
    changes, contested = await _recheck_changes(tx, ctx, memory_id, verdict.changes)
    near = [(memory_id, other) for other in verdict.related]
    await store.add_links(tx, "supersedes", changes, ctx=ctx)
    await store.add_links(tx, "contradicts", contested, ctx=ctx)
    await store.add_links(tx, "near", near, ctx=ctx)
    if verdict.duplicate_of:
        await merge_duplicates(tx, [(memory_id, verdict.duplicate_of)], ctx=ctx)
    await _confirm_repeated(tx, ctx, verdict)
    if changed := [memory_id for pair in (*changes, *contested) for memory_id in pair]:
        await review(tx, ctx, "fact", changed)
    await fact_store.keep_rest(tx, changes, ctx=ctx, rests=verdict.rests)
    return True


async def _confirm_repeated(tx: Tx, ctx: LifecycleContext, verdict: ComparisonVerdict) -> None:
    """Confirm the facts that the new one states again, as by a statement in the same words."""
    fact, ref = verdict.fact, f"memory:{verdict.fact.memory_id}"
    confirmed = [MemoryConfirmation(memory_id=one, ref=ref, source=fact.source) for one in verdict.repeats]
    await store.confirm(tx, confirmed, ctx=replace(ctx, origin=fact.origin, trust=fact.trust))
    await review(tx, ctx, "fact", list(verdict.repeats))
