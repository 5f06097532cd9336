"""Phrases about calibration, shared by the reports for the terminal and in HTML."""

from collections.abc import Sequence

from newton.brain.calibration.recalibration import MIN_REVIEWS, RecalibrationResult
from newton.brain.calibration.report import (
    UNNAMED,
    WINDOW_SIZE,
    CalibrationDrift,
    CalibrationGroup,
    CalibrationReport,
    TrendSlope,
)
from newton.brain.calibration.scores import MIN_REVIEWS_FOR_BIAS, CalibrationScores, ConfidenceBias

METHOD_NAMES = {"none": "None", "platt": "Platt scaling", "isotonic": "Isotonic regression"}
NO_REVIEWED_DECISIONS = "No decision is reviewed yet. The report needs at least one recorded outcome."
GROUP_TITLES = {"category": "By category", "stakes": "By stakes", "frame": "By frame", "reason": "By kind of reason"}


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
    return f"{decisions} reviewed: {format_percent(scores.base_rate)} succeeded{partly}."


def list_groups(report: CalibrationReport) -> list[tuple[str, Sequence[CalibrationGroup]]]:
    """Return the groups of decisions for each criterion, such as the category, with a title.

    A criterion that no decision has is left out.
    """
    named = {key: groups for key, groups in report.groups.items() if any(one.name != UNNAMED for one in groups)}
    return [(GROUP_TITLES[key], groups) for key, groups in named.items()]


def list_scores(scores: CalibrationScores) -> list[tuple[str, str, str]]:
    """Return the name, the value and the meaning of each score, as text."""
    skill, base_rate = scores.brier_skill_vs_base, format_percent(scores.base_rate)
    skill_meaning = (
        "undefined: all outcomes are equal" if skill is None else f"improvement over always stating {base_rate}"
    )
    return [
        (
            "Brier score",
            f"{scores.brier:.3f}",
            f"0 is perfect; always stating {base_rate} would score {scores.uncertainty:.3f}",
        ),
        ("Brier skill", "-" if skill is None else format_percent(skill), skill_meaning),
        ("Log loss", f"{scores.log_loss:.3f}", "mean negative log-likelihood (less is better)"),
        (
            "ECE",
            f"{scores.ece10:.3f}",
            f"expected calibration error; {scores.ece10_equal_mass:.3f} in bins of equal size",
        ),
        ("MCE", f"{scores.mce10:.3f}", "maximum calibration error, that of the worst bin"),
        ("Reliability", f"{scores.reliability:.4f}", "calibration term of the Brier score (less is better)"),
        (
            "Resolution",
            f"{scores.resolution:.4f}",
            f"discrimination (more is better), at most {scores.uncertainty:.3f}",
        ),
        ("Sharpness", f"{scores.sharpness_var**0.5:.3f}", "standard deviation of the stated confidence"),
    ]


def describe_verdict(bias: ConfidenceBias) -> str:
    """Return the result of the test for a bias at the 5 % level."""
    if bias.interval95 is None:
        return f"n < {MIN_REVIEWS_FOR_BIAS}"
    return bias.verdict if bias.verdict != "no sign of either" else "not significant"


def describe_bias(bias: ConfidenceBias) -> str:
    """Return the bias of the stated confidence with its 95 % interval, as text."""
    if bias.interval95 is None:
        return f"{format_signed_number(bias.size)}; an interval needs {MIN_REVIEWS_FOR_BIAS} reviews"
    return (
        f"{format_signed_number(bias.size)}, 95 % interval {format_interval(bias.interval95)}: {describe_verdict(bias)}"
    )


def describe_slope(slope: TrendSlope) -> str:
    change = format_signed_number(slope.per_100)
    return f"{change} per 100 decisions {format_interval(slope.interval95)}: {slope.direction}"


def describe_missing_trend(n: int) -> str:
    return f"A trend needs {2 * WINDOW_SIZE} reviews; there are {n}."


def describe_drift(drift: CalibrationDrift) -> str | None:
    """Return how the calibration has changed lately, as a sentence; None if it has not."""
    if not drift.reasons:
        return None
    brier = f"Brier {drift.earlier_brier:.3f} to {drift.recent_brier:.3f}"
    rate = f"success rate {format_percent(drift.earlier_accuracy)} to {format_percent(drift.recent_accuracy)}"
    return f"Drift: {' and '.join(drift.reasons)} ({brier}, {rate})."


def describe_recalibration(report: CalibrationReport) -> str:
    """Return which correction of the confidence is used, and whether it helped, as a sentence."""
    result = report.recalibration
    if result is None:
        return f"A correction needs {MIN_REVIEWS} reviews; there are {report.n}."
    if result.method == "none":
        return f"None: no method was clearly better than the stated confidence of {result.earlier:,} earlier decisions."
    verdict = "the correction helped" if result.helped else "the correction did not help"
    return (
        f"{METHOD_NAMES[result.method]}, fitted to the {result.earlier:,} earlier decisions; Brier on the"
        f" {result.later:,} later ones {result.brier_stated:.3f} as stated, {result.brier_corrected:.3f} corrected:"
        f" {verdict}."
    )


def list_corrections(recalibration: RecalibrationResult) -> list[tuple[str, str]]:
    """Return pairs of stated and corrected confidence, as text."""
    shown = (one for one in recalibration.map if 0.5 <= one.stated < 1)
    return [(format_percent(one.stated), format_percent(one.corrected)) for one in shown]


def advise_on_calibration(report: CalibrationReport) -> list[str]:
    """Return sentences on what would improve the calibration, or that nothing is significant; none without reviews."""
    if report.scores is None or report.bias is None:
        return []
    bias, scores, advice = report.bias, report.scores, list[str]()
    if bias.interval95 is None:
        advice.append(f"Review more decisions: {MIN_REVIEWS_FOR_BIAS} outcomes show a bias; there are {scores.n}.")
    elif bias.verdict in ("overconfident", "underconfident"):
        change = "lower" if bias.verdict == "overconfident" else "higher"
        advice.append(f"State {change} confidence: {100 * abs(bias.size):.0f} percentage points on average.")
    if scores.brier_skill_vs_base is not None and scores.brier_skill_vs_base <= 0:
        base_rate = format_percent(scores.base_rate)
        advice.append(
            f"Distinguish more between decisions: always stating the base rate of {base_rate} would score as well or"
            " better."
        )
    advice += [
        f"In {title.lower()} {clip_name(group.name, max_chars=40)}: {group.bias.verdict}"
        f" ({format_signed_number(group.bias.size)}, {group.n:,} reviews)."
        for title, groups in list_groups(report)
        for group in groups
        if group.bias.verdict in ("overconfident", "underconfident")
    ]
    return advice or ["No miscalibration is statistically significant. Further reviews narrow the intervals."]
