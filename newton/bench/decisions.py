"""`newton bench decisions`: the time to record a decision, compute the calibration, and verify the hash chain."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated

from rich.console import Console
from rich.table import Table

from newton.bench.environment import AtLeastOne, measure_ms, open_environment, vacuum_analyze
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.scoring import p50_and_p95
from newton.brain import decisions
from newton.brain.calibration.report import build_calibration
from newton.brain.codec import DecisionReview, NewDecision
from newton.brain.draft import DecisionDraft, DecisionReason
from newton.brain.outcomes import Verdict
from newton.clock import SystemClock
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.wiring import AgentServices

SEED = 20_261
BATCH = 500
ROUNDS = 100
SAMPLE_VERDICTS: tuple[Verdict, ...] = ("success", "success", "failure", "partial")
SAMPLE_CATEGORIES = ("architecture", "process", "tooling", "cost")


async def run_benchmark(*, judged: Annotated[int, AtLeastOne] = 10_000, json: JsonOption = False) -> None:
    """Measure the time to record a decision, to compute the calibration, and to verify the hash chain.

    A decision is recorded in three ways: alone, with the check of the guardrails, and with all checks.

    Example: newton bench decisions --judged 10000

    Parameters
    ----------
    judged:
        Number of reviewed decisions to create.
    """
    start = RunStart()
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as env:
        await _create_decisions(env.newton, judged)
        await vacuum_analyze(env.owner_dsn)
        figures = {**await _measure_recording(env.newton), **await _measure_reading(env.newton)}
        receipt = await collect_run_metadata(env, start, data_sha256=f"seed {SEED}", budgets=[], judged=judged)
    if json:
        formatting.print_json({"judged": judged, "figures": figures, "receipt": receipt})
        return
    table = Table("operation", "p50 ms", "p95 ms", title=f"{judged:,} reviewed decisions")
    for name, figure in figures.items():
        table.add_row(name, f"{figure['p50']:.1f}", f"{figure['p95']:.1f}")
    Console().print(table)


async def _create_decisions(newton: AgentServices, count: int) -> None:
    rng, now = random.Random(SEED), SystemClock().now()
    ctx = newton.scope.at("bench").write_context()
    for start in range(0, count, BATCH):
        batch = [_make_reviewed_decision(n, rng, now) for n in range(start, min(start + BATCH, count))]
        async with newton.scope.transaction() as tx:
            await decisions.record(tx, batch, ctx=ctx)


def _make_reviewed_decision(n: int, rng: random.Random, now: datetime) -> NewDecision:
    at = now - timedelta(days=rng.random() * 400 + 1)
    review = DecisionReview(verdict=rng.choice(SAMPLE_VERDICTS), at=at + timedelta(hours=5), how="import")
    return NewDecision(draft=_make_draft(f"Choice {n} about part {n % 97}", rng, at), review=review)


def _make_draft(description: str, rng: random.Random, at: datetime) -> DecisionDraft:
    return DecisionDraft(
        description=description,
        confidence=round(rng.random(), 2),
        at=at,
        reasons=(DecisionReason("analysis", "It costs less"), DecisionReason("empirical", "It held last year")),
        alternatives=("Leave it as it is",),
        category=rng.choice(SAMPLE_CATEGORIES),
        stakes="medium",
    )


async def _measure_recording(newton: AgentServices) -> dict[str, dict[str, float]]:
    """Measure three ways to record a decision: only the record, with a check of the guardrails, and with all checks."""
    rng, now = random.Random(SEED), SystemClock().now()
    ctx = newton.scope.at("bench").write_context()
    service = newton.decisions("bench")

    async def record(draft: DecisionDraft) -> None:
        async with newton.scope.transaction() as tx:
            await decisions.record(tx, [NewDecision(draft=draft)], ctx=ctx)

    async def check_and_record(draft: DecisionDraft) -> None:
        await service.check_guardrails(draft)
        await record(draft)

    ways: dict[str, Callable[[DecisionDraft], Awaitable[object]]] = {
        "record": record,
        "record, with guardrails": check_and_record,
        "record, with all checks": service.decide,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for n in range(ROUNDS):
        for name, way in ways.items():
            draft = _make_draft(f"{name} {n} about part {n % 97}", rng, now)
            times[name].append(await measure_ms(partial(way, draft)))
    return {name: p50_and_p95(own) for name, own in times.items()}


async def _measure_reading(newton: AgentServices) -> dict[str, dict[str, float]]:
    service = newton.decisions("bench")

    async def calibrate() -> None:
        await asyncio.to_thread(build_calibration, await service.list_reviewed_decisions())

    await calibrate()  # the first call loads the library
    return {
        "calibrate": p50_and_p95([await measure_ms(calibrate) for _ in range(9)]),
        "verify the hash chain": p50_and_p95([await measure_ms(service.verify_chain) for _ in range(5)]),
    }
