"""`newton bench recall`: how much of the evidence for a question reaches the context, and how fast."""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from newton.bench.ablation import BASELINE, AblationVariant, build_variants, select_base_profile
from newton.bench.dataset import DatasetConversation, DatasetQuestion, hash_dataset, load_conversations
from newton.bench.environment import open_environment
from newton.bench.import_speed import ImportSpeed, time_import
from newton.bench.run_metadata import RunStart, collect_run_metadata
from newton.bench.scoring import (
    RecallSample,
    evidence_recall,
    p50_and_p95,
    recall_by_type,
    recall_by_variant,
    summarize_by_budget,
)
from newton.clock import ManualClock, monotonic_ms
from newton.cognition.assembly.scored_candidate import ScoredCandidate
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest
from newton.cognition.sources.gather import compute_search_limits
from newton.memory import agents, store
from newton.memory.hygiene import clean_text
from newton.memory.memory import Kind
from newton.memory.ranking import DEFAULT_WEIGHTS
from newton.memory.representations import to_bullet
from newton.providers import token_counter
from newton.runtime.cli import formatting
from newton.runtime.cli.options import JsonOption, load_settings
from newton.runtime.wiring import AgentServices

QUESTION_DELAY = timedelta(days=1)  # so long after the last line each question is asked
DEFAULT_BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)

AtLeastOne = Parameter(validator=Number(gte=1))
ProgressCallback = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRun:
    """The parameters and the results of a recall benchmark."""

    budgets: Sequence[int]
    report_progress: ProgressCallback
    variants: Sequence[AblationVariant] = (AblationVariant(name=BASELINE),)
    import_speed: ImportSpeed = field(default_factory=ImportSpeed)
    samples: list[RecallSample] = field(default_factory=list[RecallSample])


async def run_benchmark(
    folder: Path,
    *,
    budget: Annotated[list[int] | None, AtLeastOne, Parameter(negative=())] = None,
    limit: Annotated[int | None, AtLeastOne] = None,
    ablate: bool = False,
    json: JsonOption = False,
) -> None:
    """Measure how much of the evidence for questions reaches the context.

    Your own memories are not touched: it works in a database that is gone afterwards. Each question is asked as if a
    day had passed since the last line of its conversation.

    Example: newton bench recall ./conversations --budget 2000 --json

    Parameters
    ----------
    folder:
        A folder of ID.ndjson, as `newton import` takes them, each with an ID.queries.jsonl beside it: one question a
        line, {"id":"q1","text":"…","type":"…","gold":["the ref of a line", …]}.
    budget:
        Tokens a context may have; may be given several times. Without it: 500, 1000, 2000, 4000 and 8000.
    limit:
        Take only the first so many conversations.
    ablate:
        Ask everything again without each feature, each kind of evidence and each kind of memory in turn, by relevance
        alone, and by the published weights. Takes some fifteen times as long.
    """
    began, budgets = RunStart(), sorted(set(budget or DEFAULT_BUDGETS))
    found = load_conversations(folder, count_tokens=token_counter.count, limit=limit)
    _warn_missing_gold(found)
    async with open_environment(load_settings()) as here:
        with _progress_bar(found, len(budgets)) as step:
            run = RecallRun(budgets=budgets, report_progress=step)
            known = [await _import_conversation(here.newton, conversation, run) for conversation in found]
            if ablate:
                run = replace(run, variants=await _build_variants(known))
            for newton, conversation in zip(known, found, strict=True):
                await _measure_questions(newton, conversation, run)
        weighing = {**asdict(DEFAULT_WEIGHTS), "excluded_kinds": sorted(DEFAULT_WEIGHTS.excluded_kinds)}
        written = await collect_run_metadata(
            here, began, data_sha256=hash_dataset(found), budgets=budgets, limit=limit, weighing=weighing
        )
    answer = {**summarize(run), "receipt": written}
    if json:
        formatting.print_json(answer)
    else:
        _print_table(answer)


def summarize(run: RecallRun) -> dict[str, Any]:
    samples = [sample for sample in run.samples if sample.variant == BASELINE]
    return {
        "budgets": summarize_by_budget(samples),
        "questions": len(samples) // len(run.budgets),
        "contexts": len(samples),
        "incomplete": sum(not sample.is_complete for sample in run.samples),
        "by_type": recall_by_type(samples),
        "ablation": recall_by_variant(run.samples) if len(run.variants) > 1 else {},
        **run.import_speed.as_json(),
        "context_ms": p50_and_p95([sample.ms for sample in samples]),
    }


def select_rendered_items(bundle: Bundle) -> list[ScoredCandidate]:
    """Return the items whose line is in the rendered text."""
    lines = {f"{line}\n" for line in bundle.text.split("\n")}
    return [item for item in bundle.items if to_bullet(item.context_line) in lines]


async def _import_conversation(
    newton: AgentServices, conversation: DatasetConversation, run: RecallRun
) -> AgentServices:
    """The conversation in an agent of its own, a day after it ended."""
    agent_id = await agents.get_or_create_agent(newton.scope.db, f"bench-{conversation.name}", now=newton.scope.now())
    own = replace(newton, scope=replace(newton.scope, agent_id=agent_id))
    report = await time_import(
        own,
        conversation.path,
        run.import_speed,
        progress=lambda lines: run.report_progress(f"{conversation.name}: import", lines),
    )
    for refusal in report.rejections:
        formatting.print_notice(f"{conversation.path}:{refusal.line} was refused: {refusal.reason}")
    asked_at = (conversation.ended_at or newton.scope.now()) + QUESTION_DELAY
    return replace(own, context_builder=replace(own.context_builder, clock=ManualClock(asked_at)))


async def _build_variants(services: Sequence[AgentServices]) -> list[AblationVariant]:
    """For all kinds of memory that a search asks and that any conversation left."""
    held: set[str] = set()
    for newton in services:
        async with newton.scope.transaction() as tx:
            held |= (await store.count_by_kind(tx, agent_id=newton.scope.agent_id)).keys()
    kinds: list[Kind] = [kind for kind in compute_search_limits(1) if kind in held]
    return build_variants(select_base_profile(services[0].context_builder, services[0].settings.profile), kinds)


async def _measure_questions(newton: AgentServices, conversation: DatasetConversation, run: RecallRun) -> None:
    """Each of the conversation's questions at each budget, in each way."""
    for variant in run.variants:
        changed = replace(newton, context_builder=variant.apply(newton.context_builder))
        for question in conversation.questions:
            for budget in run.budgets:
                sample = await _measure_question(changed, conversation, question, budget=budget, variant=variant)
                run.samples.append(sample)
                run.report_progress(f"{conversation.name}: {variant.name}", 1)


async def _measure_question(
    newton: AgentServices,
    conversation: DatasetConversation,
    question: DatasetQuestion,
    *,
    budget: int,
    variant: AblationVariant,
) -> RecallSample:
    request = ContextBuildRequest(
        agent_id=newton.scope.agent_id,
        input=clean_text(question.text, what="question"),
        tokens=budget,
        profile=variant.profile or newton.settings.profile,
    )
    started = monotonic_ms()
    bundle = await newton.context_builder.build(request)
    ms = monotonic_ms() - started
    return RecallSample(
        variant=variant.name,
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
        formatting.print_notice(
            f"{len(unknown)} questions name gold that no line has; it counts as missed: {', '.join(unknown)}"
        )


@contextmanager
def _progress_bar(dataset: Sequence[DatasetConversation], budgets: int) -> Generator[ProgressCallback]:
    """Show a progress bar on stderr for all lines and contexts."""
    total = sum(conversation.line_count + budgets * len(conversation.questions) for conversation in dataset)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=total)
        yield lambda what, done: progress.update(task, description=what, advance=done)


def _print_table(answer: Mapping[str, Any]) -> None:
    budgets: Mapping[str, Mapping[str, float]] = answer["budgets"]
    table = Table("tokens", title=f"Share of the evidence in the context, {answer['questions']} questions")
    for budget in budgets:
        table.add_column(budget, justify="right")
    table.add_row("all questions", *(f"{at['evidence']:.3f}" for at in budgets.values()))
    for kind, own in answer["by_type"].items():
        table.add_row(
            f"  {kind}", *(f"{share:.3f}" for share in own.values()), end_section=kind == max(answer["by_type"])
        )
    for title, name in (("mean tokens", "tokens_mean"), ("over budget", "over_budget"), ("miscounted", "miscounted")):
        table.add_row(title, *(f"{at[name]:.0f}" for at in budgets.values()))
    for variant, own in answer["ablation"].items():
        table.add_row(variant, *(f"{share:.3f}" for share in own.values()))
    Console().print(table)
    print(_format_timings(answer))
    if answer["incomplete"]:
        formatting.print_notice(f"{answer['incomplete']} contexts were made without a source that was late or down.")


def _format_timings(answer: Mapping[str, Any]) -> str:
    ms, embedding = answer["context_ms"], ""
    if answer["import_to_embed"]:
        embedding = f", {answer['import_to_embed']:.0%} of the {answer['embed_per_s']} that the embedder alone does"
    return f"context {ms['p50']:.1f} ms (p95 {ms['p95']:.1f}); import {answer['import_per_s']} messages/s{embedding}"
