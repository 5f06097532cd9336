"""The JSON form of a calibration report, with the field names that forecasting tools use. Pure."""

from dataclasses import asdict

from newton.brain.calibration.bias import ConfidenceBias
from newton.brain.calibration.recalibration import RecalibrationResult
from newton.brain.calibration.report import CalibrationGroup, CalibrationReport
from newton.brain.calibration.scores import CalibrationBin, CalibrationScores
from newton.brain.calibration.trend import CalibrationTrend, TrendSlope

# Sample points of a correction map, which is continuous.
MAP_POINTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)

JsonDict = dict[str, object]

EMPTY_REPORT: JsonDict = {"n": 0, "partials": 0, "says": "nothing judged", "bins": []}


def to_json(report: CalibrationReport) -> JsonDict:
    """Return the report as JSON values, with the overall scores at the top level. Missing values are null."""
    return {
        **(scores_to_json(report.scores) if report.scores else EMPTY_REPORT),
        "without_partials": report.without_partials and scores_to_json(report.without_partials),
        "bias": report.bias and _bias(report.bias),
        "trend": report.trend and _trend(report.trend),
        "groups": {name: [_group(group) for group in groups] for name, groups in report.groups.items()},
        "recalibration": report.recalibration and _recalibration(report.recalibration),
    }


def scores_to_json(of: CalibrationScores) -> JsonDict:
    """Return the scores as JSON values."""
    return {**asdict(of), "bins": [_bin(one) for one in of.bins]}


def _bin(bucket: CalibrationBin) -> JsonDict:
    """Return a bin as JSON values, its shares rounded to four decimals."""
    return {
        "bin": bucket.label,
        "n": bucket.n,
        "mean_forecast": round(bucket.mean_forecast, 4),
        "observed": round(bucket.observed, 4),
        "wilson95": [round(end, 4) for end in bucket.wilson95],
    }


def _bias(of: ConfidenceBias) -> JsonDict:
    means = {"size": of.size, "mean_stated": of.mean_stated, "mean_outcome": of.mean_outcome}
    return {**means, "interval95": of.interval, "verdict": of.verdict}


def _group(of: CalibrationGroup) -> JsonDict:
    return {"name": of.name, "n": of.n, "base_rate": of.base_rate, "brier": of.brier, "bias": _bias(of.bias)}


def _trend(of: CalibrationTrend) -> JsonDict:
    windows = [asdict(one) | {"start": one.start.isoformat(), "end": one.end.isoformat()} for one in of.windows]
    drift = of.drift and asdict(of.drift)
    return {"windows": windows, "brier": _slope(of.brier), "bias": _slope(of.bias), "drift": drift}


def _slope(of: TrendSlope) -> JsonDict:
    return {"per_100": of.per_100, "interval95": of.interval, "direction": of.direction}


def _recalibration(of: RecalibrationResult) -> JsonDict:
    names = ("method", "earlier", "later", "brier_stated", "brier_corrected")
    return {
        **{name: getattr(of, name) for name in names},
        "helped": of.improves,
        "map": [{"stated": stated, "corrected": of.correct(stated)} for stated in MAP_POINTS],
    }
