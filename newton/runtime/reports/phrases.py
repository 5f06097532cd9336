"""Phrases for calibration metrics, shared by the terminal and HTML reports. Pure."""

from newton.brain.calibration.bias import MIN_REVIEWS_FOR_BIAS, ConfidenceBias
from newton.brain.calibration.recalibration import MIN_REVIEWS, RecalibrationResult
from newton.brain.calibration.report import CalibrationReport
from newton.brain.calibration.scores import CalibrationScores
from newton.brain.calibration.trend import WINDOW_SIZE, CalibrationDrift, TrendSlope

METHOD_NAMES = {"none": "None", "platt": "Platt's curve", "isotonic": "An isotonic line"}
NO_REVIEWED_DECISIONS = "Nothing was judged yet. Calibration begins with the first decision whose outcome is known."


def format_percent(share: float) -> str:
    return f"{round(100 * share)} %"


def format_signed_number(value: float) -> str:
    return f"{value:+.3f}"


def format_interval(interval: tuple[float, float]) -> str:
    return f"[{format_signed_number(interval[0])}, {format_signed_number(interval[1])}]"


def clip_name(name: str, *, max_chars: int) -> str:
    """Return a name as one line of at most `max_chars` characters."""
    clean = "".join(letter if letter.isprintable() else " " for letter in name)
    return clean if len(clean) <= max_chars else clean[: max_chars - 1] + "…"


def describe_sample(scores: CalibrationScores) -> str:
    decisions = "1 decision" if scores.n == 1 else f"{scores.n:,} decisions"
    partly = f" ({scores.partials:,} partly, counted as half)" if scores.partials else ""
    return f"{decisions} judged: {format_percent(scores.base_rate)} came true{partly}."


def list_scores(scores: CalibrationScores) -> list[tuple[str, str, str]]:
    """Return the name, value and meaning of each score."""
    skill = scores.brier_skill_vs_base
    saved = "all outcomes are alike" if skill is None else "of the base rate's error that is saved"
    return [
        (
            "Brier",
            f"{scores.brier:.3f}",
            f"0 is perfect; always saying {format_percent(scores.base_rate)}: {scores.uncertainty:.3f}",
        ),
        ("Skill", "-" if skill is None else format_percent(skill), saved),
        ("Log loss", f"{scores.log_loss:.3f}", "punishes being sure and wrong"),
        ("ECE", f"{scores.ece10:.3f}", f"mean gap of stated and true; equal groups {scores.ece10_equal_mass:.3f}"),
        ("Largest gap", f"{scores.mce10:.3f}", "of one bin"),
        ("Reliability", f"{scores.reliability:.4f}", "squared gap of stated and true (less is better)"),
        ("Resolution", f"{scores.resolution:.4f}", f"told apart (more is better), of {scores.uncertainty:.3f}"),
        ("Spread", f"{scores.sharpness_var**0.5:.3f}", "standard deviation of what was stated"),
    ]


def describe_bias(bias: ConfidenceBias) -> str:
    if bias.interval is None:
        return f"{format_signed_number(bias.size)}: {bias.verdict} ({MIN_REVIEWS_FOR_BIAS} are needed)"
    return f"{format_signed_number(bias.size)} {format_interval(bias.interval)}: {bias.verdict}"


def describe_slope(slope: TrendSlope) -> str:
    return (
        f"{format_signed_number(slope.per_100)} per 100 decisions {format_interval(slope.interval)}: {slope.direction}"
    )


def describe_missing_trend(n: int) -> str:
    return f"A trend needs {2 * WINDOW_SIZE} reviews; there are {n}."


def describe_drift(drift: CalibrationDrift) -> str | None:
    if not drift.reasons:
        return None
    what = " and ".join(drift.reasons)
    return (
        f"Drift: {what} (Brier {drift.earlier_brier:.3f} to {drift.recent_brier:.3f},"
        f" came true {format_percent(drift.earlier_accuracy)} to {format_percent(drift.recent_accuracy)})."
    )


def describe_recalibration(report: CalibrationReport) -> str:
    of = report.recalibration
    if of is None:
        return f"A correction needs {MIN_REVIEWS} reviews; there are {report.n}."
    if of.method == "none":
        return f"None: no map did clearly better than the stated figures in the {of.earlier:,} earlier decisions."
    verdict = "the correction helped" if of.improves else "the correction did not help"
    return (
        f"{METHOD_NAMES[of.method]}, learnt from the {of.earlier:,} earlier "
        f"decisions; Brier on the {of.later:,} later ones"
        f" {of.brier_stated:.3f} as stated, {of.brier_corrected:.3f} corrected: {verdict}."
    )


def list_corrections(recalibration: RecalibrationResult) -> list[tuple[str, str]]:
    """Return pairs of stated and corrected confidence."""
    return [
        (format_percent(at), format_percent(recalibration.correct(at))) for at in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
    ]
