"""`python -m bench context`: the time to build a context, compared with an embedding and two plain searches."""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from bench.environment import WARM_UP_ROUNDS, AtLeastOne, measure_alternately, open_environment, vacuum_analyze
from bench.run_metadata import RunStart, collect_run_metadata
from bench.scoring import p50_and_p95, percentile
from bench.synthetic_dialogue import SyntheticDialogue, generate_dialogue
from newton.clock import monotonic_ms
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.question_memories import compute_search_limits
from newton.db.queries import load
from newton.errors import ConfigError, ProviderError
from newton.ids import derive_model_id
from newton.memory import recall, store
from newton.providers.embedding import normalize_rows
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.transfer.import_source import read_file
from newton.runtime.wiring import AgentServices

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

SQL = load("bench", "bare.sql")

BUDGET = 8_000
SEED = 20_260

Vectors = Literal["real", "random"]
VectorsOption = Annotated[Vectors, Parameter(help="Embed the memories with the model, or use random vectors (fast).")]


class RandomEmbedder:
    """An embedder that returns random unit vectors under the identity of a real embedder.

    Searches with these vectors take as long as searches with real ones.
    """

    def __init__(self, embedder: "Embedder") -> None:
        self.name, self.identity, self.dimensions = embedder.name, embedder.identity, embedder.dimensions
        self._rng = np.random.default_rng(SEED)

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        return normalize_rows(self._rng.standard_normal((len(texts), self.dimensions)))


async def run_benchmark(
    *,
    memories: Annotated[int, AtLeastOne] = 10_000,
    rounds: Annotated[int, AtLeastOne] = 200,
    vectors: VectorsOption = "real",
    json: JsonOption = False,
) -> None:
    """Measure the time to build a context, compared with an embedding and two plain searches for the same question.

    It uses synthetic dialogue on a temporary server.

    Example: python -m bench context --memories 10000 --json

    Parameters
    ----------
    memories:
        Number of messages to import.
    rounds:
        Number of questions.
    """
    start, dialogue = RunStart(), generate_dialogue(memories, rounds + WARM_UP_ROUNDS, seed=SEED)
    async with open_environment(load_settings().model_copy(update={"database_url": None})) as env:
        await import_dialogue(env.newton, dialogue, vectors=vectors)
        await vacuum_analyze(env.owner_dsn)
        bare, full = await measure_alternately(
            dialogue.questions, partial(_measure_bare_searches, env.newton), partial(_measure_context, env.newton)
        )
        async with env.newton.scope.transaction() as tx:
            counts = dict(await store.count_by_kind(tx, agent_id=env.newton.scope.agent_id))
        digest = hashlib.sha256("\n".join(dialogue.lines).encode()).hexdigest()
        receipt = await collect_run_metadata(env, start, data_sha256=digest, budgets=[BUDGET], vectors=vectors)
    bare_ms, context_ms = _summarize(bare), _summarize(full)
    ratio = round(context_ms["p50"] / bare_ms["p50"], 3)
    figures = {"bare_ms": bare_ms, "context_ms": context_ms, "ratio": ratio, "rounds": rounds}
    result = {**figures, "memories": counts, "receipt": receipt}
    if json:
        formatting.print_json(result)
    else:
        _print_table(result)


def _summarize(samples: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return p50 and p95 of the total times, and the median time of each stage. A sample has milliseconds by stage."""
    stages = dict.fromkeys(stage for sample in samples for stage in sample)
    medians = {stage: percentile([sample[stage] for sample in samples if stage in sample], 0.5) for stage in stages}
    totals = p50_and_p95([sum(sample.values()) for sample in samples])
    return {**totals, "stages_p50": {stage: round(ms, 3) for stage, ms in medians.items()}}


async def import_dialogue(newton: AgentServices, dialogue: SyntheticDialogue, *, vectors: Vectors) -> None:
    """Import the dialogue. Raises ConfigError without an embedding model, and ProviderError if the model fails."""
    if newton.scope.embedder is None:
        what = "This benchmark needs an embedding model, and none is configured."
        raise ConfigError(what, hint="Set NEWTON_EMBEDDING_PROVIDER=local.")
    embedder = newton.scope.embedder if vectors == "real" else RandomEmbedder(newton.scope.embedder)
    with tempfile.TemporaryDirectory(prefix="newton-bench-") as folder:
        path = Path(folder) / "dialogue.ndjson"
        path.write_text("\n".join(dialogue.lines), encoding="utf-8")
        report = await replace(newton, scope=replace(newton.scope, embedder=embedder)).importer().run(read_file(path))
    if report.embedder_error:
        raise ProviderError(report.embedder_error, hint="Fix the cause, or use --vectors random.")


async def _measure_bare_searches(newton: AgentServices, question: str) -> Mapping[str, float]:
    """Return the milliseconds of embedding the question, of the vector search and of the word search."""
    scope = newton.scope
    assert scope.embedder is not None
    limits = {kind: limit.searched for kind, limit in compute_search_limits(BUDGET).items()}
    common = {"agent_id": scope.agent_id, "kinds": list(limits), "limits": list(limits.values())}
    model_id = derive_model_id(scope.embedder.identity)
    times = [monotonic_ms()]
    vector = (await scope.embedder.embed([question]))[0]
    times.append(monotonic_ms())
    async with scope.transaction() as tx:
        await SQL["search_vectors"].fetch_all(tx, **common, model_id=model_id, embedding=vector)
        times.append(monotonic_ms())
        await SQL["search_bm25"].fetch_all(tx, **common, input=question, k1=recall.K1, b=recall.B)
    times.append(monotonic_ms())
    durations = (end - begin for begin, end in pairwise(times))
    return dict(zip(("embed", "dense", "lexical"), durations, strict=True))


async def _measure_context(newton: AgentServices, question: str) -> Mapping[str, float]:
    """Return the milliseconds of each stage of building a context.

    The stage `store` is the time outside the other stages.
    """
    started = monotonic_ms()
    agent_id, profile = newton.scope.agent_id, newton.settings.profile
    request = ContextBuildRequest(agent_id=agent_id, input=question, tokens=BUDGET, profile=profile)
    timings = (await newton.context_builder.build(request)).timings_ms
    return {**timings, "store": monotonic_ms() - started - sum(timings.values())}


def _print_table(result: Mapping[str, Any]) -> None:
    table = Table(title=f"{sum(result['memories'].values())} memories, {result['rounds']} questions")
    for title in ("milliseconds", "p50", "p95"):
        table.add_column(title, justify="right" if title.startswith("p") else "left")
    for title, name in (("embedding and two plain searches", "bare_ms"), ("the whole context", "context_ms")):
        table.add_row(title, f"{result[name]['p50']:.1f}", f"{result[name]['p95']:.1f}")
        for stage, ms in result[name]["stages_p50"].items():
            table.add_row(f"  {stage}", f"{ms:.1f}")
        table.add_section()
    Console().print(table)
    print(f"A context takes {result['ratio']:.2f} times as long as the embedding and the plain searches.")
