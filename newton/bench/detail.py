"""`newton bench detail`: how often the context contains the sentence of a long text that answers a question."""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from newton.bench.environment import AtLeastOne, open_environment, vacuum_analyze
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.scoring import mean, p50_and_p95
from newton.bench.trials.long_texts import LongText, generate_long_texts
from newton.clock import monotonic_ms
from newton.cognition.request import ContextBuildRequest
from newton.errors import ProviderError
from newton.memory.representations import one_line
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.transfer.ndjson import read_file
from newton.runtime.wiring import AgentServices

DEFAULT_BUDGET = 2_000
SEED = 20_261


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailSample:
    """The measurements of one context: does it contain the marked sentence, its tokens, and the milliseconds."""

    kind: str
    has_mark: bool
    tokens: int
    counted_tokens: int
    ms: float


async def run_benchmark(
    *,
    texts: Annotated[int, AtLeastOne] = 200,
    budget: Annotated[int, AtLeastOne] = DEFAULT_BUDGET,
    fill: Annotated[bool, Parameter(negative="--no-fill")] = False,
    json: JsonOption = False,
) -> None:
    """Measure how often the context contains the sentence of a long text that answers a question.

    Half of the generated texts are documents of 700 words, half are facts of 250 words. Each has one marked sentence at
    a random place, and a question that names the subject of the text and asks for the sentence in other words. It uses
    a temporary database, not your memories.

    Example: newton bench detail --texts 200 --json

    Parameters
    ----------
    texts:
        Number of texts.
    budget:
        Maximum tokens of a context.
    fill:
        Use the whole budget of each context.
    """
    start, long_texts = RunStart(), generate_long_texts(texts, seed=SEED)
    async with open_environment(load_settings()) as env:
        await import_texts(env.newton, long_texts)
        await vacuum_analyze(env.owner_dsn)
        samples = [await _measure_text(env.newton, text, budget=budget, fill=fill) for text in long_texts]
        digest = hashlib.sha256("\n".join(text.import_line for text in long_texts).encode()).hexdigest()
        receipt = await collect_run_metadata(env, start, data_sha256=digest, budgets=[budget], fill=fill)
    result = {**summarize(samples), "receipt": receipt}
    if json:
        formatting.print_json(result)
    else:
        say(_format_result(result))


async def import_texts(newton: AgentServices, texts: Sequence[LongText]) -> None:
    """Import the texts with their vectors. Raises ProviderError if the embedding model fails."""
    with tempfile.TemporaryDirectory(prefix="newton-bench-") as folder:
        path = Path(folder) / "texts.ndjson"
        path.write_text("".join(f"{text.import_line}\n" for text in texts), encoding="utf-8")
        report = await newton.importer().run(read_file(path))
    if report.rejections:
        raise AssertionError(report.rejections[0].reason)
    if report.embedder_error:
        raise ProviderError(report.embedder_error, hint="Fix the cause, or use NEWTON_EMBEDDING_PROVIDER=none.")


async def _measure_text(newton: AgentServices, text: LongText, *, budget: int, fill: bool) -> DetailSample:
    request = ContextBuildRequest(
        agent_id=newton.scope.agent_id,
        input=text.question,
        tokens=budget,
        fill=fill,
        profile=newton.settings.profile,
    )
    started = monotonic_ms()
    bundle = await newton.context_builder.build(request)
    ms = monotonic_ms() - started
    return DetailSample(
        kind=text.kind,
        has_mark=text.marked_sentence in one_line(bundle.text),
        tokens=bundle.tokens,
        counted_tokens=newton.scope.count_tokens(bundle.text),
        ms=ms,
    )


def summarize(samples: Sequence[DetailSample]) -> dict[str, Any]:
    """Return statistics as JSON: the share of contexts with the marked sentence, in all and by kind of text."""
    kinds = sorted({sample.kind for sample in samples})
    return {
        "texts": len(samples),
        "marked": _share([sample.has_mark for sample in samples]),
        "by_kind": {kind: _share([s.has_mark for s in samples if s.kind == kind]) for kind in kinds},
        "tokens_mean": round(mean([sample.counted_tokens for sample in samples]), 1),
        "miscounted": sum(sample.counted_tokens != sample.tokens for sample in samples),
        "context_ms": p50_and_p95([sample.ms for sample in samples]),
    }


def _share(values: Sequence[bool]) -> float:
    return round(mean([float(value) for value in values]), 4)


def _format_result(result: Mapping[str, Any]) -> str:
    kinds = ", ".join(f"{kind}s {share:.1%}" for kind, share in result["by_kind"].items())
    return (
        f"{result['texts']} texts: {result['marked']:.1%} of the contexts contain the marked sentence ({kinds})."
        f" Mean tokens of a context: {result['tokens_mean']:.0f}."
        f" Time for a context: median {result['context_ms']['p50']:.1f} ms, p95 {result['context_ms']['p95']:.1f} ms."
    )
