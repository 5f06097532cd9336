"""A short note on the calibration of an agent, which is shown in contexts. Pure."""

from collections.abc import Callable, Iterable, Sequence

from newton.brain.calibration.bias import MIN_REVIEWS_FOR_BIAS, ConfidenceBias, compute_bias
from newton.brain.calibration.series import ForecastSeries, sort_by_time, to_series
from newton.brain.draft import ReviewedDecision

MAX_NOTE_TOKENS = 100
NOTE_WINDOW = 100  # decisions; the note covers the latest only, because agents change


def write_note(
    decisions: Iterable[ReviewedDecision], *, count: Callable[[str], int], max_tokens: int = MAX_NOTE_TOKENS
) -> str | None:
    """Return a note on the calibration of the latest decisions, of at most `max_tokens`; None with too few reviews."""
    pairs = to_series(sort_by_time(decisions)[-NOTE_WINDOW:])
    own = compute_bias(pairs)
    if own is None or len(pairs) < MIN_REVIEWS_FOR_BIAS:
        return None
    note = ""
    for sentence in _sentences(pairs, own):
        longer = f"{note} {sentence}".strip()
        if count(longer) > max_tokens:
            break
        note = longer
    return note or None


def _sentences(pairs: ForecastSeries, own: ConfidenceBias) -> Sequence[str]:
    stated, accuracy = f"{100 * own.mean_stated:.0f} %", f"{100 * own.mean_outcome:.0f} %"
    scores = [f"Recent accuracy {accuracy}.", f"Brier {float(pairs.squared_errors.mean()):.3f}."]
    if own.verdict == "no sign of either":
        return [*scores, "No sign of over- or underconfidence."]
    degree = "Slightly" if abs(own.size) < 0.1 else "Clearly" if abs(own.size) < 0.2 else "Strongly"
    advice = "state less" if own.verdict == "overconfident" else "trust your analysis more"
    return [*scores, f"{degree} {own.verdict}: stated {stated} on average, {accuracy} came true; {advice}."]
