"""The growth report, on how an agent developed, as Markdown, as an HTML page, and as JSON."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from html import escape
from typing import NamedTuple

from newton.agent.growth.report import MIN_SAMPLES, GrowthReport, PeriodMetric
from newton.agent.growth.rules import MAX_REPEAT_RATE, MIN_CENSOR_PRECISION, MIN_CONFIRMED_RATE, GrowthAssessment
from newton.brain.calibration.bias import MIN_REVIEWS_FOR_BIAS
from newton.brain.calibration.trend import WINDOW_SIZE
from newton.brain.repeated_mistakes import AssessedPair
from newton.heart.growth_queries import MemoryStateChange
from newton.memory.lookup import short_id
from newton.runtime.reports import html_page, phrases

TABLE_HEAD = ("", "now", "before", "computed from")
TOO_FEW_TEXT = "too few"
MAX_DESCRIPTION_CHARS = 80  # of a decision
MAX_LINE_CHARS = 1_000
MAX_LISTED = 5  # entries of a list
CODE_SPAN = re.compile(r"`([^`]+)`")


class MetricRow(NamedTuple):
    """A row of a table: the label of a metric, its field in `GrowthMetrics`, and the unit of its sample size.

    `unit` is empty for a metric that is a count.
    """

    label: str
    metric: str
    unit: str = ""


SECTIONS: dict[str, tuple[MetricRow, ...]] = {
    "Decisions": (
        MetricRow("recorded", "made"),
        MetricRow("reviewed", "judged"),
        MetricRow("success rate", "accuracy", "reviewed"),
        MetricRow("Brier score", "brier", "reviewed"),
        MetricRow("trend of the Brier score, per 100 decisions (less is better)", "slope", "reviewed so far"),
        MetricRow("bias of the stated confidence", "bias", "reviewed"),
        MetricRow("overdue for review at the end of the period", "overdue"),
    ),
    "Repeated mistakes": (
        MetricRow("decisions similar to an earlier failure", "near"),
        MetricRow("of these, refer to the failure", "answered"),
        MetricRow("of these, were shown the failure, but do not refer to it", "shown"),
        MetricRow(
            f"repeated a mistake (target: under {phrases.format_percent(MAX_REPEAT_RATE)})", "repeated", "with vectors"
        ),
    ),
    "Censors": (
        MetricRow("matches", "met"),
        MetricRow("false positives", "false_positives"),
        MetricRow(f"precision (target: over {phrases.format_percent(MIN_CENSOR_PRECISION)})", "precision", "matches"),
        MetricRow("escalated from warning to blocking", "escalated"),
        MetricRow("retired", "retired"),
    ),
    "Procedures": (
        MetricRow("uses", "uses"),
        MetricRow("success rate", "succeeded", "uses with outcome"),
        MetricRow("became effective", "effective"),
        MetricRow("became ineffective", "ineffective"),
    ),
    "Facts and episodes": (
        MetricRow("new facts", "learnt"),
        MetricRow(f"confirmed (target: over {phrases.format_percent(MIN_CONFIRMED_RATE)})", "confirmed", "facts"),
        MetricRow("superseded", "superseded"),
        MetricRow("retracted", "disproved"),
        MetricRow("new episodes", "episodes"),
    ),
}
PROCEDURE_HEAD = ("procedure", "uses", "success", "uses before", "success before")


def render_markdown(growth: GrowthReport, assessment: GrowthAssessment, *, agent: str) -> str:
    """Return the growth report on the named agent as Markdown."""
    title = phrases.clip_name(f"Growth of {agent}", max_chars=120)
    parts = [f"# {title}", _format_periods(growth), *_explain_too_few(growth)]
    for title, sentences in _assessment_sections(assessment):
        parts += [f"## {title}", _render_bullets(sentences)]
    for title, rows in SECTIONS.items():
        shown, notes = _make_rows(growth, rows), _list_empty(growth, rows)
        parts += [f"## {title}", *([_render_table(TABLE_HEAD, shown)] if shown else []), *notes]
        parts += [
            part for lead, lines in _section_lists(growth, title) for part in (lead, _render_bullets(lines)) if part
        ]
        if title == "Procedures" and growth.procedures:
            parts.append(_render_table(PROCEDURE_HEAD, _procedure_rows(growth)))
    return "\n\n".join(parts)


def render_html(growth: GrowthReport, assessment: GrowthAssessment, *, agent: str) -> str:
    """Return the growth report on the named agent as an HTML page, with a plot of the trend if there is one."""
    cards = [
        html_page.render_card(title, _render_list(sentences)) for title, sentences in _assessment_sections(assessment)
    ]
    for title, rows in SECTIONS.items():
        shown, notes = _make_rows(growth, rows), _list_empty(growth, rows)
        content = html_page.render_table(TABLE_HEAD, shown, numeric_columns={1, 2}) if shown else ""
        content += "".join(f'<p class="soft">{escape(note)}</p>' for note in notes)
        lists = _section_lists(growth, title)
        content += "".join(f"<p>{escape(caption)}</p>{_render_list(lines)}" for caption, lines in lists)
        if title == "Procedures" and growth.procedures:
            content += html_page.render_table(PROCEDURE_HEAD, _procedure_rows(growth), numeric_columns={1, 2, 3, 4})
        cards.append(html_page.render_card(title, content))
        if title == "Decisions":
            trend = html_page.render_trend(growth.trend, growth.metrics.slope.n)
            cards.append(html_page.render_card("Calibration over time", trend))
    notes = (_format_periods(growth), *_explain_too_few(growth))
    lead = "".join(f'<p class="soft">{escape(note, quote=False)}</p>' for note in notes)
    return html_page.render_document(f"Growth of {agent}", f'{lead}<div class="cards">{"".join(cards)}</div>')


def report_to_json(growth: GrowthReport, assessment: GrowthAssessment) -> dict[str, object]:
    """Return the growth report as JSON values. `enough` is false for a metric with too few samples."""
    figures: dict[str, PeriodMetric] = {
        row.metric: getattr(growth.metrics, row.metric) for rows in SECTIONS.values() for row in rows
    }
    return {
        "periods": {name: at.isoformat() for name, at in growth.periods._asdict().items()},
        "figures": {name: {**asdict(one), "enough": one.n >= one.fewest} for name, one in figures.items()},
        "bias": growth.bias and {"interval95": growth.bias.interval, "verdict": growth.bias.verdict},
        "overdue": [
            {
                "decision_id": str(one.decision_id),
                "look_again_at": one.look_again_at and one.look_again_at.isoformat(),
                "words": one.description,
            }
            for one in growth.overdue
        ],
        "repeated": [_repeat_to_json(one) for one in growth.repeats.repeated],
        "without_vector": growth.repeats.missing,
        "procedures": [one._asdict() for one in growth.procedures],
        "changed": [
            {**one._asdict(), "at": one.at.isoformat(), "memory_id": str(one.memory_id)} for one in growth.state_changes
        ],
        **assessment._asdict(),
    }


def _explain_too_few(growth: GrowthReport) -> list[str]:
    """Return a sentence that explains the words "too few", if the tables contain them."""
    cells = [cell for rows in SECTIONS.values() for row in _make_rows(growth, rows) for cell in row]
    needed = f"{MIN_SAMPLES} cases for a share or score, {MIN_REVIEWS_FOR_BIAS} reviews for a bias"
    text = f"'Too few' means: fewer than {needed}, {2 * WINDOW_SIZE} reviews for a trend."
    return [text] if TOO_FEW_TEXT in cells else []


def _format_periods(growth: GrowthReport) -> str:
    before, start, now = growth.periods
    period = f"Now: {start:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M} ({start:%Z})."
    return f"{period} Before: the preceding period of the same length, from {before:%Y-%m-%d %H:%M}."


def _assessment_sections(assessment: GrowthAssessment) -> Iterable[tuple[str, Sequence[str]]]:
    """Yield the title and sentences of each section that has sentences; if none has any, a note that says so."""
    for title, sentences in zip(("Strengths", "Concerns", "Recommendations"), assessment, strict=True):
        if sentences:
            yield title, sentences
    if not any(assessment):
        yield "Summary", ("There are too few data for strengths or concerns.",)


def _make_rows(growth: GrowthReport, rows: Iterable[MetricRow]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the metrics that are not empty."""
    metrics = [(row, getattr(growth.metrics, row.metric)) for row in rows]
    return [_make_row(row, metric) for row, metric in metrics if not _is_empty(metric)]


def _list_empty(growth: GrowthReport, rows: Iterable[MetricRow]) -> list[str]:
    """Return a sentence that names the metrics which the table leaves out, if there are any."""
    names = [row.label.partition(" (")[0] for row in rows if _is_empty(getattr(growth.metrics, row.metric))]
    return [f"None in both periods: {'; '.join(names)}."] if names else []


def _is_empty(metric: PeriodMetric) -> bool:
    """Return whether a metric is zero or without cases in both periods."""
    if metric.kind == "count":
        return not metric.now and not metric.before
    return not metric.n and not metric.n_before


def _make_row(row: MetricRow, metric: PeriodMetric) -> tuple[str, str, str, str]:
    computed = "" if metric.kind == "count" else f"{metric.n:,} {row.unit} ({metric.n_before:,} before)"
    now, before = _format_cell(metric, metric.now, metric.n), _format_cell(metric, metric.before, metric.n_before)
    return row.label, now, before, computed


def _format_cell(metric: PeriodMetric, value: float | None, n: int) -> str:
    if n < metric.fewest:
        return TOO_FEW_TEXT if n else "none"
    if value is None:
        return "none"
    match metric.kind:
        case "count":
            return f"{int(value):,}"
        case "share":
            return phrases.format_percent(value)
        case "score":
            return f"{value:.3f}"
        case "signed":
            return phrases.format_signed_number(value)


def _section_lists(growth: GrowthReport, title: str) -> list[tuple[str, list[str]]]:
    """Return the lists below the table of a section, each as a caption and lines."""
    match title:
        case "Decisions":
            return _overdue_list(growth)
        case "Repeated mistakes":
            return _repeated_mistakes(growth)
        case "Censors":
            return _format_changes([one for one in growth.state_changes if one.kind == "censor"])
        case "Procedures":
            return _format_changes([one for one in growth.state_changes if one.kind == "procedure"])
        case _:
            return []


def _overdue_list(growth: GrowthReport) -> list[tuple[str, list[str]]]:
    bias = [(f"Bias {phrases.describe_bias(growth.bias)}.", list[str]())] if growth.bias else []
    due = [
        f"`{short_id(one.decision_id)}` due {one.look_again_at:%Y-%m-%d}: {_format_description(one.description)}"
        for one in growth.overdue
    ]
    return [*bias, *([("Decisions that are overdue the longest:", due)] if due else [])]


def _repeated_mistakes(growth: GrowthReport) -> list[tuple[str, list[str]]]:
    repeats = growth.repeats
    lists: list[tuple[str, list[str]]] = []
    if repeats.missing:
        lists.append((f"Decisions that were not compared, because they have no vector: {repeats.missing:,}.", []))
    if repeats.repeated:
        lines = [_format_repeat(one) for one in repeats.repeated[-MAX_LISTED:]]
        lists.append((f"Decisions that repeat a failure{_format_truncation(len(repeats.repeated))}:", lines))
    return lists


def _format_repeat(pair: AssessedPair) -> str:
    decision, failure = short_id(pair.pair.decision_id), short_id(pair.pair.failed_id)
    return (
        f"`{decision}` {pair.decided_at:%Y-%m-%d} ({pair.outcome or 'open'}): {_format_description(pair.description)},"
        f" like `{failure}`: {_format_description(pair.failed_description)} (cosine similarity {pair.pair.cosine:.2f})"
    )


def _format_changes(changes: Sequence[MemoryStateChange]) -> list[tuple[str, list[str]]]:
    lines = [
        f"{one.at:%Y-%m-%d} {one.state.lower()}: {_format_description(one.name)}"
        f" (`{short_id(one.memory_id)}`; {one.reason})"
        for one in changes[-MAX_LISTED:]
    ]
    return [(f"Changed{_format_truncation(len(changes))}:", lines)] if lines else []


def _format_truncation(count: int) -> str:
    return f", the last {MAX_LISTED} of {count:,}" if count > MAX_LISTED else ""


def _procedure_rows(growth: GrowthReport) -> list[tuple[str, ...]]:
    return [
        (
            phrases.clip_name(one.name, max_chars=40),
            f"{one.uses:,}",
            _format_success_share(one.successes, one.failures),
            f"{one.uses_before:,}",
            _format_success_share(one.successes_before, one.failures_before),
        )
        for one in growth.procedures[:MAX_LISTED]
    ]


def _format_success_share(successes: int, failures: int) -> str:
    return f"{successes:,} of {successes + failures:,}"


def _format_description(text: str | None) -> str:
    return "[erased]" if text is None else phrases.clip_name(text, max_chars=MAX_DESCRIPTION_CHARS)


def _render_bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {phrases.clip_name(line, max_chars=MAX_LINE_CHARS)}" for line in lines)


def _render_list(lines: Iterable[str]) -> str:
    items = "".join(
        "<li>" + CODE_SPAN.sub(r"<code>\1</code>", escape(phrases.clip_name(line, max_chars=MAX_LINE_CHARS))) + "</li>"
        for line in lines
    )
    return f"<ul>{items}</ul>" if items else ""


def _render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(f"{cell:<{n}}" for cell, n in zip(row, widths, strict=True)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (n + 2) for n in widths) + "|", *lines[1:]])


def _repeat_to_json(pair: AssessedPair) -> dict[str, object]:
    return {
        "decision_id": str(pair.pair.decision_id),
        "failed_id": str(pair.pair.failed_id),
        "likeness": round(pair.pair.cosine, 3),
        "decided_at": pair.decided_at.isoformat(),
        "outcome": pair.outcome,
        "words": pair.description,
        "failed": pair.failed_description,
    }
