"""The report on the quality of contexts as an HTML page: each metric with its target, its course and advice."""

from collections.abc import Sequence
from datetime import date
from html import escape

from newton.cognition.metrics.metrics import MetricGroup, QualityMetric, QualityReport
from newton.runtime.reports import activity_charts, html_page
from newton.runtime.reports.metrics import (
    DAILY_METRICS,
    MEANINGS,
    VERDICT_TEXTS,
    find_advice,
    format_target,
    format_value,
)

NO_TURNS = (
    "There was no turn (an input and its reply) in this period, so contexts have no metrics. `newton chat` and clients"
    " of the OpenAI protocol make turns."
)
GROUP_TITLES = ("By frame", "By profile", "By day")


def render_html(report: QualityReport, *, agent: str) -> str:
    """Return the report on the named agent as an HTML page."""
    period, turns = report.period, len(report.period.turns)
    count = f"{turns:,} {'turn' if turns == 1 else 'turns'}"
    lead = f"<p>{period.since:%Y-%m-%d} to {period.until:%Y-%m-%d} (UTC), {count}.</p>"
    if not turns:
        lead += f"<p>{_mark_code(NO_TURNS)}</p>"
    cards = [_render_metric(metric, number, report) for number, metric in enumerate(report.metrics) if metric.target]
    others = [metric for metric in report.metrics if not metric.target and metric.n]
    if others:
        rows = [
            (one.name, format_value(one.value, one.unit), _describe_sample(one), MEANINGS[one.name]) for one in others
        ]
        table = html_page.render_table(("metric", "value", "computed from", "meaning"), rows, numeric_columns={1})
        cards.append(html_page.render_card("Without a target", table))
    if period.memories_by_day:
        cards.append(html_page.render_card("New memories by day", _draw_memories(report)))
    for title, groups in zip(GROUP_TITLES, (report.frames, report.profiles, report.days), strict=True):
        if groups:
            cards.append(html_page.render_card(title, _render_groups(title, groups)))
    return html_page.render_document(f"Contexts of {agent}", f'{lead}<div class="cards">{"".join(cards)}</div>')


def _render_metric(metric: QualityMetric, number: int, report: QualityReport) -> str:
    assert metric.target is not None
    verdict = VERDICT_TEXTS[metric.verdict or "too few"]
    if metric.value is None:
        value = "no data"
    else:
        value = f"<strong>{escape(format_value(metric.value, metric.unit))}</strong>, {verdict}"
    target = escape(format_target(metric.target, metric.unit))
    text = f"<p>{value}. Target: {target}. Computed from {_describe_sample(metric)}.</p>"
    chart = "" if metric.value is None else _draw_metric(metric, number, report)
    advice = find_advice(metric)
    note = f'<p class="soft">{escape(MEANINGS[metric.name].capitalize())}.</p>'
    return html_page.render_card(
        metric.name.capitalize(), f"{text}{chart}{note}" + (f"<p>{_mark_code(advice)}</p>" if advice else "")
    )


def _draw_metric(metric: QualityMetric, number: int, report: QualityReport) -> str:
    """Draw a metric by day if it is measured by day, and else as a bar. Draw nothing for a single day."""
    assert metric.target is not None
    assert metric.value is not None
    if metric.name not in DAILY_METRICS:
        bar = activity_charts.draw_target_bar(metric.value, metric.target)
        return f"<figure>{bar}<figcaption>The mark is the target.</figcaption></figure>"
    by_day = {date.fromisoformat(group.name): _find_metric(group, metric.name).value for group in report.days}
    known = [day for day, value in by_day.items() if value is not None]
    if len(known) < 2:
        return ""
    values = [by_day.get(day) for day in activity_charts.list_days(known[0], known[-1])]
    chart = activity_charts.draw_metric(
        f"metric-{number}",
        metric.name,
        values,
        metric.target,
        format_tick=lambda value: format_value(value, metric.unit),
    )
    caption = f"By day from {known[0]} to {known[-1]}; the band is the target."
    return f"<figure>{chart}<figcaption>{caption}</figcaption></figure>"


def _draw_memories(report: QualityReport) -> str:
    counts: dict[str, dict[date, int]] = {}
    for day, kinds in report.period.memories_by_day.items():
        for kind, number in kinds.items():
            counts.setdefault(kind, {})[day] = number
    days = activity_charts.list_days(report.period.since.date(), report.period.until.date())
    return activity_charts.draw_days("memories", "New memories by day and kind", counts, days)


def _render_groups(title: str, groups: Sequence[MetricGroup]) -> str:
    """Return a table of the groups without the metrics that no group has."""
    names = [name for name in DAILY_METRICS if any(_find_metric(group, name).value is not None for group in groups)]
    rows = [
        (_keep_together(group.name), f"{group.turns:,}", *(_format_metric(_find_metric(group, name)) for name in names))
        for group in groups
    ]
    head = (title.removeprefix("By "), "turns", *names)
    return html_page.render_table(head, rows, numeric_columns=set(range(1, len(head))))


def _keep_together(name: str) -> str:
    """Return a name, such as a day, with hyphens at which a line is not broken."""
    return name.replace("-", "\N{NON-BREAKING HYPHEN}")


def _find_metric(group: MetricGroup, name: str) -> QualityMetric:
    metrics = (group.relevance, group.utilisation, group.precision, group.refresh)
    return next(metric for metric in metrics if metric.name == name)


def _format_metric(metric: QualityMetric) -> str:
    return "–" if metric.value is None else format_value(metric.value, metric.unit)


def _describe_sample(metric: QualityMetric) -> str:
    """Return the sample size with its unit, such as `1 context`.

    >>> _describe_sample(QualityMetric(name="", value=1.0, n=1, sample_unit="later turns"))
    '1 later turn'
    """
    unit = metric.sample_unit
    if metric.n == 1:
        unit = "memory" if unit == "memories" else unit.removesuffix("s")
    return f"{metric.n:,} {unit}"


def _mark_code(text: str) -> str:
    """Return a text as HTML, with what stands between backquotes as code."""
    parts = escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
