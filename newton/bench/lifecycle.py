"""`newton bench lifecycle`: how long the daily job takes, on a day with much to do and on a day with nothing."""

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar

from rich.console import Console
from rich.table import Table

from newton.bench.ground import ground, vacuum
from newton.bench.recall import AtLeastOne
from newton.bench.receipt import Began, receipt
from newton.clock import SystemClock, stopwatch
from newton.content.skills import Skill
from newton.heart import activations, censors, episodes, facts, procedures
from newton.heart.activations import Result
from newton.heart.censors import Rule
from newton.heart.episodes import Experience
from newton.heart.facts import Statement
from newton.heart.lifecycle.engine import Ground
from newton.runtime.cli import show
from newton.runtime.cli.options import AsJson, settings
from newton.runtime.wiring import Newton

T = TypeVar("T")

SEED = 20_260
PARTS = (0.25, 0.5, 1.0)  # of the whole, to see how the time grows
BATCH = 500
RESULTS: tuple[Result, ...] = ("success", "failure", "neutral")


async def command(*, memories: Annotated[int, AtLeastOne] = 10_000, json: AsJson = False) -> None:
    """Measure the daily lifecycle job on made-up memories: a quarter of them, half of them, all of them.

    Seven tenths are facts, a fifth are episodes, and a tenth are procedures and censors with their records. The first
    run finds a great deal due; the second finds nothing and must change nothing.

    Example: newton bench lifecycle --memories 10000

    Parameters
    ----------
    memories:
        How many there are at last.
    """
    began = Began()
    runs: list[dict[str, Any]] = []
    written: dict[str, Any] = {}
    for part in PARTS:
        async with ground(settings().model_copy(update={"database_url": None, "embedding": "none"})) as here:
            await _live(here.newton, max(int(memories * part), 20))
            await vacuum(here.owner)
            runs.append({"memories": max(int(memories * part), 20), **await _timed(here.newton)})
            written = await receipt(here, began, data_sha256=f"seed {SEED}", budgets=[])
    if json:
        show.as_json({"runs": runs, "receipt": written})
    else:
        _print(runs)


async def _timed(newton: Newton) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in ("busy", "quiet"):
        started, cpu = stopwatch(), time.process_time()
        steps = (await newton.upkeep("bench").lifecycle()).steps
        figures[name] = {
            "steps": len(steps),
            "ms": round(stopwatch() - started, 1),
            "own_cpu_ms": round((time.process_time() - cpu) * 1_000, 1),
        }
    return figures


async def _live(newton: Newton, memories: int) -> None:
    """A life of so many memories, told over the last four months."""
    dice, now = random.Random(SEED), SystemClock().now()
    own = newton.scope.at("bench").write_context()
    told = [_statement(n, dice, now) for n in range(memories * 7 // 10)]
    again = [replace(dice.choice(told), ref=f"again {n}", source=f"source {n % 5}") for n in range(len(told) // 2)]
    for batch in _batches([*told, *again]):
        async with newton.scope.transaction() as tx:
            await facts.learn(tx, batch, ctx=own)
    for batch in _batches([_experience(n, dice, now) for n in range(memories // 5)]):
        async with newton.scope.transaction() as tx:
            await episodes.keep(tx, batch, ctx=own)
    await _practise(newton, own, memories // 20, dice)


async def _practise(newton: Newton, own: Ground, many: int, dice: random.Random) -> None:
    async with newton.scope.transaction() as tx:
        rules = [Rule(trigger=f"touch wire {n}", reason="it is live") for n in range(many)]
        known = await censors.forbid(tx, rules, ctx=own)
        for n in range(many):
            skill = Skill(name=f"wire-{n}", description=f"Mend wire {n}.", core=("Look.", "Mend."))
            await procedures.learn(tx, skill, ctx=own)
        listed = [p.memory_id for p in await procedures.listed(tx, agent_id=newton.scope.agent_id)]
        for _ in range(6):
            await activations.activate(tx, "censor", dice.sample(known, len(known) // 2), place="bench", ctx=own)
            await activations.activate(tx, "procedure", listed, place="bench", ctx=own)
        for memory_id in listed:
            await activations.judge(tx, "procedure", memory_id, dice.choice(RESULTS), ctx=own)


def _statement(n: int, dice: random.Random, now: datetime) -> Statement:
    return Statement(
        ref=f"fact {n}",
        content=f"Person {n % 400} and thing {n}: {dice.choice(('red', 'green', 'blue'))} in room {n % 97}",
        subject=f"Person {n % 400}",
        attribute=("lives in", "likes", "owns", "met", "fears")[n // 400 % 5],
        at=now - timedelta(days=dice.random() * 120),
    )


def _experience(n: int, dice: random.Random, now: datetime) -> Experience:
    at = now - timedelta(days=dice.random() * 120)
    words = " ".join(f"We talked about thing {dice.randrange(9_999)}." for _ in range(120))
    return Experience(ref=f"episode {n}", title=f"Day {n}", content=words, started_at=at, ended_at=at)


def _batches(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + BATCH] for start in range(0, len(items), BATCH)]


def _print(runs: Sequence[dict[str, Any]]) -> None:
    table = Table("memories", "day", "steps", "ms", "of it own CPU ms", title="The daily lifecycle job")
    for run in runs:
        for name in ("busy", "quiet"):
            figures = run[name]
            table.add_row(
                f"{run['memories']:,}", name, str(figures["steps"]), f"{figures['ms']:,}", f"{figures['own_cpu_ms']:,}"
            )
    Console().print(table)
