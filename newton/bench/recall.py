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

from newton.bench.ablation import AS_IT_IS, Variant, chosen, variants
from newton.bench.folder import Conversation, Question, conversations, fingerprint
from newton.bench.ground import ground
from newton.bench.measure import Sample, by_budget, by_type, by_variant, evidence, tails
from newton.bench.pace import Pace, timed_import
from newton.bench.receipt import Began, receipt
from newton.clock import SteppedClock, stopwatch
from newton.cognition.bundle import Bundle, Considered
from newton.cognition.gather import widths
from newton.cognition.request import Request
from newton.memory import agents, store
from newton.memory.hygiene import clean
from newton.memory.memory import Kind
from newton.memory.ranking import USUAL
from newton.memory.representations import bullet
from newton.providers import tokens
from newton.runtime.cli import show
from newton.runtime.cli.options import AsJson, settings
from newton.runtime.wiring import Newton

AFTERWARDS = timedelta(days=1)  # so long after the last line each question is asked
BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)

AtLeastOne = Parameter(validator=Number(gte=1))
Step = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is asked of every conversation, and all that came of it."""

    budgets: Sequence[int]
    step: Step
    variants: Sequence[Variant] = (Variant(name=AS_IT_IS),)
    pace: Pace = field(default_factory=Pace)
    samples: list[Sample] = field(default_factory=list[Sample])


async def command(
    folder: Path,
    *,
    budget: Annotated[list[int] | None, AtLeastOne, Parameter(negative=())] = None,
    limit: Annotated[int | None, AtLeastOne] = None,
    ablate: bool = False,
    json: AsJson = False,
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
    began, budgets = Began(), sorted(set(budget or BUDGETS))
    found = conversations(folder, count=tokens.count, limit=limit)
    _notice_unknown(found)
    async with ground(settings()) as here:
        with _steps(found, len(budgets)) as step:
            run = Run(budgets=budgets, step=step)
            known = [await _imported(here.newton, conversation, run) for conversation in found]
            if ablate:
                run = replace(run, variants=await _variants(known))
            for newton, conversation in zip(known, found, strict=True):
                await _measure(newton, conversation, run)
        weighing = {**asdict(USUAL), "without": sorted(USUAL.without)}
        written = await receipt(
            here, began, data_sha256=fingerprint(found), budgets=budgets, limit=limit, weighing=weighing
        )
    answer = {**figures(run), "receipt": written}
    if json:
        show.as_json(answer)
    else:
        _print(answer)


def figures(run: Run) -> dict[str, Any]:
    samples = [sample for sample in run.samples if sample.variant == AS_IT_IS]
    return {
        "budgets": by_budget(samples),
        "questions": len(samples) // len(run.budgets),
        "contexts": len(samples),
        "incomplete": sum(not sample.whole for sample in run.samples),
        "by_type": by_type(samples),
        "ablation": by_variant(run.samples) if len(run.variants) > 1 else {},
        **run.pace.as_json(),
        "context_ms": tails([sample.ms for sample in samples]),
    }


def shown(bundle: Bundle) -> list[Considered]:
    """The items whose line really stands in the text, whatever the bundle says of them."""
    lines = {f"{line}\n" for line in bundle.text.split("\n")}
    return [item for item in bundle.items if bullet(item.shown) in lines]


async def _imported(newton: Newton, conversation: Conversation, run: Run) -> Newton:
    """The conversation in an agent of its own, a day after it ended."""
    agent_id = await agents.agent(newton.scope.db, f"bench-{conversation.name}", now=newton.scope.now())
    own = replace(newton, scope=replace(newton.scope, agent_id=agent_id))
    report = await timed_import(
        own, conversation.path, run.pace, step=lambda lines: run.step(f"{conversation.name}: import", lines)
    )
    for refusal in report.refused:
        show.notice(f"{conversation.path}:{refusal.line} was refused: {refusal.reason}")
    asked_at = (conversation.ended or newton.scope.now()) + AFTERWARDS
    return replace(own, contexts=replace(own.contexts, clock=SteppedClock(asked_at)))


async def _variants(known: Sequence[Newton]) -> list[Variant]:
    """For all kinds of memory that a search asks and that any conversation left."""
    held: set[str] = set()
    for newton in known:
        async with newton.scope.transaction() as tx:
            held |= (await store.counts(tx, agent_id=newton.scope.agent_id)).keys()
    kinds: list[Kind] = [kind for kind in widths(1) if kind in held]
    return variants(chosen(known[0].contexts, known[0].settings.profile), kinds)


async def _measure(newton: Newton, conversation: Conversation, run: Run) -> None:
    """Each of the conversation's questions at each budget, in each way."""
    for variant in run.variants:
        changed = replace(newton, contexts=variant.change(newton.contexts))
        for question in conversation.questions:
            for budget in run.budgets:
                sample = await _sample(changed, conversation, question, budget=budget, variant=variant)
                run.samples.append(sample)
                run.step(f"{conversation.name}: {variant.name}", 1)


async def _sample(
    newton: Newton, conversation: Conversation, question: Question, *, budget: int, variant: Variant
) -> Sample:
    request = Request(
        agent_id=newton.scope.agent_id,
        input=clean(question.text, what="question"),
        tokens=budget,
        profile=variant.profile or newton.settings.profile,
    )
    started = stopwatch()
    bundle = await newton.contexts.build(request)
    ms = stopwatch() - started
    return Sample(
        variant=variant.name,
        type=question.type,
        budget=budget,
        evidence=evidence(conversation.gold(question), shown(bundle)),
        tokens=bundle.tokens,
        counted=newton.scope.count_tokens(bundle.text),
        ms=ms,
        whole=not bundle.missing,
    )


def _notice_unknown(found: Sequence[Conversation]) -> None:
    unknown = [
        f"{conversation.name} {question.id}"
        for conversation in found
        for question in conversation.questions
        if None in conversation.gold(question)
    ]
    if unknown:
        show.notice(f"{len(unknown)} questions name gold that no line has; it counts as missed: {', '.join(unknown)}")


@contextmanager
def _steps(found: Sequence[Conversation], budgets: int) -> Generator[Step]:
    """A bar on stderr for all lines and all contexts."""
    total = sum(conversation.lines + budgets * len(conversation.questions) for conversation in found)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=total)
        yield lambda what, done: progress.update(task, description=what, advance=done)


def _print(answer: Mapping[str, Any]) -> None:
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
    print(_timings(answer))
    if answer["incomplete"]:
        show.notice(f"{answer['incomplete']} contexts were made without a source that was late or down.")


def _timings(answer: Mapping[str, Any]) -> str:
    ms, embedding = answer["context_ms"], ""
    if answer["import_to_embed"]:
        embedding = f", {answer['import_to_embed']:.0%} of the {answer['embed_per_s']} that the embedder alone does"
    return f"context {ms['p50']:.1f} ms (p95 {ms['p95']:.1f}); import {answer['import_per_s']} messages/s{embedding}"
