"""The quality metrics of contexts as JSON, and as texts: values, targets, meanings, and advice for missed targets."""

from collections.abc import Mapping

from newton.cognition.metrics.metrics import MetricGroup, QualityMetric, QualityReport

# Advice by metric and by the side on which it misses its target.
ADVICE_BY_VERDICT: Mapping[tuple[str, str], str] = {
    ("context relevance", "low"): "Many memories in contexts are unlikely to be relevant to their inputs. A frame of"
    " your own (NEWTON_FRAMES_DIR) with a higher `relevance_floor` leaves them out, but may leave out answers too.",
    ("budget utilisation", "low"): "The memory is too small to fill the contexts: lower NEWTON_CONTEXT_TOKENS,"
    " or store more (`newton remember`, `newton ingest`).",
    ("budget utilisation", "high"): "Contexts are full and omit memories: raise NEWTON_CONTEXT_TOKENS.",
    ("refresh rate", "high"): "Contexts are rebuilt at most turns: keep one topic per conversation (`/frame NAME`"
    " fixes the frame), and start another with `newton chat`.",
    (
        "recall precision",
        "low",
    ): "Replies use few memories of their contexts: forget or retract useless memories, or lower"
    " NEWTON_CONTEXT_TOKENS.",
    ("cold start, p95", "high"): "Contexts are built slowly: `newton doctor` finds problems.",
    (
        "identical prefix",
        "low",
    ): "Prompts change from turn to turn, so the model's server reads them again. `newton prompt` says"
    " why. Often a caller's system message differs with each request, or the window is small.",
    ("censors right", "low"): "Censors match what they do not mean: `newton censors list` shows which, and"
    " `newton censors relax` weakens one.",
    ("facts confirmed", "low"): "Few facts were confirmed: `newton confirm` confirms a fact, and `newton jobs run"
    " lifecycle` merges facts of the same meaning.",
}


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


def metrics_to_json(report: QualityReport) -> dict[str, object]:
    """Return the report on the quality metrics as JSON values."""
    period = report.period
    return {
        "since": period.since.isoformat(),
        "until": period.until.isoformat(),
        "turns": len(period.turns),
        "metrics": [_metric_to_json(metric) | {"advice": find_advice(metric)} for metric in report.metrics],
        "frames": [_group_to_json(group) for group in report.frames],
        "profiles": [_group_to_json(group) for group in report.profiles],
        "days": [_group_to_json(group) for group in report.days],
        "prompt_differences": dict(period.prompt_differences),
        "memories": {str(day): dict(kinds) for day, kinds in period.memories_by_day.items()},
    }


def find_advice(metric: QualityMetric) -> str | None:
    return ADVICE_BY_VERDICT.get((metric.name, metric.verdict or ""))


def _metric_to_json(metric: QualityMetric) -> dict[str, object]:
    return {
        "name": metric.name,
        "value": None if metric.value is None else round(metric.value, 4),
        "unit": metric.unit,
        "target": metric.target._asdict() if metric.target else None,
        "sample_size": metric.n,
        "sample_unit": metric.sample_unit,
        "verdict": metric.verdict,
    }


def _group_to_json(group: MetricGroup) -> dict[str, object]:
    metrics = (group.relevance, group.utilisation, group.precision, group.refresh)
    return {"name": group.name, "turns": group.turns, "metrics": list(map(_metric_to_json, metrics))}


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
        case "count":
            return f"{value:,.1f}"
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
