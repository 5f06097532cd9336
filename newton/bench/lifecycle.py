"""`newton bench lifecycle`: the duration of the daily maintenance job, with many state changes due and with none."""

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar

from rich.console import Console
from rich.table import Table

from newton.bench.environment import AtLeastOne, open_environment, vacuum_analyze
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.clock import SystemClock, monotonic_ms
from newton.content.skills import SkillFile
from newton.db.pool import Tx
from newton.heart import activations, censors, episodes, procedures
from newton.heart.activations import ActivationResult
from newton.heart.censors import CensorRule
from newton.heart.episodes import NewEpisode
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.wiring import AgentServices

T = TypeVar("T")

SEED = 20_260
FRACTIONS = (0.25, 0.5, 1.0)  # of the memories, to show how the time grows
BATCH = 500
OUTCOMES: tuple[ActivationResult, ...] = ("success", "failure", "neutral")


async def run_benchmark(*, memories: Annotated[int, AtLeastOne] = 10_000, json: JsonOption = False) -> None:
    """Measure the daily lifecycle job on a quarter, a half and all of the synthetic memories.

    70 % of these are facts, 20 % episodes, and 10 % procedures and censors that were used. The first run ("busy") makes
    many state changes; the second ("quiet") finds none due.

    Example: newton bench lifecycle --memories 10000

    Parameters
    ----------
    memories:
        Number of memories in the largest run.
    """
    start, runs, receipt = RunStart(), list[dict[str, Any]](), dict[str, Any]()
    settings = load_settings().model_copy(update={"database_url": None, "embedding_provider": "none"})
    for count in (max(int(memories * fraction), 20) for fraction in FRACTIONS):
        async with open_environment(settings) as env:
            await _create_memories(env.newton, count)
            await vacuum_analyze(env.owner_dsn)
            runs.append({"memories": count, **await _measure_runs(env.newton)})
            receipt = await collect_run_metadata(env, start, data_sha256=f"seed {SEED}", budgets=[])
    if json:
        formatting.print_json({"runs": runs, "receipt": receipt})
    else:
        _print_table(runs)


async def _measure_runs(newton: AgentServices) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in ("busy", "quiet"):
        started, cpu = monotonic_ms(), time.process_time()
        steps = (await newton.maintenance("bench").run_lifecycle()).steps
        figures[name] = {
            "steps": len(steps),
            "ms": round(monotonic_ms() - started, 1),
            "own_cpu_ms": round((time.process_time() - cpu) * 1_000, 1),
        }
    return figures


async def _create_memories(newton: AgentServices, count: int) -> None:
    """Create `count` memories of the last four months."""
    rng, now = random.Random(SEED), SystemClock().now()
    ctx = newton.scope.at("bench").write_context()
    facts = [_make_fact(n, rng, now) for n in range(count * 7 // 10)]
    repeated = [replace(rng.choice(facts), ref=f"again {n}", source=f"source {n % 5}") for n in range(len(facts) // 2)]
    for batch in _split_batches([*facts, *repeated]):
        async with newton.scope.transaction() as tx:
            await fact_store.add_facts(tx, batch, ctx=ctx)
    for batch in _split_batches([_make_episode(n, rng, now) for n in range(count // 5)]):
        async with newton.scope.transaction() as tx:
            await episodes.add_episodes(tx, batch, ctx=ctx)
    async with newton.scope.transaction() as tx:
        await _create_censors_and_procedures(tx, ctx, count // 20, rng)


async def _create_censors_and_procedures(tx: Tx, ctx: LifecycleContext, count: int, rng: random.Random) -> None:
    rules = [CensorRule(trigger=f"touch wire {n}", reason="it is live") for n in range(count)]
    censor_ids = await censors.add_rules(tx, rules, ctx=ctx)
    for n in range(count):
        skill = SkillFile(name=f"wire-{n}", description=f"Mend wire {n}.", core=("Look.", "Mend."))
        await procedures.add_procedure(tx, skill, ctx=ctx)
    procedure_ids = [one.memory_id for one in await procedures.list_versions(tx, agent_id=ctx.agent_id)]
    for _ in range(6):
        sample = rng.sample(censor_ids, len(censor_ids) // 2)
        await activations.record_activations(tx, "censor", sample, stage="bench", ctx=ctx)
        await activations.record_activations(tx, "procedure", procedure_ids, stage="bench", ctx=ctx)
    for memory_id in procedure_ids:
        await activations.record_result(tx, "procedure", memory_id, rng.choice(OUTCOMES), ctx=ctx)


def _make_fact(n: int, rng: random.Random, now: datetime) -> NewFact:
    return NewFact(
        ref=f"fact {n}",
        content=f"Person {n % 400} and thing {n}: {rng.choice(('red', 'green', 'blue'))} in room {n % 97}",
        subject=f"Person {n % 400}",
        attribute=("lives in", "likes", "owns", "met", "fears")[n // 400 % 5],
        valid_from=now - timedelta(days=rng.random() * 120),
    )


def _make_episode(n: int, rng: random.Random, now: datetime) -> NewEpisode:
    at = now - timedelta(days=rng.random() * 120)
    content = " ".join(f"We talked about thing {rng.randrange(9_999)}." for _ in range(120))
    return NewEpisode(ref=f"episode {n}", title=f"Day {n}", content=content, started_at=at, ended_at=at)


def _split_batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + BATCH] for start in range(0, len(items), BATCH)]


def _print_table(runs: Sequence[dict[str, Any]]) -> None:
    columns = ("memories", "run", "state changes", "ms", "CPU ms of Newton")
    table = Table(*columns, title="The daily lifecycle job")
    for run in runs:
        for name in ("busy", "quiet"):
            steps, ms, cpu_ms = (f"{run[name][key]:,}" for key in ("steps", "ms", "own_cpu_ms"))
            table.add_row(f"{run['memories']:,}", name, steps, ms, cpu_ms)
    Console().print(table)
