"""The growth report as Markdown, as a self-contained HTML page, and as JSON values. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
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
MAX_DESCRIPTION_CHARS = 80  # of the words of a decision
MAX_LINE_CHARS = 1_000
MAX_LISTED = 5
CODE_SPAN = re.compile(r"`([^`]+)`")


class MetricRow(NamedTuple):
    """The label of a metric, its field, and the unit of its sample size; a count has none."""

    label: str
    metric: str
    unit: str = ""


SECTIONS: dict[str, tuple[MetricRow, ...]] = {
    "Decisions": (
        MetricRow("made", "made"),
        MetricRow("judged", "judged"),
        MetricRow("came true", "accuracy", "judged"),
        MetricRow("Brier score", "brier", "judged"),
        MetricRow("its slope, per 100 decisions", "slope", "judged so far"),
        MetricRow("bias", "bias", "judged"),
        MetricRow("overdue at the end", "overdue"),
    ),
    "Mistakes made again": (
        MetricRow("near a known failure", "near"),
        MetricRow("answered it", "answered"),
        MetricRow("were shown it, no more", "shown"),
        MetricRow(
            f"repeat a mistake (aim: under {phrases.format_percent(MAX_REPEAT_RATE)})", "repeated", "made, with vectors"
        ),
    ),
    "Censors": (
        MetricRow("met", "met"),
        MetricRow("called wrong", "false_positives"),
        MetricRow(f"right (aim: over {phrases.format_percent(MIN_CENSOR_PRECISION)})", "precision", "times met"),
        MetricRow("escalated", "escalated"),
        MetricRow("retired", "retired"),
    ),
    "Procedures": (
        MetricRow("uses", "uses"),
        MetricRow("succeeded", "succeeded", "judged uses"),
        MetricRow("became effective", "effective"),
        MetricRow("became ineffective", "ineffective"),
    ),
    "Facts and episodes": (
        MetricRow("facts learnt", "learnt"),
        MetricRow(f"confirmed (aim: over {phrases.format_percent(MIN_CONFIRMED_RATE)})", "confirmed", "facts known"),
        MetricRow("superseded", "superseded"),
        MetricRow("disproved", "disproved"),
        MetricRow("episodes made", "episodes"),
    ),
}
PROCEDURE_HEAD = ("procedure", "uses", "succeeded", "uses before", "succeeded before")


def render_markdown(growth: GrowthReport, assessment: GrowthAssessment, *, agent: str) -> str:
    """Return the report on `agent` as Markdown."""
    parts = [f"# {phrases.clip_name(_title(agent), max_chars=120)}", _format_periods(growth), *_explain_too_few(growth)]
    for title, sentences in _assessment_sections(assessment):
        parts += [f"## {title}", _render_bullets(sentences)]
    for title, rows in SECTIONS.items():
        parts += [f"## {title}", _render_table(TABLE_HEAD, _make_rows(growth, rows))]
        parts += [
            part for lead, lines in _section_lists(growth, title) for part in (lead, _render_bullets(lines)) if part
        ]
        if title == "Procedures" and growth.procedures:
            parts.append(_render_table(PROCEDURE_HEAD, _procedure_rows(growth)))
    return "\n\n".join(parts)


def render_html(growth: GrowthReport, assessment: GrowthAssessment, *, agent: str) -> str:
    """Return the report as an HTML page, with a plot of the trend if there is one."""
    cards = [
        html_page.render_card(title, _render_list(sentences)) for title, sentences in _assessment_sections(assessment)
    ]
    for title, rows in SECTIONS.items():
        inside = html_page.render_table(TABLE_HEAD, _make_rows(growth, rows), numeric_columns={1, 2})
        inside += "".join(
            f"<p>{escape(lead)}</p>{_render_list(lines)}" for lead, lines in _section_lists(growth, title)
        )
        if title == "Procedures" and growth.procedures:
            inside += html_page.render_table(PROCEDURE_HEAD, _procedure_rows(growth), numeric_columns={1, 2, 3, 4})
        cards.append(html_page.render_card(title, inside))
        if title == "Decisions":
            cards.append(html_page.render_card("Judgement over time", _render_trend(growth)))
    lead = "".join(f'<p class="soft">{line}</p>' for line in (_format_periods(growth), *_explain_too_few(growth)))
    return html_page.render_document(_title(agent), f'{lead}<div class="cards">{"".join(cards)}</div>')


def report_to_json(growth: GrowthReport, assessment: GrowthAssessment) -> dict[str, object]:
    """Return the report for JSON; `enough` is false for a metric of too small a sample."""
    figures: dict[str, PeriodMetric] = {
        row.metric: getattr(growth.metrics, row.metric) for rows in SECTIONS.values() for row in rows
    }
    return {
        "periods": {name: at.isoformat() for name, at in growth.periods._asdict().items()},
        "figures": {name: _metric_to_json(figure) for name, figure in figures.items()},
        "bias": growth.bias and {"interval95": growth.bias.interval, "verdict": growth.bias.verdict},
        "overdue": [
            {
                "decision_id": str(one.decision_id),
                "look_again_at": _format_time(one.look_again_at),
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


def _render_trend(growth: GrowthReport) -> str:
    if growth.trend is None:
        return f"<p>{escape(phrases.describe_missing_trend(growth.metrics.slope.n))}</p>"
    return html_page.render_trend(growth.trend)


def _explain_too_few(growth: GrowthReport) -> list[str]:
    """Explain 'too few' if the report contains it."""
    cells = [cell for rows in SECTIONS.values() for row in _make_rows(growth, rows) for cell in row]
    if TOO_FEW_TEXT not in cells:
        return []
    return [
        (
            f"Too few: a share or a score needs {MIN_SAMPLES}, a bias "
            f"{MIN_REVIEWS_FOR_BIAS} reviews, a slope {2 * WINDOW_SIZE}."
        )
    ]


def _title(agent: str) -> str:
    return f"Growth of {agent}"


def _format_periods(growth: GrowthReport) -> str:
    before, start, now = growth.periods
    return (
        f"Now: {start:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M} ({start:%Z}). "
        f"Before: as long a time, from {before:%Y-%m-%d %H:%M} on."
    )


def _assessment_sections(assessment: GrowthAssessment) -> Iterable[tuple[str, Sequence[str]]]:
    """Nothing is said where there is nothing to say."""
    for title, sentences in zip(("Strengths", "Concerns", "Recommendations"), assessment, strict=True):
        if sentences:
            yield title, sentences
    if not any(assessment):
        yield "In short", ("There is too little to speak of strengths or concerns.",)


def _make_rows(growth: GrowthReport, rows: Iterable[MetricRow]) -> list[tuple[str, str, str, str]]:
    return [_make_row(row, getattr(growth.metrics, row.metric)) for row in rows]


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
    """Return the captions and lists below a table."""
    match title:
        case "Decisions":
            return _overdue_list(growth)
        case "Mistakes made again":
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
    return [*bias, *([("Waiting for an outcome the longest:", due)] if due else [])]


def _repeated_mistakes(growth: GrowthReport) -> list[tuple[str, list[str]]]:
    of = growth.repeats
    told: list[tuple[str, list[str]]] = []
    if of.missing:
        told.append((f"Not compared, because they have no vector: {of.missing:,}.", []))
    if of.repeated:
        lines = [_format_repeat(one) for one in of.repeated[-MAX_LISTED:]]
        told.append((f"Neither answered nor shown what had failed{_format_truncation(len(of.repeated))}:", lines))
    return told


def _format_repeat(pair: AssessedPair) -> str:
    return (
        f"`{short_id(pair.pair.decision_id)}` {pair.decided_at:%Y-%m-%d} ({pair.outcome or 'open'}): "
        f"{_format_description(pair.description)}, like `{short_id(pair.pair.failed_id)}`: "
        f"{_format_description(pair.failed_description)} "
        f"(likeness {pair.pair.cosine:.2f})"
    )


def _format_changes(changes: Sequence[MemoryStateChange]) -> list[tuple[str, list[str]]]:
    lines = [
        (
            f"{one.at:%Y-%m-%d} {one.state.lower()}: {_format_description(one.name)} "
            f"(`{short_id(one.memory_id)}`; {one.reason})"
        )
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
    return f"{successes:,} of {successes + failures:,} judged"


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
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(f"{cell:<{most}}" for cell, most in zip(row, wide, strict=True)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (most + 2) for most in wide) + "|", *lines[1:]])


def _metric_to_json(metric: PeriodMetric) -> dict[str, object]:
    return {**asdict(metric), "enough": metric.n >= metric.fewest}


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


def _format_time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
