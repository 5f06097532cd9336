"""The report on the probability of an answer as HTML, and the fit of its correction as text and JSON."""

from dataclasses import asdict
from html import escape

from newton.agent.maintenance.relevance_fitter import RelevanceReport
from newton.brain.calibration.scores import CalibrationScores
from newton.cognition.relevance_model import MIN_CONTEXTS, MIN_ITEMS, MIN_USED, CorrectionFit
from newton.operations.decisions.relevance_text import NOTHING_JUDGED, describe_sample, list_scores
from newton.runtime.reports import charts, html_sections


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


def render_sections(report: RelevanceReport) -> str:
    """Return the report as HTML sections, without the page around them."""
    if report.shipped is None:
        return f"<p>{escape(NOTHING_JUDGED)}</p>"
    head = ("", "shipped", "corrected") if report.corrected else ("", "shipped")
    rows = [row[: len(head)] for row in list_scores(report)]
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
    return f'<p>{escape(describe_sample(report))}</p><div class="cards">{"".join(cards)}</div>'


def _draw_reliability(scores: CalibrationScores, number: int) -> str:
    name = f"relevance-{number}"
    return charts.draw_reliability(scores.bins, name=name, x_label="probability", y_label="share used by replies")


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
