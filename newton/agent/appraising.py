"""What the figures of an agent's growth mean: strengths, concerns and recommendations by fixed rules. Pure.

A rule is one function: it says a sentence when its condition holds. None speaks of a figure with too little behind it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from newton.agent.growth import Figure, Growth
from newton.memory.lookup import short

WELL, POORLY = 0.7, 0.5  # shares of decisions that came true: from here on good, below there not
SHIFT = 0.15  # so much must a share change before the change is told
REPEATED_MOST = 0.10
PRECISE_FROM = 0.85
CONFIRMED_FROM = 0.20

Rule = Callable[[Growth], str | None]


class Appraisal(NamedTuple):
    strengths: tuple[str, ...]
    concerns: tuple[str, ...]
    recommendations: tuple[str, ...]


def appraised(of: Growth) -> Appraisal:
    """All that the rules say, in their order."""

    def said(rules: Sequence[Rule]) -> tuple[str, ...]:
        return tuple(sentence for rule in rules if (sentence := rule(of)))

    return Appraisal(said(STRENGTHS), said(CONCERNS), said(RECOMMENDATIONS))


def right(of: Growth) -> str | None:
    """Accuracy of WELL or more."""
    share = of.figures.accuracy
    return f"{_part(share)} judged decisions came true." if _at_least(share, WELL) else None


def wrong(of: Growth) -> str | None:
    """Accuracy under POORLY."""
    share = of.figures.accuracy
    return f"Only {_part(share)} judged decisions came true." if _below(share, POORLY) else None


def better(of: Growth) -> str | None:
    """Accuracy risen by SHIFT or more."""
    return _moved(of.figures.accuracy, 1, "More decisions came true than before")


def worse(of: Growth) -> str | None:
    """Accuracy fallen by SHIFT or more."""
    return _moved(of.figures.accuracy, -1, "Fewer decisions came true than before")


def calibrated(of: Growth) -> str | None:
    """Enough reviews for a bias, and no sign of one."""
    if of.bias is None or of.bias.verdict != "no sign of either":
        return None
    return f"Stated confidence can be trusted: no sign of a bias in {of.bias.n} reviews."


def biased(of: Growth) -> str | None:
    """Over- or underconfidence that chance does not explain."""
    if not _leans(of):
        return None
    assert of.bias is not None
    stated, came = _percent(of.bias.mean_stated), _percent(of.bias.mean_outcome)
    return f"{of.bias.verdict.capitalize()}: stated {stated} on average, {came} came true ({of.bias.n} reviews)."


def sharper(of: Growth) -> str | None:
    """The Brier score of the whole record falls for certain."""
    return "The Brier score falls: stated confidence tells more and more." if _direction(of) == "falling" else None


def duller(of: Growth) -> str | None:
    """The Brier score of the whole record rises for certain."""
    return "The Brier score rises: stated confidence tells less and less." if _direction(of) == "rising" else None


def learning(of: Growth) -> str | None:
    """Decisions came near a known failure, and all answered it."""
    if not of.repeats.near or of.repeats.answered < of.repeats.near:
        return None
    times = _many(of.repeats.near, "decision was", "decisions were")
    return f"{times} near a known failure, and each answered it."


def repeating(of: Growth) -> str | None:
    """More decisions than REPEATED_MOST repeat a mistake."""
    share = of.figures.repeated
    if share.telling is None or share.telling <= REPEATED_MOST:
        return None
    return f"{_part(share)} decisions repeat a mistake; under {_percent(REPEATED_MOST)} is the aim."


def precise(of: Growth) -> str | None:
    """Censors right in more than PRECISE_FROM of their activations."""
    share = of.figures.precision
    return f"Censors were right {_part(share)} times." if _above(share, PRECISE_FROM) else None


def imprecise(of: Growth) -> str | None:
    """Censors right in PRECISE_FROM of their activations, or fewer."""
    share = of.figures.precision
    if share.telling is None or share.telling > PRECISE_FROM:
        return None
    return f"Censors were right only {_part(share)} times; over {_percent(PRECISE_FROM)} is the aim."


def practised(of: Growth) -> str | None:
    """A procedure became EFFECTIVE."""
    return _named(of, "EFFECTIVE", "Proved to work: {}.")


def failing(of: Growth) -> str | None:
    """A procedure became INEFFECTIVE."""
    return _named(of, "INEFFECTIVE", "Turned out not to work: {}.")


def firm(of: Growth) -> str | None:
    """More facts than CONFIRMED_FROM were told again."""
    share = of.figures.confirmed
    return f"{_part(share)} facts were confirmed." if _above(share, CONFIRMED_FROM) else None


def loose(of: Growth) -> str | None:
    """No more facts than CONFIRMED_FROM were told again."""
    share = of.figures.confirmed
    if share.telling is None or share.telling > CONFIRMED_FROM:
        return None
    return f"Only {_part(share)} facts were confirmed; over {_percent(CONFIRMED_FROM)} is the aim."


def look_back(of: Growth) -> str | None:
    """A decision is overdue."""
    late = int(of.figures.overdue.now or 0)
    if not late:
        return None
    return f"{_many(late, 'decision waits', 'decisions wait')} for an outcome: `newton decisions list --due`."


def judge(of: Growth) -> str | None:
    """Decisions were made, none is overdue, and none was judged."""
    figures = of.figures
    if not figures.made.now or figures.judged.now or figures.overdue.now:
        return None
    return "No decision was judged; say what became of one: `newton review ID success`."


def heed(of: Growth) -> str | None:
    """A mistake was repeated, however often."""
    if not of.repeats.repeated:
        return None
    last = of.repeats.repeated[-1].near
    return (
        f"Look at what failed before: `newton decisions show {short(last.failed_id)}`; if it was thought of, "
        f"`newton decisions link {short(last.decision_id)} relates {short(last.failed_id)}`."
    )


def answer(of: Growth) -> str | None:
    """A known failure was shown, and nobody said what is different this time."""
    times = int(of.figures.shown.now or 0)
    if not times:
        return None
    them = _many(times, "decision was", "decisions were")
    return f"{them} shown a failure and went on without a word; say why: `newton think ID TEXT`, with the failure's id."


def embed(of: Growth) -> str | None:
    """A decision has no vector."""
    if not of.repeats.missing:
        return None
    them = _many(of.repeats.missing, "decision has", "decisions have")
    return f"{them} no vector, so repeated mistakes among them are not seen: `newton doctor`."


def restate(of: Growth) -> str | None:
    """There is a bias."""
    if not _leans(of):
        return None
    assert of.bias is not None
    less = "less" if of.bias.size > 0 else "more"
    return f"State {less} confidence; what came of each is shown by `newton calibration`."


def mend_censors(of: Growth) -> str | None:
    """Censors were imprecise."""
    return "Retire or narrow the censors that were wrong: `newton censors list`." if imprecise(of) else None


def mend_procedures(of: Growth) -> str | None:
    """A procedure became INEFFECTIVE."""
    failed = _names(of, "INEFFECTIVE")
    return f"Rewrite what does not work: `newton procedures show {failed[0]}`." if failed else None


def confirm(of: Growth) -> str | None:
    """Facts are hardly confirmed."""
    return "Say which facts are so: `newton confirm ID`." if loose(of) else None


STRENGTHS: tuple[Rule, ...] = (right, better, calibrated, sharper, learning, precise, practised, firm)
CONCERNS: tuple[Rule, ...] = (wrong, worse, biased, duller, repeating, imprecise, failing, loose)
RECOMMENDATIONS: tuple[Rule, ...] = (
    look_back,
    judge,
    heed,
    answer,
    restate,
    mend_censors,
    mend_procedures,
    confirm,
    embed,
)


def _leans(of: Growth) -> bool:
    return of.bias is not None and of.bias.verdict in ("overconfident", "underconfident")


def _direction(of: Growth) -> str | None:
    return of.trend and of.trend.brier.direction


def _at_least(share: Figure, bound: float) -> bool:
    return share.telling is not None and share.telling >= bound


def _above(share: Figure, bound: float) -> bool:
    return share.telling is not None and share.telling > bound


def _below(share: Figure, bound: float) -> bool:
    return share.telling is not None and share.telling < bound


def _moved(share: Figure, way: int, words: str) -> str | None:
    now, before = share.telling, share.told_before
    if now is None or before is None or way * (now - before) < SHIFT:
        return None
    return f"{words}: {_percent(before)} then, {_percent(now)} now."


def _named(of: Growth, state: str, words: str) -> str | None:
    names = _names(of, state)
    return words.format(", ".join(names)) if names else None


def _names(of: Growth, state: str) -> list[str]:
    """Procedures that came into a state and did not leave it again in the period."""
    last = {one.name: one.state for one in of.changed if one.kind == "procedure"}
    return [name for name, now in last.items() if now == state]


def _part(share: Figure) -> str:
    return f"{_percent(share.now or 0)} of {share.n:,}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _many(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"
