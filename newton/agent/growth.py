"""How an agent has grown: the figures of a period beside those of the one before, each with what it is computed from.

Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from newton.brain.calibration import bias as biases
from newton.brain.calibration.bias import Bias, bias
from newton.brain.calibration.series import Floats, Series, ordered, series
from newton.brain.calibration.trend import WINDOW, Trend, slope, trend
from newton.brain.choice import Judged
from newton.brain.reading import Listed
from newton.brain.repeating import Repeats
from newton.brain.retrospect import Retrospect as Decided
from newton.heart.retrospect import Changed, Followed
from newton.heart.retrospect import Retrospect as Lived
from newton.memory.periods import Periods

# Of fewer, a single one moves a share by more than 20 points: such a share is no figure yet.
FEWEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A count, a share in [0, 1], a score, or a signed score; None where there is nothing to compute it from.

    It is computed from `n` things, that of the period before from `n_before`; from fewer than `fewest` it tells
    nothing. A count is its own n.
    """

    kind: Literal["count", "share", "score", "signed"]
    now: float | None
    before: float | None
    n: int
    n_before: int
    fewest: int = 0

    @property
    def telling(self) -> float | None:
        """The figure, if there is enough behind it."""
        return self.now if self.n >= self.fewest else None

    @property
    def told_before(self) -> float | None:
        return self.before if self.n_before >= self.fewest else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Decisions are `made` in the period in which they were decided, and `judged` in the one in which their outcome
    was known: `accuracy` (a partial one counts half), `brier` and `bias` are of these, `slope` is of all up to its end,
    per 100 decisions. `near` is how many decisions were made near a known failure: some `answered` it, to some it was
    only `shown`, and `repeated` is the share of the others among all that were made (as far as they have vectors).
    `precision` is the share of the activations of censors that nobody called wrong; `succeeded` that of the judged uses
    of procedures; `confirmed` that of all facts known at the end of the period which had been told again.
    """

    made: Figure
    judged: Figure
    accuracy: Figure
    brier: Figure
    slope: Figure
    bias: Figure
    overdue: Figure
    near: Figure
    answered: Figure
    shown: Figure
    repeated: Figure
    met: Figure
    false_positives: Figure
    precision: Figure
    escalated: Figure
    retired: Figure
    uses: Figure
    succeeded: Figure
    effective: Figure
    ineffective: Figure
    learnt: Figure
    confirmed: Figure
    superseded: Figure
    disproved: Figure
    episodes: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The whole report but its words. `bias` is that of the period, `trend` that of the whole record (None where there
    is too little); `overdue` wait the longest, and `changed` are the changes of the period."""

    periods: Periods
    figures: Figures
    bias: Bias | None
    trend: Trend | None
    repeats: Repeats
    overdue: tuple[Listed, ...]
    followed: tuple[Followed, ...]
    changed: tuple[Changed, ...]


def growth(periods: Periods, brain: Decided, heart: Lived) -> Growth:
    """What the record says of both periods."""
    judged = ordered(brain.judged)
    now = [one for one in judged if periods.current(one.reviewed_at)]
    changed = tuple(one for one in heart.changed if periods.current(one.at))
    return Growth(
        periods=periods,
        figures=Figures(
            **_decided(periods, brain),
            **_scored(periods, judged),
            **_kept(periods, heart),
            **_practised(periods, heart),
            **_learnt(periods, heart),
        ),
        bias=bias(series(now)),
        trend=trend(judged, series(judged)),
        repeats=brain.now.repeats,
        overdue=brain.overdue,
        followed=heart.followed,
        changed=tuple(one for one in changed if one.kind != "fact"),
    )


def _decided(periods: Periods, brain: Decided) -> dict[str, Figure]:
    now, before = brain.now.repeats, brain.before.repeats
    return {
        "made": _count(brain.now.made, brain.before.made),
        "overdue": _count(brain.now.overdue, brain.before.overdue),
        "near": _count(now.near, before.near),
        "answered": _count(now.answered, before.answered),
        "shown": _count(_only_shown(now), _only_shown(before)),
        "repeated": _share((len(now.repeated), now.compared), (len(before.repeated), before.compared)),
    }


def _only_shown(of: Repeats) -> int:
    return of.near - of.answered - len(of.repeated)


def _scored(periods: Periods, judged: Sequence[Judged]) -> dict[str, Figure]:
    """What was judged before this period began may be of any age; a slope needs them all."""
    now = series([one for one in judged if periods.current(one.reviewed_at)])
    before = series([one for one in judged if periods.former(one.reviewed_at)])
    whole, until = series(judged), series([one for one in judged if one.reviewed_at < periods.start])
    n, n_before = len(now), len(before)

    def score(kind: Literal["share", "score", "signed"], column: Callable[[Series], Floats], fewest: int) -> Figure:
        first, second = (float(column(pairs).mean()) if len(pairs) else None for pairs in (now, before))
        return Figure(kind=kind, now=first, before=second, n=n, n_before=n_before, fewest=fewest)

    steep, was = (slope(of.squared).per_100 if len(of) >= 2 * WINDOW else None for of in (whole, until))
    return {
        "judged": _count(n, n_before),
        "accuracy": score("share", lambda pairs: pairs.outcome, FEWEST),
        "brier": score("score", lambda pairs: pairs.squared, FEWEST),
        "bias": score("signed", lambda pairs: pairs.gap, biases.ENOUGH),
        "slope": Figure(kind="signed", now=steep, before=was, n=len(whole), n_before=len(until), fewest=2 * WINDOW),
    }


def _kept(periods: Periods, heart: Lived) -> dict[str, Figure]:
    met, wrong, met_before, wrong_before = heart.met
    return {
        "met": _count(met, met_before),
        "false_positives": _count(wrong, wrong_before),
        "precision": _share((met - wrong, met), (met_before - wrong_before, met_before)),
        "escalated": _changes(periods, heart, "censor", "ESCALATED"),
        "retired": _changes(periods, heart, "censor", "RETIRED"),
    }


def _practised(periods: Periods, heart: Lived) -> dict[str, Figure]:
    successes, failures = sum(one.successes for one in heart.followed), sum(one.failures for one in heart.followed)
    well, badly = (
        sum(one.successes_before for one in heart.followed),
        sum(one.failures_before for one in heart.followed),
    )
    return {
        "uses": _count(sum(one.uses for one in heart.followed), sum(one.uses_before for one in heart.followed)),
        "succeeded": _share((successes, successes + failures), (well, well + badly)),
        "effective": _changes(periods, heart, "procedure", "EFFECTIVE"),
        "ineffective": _changes(periods, heart, "procedure", "INEFFECTIVE"),
    }


def _learnt(periods: Periods, heart: Lived) -> dict[str, Figure]:
    facts = heart.learnt
    return {
        "learnt": _count(facts.learnt, facts.learnt_before),
        "confirmed": _share((facts.confirmed, facts.known), (facts.confirmed_before, facts.known_before)),
        "superseded": _changes(periods, heart, "fact", "SUPERSEDED"),
        "disproved": _changes(periods, heart, "fact", "INACTIVE"),
        "episodes": _count(heart.lived.episodes, heart.lived.episodes_before),
    }


def _changes(periods: Periods, heart: Lived, kind: str, state: str) -> Figure:
    ats = [one.at for one in heart.changed if (one.kind, one.state) == (kind, state)]
    return _count(sum(map(periods.current, ats)), sum(map(periods.former, ats)))


def _count(now: int, before: int) -> Figure:
    return Figure(kind="count", now=now, before=before, n=now, n_before=before)


def _share(now: tuple[int, int], before: tuple[int, int]) -> Figure:
    """Of parts of wholes."""
    (part, whole), (former, n_before) = now, before
    return Figure(
        kind="share",
        now=part / whole if whole else None,
        before=former / n_before if n_before else None,
        n=whole,
        n_before=n_before,
        fewest=FEWEST,
    )
