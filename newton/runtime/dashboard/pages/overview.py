"""The page `/`: health, memories, activity, jobs, metrics, and what needs a person."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from newton.runtime.dashboard.api_client import ApiProblemError, gather_json
from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.reports import activity_charts

DAYS = 30
MAX_LISTED = 100
DAILY_METRICS = ("context relevance", "budget utilisation", "recall precision", "refresh rate")  # measured by day


async def show_overview(page: PageRequest) -> Response:
    """Show the state of the agent on one page."""
    api = page.api
    activity, metrics, jobs, health, *attention = await gather_json(
        api.get("/v1/activity", days=DAYS),
        api.get("/v1/metrics", days=DAYS),
        api.get("/v1/jobs"),
        _read_health(page),
        api.get("/v1/conflicts", limit=1),
        api.get("/v1/identity/proposals"),
        api.get("/v1/censors"),
        api.get("/v1/decisions", due=True, limit=MAX_LISTED),
    )
    conflicts, (proposals, censors, due) = attention[0]["count"], (one["items"] for one in attention[1:])
    return page.render(
        "overview.html",
        health=health,
        memories=_count_by_kind(activity["memories"]),
        quarantined=sum(one["memories"] for one in activity["memories"] if one["quarantined"]),
        charts=_draw_activity(activity),
        tokens_today=_tokens_on(activity["tokens"], activity["until"][:10]),
        metrics=_describe_metrics(metrics),
        turns=metrics["turns"],
        jobs=jobs["items"],
        dead=[one for one in jobs["items"] if one["state"] == "dead"],
        conflicts=conflicts,
        proposals=proposals,
        censors=[one for one in censors if one["is_proposed"]],
        due=due,
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
    days = activity_charts.list_days(first, last)
    titles = {"created": "New memories by kind", "changed": "State changes", "tokens": "Tokens of model calls"}
    return {
        name: Markup(activity_charts.draw_days(name, title, _by_series(activity[name]), days))
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
    """Return the metrics that have a target, each with its text and its chart."""
    by_day = {metric: _daily_values(report, metric) for metric in DAILY_METRICS}
    shown = list[dict[str, Any]]()
    for number, metric in enumerate(one for one in report["metrics"] if one["target"]):
        target = (metric["target"]["above"], metric["target"]["below"])
        values = by_day.get(metric["name"]) or [metric["value"]]
        chart = activity_charts.draw_metric(f"metric-{number}", metric["name"], values, target)
        shown.append(
            {
                **metric,
                "text": format_value(metric["value"], metric["unit"]),
                "target_text": format_target(target, metric["unit"]),
                "chart": Markup(chart),
            }
        )
    return shown


def _daily_values(report: Mapping[str, Any], name: str) -> list[float | None]:
    return [metric["value"] for day in reversed(report["days"]) for metric in day["metrics"] if metric["name"] == name]


def format_value(value: float | None, unit: str) -> str:
    """Return the value of a metric with its unit.

    >>> format_value(0.456, "share"), format_value(12.3, "ms"), format_value(None, "score")
    ('46 %', '12 ms', 'no data')
    """
    if value is None:
        return "no data"
    match unit:
        case "share":
            return f"{100 * value:.0f} %"
        case "ms":
            return f"{value:,.0f} ms"
        case _:
            return f"{value:.2f}"


def format_target(target: tuple[float | None, float | None], unit: str) -> str:
    """Return the target range of a metric as text.

    >>> format_target((0.5, 0.9), "share"), format_target((None, 500), "ms")
    ('50 % to 90 %', 'below 500 ms')
    """
    above, below = target
    if above is not None and below is not None:
        return f"{format_value(above, unit)} to {format_value(below, unit)}"
    return f"above {format_value(above, unit)}" if above is not None else f"below {format_value(below, unit)}"


ROUTES: PageTable = (("GET", "/", show_overview),)
