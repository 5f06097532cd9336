"""`newton bench door`: what HTTP adds to a context, and what one daemon bears."""

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

from newton.bench.context import SEED, WARM_UP, Vectors, remember
from newton.bench.dialogue import talk
from newton.bench.ground import Ground, ground, vacuum
from newton.bench.measure import percentile, tails
from newton.bench.recall import AtLeastOne
from newton.bench.receipt import Began, receipt
from newton.client import Client
from newton.clock import stopwatch
from newton.cognition.request import Request
from newton.concurrency import together
from newton.errors import ConfigError, NewtonError
from newton.runtime.access import tokens
from newton.runtime.cli import show
from newton.runtime.cli.options import AsJson, settings

BUDGET = 2_000
# Of a hundred requests so many of each sort: mostly reading what is known, some searching, few contexts.
MIX = {"expand": 55, "say": 20, "remember": 10, "recall": 10, "context": 5}


@dataclass(slots=True)
class Load:
    """What requests of each sort took, in milliseconds, and what went wrong."""

    took: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    failed: Counter[str] = field(default_factory=Counter[str])

    async def one(self, sort: str, request: Callable[[], Awaitable[object]]) -> None:
        started = stopwatch()
        try:
            await request()
        except NewtonError as error:
            self.failed[f"{sort}: {error.code}"] += 1
        self.took.setdefault(sort, []).append(stopwatch() - started)


async def command(
    *,
    memories: Annotated[int, AtLeastOne] = 10_000,
    rounds: Annotated[int, AtLeastOne] = 100,
    rate: Annotated[int, Parameter(help="Requests a second, whether those before are answered or not.")] = 200,
    seconds: Annotated[int, AtLeastOne] = 20,
    vectors: Vectors = "random",
    json: AsJson = False,
) -> None:
    """Measure what a context costs over HTTP beside the same call in process, and mixed load on one daemon.

    Example: newton bench door --memories 10000 --rate 200
    """
    began, told = Began(), talk(memories, rounds + WARM_UP, seed=SEED)
    async with ground(settings().model_copy(update={"database_url": None})) as here:
        await remember(here.newton, told, vectors=vectors)
        await vacuum(here.owner)
        async with _daemon(here) as client:
            inside, outside = await _alternately(here, client, told.questions)
            load = await _loaded(client, await _some(here, told.questions), told.questions, rate=rate, seconds=seconds)
        written = await receipt(here, began, data_sha256=str(SEED), budgets=[BUDGET], vectors=vectors)
    whole = [ms for took in load.took.values() for ms in took]
    show_or_print(
        {
            "in_process_ms": tails(inside),
            "http_ms": tails(outside),
            "http_adds_ms": round(percentile(outside, 0.5) - percentile(inside, 0.5), 2),
            "load": {
                "rate": rate,
                "requests": len(whole),
                "failed": dict(load.failed),
                "all_ms": {**tails(whole), "p99": round(percentile(whole, 0.99), 1)},
                "p50_ms": {sort: round(percentile(took, 0.5), 1) for sort, took in load.took.items()},
            },
            "receipt": written,
        },
        json=json,
    )


def show_or_print(figures: dict[str, Any], *, json: bool) -> None:
    if json:
        show.as_json(figures)
        return
    inside, outside, load = figures["in_process_ms"], figures["http_ms"], figures["load"]
    print(f"A context in process: p50 {inside['p50']:.1f} ms, over HTTP {outside['p50']:.1f} ms.")
    print(
        f"{load['requests']:,} requests at {load['rate']} a second: {load['all_ms']},"
        f" failed: {load['failed'] or 'none'}"
    )


async def _alternately(here: Ground, client: Client, questions: Sequence[str]) -> tuple[list[float], list[float]]:
    """The same question in process, as `newton context --json` answers it, and over HTTP, one after the other, each
    first every other time."""
    newton, times = here.newton, (list[float](), list[float]())
    for number, question in enumerate(questions):

        async def within(asked: str = question) -> None:
            bundle = await newton.contexts.build(Request(agent_id=newton.scope.agent_id, input=asked, tokens=BUDGET))
            await newton.verbs("bench").read([item.memory_id for item in bundle.items])
            jsons.dumps(bundle.as_json())

        async def beyond(asked: str = question) -> None:
            await client.context(asked, tokens=BUDGET)

        ways = ((within, times[0]), (beyond, times[1]))
        for way, took in ways if number % 2 else reversed(ways):
            started = stopwatch()
            await way()
            if number >= WARM_UP:
                took.append(stopwatch() - started)
    return times


async def _loaded(client: Client, known: Sequence[str], questions: Sequence[str], *, rate: int, seconds: int) -> Load:
    load, sorts = Load(), [sort for sort, share in MIX.items() for _ in range(share)]
    begun = stopwatch()
    async with together() as tasks:
        for number in range(rate * seconds):
            sort = sorts[number * 37 % 100]
            tasks.create_task(load.one(sort, _asked(client, sort, number, known, questions)))
            await asyncio.sleep(max(0.0, (number + 1) / rate - (stopwatch() - begun) / 1_000))
    return load


def _asked(
    client: Client, sort: str, number: int, known: Sequence[str], questions: Sequence[str]
) -> Callable[[], Awaitable[object]]:
    question = questions[number % len(questions)]
    match sort:
        case "expand":
            return lambda: client.expand(known[number % len(known)])
        case "say":
            return lambda: client.say(f"load {number % 50}", [{"role": "user", "content": f"{question} ({number})"}])
        case "remember":
            return lambda: client.remember(f"Box {number} holds {number * 7} nails.")
        case "recall":
            return lambda: client.recall(question)
        case _:
            return lambda: client.context(question, tokens=BUDGET)


async def _some(here: Ground, questions: Sequence[str]) -> list[str]:
    found = [(await here.newton.verbs("bench").recall(question, most=50)).found for question in questions[:10]]
    return [str(one.memory_id) for some in found for one in some]


@asynccontextmanager
async def _daemon(here: Ground) -> AsyncGenerator[Client]:
    """A daemon on the same database, spoken to with a token of the agent's."""
    home = here.newton.settings.home
    chosen = f'database_url = "{here.owner}"\ndata_dir = "{home}"\n'
    (home / "newton.toml").write_text(chosen, encoding="utf-8")
    words = (sys.executable, "-m", "newton", "serve", "--port", "0", "--agent", here.newton.settings.agent)
    agent_id, now = here.newton.scope.agent_id, here.newton.scope.now()
    async with here.newton.scope.db.work(agent_id) as tx:
        token = await tokens.make(tx, agent_id=agent_id, name="bench", scope="write", now=now)
    process = await asyncio.create_subprocess_exec(*words, cwd=home, stderr=PIPE)
    try:
        async with Client(await _url(process), token=token, attempts=1) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


async def _url(process: Process) -> str:
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        if " serves " in line:
            asyncio.get_running_loop().create_task(_drained(process))
            return line.split(" serves ")[1].split(". ")[0]
    raise ConfigError("The daemon did not start.", hint="`newton serve` says why.")


async def _drained(process: Process) -> None:
    assert process.stderr is not None
    while await process.stderr.read(65_536):
        pass
