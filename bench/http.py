"""`python -m bench http`: the time that HTTP adds to a context, and the response times of a daemon under mixed load."""

import asyncio
import json as jsons
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from cyclopts import Parameter

from bench.context import SEED, VectorsOption, import_dialogue
from bench.daemon_process import run_daemon
from bench.environment import (
    WARM_UP_ROUNDS,
    AtLeastOne,
    measure_alternately,
    measure_ms,
    open_environment,
    vacuum_analyze,
)
from bench.run_metadata import RunStart, collect_run_metadata
from bench.scoring import p50_and_p95, percentile
from bench.synthetic_dialogue import generate_dialogue
from newton.client import ApiError, Client, MessageDict
from newton.clock import monotonic_ms
from newton.cognition.request import ContextBuildRequest
from newton.concurrency import task_group
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.wiring import AgentServices

BUDGET = 2_000
# The percentage of each kind of request: mostly reads by id, some searches, few contexts.
REQUEST_MIX = {"expand": 55, "say": 20, "remember": 10, "recall": 10, "context": 5}


@dataclass(slots=True)
class LoadResult:
    """The response times by kind of request, in milliseconds, and the counts of failures."""

    durations_ms: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    errors: Counter[str] = field(default_factory=Counter[str])

    async def run_request(self, kind: str, request: Callable[[], Awaitable[object]]) -> None:
        started = monotonic_ms()
        try:
            await request()
        except ApiError as error:
            self.errors[f"{kind}: {error.code}"] += 1
        self.durations_ms.setdefault(kind, []).append(monotonic_ms() - started)


async def run_benchmark(
    *,
    memories: Annotated[int, AtLeastOne] = 10_000,
    rounds: Annotated[int, AtLeastOne] = 100,
    rate: Annotated[int, Parameter(help="Requests to send per second, without waiting for responses.")] = 200,
    seconds: Annotated[int, AtLeastOne] = 20,
    vectors: VectorsOption = "random",
    json: JsonOption = False,
) -> None:
    """Measure the time to get a context over HTTP and in process, and the response times of a daemon under mixed load.

    Example: python -m bench http --memories 10000 --rate 200
    """
    start, dialogue = RunStart(), generate_dialogue(memories, rounds + WARM_UP_ROUNDS, seed=SEED)
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as env:
        newton = env.newton
        await import_dialogue(newton, dialogue, vectors=vectors)
        await vacuum_analyze(env.owner_dsn)
        async with (
            run_daemon(newton, env.owner_dsn) as daemon,
            Client(daemon.url, token=daemon.token, max_attempts=1) as client,
        ):
            inside, outside = await measure_alternately(
                dialogue.questions,
                lambda question: measure_ms(lambda: _build_context(newton, question)),
                lambda question: measure_ms(lambda: client.context(question, max_tokens=BUDGET)),
            )
            memory_ids = await _recall_memory_ids(newton, dialogue.questions)
            load = await _run_load(client, memory_ids, dialogue.questions, rate=rate, seconds=seconds)
        receipt = await collect_run_metadata(env, start, data_sha256=str(SEED), budgets=[BUDGET], vectors=vectors)
    durations = [ms for own in load.durations_ms.values() for ms in own]
    figures = {
        "in_process_ms": p50_and_p95(inside),
        "http_ms": p50_and_p95(outside),
        "http_adds_ms": round(percentile(outside, 0.5) - percentile(inside, 0.5), 2),
        "load": {
            "rate": rate,
            "requests": len(durations),
            "failed": dict(load.errors),
            "all_ms": {**p50_and_p95(durations), "p99": round(percentile(durations, 0.99), 1)},
            "p50_ms": {kind: round(percentile(own, 0.5), 1) for kind, own in load.durations_ms.items()},
        },
        "receipt": receipt,
    }
    if json:
        formatting.print_json(figures)
    else:
        print(_format_results(figures))


def _format_results(figures: Mapping[str, Any]) -> str:
    inside, outside, load = figures["in_process_ms"], figures["http_ms"], figures["load"]
    return (
        f"A context in process: p50 {inside['p50']:.1f} ms, over HTTP {outside['p50']:.1f} ms.\n"
        f"{load['requests']:,} requests at {load['rate']}/s: {load['all_ms']}, failed: {load['failed'] or 'none'}"
    )


async def _build_context(newton: AgentServices, question: str) -> None:
    """Build a context, record its use and encode it as JSON, as `newton context --json` does."""
    request = ContextBuildRequest(agent_id=newton.scope.agent_id, input=question, tokens=BUDGET)
    bundle = await newton.context_builder.build(request, records_access=True)
    jsons.dumps(bundle.as_json())


async def _run_load(
    client: Client, memory_ids: Sequence[str], questions: Sequence[str], *, rate: int, seconds: int
) -> LoadResult:
    """Send the mix of requests at a fixed rate, without waiting for responses; return the response times."""
    load, kinds = LoadResult(), [kind for kind, percent in REQUEST_MIX.items() for _ in range(percent)]
    started = monotonic_ms()
    async with task_group() as tasks:
        for number in range(rate * seconds):
            kind = kinds[number * 37 % 100]
            tasks.create_task(load.run_request(kind, _make_request(client, kind, number, memory_ids, questions)))
            await asyncio.sleep(max(0.0, (number + 1) / rate - (monotonic_ms() - started) / 1_000))
    return load


def _make_request(
    client: Client, kind: str, number: int, memory_ids: Sequence[str], questions: Sequence[str]
) -> Callable[[], Awaitable[object]]:
    question = questions[number % len(questions)]
    match kind:
        case "expand":
            return lambda: client.expand(memory_ids[number % len(memory_ids)])
        case "say":
            message: MessageDict = {"role": "user", "content": f"{question} ({number})"}
            return lambda: client.append_messages(f"load {number % 50}", [message])
        case "remember":
            return lambda: client.remember(f"Box {number} holds {number * 7} nails.")
        case "recall":
            return lambda: client.recall(question)
        case _:
            return lambda: client.context(question, max_tokens=BUDGET)


async def _recall_memory_ids(newton: AgentServices, questions: Sequence[str]) -> list[str]:
    results = [await newton.memories("bench").recall(question, limit=50) for question in questions[:10]]
    return [str(memory.memory_id) for result in results for memory in result.memories]
