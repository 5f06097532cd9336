"""`newton bench context`: how long a context takes, beside the embedding and the two bare searches it rests on."""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from newton.bench.dialogue import Talk, talk
from newton.bench.ground import Ground, ground, vacuum
from newton.bench.measure import percentile, tails
from newton.bench.recall import AtLeastOne
from newton.bench.receipt import Began, receipt
from newton.clock import stopwatch
from newton.cognition.gather import widths
from newton.cognition.request import Request
from newton.db.queries import load
from newton.errors import ConfigError, ProviderError
from newton.ids import model_id
from newton.memory import recall, store
from newton.providers.embedding import unit
from newton.runtime.cli import show
from newton.runtime.cli.options import AsJson, settings
from newton.runtime.wiring import Newton

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.bench", "bare.sql")

BUDGET = 8_000
SEED = 20_260
WARM_UP = 10  # rounds that are not counted: connections, prepared statements and caches are made

Vectors = Annotated[
    Literal["real", "random"], Parameter(help="Embed the memories with the model, or give them random vectors, fast.")
]


class Noise:
    """Random unit vectors under another model's name: as costly to search as real ones, and made at once."""

    def __init__(self, embedder: "Embedder") -> None:
        self.identity, self.dimensions = embedder.identity, embedder.dimensions
        self._rng = np.random.default_rng(SEED)

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        return unit(self._rng.standard_normal((len(texts), self.dimensions)))


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of every round: the whole of it, and its stages by name."""

    whole: list[float] = field(default_factory=list[float])
    stages: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, stages: Mapping[str, float], *, whole: float) -> None:
        self.whole.append(whole)
        for name, ms in stages.items():
            self.stages.setdefault(name, []).append(ms)

    def as_json(self) -> dict[str, Any]:
        middles = {name: round(percentile(times, 0.5), 3) for name, times in self.stages.items()}
        return {**tails(self.whole), "stages_p50": middles}


async def command(
    *,
    memories: Annotated[int, AtLeastOne] = 10_000,
    rounds: Annotated[int, AtLeastOne] = 200,
    vectors: Vectors = "real",
    json: AsJson = False,
) -> None:
    """Measure how long a context takes, beside the bare searches, query by query.

    It works on made-up dialogue in a server of its own that is gone afterwards.

    Example: newton bench context --memories 10000 --json

    Parameters
    ----------
    memories:
        How many lines of dialogue are remembered.
    rounds:
        How many questions are asked.
    """
    began, told = Began(), talk(memories, rounds + WARM_UP, seed=SEED)
    async with ground(settings().model_copy(update={"database_url": None})) as here:
        await remember(here.newton, told, vectors=vectors)
        await vacuum(here.owner)
        bare, full = await _alternately(here.newton, told.questions)
        kept = await _kept(here)
        digest = hashlib.sha256("\n".join(told.lines).encode()).hexdigest()
        written = await receipt(here, began, data_sha256=digest, budgets=[BUDGET], vectors=vectors)
    ratio = round(percentile(full.whole, 0.5) / percentile(bare.whole, 0.5), 3)
    figures = {"bare_ms": bare.as_json(), "context_ms": full.as_json(), "ratio": ratio, "rounds": rounds}
    answer = {**figures, "memories": kept, "receipt": written}
    if json:
        show.as_json(answer)
    else:
        _print(answer)


async def _kept(here: Ground) -> dict[str, int]:
    async with here.newton.scope.db.work(here.newton.scope.agent_id) as tx:
        return dict(await store.counts(tx, agent_id=here.newton.scope.agent_id))


async def remember(newton: Newton, told: Talk, *, vectors: Literal["real", "random"]) -> None:
    if newton.scope.embedder is None:
        raise ConfigError("Without an embedding model there is no vector search.", hint="Set NEWTON_EMBEDDING=local.")
    embedder = newton.scope.embedder if vectors == "real" else Noise(newton.scope.embedder)
    with tempfile.TemporaryDirectory(prefix="newton-bench-") as folder:
        path = Path(folder) / "talk.ndjson"
        path.write_text("\n".join(told.lines), encoding="utf-8")
        report = await replace(newton, scope=replace(newton.scope, embedder=embedder)).importer().run(path)
    if report.down:
        raise ProviderError(report.down, hint="Mend that, or measure with --vectors random.")


async def _alternately(newton: Newton, questions: Sequence[str]) -> tuple[Times, Times]:
    """Both ways of each question one after the other, and each way first every other time."""
    ways = ((_bare, Times()), (_full, Times()))
    for number, question in enumerate(questions):
        for way, times in ways if number % 2 else reversed(ways):
            stages, whole = await way(newton, question)
            if number >= WARM_UP:
                times.add(stages, whole=whole)
    return ways[0][1], ways[1][1]


async def _bare(newton: Newton, question: str) -> tuple[Mapping[str, float], float]:
    """The question's vector and two searches on one connection; nothing is made of what they find."""
    assert newton.scope.embedder is not None
    most = {kind: width.searched for kind, width in widths(BUDGET).items()}
    wanted = {"agent_id": newton.scope.agent_id, "kinds": list(most), "limits": list(most.values())}
    times = [stopwatch()]
    vector = (await newton.scope.embedder.embed([question]))[0]
    times.append(stopwatch())
    async with newton.scope.transaction() as tx:
        await SQL["search_vectors"].all(
            tx, **wanted, model_id=model_id(newton.scope.embedder.identity), embedding=vector
        )
        times.append(stopwatch())
        await SQL["search_bm25"].all(tx, **wanted, input=question, k1=recall.K1, b=recall.B)
        times.append(stopwatch())
    stages = {name: times[i + 1] - times[i] for i, name in enumerate(("embed", "dense", "lexical"))}
    return stages, stopwatch() - times[0]


async def _full(newton: Newton, question: str) -> tuple[Mapping[str, float], float]:
    """Everything, to the stored bundle."""
    started = stopwatch()
    request = Request(agent_id=newton.scope.agent_id, input=question, tokens=BUDGET, profile=newton.settings.profile)
    bundle = await newton.contexts.build(request)
    whole = stopwatch() - started
    return {**bundle.timings_ms, "keep": whole - sum(bundle.timings_ms.values())}, whole


def _print(answer: Mapping[str, Any]) -> None:
    table = Table(title=f"{sum(answer['memories'].values())} memories, {answer['rounds']} questions")
    for title in ("milliseconds", "p50", "p95"):
        table.add_column(title, justify="right" if title.startswith("p") else "left")
    for title, name in (("embedding and two bare searches", "bare_ms"), ("the whole context", "context_ms")):
        table.add_row(title, f"{answer[name]['p50']:.1f}", f"{answer[name]['p95']:.1f}")
        for stage, ms in answer[name]["stages_p50"].items():
            table.add_row(f"  {stage}", f"{ms:.1f}")
        table.add_section()
    Console().print(table)
    print(f"A context takes {answer['ratio']:.2f} times as long as the bare searches.")
