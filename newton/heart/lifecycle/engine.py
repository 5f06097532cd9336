"""Lifecycle engine: reads the evidence on memories (activations, caps), plans transitions by rules, applies them."""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Literal
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Database, Tx
from newton.db.queries import SqlQuery, load
from newton.errors import NotFoundError
from newton.heart.lifecycle import transition_rules
from newton.heart.lifecycle.transition_rules import LifecycleThresholds
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import ARCHIVED, Kind, ShortForms, WriteContext
from newton.memory.store import MemoryUpdate, PlannedTransition, add_links, apply_transitions
from newton.text.names import HALF_LIFE_DAYS, SALIENCE_PRIOR

SQL = load("newton.heart.lifecycle", "engine.sql")


def caps_by_kind(thresholds: LifecycleThresholds) -> Mapping[Kind, int]:
    """Return the maximum number of current memories of each kind (its cap), in the order in which caps are applied.

    Relations come before entities, because a current relation keeps its entities current.
    """
    return {
        "event": thresholds.max_events,
        "relation": thresholds.max_relations,
        "entity": thresholds.max_entities,
        "procedure": thresholds.max_procedures,
        "passage": thresholds.max_passages,
    }


async def plan_cap_transitions(tx: Tx, kind: Kind, limit: int, *, ctx: WriteContext) -> list[PlannedTransition]:
    """Return the changes of state after which the best `limit` memories of a kind are current, all others archived."""
    rows = await SQL["list_over_cap"].fetch_all(
        tx, agent_id=ctx.agent_id, kind=kind, cap=limit, enough=SALIENCE_PRIOR, now=ctx.now, half_life=HALF_LIFE_DAYS
    )
    kept, dropped = (
        f"it ranks among the best {limit:,} of its kind again",
        f"it ranks below the best {limit:,} of its kind",
    )
    return [
        PlannedTransition(row["memory_id"], "restored", row["state"], "ACTIVE", kept)
        if row["within"]
        else PlannedTransition(row["memory_id"], "archived", row["state"], ARCHIVED, dropped)
        for row in rows
    ]


BATCH = 2_000
MAX_SUMMARIZED_CHARACTERS = 2_000  # of the full text of a summarized episode


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleContext(WriteContext):
    """The provenance of a write (agent, time, origin and trust) together with the lifecycle thresholds."""

    thresholds: LifecycleThresholds


# Normalized subject and attribute.
AttributeKey = tuple[str, str]

LifecycleScope = Literal["fact", "episode", "procedure", "censor", "caps"]


@dataclass(frozen=True, slots=True)
class KindRules:
    """The lifecycle of one kind of memory: a query for the evidence, a planner of transitions, and a follow-up.

    The follow-up is called with the evidence and the transitions after they are applied.
    """

    evidence: SqlQuery
    plan: Callable[[Sequence[Record], LifecycleContext], list[PlannedTransition]]
    follow_up: Callable[[Tx, LifecycleContext, Sequence[Record], Sequence[PlannedTransition]], Awaitable[None]] | None


async def run_lifecycle(
    db: Database, ctx: LifecycleContext, *, dry_run: bool = False, only: LifecycleScope | None = None
) -> list[PlannedTransition]:
    """Apply and return every due change of state of an agent's memories; with `dry_run`, only return them.

    `only` restricts the run to one kind of memory, or to the caps. Each batch is one transaction. A run is idempotent.
    """
    steps = [step async for step in _iter_transitions(db, ctx, dry_run=dry_run, only=only)]
    if only in (None, "fact") and not dry_run:
        await _begin_facts(db, ctx)
    return steps


async def review(tx: Tx, ctx: LifecycleContext, kind: Kind, memory_ids: Sequence[UUID]) -> list[PlannedTransition]:
    """Apply and return the due changes of state of a few memories, in the transaction that changed their evidence."""
    if kind == "fact":
        rows = await SQL["find_affected_facts"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
        memory_ids = [row["memory_id"] for row in rows]
        await lock_attributes(tx, [(row["subject_key"], row["attribute"]) for row in rows if row["single"]], ctx=ctx)
    rules = RULES[kind]
    evidence = await rules.evidence.fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    due = rules.plan(evidence, ctx)
    changed = await apply_transitions(tx, due, ctx=ctx)
    steps = [step for step in due if step.memory_id in changed]
    if rules.follow_up:
        await rules.follow_up(tx, ctx, evidence, steps)
    return steps


async def read_successors(tx: Tx, fact_id: UUID, *, agent_id: UUID, now: datetime) -> dict[UUID, UUID]:
    """Return which fact superseded which, among the facts with the same subject and attribute as a fact.

    The result maps the id of each superseded fact to the id of the fact that superseded it.
    """
    rows = await SQL["get_fact_evidence"].fetch_all(tx, agent_id=agent_id, memory_ids=[fact_id])
    values = [transition_rules.FactEvidence(**row) for row in rows]
    return {older: later.memory_id for older, later in transition_rules.find_successors(values, now=now).items()}


async def _plan(tx: Tx, ctx: LifecycleContext, kind: Kind, memory_ids: Sequence[UUID]) -> list[PlannedTransition]:
    """Return the transitions of memories that are due by the rules of their kind, without applying them."""
    rules = RULES[kind]
    return rules.plan(await rules.evidence.fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids), ctx)


async def lock_attributes(tx: Tx, keys: Sequence[AttributeKey], *, ctx: WriteContext) -> None:
    """Lock attributes of subjects against other writers until the transaction ends."""
    if keys:
        await SQL["lock_keys"].execute(tx, agent_id=ctx.agent_id, keys=["\n".join(key) for key in keys])


async def _iter_transitions(
    db: Database, ctx: LifecycleContext, *, dry_run: bool, only: LifecycleScope | None
) -> AsyncIterator[PlannedTransition]:
    """Yield the changes of state of each kind, in batches of one transaction each, and then those by the caps."""
    for kind in RULES:
        if only not in (None, kind):
            continue
        async with db.transaction(ctx.agent_id) as tx:
            rows = await SQL["list_ids"].fetch_all(tx, agent_id=ctx.agent_id, kind=kind)
        for memory_ids in split_batches(rows):
            async with db.transaction(ctx.agent_id) as tx:
                steps = await _plan(tx, ctx, kind, memory_ids)
                if steps and not dry_run:
                    steps = await review(tx, ctx, kind, [step.memory_id for step in steps])
            for step in steps:
                yield step
    for kind, cap in caps_by_kind(ctx.thresholds).items() if only in (None, "caps") else ():
        for step in await _apply_cap(db, ctx, kind, cap, dry_run=dry_run):
            yield step


async def _begin_facts(db: Database, ctx: LifecycleContext) -> None:
    """Make facts current if their period of validity has begun."""
    async with db.transaction(ctx.agent_id) as tx:
        latest_start = ctx.now + transition_rules.MAX_CLOCK_SKEW
        rows = await SQL["list_started"].fetch_all(tx, agent_id=ctx.agent_id, latest_start=latest_start)
        if rows:
            await review(tx, ctx, "fact", [row["memory_id"] for row in rows])


async def _apply_cap(
    db: Database, ctx: LifecycleContext, kind: Kind, limit: int, *, dry_run: bool
) -> list[PlannedTransition]:
    async with db.transaction(ctx.agent_id) as tx:
        due = await plan_cap_transitions(tx, kind, limit, ctx=ctx)
    if dry_run:
        return due
    changed = set[UUID]()
    for start in range(0, len(due), BATCH):
        async with db.transaction(ctx.agent_id) as tx:
            changed |= await apply_transitions(tx, due[start : start + BATCH], ctx=ctx)
    return [step for step in due if step.memory_id in changed]


def split_batches(rows: Sequence[Record]) -> Iterator[list[UUID]]:
    """Yield memory ids in batches. All facts on one single-valued attribute of a subject are in one batch."""
    batch: list[UUID] = []
    for _, group in groupby(rows, key=_batch_key):
        batch += [row["memory_id"] for row in group]
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _batch_key(row: Record) -> object:
    return (row["subject_key"], row["attribute"]) if row["single"] else row["memory_id"]


async def _update_current(
    tx: Tx, ctx: LifecycleContext, evidence: Sequence[Record], transitions: Sequence[PlannedTransition]
) -> None:
    """Update `is_current` of all reviewed facts, and link those that contradict each other.

    This includes facts without a transition, because a new fact becomes current without one.
    """
    reviewed = [transition_rules.FactEvidence(**row) for row in evidence]
    await add_links(tx, "contradicts", transition_rules.find_contested_values(reviewed, now=ctx.now), ctx=ctx)
    memory_ids = [fact.memory_id for fact in reviewed]
    latest_start = ctx.now + transition_rules.MAX_CLOCK_SKEW
    await SQL["update_current"].execute(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, latest_start=latest_start)


async def _archive_texts(
    tx: Tx, ctx: LifecycleContext, evidence: Sequence[Record], transitions: Sequence[PlannedTransition]
) -> None:
    """Move the full texts of summarized and archived episodes to compressed storage.

    A summarized episode keeps the beginning of its text.
    """
    agent_id, after = ctx.agent_id, {step.memory_id: step.to_state for step in transitions}
    rows = await SQL["list_full_texts"].fetch_all(tx, agent_id=agent_id, memory_ids=list(after))
    texts = {
        row["memory_id"]: row["full_text"]
        for row in rows
        if after[row["memory_id"]] == "ARCHIVED" or len(row["full_text"]) > MAX_SUMMARIZED_CHARACTERS
    }
    if not texts:
        return
    compressed = [zlib.compress(text.encode()) for text in texts.values()]
    await SQL["archive_texts"].execute(tx, agent_id=agent_id, memory_ids=list(texts), compressed_texts=compressed)
    shortened = [truncate_text(text) if after[i] == "SUMMARIZED" else None for i, text in texts.items()]
    await SQL["shorten_texts"].execute(tx, agent_id=agent_id, memory_ids=list(texts), texts=shortened)


async def _mark_ineffective(
    tx: Tx, ctx: LifecycleContext, evidence: Sequence[Record], transitions: Sequence[PlannedTransition]
) -> None:
    """Mark the summaries of procedures that became ineffective, and remove the mark where they no longer are."""
    changed = [step.memory_id for step in transitions if "INEFFECTIVE" in (step.from_state, step.to_state)]
    if not changed:
        return
    rows = await SQL["list_short_forms"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=changed)
    updates = [MemoryUpdate(memory_id=row["memory_id"], forms=_mark_forms(row, ctx)) for row in rows]
    await store.update_memories(tx, updates, ctx=ctx)


def _mark_forms(row: Record, ctx: LifecycleContext) -> ShortForms:
    forms = ShortForms(row["micro"], row["summary"], row["micro_tokens"], row["summary_tokens"])
    return transition_rules.mark_forms(forms, row["state"], count_tokens=ctx.count_tokens)


def truncate_text(text: str) -> str:
    """Return at most MAX_SUMMARIZED_CHARACTERS of a text, cut after a whole word. Pure."""
    if len(text) <= MAX_SUMMARIZED_CHARACTERS:
        return text
    words = text[:MAX_SUMMARIZED_CHARACTERS].rsplit(maxsplit=1)
    return f"{words[0]} …" if words else "…"


RULES: Mapping[Kind, KindRules] = {
    "fact": KindRules(
        SQL["get_fact_evidence"],
        lambda rows, ctx: transition_rules.plan_facts(
            [transition_rules.FactEvidence(**row) for row in rows], ctx.thresholds, now=ctx.now
        ),
        _update_current,
    ),
    "episode": KindRules(
        SQL["get_episode_ages"],
        lambda rows, ctx: transition_rules.plan_episodes(
            [transition_rules.EpisodeAge(**row) for row in rows], ctx.thresholds, now=ctx.now
        ),
        _archive_texts,
    ),
    "procedure": KindRules(
        SQL["get_procedure_records"],
        lambda rows, ctx: transition_rules.plan_procedures(
            [transition_rules.ProcedureRecord(**row) for row in rows], ctx.thresholds
        ),
        _mark_ineffective,
    ),
    "censor": KindRules(
        SQL["get_censor_records"],
        lambda rows, ctx: transition_rules.plan_censors(
            [transition_rules.CensorRecord(**row) for row in rows], ctx.thresholds
        ),
        None,
    ),
}


TrackedKind = Literal["procedure", "censor"]
ActivationResult = Literal["success", "failure", "neutral", "false_positive"]


async def record_activations(
    tx: Tx, kind: TrackedKind, memory_ids: Sequence[UUID], *, stage: str, ctx: LifecycleContext
) -> list[UUID]:
    """Record one use of each procedure, or one match of each censor; return the activation ids in the same order.

    The transitions that become due, such as the escalation of a censor, are applied at once.
    """
    if not memory_ids:
        return []
    activation_ids = [new_id() for _ in memory_ids]
    await SQL["insert_activations"].execute(
        tx, agent_id=ctx.agent_id, memory_ids=memory_ids, activation_ids=activation_ids, stage=stage, now=ctx.now
    )
    await SQL["count_use"].execute(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, now=ctx.now)
    await review(tx, ctx, kind, memory_ids)
    return activation_ids


async def record_result(
    tx: Tx,
    kind: TrackedKind,
    memory_id: UUID,
    result: ActivationResult,
    *,
    activation: UUID | None = None,
    ctx: LifecycleContext,
) -> None:
    """Store the result of one activation of a memory.

    Without `activation`, it is the latest one that has no result yet. Raises NotFoundError if there is none.
    """
    rows = await SQL["set_result"].fetch_all(
        tx, agent_id=ctx.agent_id, memory_id=memory_id, activation_id=activation, result=result, now=ctx.now
    )
    if not rows:
        raise NotFoundError(
            f"The {kind} has no recorded use that still lacks a result.", hint=f"Record a use of the {kind} first."
        )
    await review(tx, ctx, kind, [memory_id])
