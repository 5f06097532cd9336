"""HTTP benchmark: the overhead per context, and mixed load on one daemon."""

import asyncio
import json as jsons
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from cyclopts import Parameter

from newton.bench.context import SEED, WARM_UP_ROUNDS, VectorsOption, import_dialogue
from newton.bench.environment import BenchEnvironment, open_environment, vacuum_analyze
from newton.bench.recall import AtLeastOne
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.scoring import p50_and_p95, percentile
from newton.bench.synthetic_dialogue import generate_dialogue
from newton.client import Client
from newton.clock import monotonic_ms
from newton.cognition.request import ContextBuildRequest
from newton.concurrency import task_group
from newton.errors import ConfigError, NewtonError
from newton.runtime.access import tokens
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings

BUDGET = 2_000
# Of a hundred requests so many of each sort: mostly reading what is known, some searching, few contexts.
REQUEST_MIX = {"expand": 55, "say": 20, "remember": 10, "recall": 10, "context": 5}


@dataclass(slots=True)
class LoadResult:
    """Latencies in milliseconds by kind of request, and the failures."""

    durations_ms: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    errors: Counter[str] = field(default_factory=Counter[str])

    async def run_request(self, kind: str, request: Callable[[], Awaitable[object]]) -> None:
        started = monotonic_ms()
        try:
            await request()
        except NewtonError as error:
            self.errors[f"{kind}: {error.code}"] += 1
        self.durations_ms.setdefault(kind, []).append(monotonic_ms() - started)


async def run_benchmark(
    *,
    memories: Annotated[int, AtLeastOne] = 10_000,
    rounds: Annotated[int, AtLeastOne] = 100,
    rate: Annotated[int, Parameter(help="Requests a second, whether those before are answered or not.")] = 200,
    seconds: Annotated[int, AtLeastOne] = 20,
    vectors: VectorsOption = "random",
    json: JsonOption = False,
) -> None:
    """Measure what a context costs over HTTP beside the same call in process, and mixed load on one daemon.

    Example: newton bench door --memories 10000 --rate 200
    """
    began, told = RunStart(), generate_dialogue(memories, rounds + WARM_UP_ROUNDS, seed=SEED)
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as here:
        await import_dialogue(here.newton, told, vectors=vectors)
        await vacuum_analyze(here.owner_dsn)
        async with _run_daemon(here) as client:
            inside, outside = await _measure_alternately(here, client, told.questions)
            load = await _run_load(
                client, await _recall_memory_ids(here, told.questions), told.questions, rate=rate, seconds=seconds
            )
        written = await collect_run_metadata(here, began, data_sha256=str(SEED), budgets=[BUDGET], vectors=vectors)
    whole = [ms for took in load.durations_ms.values() for ms in took]
    print_results(
        {
            "in_process_ms": p50_and_p95(inside),
            "http_ms": p50_and_p95(outside),
            "http_adds_ms": round(percentile(outside, 0.5) - percentile(inside, 0.5), 2),
            "load": {
                "rate": rate,
                "requests": len(whole),
                "failed": dict(load.errors),
                "all_ms": {**p50_and_p95(whole), "p99": round(percentile(whole, 0.99), 1)},
                "p50_ms": {sort: round(percentile(took, 0.5), 1) for sort, took in load.durations_ms.items()},
            },
            "receipt": written,
        },
        json=json,
    )


def print_results(figures: dict[str, Any], *, json: bool) -> None:
    if json:
        formatting.print_json(figures)
        return
    inside, outside, load = figures["in_process_ms"], figures["http_ms"], figures["load"]
    print(f"A context in process: p50 {inside['p50']:.1f} ms, over HTTP {outside['p50']:.1f} ms.")
    print(
        f"{load['requests']:,} requests at {load['rate']} a second: {load['all_ms']},"
        f" failed: {load['failed'] or 'none'}"
    )


async def _measure_alternately(
    environment: BenchEnvironment, client: Client, questions: Sequence[str]
) -> tuple[list[float], list[float]]:
    """The same question in process, as `newton context --json` answers it, and over HTTP, one after the other, each
    first every other time."""
    newton, times = environment.newton, (list[float](), list[float]())
    for number, question in enumerate(questions):

        async def within(asked: str = question) -> None:
            bundle = await newton.context_builder.build(
                ContextBuildRequest(agent_id=newton.scope.agent_id, input=asked, tokens=BUDGET)
            )
            await newton.memories("bench").record_access([item.memory_id for item in bundle.items])
            jsons.dumps(bundle.as_json())

        async def beyond(asked: str = question) -> None:
            await client.context(asked, tokens=BUDGET)

        ways = ((within, times[0]), (beyond, times[1]))
        for way, took in ways if number % 2 else reversed(ways):
            started = monotonic_ms()
            await way()
            if number >= WARM_UP_ROUNDS:
                took.append(monotonic_ms() - started)
    return times


async def _run_load(
    client: Client, memory_ids: Sequence[str], questions: Sequence[str], *, rate: int, seconds: int
) -> LoadResult:
    load, sorts = LoadResult(), [sort for sort, share in REQUEST_MIX.items() for _ in range(share)]
    begun = monotonic_ms()
    async with task_group() as tasks:
        for number in range(rate * seconds):
            sort = sorts[number * 37 % 100]
            tasks.create_task(load.run_request(sort, _make_request(client, sort, number, memory_ids, questions)))
            await asyncio.sleep(max(0.0, (number + 1) / rate - (monotonic_ms() - begun) / 1_000))
    return load


def _make_request(
    client: Client, kind: str, number: int, memory_ids: Sequence[str], questions: Sequence[str]
) -> Callable[[], Awaitable[object]]:
    question = questions[number % len(questions)]
    match kind:
        case "expand":
            return lambda: client.expand(memory_ids[number % len(memory_ids)])
        case "say":
            return lambda: client.append_messages(
                f"load {number % 50}", [{"role": "user", "content": f"{question} ({number})"}]
            )
        case "remember":
            return lambda: client.remember(f"Box {number} holds {number * 7} nails.")
        case "recall":
            return lambda: client.recall(question)
        case _:
            return lambda: client.context(question, tokens=BUDGET)


async def _recall_memory_ids(environment: BenchEnvironment, questions: Sequence[str]) -> list[str]:
    found = [
        (await environment.newton.memories("bench").recall(question, limit=50)).memories for question in questions[:10]
    ]
    return [str(one.memory_id) for some in found for one in some]


@asynccontextmanager
async def _run_daemon(environment: BenchEnvironment) -> AsyncGenerator[Client]:
    """A daemon on the same database, spoken to with a token of the agent's."""
    home = environment.newton.settings.home
    chosen = f'database_url = "{environment.owner_dsn}"\ndata_dir = "{home}"\n'
    (home / "newton.toml").write_text(chosen, encoding="utf-8")
    words = (sys.executable, "-m", "newton", "serve", "--port", "0", "--agent", environment.newton.settings.agent)
    agent_id, now = environment.newton.scope.agent_id, environment.newton.scope.now()
    async with environment.newton.scope.db.transaction(agent_id) as tx:
        token = await tokens.create_token(tx, agent_id=agent_id, name="bench", scope="write", now=now)
    process = await asyncio.create_subprocess_exec(*words, cwd=home, stderr=PIPE)
    try:
        async with Client(await _read_daemon_url(process), token=token, max_attempts=1) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


async def _read_daemon_url(process: Process) -> str:
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        if " serves " in line:
            asyncio.get_running_loop().create_task(_drain_stderr(process))
            return line.split(" serves ")[1].split(". ")[0]
    raise ConfigError("The daemon did not start.", hint="`newton serve` says why.")


async def _drain_stderr(process: Process) -> None:
    assert process.stderr is not None
    while await process.stderr.read(65_536):
        pass
