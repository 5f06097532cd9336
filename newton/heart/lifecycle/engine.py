"""Moves memories through their lives: reads what is known of them, asks the rules, takes the steps that are due."""

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
from newton.heart.lifecycle.caps import caps, crossing
from newton.heart.lifecycle.thresholds import Thresholds
from newton.memory.memory import Kind, Teller
from newton.memory.transitions import Step, move

SQL = load("newton.heart.lifecycle", "lives.sql")

BATCH = 2_000
KEPT_CHARACTERS = 2_000  # of the full text of a summarized episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground(Teller):
    """A write context with the thresholds by which memories change their state."""

    thresholds: Thresholds


# Subject and attribute as they are compared.
Key = tuple[str, str]

Living = Literal["fact", "episode", "procedure", "censor", "caps"]

Plan = Callable[[Tx, Ground, Sequence[UUID]], Awaitable[list[Step]]]
Follow = Callable[[Tx, Ground, Sequence[UUID], Sequence[Step]], Awaitable[None]]


async def live(db: Database, ctx: Ground, *, dry: bool = False, only: Living | None = None) -> list[Step]:
    """Takes every step that is due for this agent and returns them; with `dry` they are only returned. `only` those of
    one kind, or those that keep kinds within their caps.

    Each batch commits whole. Run again, or after a crash at any point, it does what is left and nothing twice.
    """
    return [step async for step in _steps(db, ctx, dry=dry, only=only)]


async def review(tx: Tx, ctx: Ground, kind: Kind, memory_ids: Sequence[UUID]) -> list[Step]:
    """The same for a few memories whose evidence has just changed, in the unit of work that changed it."""
    if kind == "fact":
        rows = await SQL["find_affected_facts"].all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
        memory_ids = [row["memory_id"] for row in rows]
        await lock(tx, [(row["subject_key"], row["attribute"]) for row in rows if row["single"]], ctx=ctx)
    plan, follow = RULES[kind]
    due = await plan(tx, ctx, memory_ids)
    taken = await move(tx, due, ctx=ctx)
    steps = [step for step in due if step.memory_id in taken]
    await follow(tx, ctx, memory_ids, steps)
    return steps


async def lock(tx: Tx, keys: Sequence[Key], *, ctx: Teller) -> None:
    """Until the end of the unit of work nobody else writes values of these attributes."""
    if keys:
        await SQL["lock_keys"].run(
            tx, agent_id=ctx.agent_id, keys=[f"{subject}\n{attribute}" for subject, attribute in keys]
        )


async def _steps(db: Database, ctx: Ground, *, dry: bool, only: Living | None) -> AsyncIterator[Step]:
    for kind, (plan, _) in RULES.items():
        if only not in (None, kind):
            continue
        async with db.work(ctx.agent_id) as tx:
            rows = await SQL["list_ids"].all(tx, agent_id=ctx.agent_id, kind=kind)
        for memory_ids in batches(rows):
            async with db.work(ctx.agent_id) as tx:
                steps = await plan(tx, ctx, memory_ids)
                if steps and not dry:
                    steps = await review(tx, ctx, kind, [step.memory_id for step in steps])
            for step in steps:
                yield step
    for kind, most in caps(ctx.thresholds).items() if only in (None, "caps") else ():
        for step in await _capped(db, ctx, kind, most, dry=dry):
            yield step


async def _capped(db: Database, ctx: Ground, kind: Kind, most: int, *, dry: bool) -> list[Step]:
    async with db.work(ctx.agent_id) as tx:
        due = await crossing(tx, kind, most, ctx=ctx)
    if dry:
        return due
    taken = set[UUID]()
    for start in range(0, len(due), BATCH):
        async with db.work(ctx.agent_id) as tx:
            taken |= await move(tx, due[start : start + BATCH], ctx=ctx)
    return [step for step in due if step.memory_id in taken]


def batches(rows: Sequence[Record]) -> Iterator[list[UUID]]:
    """The ids in portions; the values of one single-valued attribute are never parted."""
    batch: list[UUID] = []
    for _, together in groupby(rows, key=_whole):
        batch += [row["memory_id"] for row in together]
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _whole(row: Record) -> object:
    return (row["subject_key"], row["attribute"]) if row["single"] else row["memory_id"]


async def _plan_facts(tx: Tx, ctx: Ground, memory_ids: Sequence[UUID]) -> list[Step]:
    rows = await SQL["get_fact_evidence"].all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    return facts.plan([facts.Life(**row) for row in rows], ctx.thresholds, now=ctx.now)


async def _hold(tx: Tx, ctx: Ground, memory_ids: Sequence[UUID], steps: Sequence[Step]) -> None:
    """Of all of them: a new fact takes no step, and holds from now on."""
    moved = [step.memory_id for step in steps]
    await SQL["update_current"].run(tx, agent_id=ctx.agent_id, memory_ids=[*memory_ids, *moved])


async def _plan_episodes(tx: Tx, ctx: Ground, memory_ids: Sequence[UUID]) -> list[Step]:
    rows = await SQL["get_episode_ages"].all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    return episodes.plan([episodes.Life(**row) for row in rows], ctx.thresholds, now=ctx.now)


async def _shorten(tx: Tx, ctx: Ground, memory_ids: Sequence[UUID], steps: Sequence[Step]) -> None:
    """Full texts go to cold storage; a summarized episode keeps the beginning of its own, an archived one none."""
    agent_id, after = ctx.agent_id, {step.memory_id: step.after for step in steps}
    rows = await SQL["list_full_texts"].all(tx, agent_id=agent_id, memory_ids=list(after))
    texts = {
        row["memory_id"]: row["full_text"]
        for row in rows
        if after[row["memory_id"]] == "ARCHIVED" or len(row["full_text"]) > KEPT_CHARACTERS
    }
    if not texts:
        return
    packed = [zlib.compress(text.encode()) for text in texts.values()]
    await SQL["archive_texts"].run(tx, agent_id=agent_id, memory_ids=list(texts), compressed_texts=packed)
    kept = [beginning(text) if after[memory_id] == "SUMMARIZED" else None for memory_id, text in texts.items()]
    await SQL["shorten_texts"].run(tx, agent_id=agent_id, memory_ids=list(texts), texts=kept)


def beginning(text: str) -> str:
    """The first whole words of it. Pure."""
    if len(text) <= KEPT_CHARACTERS:
        return text
    words = text[:KEPT_CHARACTERS].rsplit(maxsplit=1)
    return f"{words[0]} …" if words else "…"


async def _plan_procedures(tx: Tx, ctx: Ground, memory_ids: Sequence[UUID]) -> list[Step]:
    rows = await SQL["get_procedure_records"].all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    return procedures.plan([procedures.Life(**row) for row in rows], ctx.thresholds)


async def _plan_censors(tx: Tx, ctx: Ground, memory_ids: Sequence[UUID]) -> list[Step]:
    rows = await SQL["get_censor_records"].all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    return censors.plan([censors.Life(**row) for row in rows], ctx.thresholds)


async def _nothing(tx: Tx, ctx: Ground, memory_ids: Sequence[UUID], steps: Sequence[Step]) -> None:
    """The state is all that changes."""


RULES: Mapping[Kind, tuple[Plan, Follow]] = {
    "fact": (_plan_facts, _hold),
    "episode": (_plan_episodes, _shorten),
    "procedure": (_plan_procedures, _nothing),
    "censor": (_plan_censors, _nothing),
}
