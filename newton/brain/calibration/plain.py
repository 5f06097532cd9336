"""A calibration as plain values, under the names that forecasters' programs use. Pure."""

from dataclasses import asdict

from newton.brain.calibration.bias import Bias
from newton.brain.calibration.recalibration import Recalibration
from newton.brain.calibration.report import Calibration, Group
from newton.brain.calibration.scores import Bin, Scores
from newton.brain.calibration.trend import Slope, Trend

# Where a map is shown. It is defined everywhere between.
SHOWN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)

Plain = dict[str, object]

NOTHING: Plain = {"n": 0, "partials": 0, "says": "nothing judged", "bins": []}


def plain(whole: Calibration) -> Plain:
    """For JSON. The scores of the whole record stand at the top; what there is too little for is null.

    `without_partials` has the same scores without the partial outcomes, when there are any.
    """
    return {
        **(_scores(whole.scores) if whole.scores else NOTHING),
        "without_partials": whole.decided and _scores(whole.decided),
        "bias": whole.bias and _bias(whole.bias),
        "trend": whole.trend and _trend(whole.trend),
        "groups": {name: [_group(group) for group in groups] for name, groups in whole.groups.items()},
        "recalibration": whole.recalibration and _recalibration(whole.recalibration),
    }


def _scores(of: Scores) -> Plain:
    return {**asdict(of), "bins": [_bin(one) for one in of.bins]}


def _bin(one: Bin) -> Plain:
    """Shares to four places: they are read in a table, and no figure is computed from them again."""
    return {
        "bin": one.label,
        "n": one.n,
        "mean_forecast": round(one.mean_forecast, 4),
        "observed": round(one.observed, 4),
        "wilson95": [round(end, 4) for end in one.wilson95],
    }


def _bias(of: Bias) -> Plain:
    return {
        "size": of.size,
        "mean_stated": of.mean_stated,
        "mean_outcome": of.mean_outcome,
        "interval95": of.interval,
        "verdict": of.verdict,
    }


def _group(of: Group) -> Plain:
    return {"name": of.name, "n": of.n, "base_rate": of.base_rate, "brier": of.brier, "bias": _bias(of.bias)}


def _trend(of: Trend) -> Plain:
    windows = [
        {**asdict(window), "start": window.start.isoformat(), "end": window.end.isoformat()} for window in of.windows
    ]
    drift = of.drift and asdict(of.drift)
    return {"windows": windows, "brier": _slope(of.brier), "bias": _slope(of.bias), "drift": drift}


def _slope(of: Slope) -> Plain:
    return {"per_100": of.per_100, "interval95": of.interval, "direction": of.direction}


def _recalibration(of: Recalibration) -> Plain:
    return {
        "method": of.method,
        "earlier": of.earlier,
        "later": of.later,
        "brier_stated": of.brier_stated,
        "brier_corrected": of.brier_corrected,
        "helped": of.helped,
        "map": [{"stated": stated, "corrected": of.corrected(stated)} for stated in SHOWN],
    }
