"""The report on the probability of an answer, and the fit of its correction, as text, HTML and JSON."""

import textwrap
from dataclasses import asdict
from html import escape

from newton.agent.maintenance.relevance_fitter import RelevanceReport
from newton.brain.calibration.json_format import scores_to_json
from newton.brain.calibration.scores import CalibrationScores
from newton.cognition.corrections.answer_correction import MIN_CONTEXTS, MIN_ITEMS, MIN_USED, CorrectionFit
from newton.runtime.reports import calibration_text, html_sections, phrases, svg

TITLE = "Relevance: share of items used by probability"
NOTHING_JUDGED = (
    "No item is judged yet. Each reply of a model to a question, for example in `newton chat`, judges the items of its"
    " context, if it uses one of them."
)


def report_to_json(report: RelevanceReport) -> dict[str, object]:
    """Return the report as JSON values; null stands for what is unknown."""
    stored = report.stored
    return {
        "contexts": report.contexts,
        "items": report.shipped.n if report.shipped else 0,
        "shipped": report.shipped and scores_to_json(report.shipped),
        "corrected": report.corrected and scores_to_json(report.corrected),
        "correction": stored
        and {**asdict(stored.correction), "fitted_at": stored.created_at.isoformat(), "items": stored.items}
        | {"loss_before": stored.loss_before, "loss_after": stored.loss_after},
    }


def fit_to_json(fit: CorrectionFit, *, is_stored: bool) -> dict[str, object]:
    """Return a fit as JSON values; the losses are null if there are too few judged items."""
    is_judged = fit.validated > 0
    return {
        "contexts": fit.contexts,
        "items": fit.items,
        "used": fit.used,
        "correction": asdict(fit.correction) if is_judged else None,
        "validation_items": fit.validated,
        "before": {"log_loss": fit.loss_before} if is_judged else None,
        "after": {"log_loss": fit.loss_after} if is_judged else None,
        "verdict": fit.verdict,
        "is_stored": is_stored,
    }


def render_report(report: RelevanceReport) -> str:
    """Return the report as text, at most 80 columns wide."""
    if report.shipped is None:
        return textwrap.fill(NOTHING_JUDGED, calibration_text.WIDTH)
    shown = report.corrected or report.shipped
    rows = [f"  {name:<12}{before:>9}{after:>11}" for name, before, after in _list_scores(report)]
    return "\n".join(
        [
            _describe_sample(report),
            f"  {'':<12}{'shipped':>9}{'corrected':>11}",
            *rows,
            "",
            *calibration_text.render_diagram(shown.bins, title=TITLE, value="used"),
        ]
    )


def render_sections(report: RelevanceReport) -> str:
    """Return the report as HTML sections, without the page around them."""
    if report.shipped is None:
        return f"<p>{escape(NOTHING_JUDGED)}</p>"
    head = ("", "shipped", "corrected") if report.corrected else ("", "shipped")
    rows = [row[: len(head)] for row in _list_scores(report)]
    table = html_sections.render_table(head, rows, numeric_columns={1, 2})
    parts = [("of the shipped model", report.shipped), ("with the correction", report.corrected)]
    figures = [
        f"<figure>{_draw_reliability(scores, n)}"
        f"<figcaption>Share of the items that replies used by probability {escape(which)}.</figcaption></figure>"
        for n, (which, scores) in enumerate(parts)
        if scores
    ]
    cards = [html_sections.render_card("Relevance", figure) for figure in figures]
    cards.append(html_sections.render_card("Scores of relevance", table))
    return f'<p>{escape(_describe_sample(report))}</p><div class="cards">{"".join(cards)}</div>'


def _draw_reliability(scores: CalibrationScores, number: int) -> str:
    name = f"relevance-{number}"
    return svg.draw_reliability(scores.bins, name=name, x_label="probability", y_label="share used by replies")


def list_fit_lines(fit: CorrectionFit, *, is_stored: bool) -> list[str]:
    """Return what `newton profiles fit` prints on the correction."""
    head = f"relevance: {fit.items:,} items of {fit.contexts:,} contexts judged, {fit.used:,} used"
    if fit.verdict == "too few":
        needed = (
            f"a correction needs {MIN_ITEMS} items of {MIN_CONTEXTS} contexts, {MIN_USED} used and {MIN_USED} unused"
        )
        return [f"{head}; {needed}."]
    outcome = "in use from now on (`newton profiles reset` removes it)" if is_stored else "nothing was changed"
    return [
        head,
        f"log loss of {fit.validated:,} items of newer contexts: {fit.loss_before:.4f} before,"
        f" {fit.loss_after:.4f} with slope {fit.correction.slope:g} and intercept {fit.correction.intercept:+g}",
        f"{'a significant improvement' if fit.verdict == 'better' else 'no significant improvement'}: {outcome}.",
    ]


def _describe_sample(report: RelevanceReport) -> str:
    scores = report.shipped
    assert scores is not None
    share = phrases.format_percent(scores.base_rate)
    return f"{scores.n:,} items of {report.contexts:,} contexts judged by replies: {share} used."


def _list_scores(report: RelevanceReport) -> list[tuple[str, str, str]]:
    """Return the name of each score, and its value for the shipped and for the corrected probabilities."""
    columns = [_format_scores(scores) for scores in (report.shipped, report.corrected)]
    return list(zip(("Log loss", "Brier score", "ECE", "Mean probability"), *columns, strict=True))


def _format_scores(scores: CalibrationScores | None) -> tuple[str, str, str, str]:
    if scores is None:
        return ("-", "-", "-", "-")
    stated = sum(one.n * one.mean_forecast for one in scores.bins) / scores.n
    return f"{scores.log_loss:.4f}", f"{scores.brier:.4f}", f"{scores.ece10:.4f}", phrases.format_percent(stated)
