"""`newton bench decisions`: what guardrails add to a record, and how long figures and the check of a ledger take."""

import asyncio
import random
import statistics
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table

from newton.bench.ground import ground, vacuum
from newton.bench.recall import AtLeastOne
from newton.bench.receipt import Began, receipt
from newton.brain import decisions
from newton.brain.calibration.report import calibration
from newton.brain.choice import Choice, Reason, Verdict
from newton.brain.stating import Intent, Review
from newton.clock import SystemClock, stopwatch
from newton.runtime.cli import show
from newton.runtime.cli.options import AsJson, settings
from newton.runtime.wiring import Newton

SEED = 20_261
BATCH = 500
ROUNDS = 100
VERDICTS: tuple[Verdict, ...] = ("success", "success", "failure", "partial")
CATEGORIES = ("architecture", "process", "tooling", "cost")


async def command(*, judged: Annotated[int, AtLeastOne] = 10_000, json: AsJson = False) -> None:
    """Measure decisions: a record alone, with the guardrails, and with all that is looked at before; then calibration
    and the check of the ledger.

    Example: newton bench decisions --judged 10000

    Parameters
    ----------
    judged:
        How many decisions with an outcome there are.
    """
    began = Began()
    async with ground(settings().model_copy(update={"database_url": None})) as here:
        await _decide(here.newton, judged)
        await vacuum(here.owner)
        figures = {**await _recording(here.newton), **await _reading(here.newton)}
        written = await receipt(here, began, data_sha256=f"seed {SEED}", budgets=[], judged=judged)
    if json:
        show.as_json({"judged": judged, "figures": figures, "receipt": written})
        return
    table = Table("what", "p50 ms", "p95 ms", title=f"{judged:,} judged decisions")
    for name, figure in figures.items():
        table.add_row(name, f"{figure['p50']:.1f}", f"{figure['p95']:.1f}")
    Console().print(table)


async def _decide(newton: Newton, many: int) -> None:
    dice, now = random.Random(SEED), SystemClock().now()
    ctx = newton.scope.at("bench").write_context()
    for start in range(0, many, BATCH):
        intents = [_intent(n, dice, now) for n in range(start, min(start + BATCH, many))]
        async with newton.scope.transaction() as tx:
            await decisions.record(tx, intents, ctx=ctx)


def _intent(n: int, dice: random.Random, now: datetime) -> Intent:
    at = now - timedelta(days=dice.random() * 400 + 1)
    review = Review(verdict=dice.choice(VERDICTS), at=at + timedelta(hours=5), how="import")
    return Intent(choice=_choice(f"Choice {n} about part {n % 97}", dice, at), review=review)


def _choice(description: str, dice: random.Random, at: datetime) -> Choice:
    return Choice(
        description=description,
        confidence=round(dice.random(), 2),
        at=at,
        reasons=(Reason("analysis", "It costs less"), Reason("empirical", "It held last year")),
        alternatives=("Leave it as it is",),
        category=dice.choice(CATEGORIES),
        stakes="medium",
    )


async def _recording(newton: Newton) -> dict[str, dict[str, float]]:
    """The same kind of choice in turn: written alone, judged and written, and with everything that is looked at."""
    dice, now = random.Random(SEED), SystemClock().now()
    ctx = newton.scope.at("bench").write_context()
    deciding = newton.deciding("bench")

    async def write(choice: Choice) -> None:
        async with newton.scope.transaction() as tx:
            await decisions.record(tx, [Intent(choice=choice)], ctx=ctx)

    async def guarded(choice: Choice) -> None:
        await deciding.rulings(choice)
        await write(choice)

    async def whole(choice: Choice) -> None:
        await deciding.decide(choice)

    ways: dict[str, Callable[[Choice], Awaitable[None]]] = {
        "record": write,
        "record, guarded": guarded,
        "decide": whole,
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for n in range(ROUNDS):
        for name, way in ways.items():
            choice = _choice(f"{name} {n} about part {n % 97}", dice, now)
            taken[name].append(await _timed(lambda way=way, choice=choice: way(choice)))
    return {name: _spread(times) for name, times in taken.items()}


async def _reading(newton: Newton) -> dict[str, dict[str, float]]:
    deciding = newton.deciding("bench")

    async def figured() -> None:
        known = await deciding.judged()
        await asyncio.to_thread(calibration, known)

    await figured()  # the first one loads the library
    return {
        "calibration": _spread([await _timed(figured) for _ in range(9)]),
        "verify": _spread([await _timed(deciding.verify) for _ in range(5)]),
    }


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    started = stopwatch()
    await work()
    return stopwatch() - started


def _spread(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": statistics.median(ordered), "p95": ordered[int(len(ordered) * 0.95)]}
