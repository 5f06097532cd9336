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

from newton.bench.environment import BenchEnvironment, open_environment, vacuum_analyze
from newton.bench.recall import AtLeastOne
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.scoring import p50_and_p95, percentile
from newton.bench.synthetic_dialogue import SyntheticDialogue, generate_dialogue
from newton.clock import monotonic_ms
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.gather import compute_search_limits
from newton.db.queries import load
from newton.errors import ConfigError, ProviderError
from newton.ids import derive_model_id
from newton.memory import recall, store
from newton.providers.embedding import normalize_rows
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.wiring import AgentServices

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("newton.bench", "bare.sql")

BUDGET = 8_000
SEED = 20_260
WARM_UP_ROUNDS = 10  # rounds that are not counted: connections, prepared statements and caches are made

VectorsOption = Annotated[
    Literal["real", "random"], Parameter(help="Embed the memories with the model, or give them random vectors, fast.")
]


class RandomEmbedder:
    """Random unit vectors under another model's identity: fast to make, as costly to search as real ones."""

    def __init__(self, embedder: "Embedder") -> None:
        self.identity, self.dimensions = embedder.identity, embedder.dimensions
        self._rng = np.random.default_rng(SEED)

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        return normalize_rows(self._rng.standard_normal((len(texts), self.dimensions)))


@dataclass(frozen=True, slots=True)
class LatencySamples:
    """Milliseconds of every round: total and by stage."""

    totals_ms: list[float] = field(default_factory=list[float])
    stages_ms: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, stages_ms: Mapping[str, float], *, total_ms: float) -> None:
        self.totals_ms.append(total_ms)
        for name, ms in stages_ms.items():
            self.stages_ms.setdefault(name, []).append(ms)

    def as_json(self) -> dict[str, Any]:
        middles = {name: round(percentile(times, 0.5), 3) for name, times in self.stages_ms.items()}
        return {**p50_and_p95(self.totals_ms), "stages_p50": middles}


async def run_benchmark(
    *,
    memories: Annotated[int, AtLeastOne] = 10_000,
    rounds: Annotated[int, AtLeastOne] = 200,
    vectors: VectorsOption = "real",
    json: JsonOption = False,
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
    began, told = RunStart(), generate_dialogue(memories, rounds + WARM_UP_ROUNDS, seed=SEED)
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as here:
        await import_dialogue(here.newton, told, vectors=vectors)
        await vacuum_analyze(here.owner_dsn)
        bare, full = await _measure_alternately(here.newton, told.questions)
        kept = await _count_memories(here)
        digest = hashlib.sha256("\n".join(told.lines).encode()).hexdigest()
        written = await collect_run_metadata(here, began, data_sha256=digest, budgets=[BUDGET], vectors=vectors)
    ratio = round(percentile(full.totals_ms, 0.5) / percentile(bare.totals_ms, 0.5), 3)
    figures = {"bare_ms": bare.as_json(), "context_ms": full.as_json(), "ratio": ratio, "rounds": rounds}
    answer = {**figures, "memories": kept, "receipt": written}
    if json:
        formatting.print_json(answer)
    else:
        _print_table(answer)


async def _count_memories(environment: BenchEnvironment) -> dict[str, int]:
    async with environment.newton.scope.db.transaction(environment.newton.scope.agent_id) as tx:
        return dict(await store.count_by_kind(tx, agent_id=environment.newton.scope.agent_id))


async def import_dialogue(
    newton: AgentServices, dialogue: SyntheticDialogue, *, vectors: Literal["real", "random"]
) -> None:
    if newton.scope.embedder is None:
        raise ConfigError(
            "Without an embedding model there is no vector search.", hint="Set NEWTON_EMBEDDING_PROVIDER=local."
        )
    embedder = newton.scope.embedder if vectors == "real" else RandomEmbedder(newton.scope.embedder)
    with tempfile.TemporaryDirectory(prefix="newton-bench-") as folder:
        path = Path(folder) / "talk.ndjson"
        path.write_text("\n".join(dialogue.lines), encoding="utf-8")
        report = await replace(newton, scope=replace(newton.scope, embedder=embedder)).importer().run(path)
    if report.embedder_error:
        raise ProviderError(report.embedder_error, hint="Mend that, or measure with --vectors random.")


async def _measure_alternately(
    newton: AgentServices, questions: Sequence[str]
) -> tuple[LatencySamples, LatencySamples]:
    """Measure both ways for each question, in alternating order."""
    ways = ((_measure_bare_searches, LatencySamples()), (_measure_context, LatencySamples()))
    for number, question in enumerate(questions):
        for way, times in ways if number % 2 else reversed(ways):
            stages, whole = await way(newton, question)
            if number >= WARM_UP_ROUNDS:
                times.add(stages, total_ms=whole)
    return ways[0][1], ways[1][1]


async def _measure_bare_searches(newton: AgentServices, question: str) -> tuple[Mapping[str, float], float]:
    """Measure the embedding and the two bare searches on one connection."""
    assert newton.scope.embedder is not None
    most = {kind: width.searched for kind, width in compute_search_limits(BUDGET).items()}
    wanted = {"agent_id": newton.scope.agent_id, "kinds": list(most), "limits": list(most.values())}
    times = [monotonic_ms()]
    vector = (await newton.scope.embedder.embed([question]))[0]
    times.append(monotonic_ms())
    async with newton.scope.transaction() as tx:
        await SQL["search_vectors"].fetch_all(
            tx, **wanted, model_id=derive_model_id(newton.scope.embedder.identity), embedding=vector
        )
        times.append(monotonic_ms())
        await SQL["search_bm25"].fetch_all(tx, **wanted, input=question, k1=recall.K1, b=recall.B)
        times.append(monotonic_ms())
    stages = {name: times[i + 1] - times[i] for i, name in enumerate(("embed", "dense", "lexical"))}
    return stages, monotonic_ms() - times[0]


async def _measure_context(newton: AgentServices, question: str) -> tuple[Mapping[str, float], float]:
    """Measure the whole context, including the stored bundle."""
    started = monotonic_ms()
    request = ContextBuildRequest(
        agent_id=newton.scope.agent_id, input=question, tokens=BUDGET, profile=newton.settings.profile
    )
    bundle = await newton.context_builder.build(request)
    whole = monotonic_ms() - started
    return {**bundle.timings_ms, "keep": whole - sum(bundle.timings_ms.values())}, whole


def _print_table(answer: Mapping[str, Any]) -> None:
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
