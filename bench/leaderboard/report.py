"""The leaderboard as sections of text and tables, which the Markdown shows, and as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.leaderboard.public_sets import PublicDataset, describe_missing
from bench.leaderboard.summary import (
    RESAMPLES,
    SEED,
    BetterRival,
    BudgetScore,
    SplitResults,
    SystemRow,
    best_titles,
    find_middle,
    list_better,
    visible_rows,
)

TITLE = "Leaderboard: evidence in the context"
MAX_LISTED = 12  # figures at which another system is better, by the lower end of the interval
SPLIT_NOTES: Mapping[str, str] = {
    "held out": "Held out from the tuning of Newton.",
    "tuned on": "Newton's weights and rules were tuned on these conversations, so its figures are optimistic.",
    "unknown": "It is not recorded whether Newton was tuned on these conversations.",
}
RULE_NOTES = (
    "Each conversation is stored in an empty memory, and its questions are asked a day after its last message, without"
    " an LLM. A figure is the share of the messages with the evidence for a question that its context contains,"
    " averaged over questions. A message counts if an item made of it contains 80 % of its words; one of more than"
    " 110 tokens counts if its item is at least its summary of up to 110 tokens.",
    "All systems have the same embedding model and maximum of tokens. Newton's includes its headings, and it waits up"
    " to 60 s for a source of memories, so that a busy machine does not change the evidence. For the"
    " others a message is one line with date and speaker; lines enter in order of rank, and one that does not fit is"
    ' skipped. "Long messages shortened" ranks whole messages but shows them as Newton\'s summaries, which the rule'
    " above counts in full.",
    "mem0 stores the lines without extraction by an LLM (infer=False) in a local Qdrant. Filled up, it searches all"
    " memories without a threshold; its default selection is its 20 best above 0.1. LangGraph's store searches all"
    " items, or its default of 10. Plain rankings have no default selection.",
    f"In brackets: 95 % confidence intervals, bootstrapped over questions ({RESAMPLES:,} samples, seed {SEED})."
    " Questions of one conversation depend on each other, so the true intervals are wider. ★ is the best of a column.",
)


class ReportTable(NamedTuple):
    """A table. All columns after the first are right-aligned."""

    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section with paragraphs and tables."""

    title: str
    notes: tuple[str, ...] = ()
    tables: tuple[ReportTable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardReport:
    """All results with what is needed to repeat them. `not_measured` has the pip command of each library."""

    about: Mapping[str, str]
    results: Sequence[SplitResults]
    missing: Sequence[PublicDataset]
    not_measured: Mapping[str, str]


def build_sections(report: LeaderboardReport) -> list[ReportSection]:
    """Return the sections in their order: held-out conversations first."""
    ordered = sorted(report.results, key=lambda one: one.split != "held out")
    return [
        ReportSection("What is measured", notes=(*RULE_NOTES, *_absences(report))),
        *(_split_section(one) for one in ordered),
        ReportSection("Run", tables=(ReportTable("", ("", "value"), list(report.about.items())),)),
    ]


def _absences(report: LeaderboardReport) -> Iterator[str]:
    if report.missing:
        yield describe_missing(report.missing)
    for title, command in report.not_measured.items():
        yield f"{title} was not measured, because it is not installed: `{command}`."


def _split_section(results: SplitResults) -> ReportSection:
    rows = visible_rows(results)
    full, default = [row for row in rows if not row.is_default], [row for row in rows if row.is_default]
    budgets = list(results.rows[0].budgets)
    middle, better = find_middle(budgets), sorted(list_better(results), key=lambda one: -one.difference[1])
    tables = [_budget_table("Filled up to the maximum of tokens", full, _with_interval)]
    if default:
        tables.append(_budget_table("Default selection: evidence, and mean tokens used", default, _with_tokens))
    tables += [_type_table(results, middle), _latency_table(rows)]
    if better:
        caption = f"Where another system is better than Newton (the {MAX_LISTED} clearest)"
        tables.append(_better_table(better[:MAX_LISTED], caption))
    source = f", from {results.dataset.source}" if results.dataset.source else ""
    notes = (
        f"{SPLIT_NOTES[results.split]} {results.dataset.tuning}".strip(),
        f"{results.questions:,} questions on {', '.join(results.conversations)}"
        f" (license {results.dataset.license}{source}).",
        _describe_better(better),
        *_describe_rows(results),
    )
    title = f"{results.dataset.title}, {results.split}"
    return ReportSection(title, notes, tuple(tables))


def _describe_better(better: Sequence[BetterRival]) -> str:
    if not better:
        return "No other system is better than Newton at any of these figures."
    clear = sum(one.difference[1] > 0 for one in better)
    return (
        f"Figures at which another system is better than Newton with the same selection: {len(better)}, of which"
        f" {clear} have an interval above zero. They are counted over all questions and each type, at each maximum of"
        " tokens; with so many comparisons, some intervals are above zero by chance."
    )


def _describe_rows(results: SplitResults) -> Iterator[str]:
    if len(visible_rows(results)) < len(results.rows):
        yield "Rows of shortened messages are left out where they have the same evidence as those of whole messages."
    for row in results.rows:
        if row.incomplete:
            yield f"{row.title}: {row.incomplete:,} contexts lack a source of memories that failed or was late."


def _better_table(better: Sequence[BetterRival], caption: str) -> ReportTable:
    rows = [
        (one.title, one.where.replace("_", " "), f"{one.budget:,}", _format_difference(one.difference))
        for one in better
    ]
    return ReportTable(caption, ("system", "questions", "tokens", "difference to Newton"), rows)


def _format_difference(difference: tuple[float, float, float]) -> str:
    value, low, high = difference
    return f"{value:+.3f} [{low:+.2f}, {high:+.2f}]"


def _budget_table(caption: str, rows: Sequence[SystemRow], format_score: Callable[[BudgetScore], str]) -> ReportTable:
    budgets = list(rows[0].budgets)
    best = {budget: best_titles(rows, budget) for budget in budgets}
    cells = [
        (
            row.title,
            *(format_score(score) + " ★" * (row.title in best[budget]) for budget, score in row.budgets.items()),
        )
        for row in rows
    ]
    return ReportTable(caption, ("system", *(f"{budget:,}" for budget in budgets)), cells)


def _type_table(results: SplitResults, budget: int) -> ReportTable:
    rows = visible_rows(results)
    groups = {False: [r for r in rows if not r.is_default], True: [r for r in rows if r.is_default]}

    def best(kind: str, row: SystemRow) -> float:
        return max(one.types[kind][budget].evidence for one in groups[row.is_default])

    cells = [
        (
            row.title,
            *(
                f"{(value := scores[budget].evidence):.3f}" + " ★" * (value == best(kind, row))
                for kind, scores in row.types.items()
            ),
        )
        for row in rows
    ]
    head = ("system", *(f"{kind.replace('_', ' ')} ({n})" for kind, n in results.types.items()))
    caption = f"By type of question at {budget:,} tokens (★ for each kind of selection)"
    return ReportTable(caption, head, cells)


def _latency_table(rows: Sequence[SystemRow]) -> ReportTable:
    cells = [
        (
            row.title,
            "" if row.latency.to_newton is None else f"{row.latency.to_newton:.2f}",
            f"{row.latency.embeddings:.2f}",
        )
        for row in rows
    ]
    caption = (
        "Latency: median time of a context as a multiple of embedding its question just before, and relative to Newton."
        " Newton also stores each context"
    )
    return ReportTable(caption, ("system", "relative to Newton", "times embedding"), cells)


def _with_interval(score: BudgetScore) -> str:
    return f"{score.evidence:.3f} [{score.interval[0]:.2f}, {score.interval[1]:.2f}]"


def _with_tokens(score: BudgetScore) -> str:
    return f"{score.evidence:.3f} in {score.tokens:,.0f}"


def report_to_json(report: LeaderboardReport) -> dict[str, Any]:
    """Return all figures as JSON values."""
    return {
        "about": dict(report.about),
        "missing": [one._asdict() for one in report.missing],
        "not_measured": dict(report.not_measured),
        "results": [_split_to_json(one) for one in report.results],
    }


def _split_to_json(results: SplitResults) -> dict[str, Any]:
    rows = [
        {
            "system": row.system,
            "variant": row.variant,
            "title": row.title,
            "budgets": {str(budget): _score_to_json(score) for budget, score in row.budgets.items()},
            "types": {
                kind: {str(budget): _score_to_json(score) for budget, score in scores.items()}
                for kind, scores in row.types.items()
            },
            "incomplete": row.incomplete,
            "latency": {name: value and round(value, 3) for name, value in row.latency._asdict().items()},
        }
        for row in results.rows
    ]
    dataset = {"folder": results.dataset.folder, "title": results.dataset.title, "license": results.dataset.license}
    common = {"conversations": results.conversations, "questions": results.questions, "types": results.types}
    return {**dataset, "split": results.split, **common, "rows": rows}


def _score_to_json(score: BudgetScore) -> dict[str, Any]:
    return {
        "evidence": round(score.evidence, 4),
        "interval": [round(end, 4) for end in score.interval],
        "verbatim": round(score.verbatim, 4),
        "tokens": round(score.tokens, 1),
        "items": round(score.items, 1),
        "difference_to_newton": score.difference and [round(value, 4) for value in score.difference],
    }
