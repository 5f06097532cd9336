"""`python -m bench recall`: the share of the evidence for a question that its context contains, and the time to build
it.
"""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bench.dataset import DatasetConversation, DatasetQuestion, hash_dataset, load_conversations
from bench.environment import AtLeastOne, open_environment
from bench.run_metadata import RunStart, collect_run_metadata
from bench.scoring import RecallSample, evidence_recall, p50_and_p95, recall_by_type, summarize_by_budget
from newton.clock import ManualClock, monotonic_ms
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest
from newton.errors import ProviderError
from newton.memory.agents import get_or_create_agent
from newton.memory.hygiene import clean_text
from newton.memory.query_vectors import QuestionEmbedder
from newton.memory.ranking import DEFAULT_WEIGHTS
from newton.memory.representations import to_bullet
from newton.providers import token_counter
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.transfer.import_source import ImportReport, read_file
from newton.runtime.wiring import AgentServices

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

QUESTION_DELAY = timedelta(days=1)  # between the last line and the questions
DEFAULT_BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)

ProgressCallback = Callable[[str, int], None]


class RecordingEmbedder:
    """An embedder that records its calls, so that they can be repeated and timed alone."""

    def __init__(self, embedder: "Embedder") -> None:
        self._embedder = embedder
        self.name, self.identity, self.dimensions = embedder.name, embedder.identity, embedder.dimensions
        self.calls: list[Sequence[str]] = []

    async def embed(self, texts: Sequence[str]) -> "list[Vector]":
        self.calls.append(texts)
        return await self._embedder.embed(texts)

    async def embed_questions(self, texts: Sequence[str]) -> "list[Vector]":
        if isinstance(self._embedder, QuestionEmbedder):
            return await self._embedder.embed_questions(texts)
        return await self._embedder.embed(texts)


@dataclass(slots=True)
class ImportSpeed:
    """The counts of imported messages and embedded texts, and the milliseconds that each took."""

    lines: int = 0
    import_ms: float = 0.0
    texts: int = 0
    embed_ms: float = 0.0

    def as_json(self) -> dict[str, float | None]:
        imported, embedded = _per_second(self.lines, self.import_ms), _per_second(self.texts, self.embed_ms)
        ratio = round(imported / embedded, 3) if imported and embedded else None
        return {"import_per_s": imported, "embed_per_s": embedded, "import_to_embed": ratio}


async def time_import(
    newton: AgentServices, path: Path, speed: ImportSpeed, *, progress: Callable[[int], None]
) -> ImportReport:
    """Import a file, then repeat only its embedding calls; add the times of both to `speed`.

    Raises ProviderError if the embedding model fails.
    """
    embedder, recorder = newton.scope.embedder, None
    if embedder:
        await embedder.embed(["Good morning!"])  # the first call of a process is slower than later ones
        recorder = RecordingEmbedder(embedder)
    importer = replace(newton, scope=replace(newton.scope, embedder=recorder)).importer()
    started = monotonic_ms()
    report = await importer.run(read_file(path), progress=progress)
    speed.import_ms += monotonic_ms() - started
    speed.lines += report.new
    if report.embedder_error:
        raise ProviderError(report.embedder_error, hint="Fix the cause, or use NEWTON_EMBEDDING_PROVIDER=none.")
    if embedder and recorder:
        started = monotonic_ms()
        for texts in recorder.calls:
            await embedder.embed(texts)
        speed.embed_ms += monotonic_ms() - started
        speed.texts += sum(len(texts) for texts in recorder.calls)
    return report


def _per_second(count: int, ms: float) -> float | None:
    return round(count * 1_000 / ms, 1) if count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRun:
    """The options of a run of the recall benchmark, and the samples that it has measured."""

    budgets: Sequence[int]
    report_progress: ProgressCallback
    fill: bool = True
    import_speed: ImportSpeed = field(default_factory=ImportSpeed)
    samples: list[RecallSample] = field(default_factory=list[RecallSample])


async def run_benchmark(
    folder: Path,
    *,
    budget: Annotated[list[int] | None, AtLeastOne, Parameter(negative=())] = None,
    limit: Annotated[int | None, AtLeastOne] = None,
    fill: bool = True,
    json: JsonOption = False,
) -> None:
    """Measure how much of the evidence for a question its context contains.

    It uses a temporary database, not your memories. Each question is asked as if a day had passed since the end of its
    conversation.

    Example: python -m bench recall ./conversations --budget 2000 --json

    Parameters
    ----------
    folder:
        A folder of ID.ndjson files for `newton import`, each with an ID.queries.jsonl: one question per line,
        {"id":"q1","text":"…","type":"…","gold":["ref of a message with evidence", …]}.
    budget:
        Maximum tokens of a context; repeatable. Default: 500, 1000, 2000, 4000 and 8000.
    limit:
        Use only the first LIMIT conversations.
    fill:
        Use the whole budget of each context. With --no-fill, memories below the frame's minimum relevance are left out.
    """
    start, budgets = RunStart(), sorted(set(budget or DEFAULT_BUDGETS))
    conversations = load_conversations(folder, count_tokens=token_counter.count, limit=limit)
    _warn_missing_gold(conversations)
    async with open_environment(load_settings()) as env:
        with _progress_bar(conversations, len(budgets)) as report_progress:
            run = RecallRun(budgets=budgets, report_progress=report_progress, fill=fill)
            agents = [await _import_conversation(env.newton, conversation, run) for conversation in conversations]
            for newton, conversation in zip(agents, conversations, strict=True):
                await _measure_questions(newton, conversation, run)
        digest = hash_dataset(conversations)
        weighing = {**asdict(DEFAULT_WEIGHTS), "excluded_kinds": sorted(DEFAULT_WEIGHTS.excluded_kinds)}
        options = {"limit": limit, "fill": fill, "weighing": weighing}
        receipt = await collect_run_metadata(env, start, data_sha256=digest, budgets=budgets, **options)
    result = {**summarize(run), "receipt": receipt}
    if json:
        formatting.print_json(result)
    else:
        _print_table(result)


def summarize(run: RecallRun) -> dict[str, Any]:
    """Return the results as JSON."""
    samples = run.samples
    return {
        "budgets": summarize_by_budget(samples),
        "questions": len(samples) // len(run.budgets),
        "contexts": len(samples),
        "incomplete": sum(not sample.is_complete for sample in samples),
        "by_type": recall_by_type(samples),
        **run.import_speed.as_json(),
        "context_ms": p50_and_p95([sample.ms for sample in samples]),
    }


def select_rendered_items(bundle: Bundle) -> list[ScoredCandidate]:
    """Return the items of the bundle that its text contains."""
    lines = {f"{line}\n" for line in bundle.text.split("\n")}
    return [item for item in bundle.items if to_bullet(item.context_line) in lines]


async def _import_conversation(
    newton: AgentServices, conversation: DatasetConversation, run: RecallRun
) -> AgentServices:
    """Import a conversation into an agent of its own; return its services, whose clock is a day after the last
    message.
    """
    own = await create_conversation_agent(newton, conversation)

    def report_lines(lines: int) -> None:
        run.report_progress(f"{conversation.name}: import", lines)

    report = await time_import(own, conversation.path, run.import_speed, progress=report_lines)
    for rejection in report.rejections:
        formatting.print_notice(f"{conversation.path}, {rejection.place}, was rejected: {rejection.reason}")
    return ask_after_end(own, conversation)


async def create_conversation_agent(newton: AgentServices, conversation: DatasetConversation) -> AgentServices:
    """Return the services of an agent for a conversation."""
    agent_id = await get_or_create_agent(newton.scope.db, f"bench-{conversation.name}", now=newton.scope.now())
    return replace(newton, scope=replace(newton.scope, agent_id=agent_id))


def ask_after_end(newton: AgentServices, conversation: DatasetConversation) -> AgentServices:
    """Return the services with a clock that is QUESTION_DELAY after the last message."""
    asked_at = (conversation.ended_at or newton.scope.now()) + QUESTION_DELAY
    return replace(newton, context_builder=replace(newton.context_builder, clock=ManualClock(asked_at)))


async def build_context(newton: AgentServices, question: str, *, budget: int, fill: bool) -> tuple[Bundle, float]:
    """Build the context of a question; return it with the milliseconds that it took."""
    request = ContextBuildRequest(
        agent_id=newton.scope.agent_id,
        input=clean_text(question, what="question"),
        tokens=budget,
        fill=fill,
        profile=newton.settings.profile,
    )
    started = monotonic_ms()
    bundle = await newton.context_builder.build(request)
    return bundle, monotonic_ms() - started


async def _measure_questions(newton: AgentServices, conversation: DatasetConversation, run: RecallRun) -> None:
    """Measure each question of the conversation with each budget; add the samples to `run`."""
    for question, budget in product(conversation.questions, run.budgets):
        run.samples.append(await _measure_question(newton, conversation, question, budget=budget, fill=run.fill))
        run.report_progress(conversation.name, 1)


async def _measure_question(
    newton: AgentServices,
    conversation: DatasetConversation,
    question: DatasetQuestion,
    *,
    budget: int,
    fill: bool,
) -> RecallSample:
    bundle, ms = await build_context(newton, question.text, budget=budget, fill=fill)
    return RecallSample(
        type=question.type,
        budget=budget,
        evidence=evidence_recall(conversation.find_gold(question), select_rendered_items(bundle)),
        tokens=bundle.tokens,
        counted_tokens=newton.scope.count_tokens(bundle.text),
        ms=ms,
        is_complete=not bundle.missing,
    )


def _warn_missing_gold(dataset: Sequence[DatasetConversation]) -> None:
    unknown = [
        f"{conversation.name} {question.id}"
        for conversation in dataset
        for question in conversation.questions
        if None in conversation.find_gold(question)
    ]
    if unknown:
        names = ", ".join(unknown)
        what = f"{len(unknown)} questions name messages that do not exist; these count as missed evidence: {names}"
        formatting.print_notice(what)


@contextmanager
def _progress_bar(dataset: Sequence[DatasetConversation], budgets: int) -> Generator[ProgressCallback]:
    """Show the progress of imports and contexts on standard error; yield the function that reports progress."""
    total = sum(conversation.line_count + budgets * len(conversation.questions) for conversation in dataset)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=total)
        yield lambda what, done: progress.update(task, description=what, advance=done)


def _print_table(result: Mapping[str, Any]) -> None:
    budgets: Mapping[str, Mapping[str, float]] = result["budgets"]
    title = f"Share of the evidence that contexts contain, by maximum tokens ({result['questions']} questions)"
    table = Table("maximum tokens", title=title)
    for budget in budgets:
        table.add_column(budget, justify="right")
    table.add_row("all questions", *(f"{metrics['evidence']:.3f}" for metrics in budgets.values()))
    for kind, shares in result["by_type"].items():
        is_last = kind == max(result["by_type"])
        table.add_row(f"  {kind}", *(f"{share:.3f}" for share in shares.values()), end_section=is_last)
    rows = {
        "mean tokens of a context": "tokens_mean",
        "contexts over the maximum": "over_budget",
        "contexts with a wrong token count": "miscounted",
    }
    for title, name in rows.items():
        table.add_row(title, *(f"{metrics[name]:.0f}" for metrics in budgets.values()))
    Console().print(table)
    print(_format_timings(result))
    if result["incomplete"]:
        formatting.print_notice(
            f"{result['incomplete']} contexts are incomplete: a source of memories failed or was late."
        )


def _format_timings(result: Mapping[str, Any]) -> str:
    ms, embedding = result["context_ms"], ""
    if result["import_to_embed"]:
        embedding = f", {result['import_to_embed']:.0%} of the embedding model's own {result['embed_per_s']} texts/s"
    return (
        f"Time for a context: median {ms['p50']:.1f} ms, p95 {ms['p95']:.1f} ms."
        f" Import: {result['import_per_s']} messages/s{embedding}."
    )
