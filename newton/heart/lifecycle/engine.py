"""Lifecycle engine: read the evidence of memories, plan transitions by the rules of their kind, apply them."""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.heart.lifecycle import censors, episodes, facts, procedures
from newton.heart.lifecycle.caps import caps_by_kind, plan_cap_transitions
from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.memory import Kind, WriteContext
from newton.memory.transitions import PlannedTransition, apply_transitions

SQL = load("newton.heart.lifecycle", "evidence.sql")

BATCH = 2_000
MAX_SUMMARIZED_CHARACTERS = 2_000  # of the full text of a summarized episode


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleContext(WriteContext):
    """A write context with the lifecycle thresholds."""

    thresholds: LifecycleThresholds


# Normalized subject and attribute.
AttributeKey = tuple[str, str]

LifecycleScope = Literal["fact", "episode", "procedure", "censor", "caps"]

PlanFunction = Callable[[Tx, LifecycleContext, Sequence[UUID]], Awaitable[list[PlannedTransition]]]
FollowUpFunction = Callable[[Tx, LifecycleContext, Sequence[UUID], Sequence[PlannedTransition]], Awaitable[None]]


async def run_lifecycle(
    db: Database, ctx: LifecycleContext, *, dry_run: bool = False, only: LifecycleScope | None = None
) -> list[PlannedTransition]:
    """Apply and return every due transition of an agent; with `dry_run`, only return them.

    `only` limits the run to one kind, or to the caps. Each batch is one transaction, and the run is idempotent, so it
    can be repeated after a crash.
    """
    return [step async for step in _iter_transitions(db, ctx, dry_run=dry_run, only=only)]


async def review(tx: Tx, ctx: LifecycleContext, kind: Kind, memory_ids: Sequence[UUID]) -> list[PlannedTransition]:
    """Apply the due transitions of a few memories in the transaction that changed their evidence."""
    if kind == "fact":
        rows = await SQL["find_affected_facts"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
        memory_ids = [row["memory_id"] for row in rows]
        await lock_attributes(tx, [(row["subject_key"], row["attribute"]) for row in rows if row["single"]], ctx=ctx)
    plan, follow = RULES[kind]
    due = await plan(tx, ctx, memory_ids)
    taken = await apply_transitions(tx, due, ctx=ctx)
    steps = [step for step in due if step.memory_id in taken]
    await follow(tx, ctx, memory_ids, steps)
    return steps


async def lock_attributes(tx: Tx, keys: Sequence[AttributeKey], *, ctx: WriteContext) -> None:
    """Lock the attributes' values against other writers until the transaction ends."""
    if keys:
        await SQL["lock_keys"].execute(
            tx, agent_id=ctx.agent_id, keys=[f"{subject}\n{attribute}" for subject, attribute in keys]
        )


async def _iter_transitions(
    db: Database, ctx: LifecycleContext, *, dry_run: bool, only: LifecycleScope | None
) -> AsyncIterator[PlannedTransition]:
    for kind, (plan, _) in RULES.items():
        if only not in (None, kind):
            continue
        async with db.transaction(ctx.agent_id) as tx:
            rows = await SQL["list_ids"].fetch_all(tx, agent_id=ctx.agent_id, kind=kind)
        for memory_ids in split_batches(rows):
            async with db.transaction(ctx.agent_id) as tx:
                steps = await plan(tx, ctx, memory_ids)
                if steps and not dry_run:
                    steps = await review(tx, ctx, kind, [step.memory_id for step in steps])
            for step in steps:
                yield step
    for kind, most in caps_by_kind(ctx.thresholds).items() if only in (None, "caps") else ():
        for step in await _apply_caps(db, ctx, kind, most, dry_run=dry_run):
            yield step


async def _apply_caps(
    db: Database, ctx: LifecycleContext, kind: Kind, limit: int, *, dry_run: bool
) -> list[PlannedTransition]:
    async with db.transaction(ctx.agent_id) as tx:
        due = await plan_cap_transitions(tx, kind, limit, ctx=ctx)
    if dry_run:
        return due
    taken = set[UUID]()
    for start in range(0, len(due), BATCH):
        async with db.transaction(ctx.agent_id) as tx:
            taken |= await apply_transitions(tx, due[start : start + BATCH], ctx=ctx)
    return [step for step in due if step.memory_id in taken]


def split_batches(rows: Sequence[Record]) -> Iterator[list[UUID]]:
    """Return the ids in batches that never separate the values of one single-valued attribute."""
    batch: list[UUID] = []
    for _, together in groupby(rows, key=_batch_key):
        batch += [row["memory_id"] for row in together]
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _batch_key(row: Record) -> object:
    return (row["subject_key"], row["attribute"]) if row["single"] else row["memory_id"]


async def _plan_facts(tx: Tx, ctx: LifecycleContext, memory_ids: Sequence[UUID]) -> list[PlannedTransition]:
    rows = await SQL["get_fact_evidence"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    return facts.plan([facts.FactEvidence(**row) for row in rows], ctx.thresholds, now=ctx.now)


async def _update_holds(
    tx: Tx, ctx: LifecycleContext, memory_ids: Sequence[UUID], steps: Sequence[PlannedTransition]
) -> None:
    """Update `is_current` of all reviewed facts; a new fact needs no transition to become current."""
    moved = [step.memory_id for step in steps]
    await SQL["update_current"].execute(tx, agent_id=ctx.agent_id, memory_ids=[*memory_ids, *moved])


async def _plan_episodes(tx: Tx, ctx: LifecycleContext, memory_ids: Sequence[UUID]) -> list[PlannedTransition]:
    rows = await SQL["get_episode_ages"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    return episodes.plan([episodes.EpisodeAge(**row) for row in rows], ctx.thresholds, now=ctx.now)


async def _archive_texts(
    tx: Tx, ctx: LifecycleContext, memory_ids: Sequence[UUID], steps: Sequence[PlannedTransition]
) -> None:
    """Move full texts to cold storage. A summarized episode keeps the beginning of its text, an archived one
    nothing.
    """
    agent_id, after = ctx.agent_id, {step.memory_id: step.to_state for step in steps}
    rows = await SQL["list_full_texts"].fetch_all(tx, agent_id=agent_id, memory_ids=list(after))
    texts = {
        row["memory_id"]: row["full_text"]
        for row in rows
        if after[row["memory_id"]] == "ARCHIVED" or len(row["full_text"]) > MAX_SUMMARIZED_CHARACTERS
    }
    if not texts:
        return
    packed = [zlib.compress(text.encode()) for text in texts.values()]
    await SQL["archive_texts"].execute(tx, agent_id=agent_id, memory_ids=list(texts), compressed_texts=packed)
    kept = [truncate_text(text) if after[memory_id] == "SUMMARIZED" else None for memory_id, text in texts.items()]
    await SQL["shorten_texts"].execute(tx, agent_id=agent_id, memory_ids=list(texts), texts=kept)


def truncate_text(text: str) -> str:
    """Return the first whole words of a text. Pure."""
    if len(text) <= MAX_SUMMARIZED_CHARACTERS:
        return text
    words = text[:MAX_SUMMARIZED_CHARACTERS].rsplit(maxsplit=1)
    return f"{words[0]} …" if words else "…"


async def _plan_procedures(tx: Tx, ctx: LifecycleContext, memory_ids: Sequence[UUID]) -> list[PlannedTransition]:
    rows = await SQL["get_procedure_records"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    return procedures.plan([procedures.ProcedureRecord(**row) for row in rows], ctx.thresholds)


async def _plan_censors(tx: Tx, ctx: LifecycleContext, memory_ids: Sequence[UUID]) -> list[PlannedTransition]:
    rows = await SQL["get_censor_records"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    return censors.plan([censors.CensorRecord(**row) for row in rows], ctx.thresholds)


async def _do_nothing(
    tx: Tx, ctx: LifecycleContext, memory_ids: Sequence[UUID], steps: Sequence[PlannedTransition]
) -> None:
    """Follow-up of kinds whose transitions change only the state."""


RULES: Mapping[Kind, tuple[PlanFunction, FollowUpFunction]] = {
    "fact": (_plan_facts, _update_holds),
    "episode": (_plan_episodes, _archive_texts),
    "procedure": (_plan_procedures, _do_nothing),
    "censor": (_plan_censors, _do_nothing),
}
