"""The page `/`: what needs a person, what is known of them, health, memories, activity, jobs and metrics."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from newton.cognition.metrics.metrics import MetricTarget
from newton.operations.contexts.metrics import format_target, format_value
from newton.runtime.dashboard.api_client import ApiProblemError, gather_json
from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.reports import charts

DAYS = 30
MAX_LISTED = 100
MEANINGS: Mapping[str, str] = {
    "context relevance": "mean probability that a memory in a context is relevant to its input",
    "budget utilisation": "mean share of its tokens that a context uses",
    "refresh rate": "share of the later turns of a session whose context was rebuilt or lost memories",
    "recall precision": "share of the memories in contexts that replies used",
    "cold start, p95": "95 % of the contexts were built within this time",
    "facts confirmed": "share of the known facts that were stated more than once",
    "censors right": "share of the matches of censors that nobody reported as wrong",
    "procedures succeeded": "share of the rated uses of procedures that succeeded",
    "memories a day": "memories stored per day",
    "contexts with additions only": "share of the later turns of a session whose context only gained memories",
    "mean cosine": "mean cosine similarity of the memories in contexts to their inputs",
    "frames corrected": "share of the selected frames that a person replaced in the next turn",
    "context share of tokens": "share of the contexts in all tokens of the model calls",
    "identical prefix": "share of the messages of a prompt that the prompt before it had too",
}
DAILY_METRICS = ("context relevance", "budget utilisation", "recall precision", "refresh rate")  # measured by day
VERDICT_TEXTS: Mapping[str, str] = {
    "ok": "on target",
    "low": "below target",
    "high": "above target",
    "too few": "too few data",
}


async def show_overview(page: PageRequest) -> Response:
    """Show the state of the agent on one page."""
    api = page.api
    activity, metrics, jobs, health, known, *attention = await gather_json(
        api.get("/v1/activity", days=DAYS),
        api.get("/v1/metrics", days=DAYS),
        api.get("/v1/jobs"),
        _read_health(page),
        api.get("/v1/about", complete=bool(page.query("all"))),
        api.get("/v1/conflicts", limit=1),
        api.get("/v1/identity/proposals"),
        api.get("/v1/censors"),
        api.get("/v1/procedures"),
        api.get("/v1/decisions", due=True, limit=MAX_LISTED),
        api.get("/v1/moves"),
    )
    conflicts, *lists = attention
    proposals, censors, procedures, due, moves = (one["items"] for one in lists)
    return page.render(
        "overview.html",
        health=health,
        known=known,
        memories=_count_by_kind(activity["memories"]),
        quarantined=sum(one["memories"] for one in activity["memories"] if one["quarantined"]),
        charts=_draw_activity(activity),
        tokens_today=_tokens_on(activity["tokens"], activity["until"][:10]),
        metrics=_describe_metrics(metrics),
        turns=metrics["turns"],
        jobs=jobs["items"],
        dead=[one for one in jobs["items"] if one["state"] == "dead"],
        conflicts=conflicts["count"],
        proposals=proposals,
        censors=[one for one in censors if one["is_proposed"]],
        procedures=[one for one in procedures if one["is_proposed"]],
        due=due,
        moves=moves,
        max_listed=MAX_LISTED,
        days=DAYS,
    )


async def _read_health(page: PageRequest) -> str:
    try:
        await page.api.get("/health/ready")
    except ApiProblemError:
        return "The database does not answer, or its disk is full. `newton doctor` finds the cause."
    return ""


def _count_by_kind(counts: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the number of memories by state for each kind, the most frequent kind first."""
    kinds: dict[str, dict[str, int]] = {}
    for one in counts:
        state = "quarantined" if one["quarantined"] else one["state"]
        states = kinds.setdefault(one["kind"], {})
        states[state] = states.get(state, 0) + one["memories"]
    return dict(sorted(kinds.items(), key=lambda pair: -sum(pair[1].values())))


def _draw_activity(activity: Mapping[str, Any]) -> dict[str, Markup]:
    first, last = (datetime.fromisoformat(activity[name]).date() for name in ("since", "until"))
    days = charts.list_days(first, last)
    titles = {"created": "New memories by kind", "changed": "State changes", "tokens": "Tokens of model calls"}
    return {
        name: Markup(charts.draw_days(name, title, _by_series(activity[name]), days))
        for name, title in titles.items()
        if activity[name]
    }


def _by_series(counts: Sequence[Mapping[str, Any]]) -> dict[str, dict[date, int]]:
    series: dict[str, dict[date, int]] = {}
    for one in counts:
        series.setdefault(one["name"], {})[date.fromisoformat(one["day"])] = one["number"]
    return series


def _tokens_on(tokens: Sequence[Mapping[str, Any]], day: str) -> int:
    return sum(one["number"] for one in tokens if one["day"] == day)


def _describe_metrics(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics that have a target range, each with its texts and its chart as fields for the template."""
    shown = list[dict[str, Any]]()
    for number, metric in enumerate(one for one in report["metrics"] if one["target"]):
        target = (metric["target"]["above"], metric["target"]["below"])
        shown.append(
            {
                **metric,
                "text": format_value(metric["value"], metric["unit"]),
                "target_text": format_target(MetricTarget(**metric["target"]), metric["unit"]),
                "meaning": MEANINGS[metric["name"]],
                "verdict_text": VERDICT_TEXTS[metric["verdict"]],
                "chart": Markup(draw_metric(report, metric, number, target)),
            }
        )
    return shown


def draw_metric(
    report: Mapping[str, Any], metric: Mapping[str, Any], number: int, target: tuple[float | None, float | None]
) -> str:
    """Return the SVG of a metric: a line over the days if it is measured by day, else a bar.

    `report` has the values by day, `target` is the range (above, below), and `number` makes the ids unique in the page.
    Return "" without a value, and for less than two days.
    """
    if metric["value"] is None:
        return ""
    if metric["name"] not in DAILY_METRICS:
        return charts.draw_target_bar(metric["value"], target)
    by_day = {date.fromisoformat(day["name"]): _find_value(day, metric["name"]) for day in report["days"]}
    known = [day for day, value in by_day.items() if value is not None]
    if len(known) < 2:
        return ""
    values = [by_day.get(day) for day in charts.list_days(known[0], known[-1])]
    return charts.draw_metric(
        f"metric-{number}",
        metric["name"],
        values,
        target,
        format_tick=lambda value: format_value(value, metric["unit"]),
    )


def _find_value(day: Mapping[str, Any], name: str) -> float | None:
    return next(metric["value"] for metric in day["metrics"] if metric["name"] == name)


ROUTES: PageTable = (("GET", "/", show_overview),)
