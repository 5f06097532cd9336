"""The report on the probability of an answer as text, at most 80 columns wide."""

import textwrap

from newton.agent.maintenance.relevance_fitter import RelevanceReport
from newton.brain.calibration.scores import CalibrationScores
from newton.operations.decisions import calibration_phrases as phrases
from newton.operations.decisions import calibration_text

TITLE = "Relevance: share of items used by probability"
NOTHING_JUDGED = (
    "No item is judged yet. Each reply of a model to a question, for example in `newton chat`, judges the items of its"
    " context, if it uses one of them."
)


def render_relevance(report: RelevanceReport) -> str:
    """Return the report as text, at most 80 columns wide."""
    if report.shipped is None:
        return textwrap.fill(NOTHING_JUDGED, calibration_text.WIDTH)
    shown = report.corrected or report.shipped
    rows = [f"  {name:<12}{before:>9}{after:>11}" for name, before, after in list_scores(report)]
    return "\n".join(
        [
            describe_sample(report),
            f"  {'':<12}{'shipped':>9}{'corrected':>11}",
            *rows,
            "",
            *calibration_text.render_diagram(shown.bins, title=TITLE, value="used"),
        ]
    )


def describe_sample(report: RelevanceReport) -> str:
    scores = report.shipped
    assert scores is not None
    share = phrases.format_percent(scores.base_rate)
    return f"{scores.n:,} items of {report.contexts:,} contexts judged by replies: {share} used."


def list_scores(report: RelevanceReport) -> list[tuple[str, str, str]]:
    """Return the name of each score, and its value for the shipped and for the corrected probabilities."""
    columns = [_format_scores(scores) for scores in (report.shipped, report.corrected)]
    return list(zip(("Log loss", "Brier score", "ECE", "Mean probability"), *columns, strict=True))


def _format_scores(scores: CalibrationScores | None) -> tuple[str, str, str, str]:
    if scores is None:
        return ("-", "-", "-", "-")
    stated = sum(one.n * one.mean_forecast for one in scores.bins) / scores.n
    return f"{scores.log_loss:.4f}", f"{scores.brier:.4f}", f"{scores.ece10:.4f}", phrases.format_percent(stated)
