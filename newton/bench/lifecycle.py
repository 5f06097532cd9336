"""`newton bench lifecycle`: how long the daily job takes, on a day with much to do and on a day with nothing."""

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar

from rich.console import Console
from rich.table import Table

from newton.bench.environment import open_environment, vacuum_analyze
from newton.bench.recall import AtLeastOne
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.clock import SystemClock, monotonic_ms
from newton.content.skills import Skill
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
FRACTIONS = (0.25, 0.5, 1.0)  # of the whole, to see how the time grows
BATCH = 500
OUTCOMES: tuple[ActivationResult, ...] = ("success", "failure", "neutral")


async def run_benchmark(*, memories: Annotated[int, AtLeastOne] = 10_000, json: JsonOption = False) -> None:
    """Measure the daily lifecycle job on made-up memories: a quarter of them, half of them, all of them.

    Seven tenths are facts, a fifth are episodes, and a tenth are procedures and censors with their records. The first
    run finds a great deal due; the second finds nothing and must change nothing.

    Example: newton bench lifecycle --memories 10000

    Parameters
    ----------
    memories:
        How many there are at last.
    """
    began = RunStart()
    runs: list[dict[str, Any]] = []
    written: dict[str, Any] = {}
    for part in FRACTIONS:
        async with open_environment(
            load_settings().model_copy(update={"database_url": None, "embedding_provider": "none"})
        ) as here:
            await _create_memories(here.newton, max(int(memories * part), 20))
            await vacuum_analyze(here.owner_dsn)
            runs.append({"memories": max(int(memories * part), 20), **await _measure_runs(here.newton)})
            written = await collect_run_metadata(here, began, data_sha256=f"seed {SEED}", budgets=[])
    if json:
        formatting.print_json({"runs": runs, "receipt": written})
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
    """Create `count` memories dated over the last four months."""
    dice, now = random.Random(SEED), SystemClock().now()
    own = newton.scope.at("bench").write_context()
    told = [_make_fact(n, dice, now) for n in range(count * 7 // 10)]
    again = [replace(dice.choice(told), ref=f"again {n}", source=f"source {n % 5}") for n in range(len(told) // 2)]
    for batch in _split_batches([*told, *again]):
        async with newton.scope.transaction() as tx:
            await fact_store.add_facts(tx, batch, ctx=own)
    for batch in _split_batches([_make_episode(n, dice, now) for n in range(count // 5)]):
        async with newton.scope.transaction() as tx:
            await episodes.add_episodes(tx, batch, ctx=own)
    await _create_censors_and_procedures(newton, own, count // 20, dice)


async def _create_censors_and_procedures(
    newton: AgentServices, own: LifecycleContext, count: int, dice: random.Random
) -> None:
    async with newton.scope.transaction() as tx:
        rules = [CensorRule(trigger=f"touch wire {n}", reason="it is live") for n in range(count)]
        known = await censors.add_rules(tx, rules, ctx=own)
        for n in range(count):
            skill = Skill(name=f"wire-{n}", description=f"Mend wire {n}.", core=("Look.", "Mend."))
            await procedures.add_procedure(tx, skill, ctx=own)
        listed = [p.memory_id for p in await procedures.list_versions(tx, agent_id=newton.scope.agent_id)]
        for _ in range(6):
            await activations.record_activations(
                tx, "censor", dice.sample(known, len(known) // 2), stage="bench", ctx=own
            )
            await activations.record_activations(tx, "procedure", listed, stage="bench", ctx=own)
        for memory_id in listed:
            await activations.record_result(tx, "procedure", memory_id, dice.choice(OUTCOMES), ctx=own)


def _make_fact(n: int, dice: random.Random, now: datetime) -> NewFact:
    return NewFact(
        ref=f"fact {n}",
        content=f"Person {n % 400} and thing {n}: {dice.choice(('red', 'green', 'blue'))} in room {n % 97}",
        subject=f"Person {n % 400}",
        attribute=("lives in", "likes", "owns", "met", "fears")[n // 400 % 5],
        valid_from=now - timedelta(days=dice.random() * 120),
    )


def _make_episode(n: int, dice: random.Random, now: datetime) -> NewEpisode:
    at = now - timedelta(days=dice.random() * 120)
    words = " ".join(f"We talked about thing {dice.randrange(9_999)}." for _ in range(120))
    return NewEpisode(ref=f"episode {n}", title=f"Day {n}", content=words, started_at=at, ended_at=at)


def _split_batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + BATCH] for start in range(0, len(items), BATCH)]


def _print_table(runs: Sequence[dict[str, Any]]) -> None:
    table = Table("memories", "day", "steps", "ms", "of it own CPU ms", title="The daily lifecycle job")
    for run in runs:
        for name in ("busy", "quiet"):
            figures = run[name]
            table.add_row(
                f"{run['memories']:,}", name, str(figures["steps"]), f"{figures['ms']:,}", f"{figures['own_cpu_ms']:,}"
            )
    Console().print(table)
