"""How a calibration's figures are put into words, the same in a terminal and on a page. Pure."""

from newton.brain.calibration.bias import ENOUGH, Bias
from newton.brain.calibration.recalibration import NEEDED, Recalibration
from newton.brain.calibration.report import Calibration
from newton.brain.calibration.scores import Scores
from newton.brain.calibration.trend import WINDOW, Drift, Slope

METHODS = {"none": "None", "platt": "Platt's curve", "isotonic": "An isotonic line"}
NOTHING = "Nothing was judged yet. Calibration begins with the first decision whose outcome is known."


def percent(share: float) -> str:
    return f"{round(100 * share)} %"


def signed(value: float) -> str:
    return f"{value:+.3f}"


def span(ends: tuple[float, float]) -> str:
    return f"[{signed(ends[0])}, {signed(ends[1])}]"


def named(name: str, *, most: int) -> str:
    """A name on one line of at most so many characters, whatever somebody has put into it."""
    clean = "".join(letter if letter.isprintable() else " " for letter in name)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def judged(of: Scores) -> str:
    decisions = "1 decision" if of.n == 1 else f"{of.n:,} decisions"
    partly = f" ({of.partials:,} partly, counted as half)" if of.partials else ""
    return f"{decisions} judged: {percent(of.base_rate)} came true{partly}."


def figures(of: Scores) -> list[tuple[str, str, str]]:
    """Name, value, and what it means."""
    skill = of.brier_skill_vs_base
    saved = "all outcomes are alike" if skill is None else "of the base rate's error that is saved"
    return [
        ("Brier", f"{of.brier:.3f}", f"0 is perfect; always saying {percent(of.base_rate)}: {of.uncertainty:.3f}"),
        ("Skill", "-" if skill is None else percent(skill), saved),
        ("Log loss", f"{of.log_loss:.3f}", "punishes being sure and wrong"),
        ("ECE", f"{of.ece10:.3f}", f"mean gap of stated and true; equal groups {of.ece10_equal_mass:.3f}"),
        ("Largest gap", f"{of.mce10:.3f}", "of one bin"),
        ("Reliability", f"{of.reliability:.4f}", "squared gap of stated and true (less is better)"),
        ("Resolution", f"{of.resolution:.4f}", f"told apart (more is better), of {of.uncertainty:.3f}"),
        ("Spread", f"{of.sharpness_var**0.5:.3f}", "standard deviation of what was stated"),
    ]


def bias(of: Bias) -> str:
    if of.interval is None:
        return f"{signed(of.size)}: {of.verdict} ({ENOUGH} are needed)"
    return f"{signed(of.size)} {span(of.interval)}: {of.verdict}"


def slope(of: Slope) -> str:
    return f"{signed(of.per_100)} per 100 decisions {span(of.interval)}: {of.direction}"


def trendless(n: int) -> str:
    return f"A trend needs {2 * WINDOW} reviews; there are {n}."


def drift(of: Drift) -> str | None:
    if not of.reasons:
        return None
    what = " and ".join(of.reasons)
    return (
        f"Drift: {what} (Brier {of.earlier_brier:.3f} to {of.recent_brier:.3f},"
        f" came true {percent(of.earlier_accuracy)} to {percent(of.recent_accuracy)})."
    )


def recalibration(whole: Calibration) -> str:
    of = whole.recalibration
    if of is None:
        return f"A correction needs {NEEDED} reviews; there are {whole.n}."
    if of.method == "none":
        return f"None: no map did clearly better than the stated figures in the {of.earlier:,} earlier decisions."
    verdict = "the correction helped" if of.helped else "the correction did not help"
    return (
        f"{METHODS[of.method]}, learnt from the {of.earlier:,} earlier decisions; Brier on the {of.later:,} later ones"
        f" {of.brier_stated:.3f} as stated, {of.brier_corrected:.3f} corrected: {verdict}."
    )


def corrections(of: Recalibration) -> list[tuple[str, str]]:
    """What was stated, and what came of such statements."""
    return [(percent(at), percent(of.corrected(at))) for at in (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)]
