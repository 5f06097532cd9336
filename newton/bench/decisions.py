"""`newton bench decisions`: what guardrails add to a record, and how long figures and the check of a ledger take."""

import asyncio
import random
import statistics
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table

from newton.bench.environment import open_environment, vacuum_analyze
from newton.bench.recall import AtLeastOne
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.brain import decisions
from newton.brain.calibration.report import build_calibration
from newton.brain.codec import DecisionReview, NewDecision
from newton.brain.draft import DecisionDraft, DecisionReason, Verdict
from newton.clock import SystemClock, monotonic_ms
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.wiring import AgentServices

SEED = 20_261
BATCH = 500
ROUNDS = 100
SAMPLE_VERDICTS: tuple[Verdict, ...] = ("success", "success", "failure", "partial")
SAMPLE_CATEGORIES = ("architecture", "process", "tooling", "cost")


async def run_benchmark(*, judged: Annotated[int, AtLeastOne] = 10_000, json: JsonOption = False) -> None:
    """Measure decisions: a record alone, with the guardrails, and with all that is looked at before; then calibration
    and the check of the ledger.

    Example: newton bench decisions --judged 10000

    Parameters
    ----------
    judged:
        How many decisions with an outcome there are.
    """
    began = RunStart()
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as here:
        await _create_decisions(here.newton, judged)
        await vacuum_analyze(here.owner_dsn)
        figures = {**await _measure_recording(here.newton), **await _measure_reading(here.newton)}
        written = await collect_run_metadata(here, began, data_sha256=f"seed {SEED}", budgets=[], judged=judged)
    if json:
        formatting.print_json({"judged": judged, "figures": figures, "receipt": written})
        return
    table = Table("what", "p50 ms", "p95 ms", title=f"{judged:,} judged decisions")
    for name, figure in figures.items():
        table.add_row(name, f"{figure['p50']:.1f}", f"{figure['p95']:.1f}")
    Console().print(table)


async def _create_decisions(newton: AgentServices, count: int) -> None:
    dice, now = random.Random(SEED), SystemClock().now()
    ctx = newton.scope.at("bench").write_context()
    for start in range(0, count, BATCH):
        intents = [_make_reviewed_decision(n, dice, now) for n in range(start, min(start + BATCH, count))]
        async with newton.scope.transaction() as tx:
            await decisions.record(tx, intents, ctx=ctx)


def _make_reviewed_decision(n: int, dice: random.Random, now: datetime) -> NewDecision:
    at = now - timedelta(days=dice.random() * 400 + 1)
    review = DecisionReview(verdict=dice.choice(SAMPLE_VERDICTS), at=at + timedelta(hours=5), how="import")
    return NewDecision(draft=_make_draft(f"Choice {n} about part {n % 97}", dice, at), review=review)


def _make_draft(description: str, dice: random.Random, at: datetime) -> DecisionDraft:
    return DecisionDraft(
        description=description,
        confidence=round(dice.random(), 2),
        at=at,
        reasons=(DecisionReason("analysis", "It costs less"), DecisionReason("empirical", "It held last year")),
        alternatives=("Leave it as it is",),
        category=dice.choice(SAMPLE_CATEGORIES),
        stakes="medium",
    )


async def _measure_recording(newton: AgentServices) -> dict[str, dict[str, float]]:
    """The same kind of choice in turn: written alone, judged and written, and with everything that is looked at."""
    dice, now = random.Random(SEED), SystemClock().now()
    ctx = newton.scope.at("bench").write_context()
    deciding = newton.decisions("bench")

    async def write(choice: DecisionDraft) -> None:
        async with newton.scope.transaction() as tx:
            await decisions.record(tx, [NewDecision(draft=choice)], ctx=ctx)

    async def guarded(choice: DecisionDraft) -> None:
        await deciding.check_guardrails(choice)
        await write(choice)

    async def whole(choice: DecisionDraft) -> None:
        await deciding.decide(choice)

    ways: dict[str, Callable[[DecisionDraft], Awaitable[None]]] = {
        "record": write,
        "record, guarded": guarded,
        "decide": whole,
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for n in range(ROUNDS):
        for name, way in ways.items():
            choice = _make_draft(f"{name} {n} about part {n % 97}", dice, now)
            taken[name].append(await _measure(lambda way=way, choice=choice: way(choice)))
    return {name: _to_percentiles(times) for name, times in taken.items()}


async def _measure_reading(newton: AgentServices) -> dict[str, dict[str, float]]:
    deciding = newton.decisions("bench")

    async def figured() -> None:
        known = await deciding.list_reviewed_decisions()
        await asyncio.to_thread(build_calibration, known)

    await figured()  # the first one loads the library
    return {
        "calibration": _to_percentiles([await _measure(figured) for _ in range(9)]),
        "verify": _to_percentiles([await _measure(deciding.verify_chain) for _ in range(5)]),
    }


async def _measure(work: Callable[[], Awaitable[Any]]) -> float:
    started = monotonic_ms()
    await work()
    return monotonic_ms() - started


def _to_percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": statistics.median(ordered), "p95": ordered[int(len(ordered) * 0.95)]}
