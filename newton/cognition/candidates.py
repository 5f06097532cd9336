"""Everything that may be in the context, each memory once, whichever sources gave it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.cognition.gather import Gathered
from newton.cognition.score import Bearing, Trials
from newton.cognition.signals import only_asks_when
from newton.cognition.usage import keywords
from newton.content.profiles import Reach
from newton.heart.matching import called_for
from newton.memory.recall import Found
from newton.memory.spans import Span
from newton.memory.timely import DATED


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """`recent` came because they are of late; `called_for` are procedures that the input asks for; `unsearched` is
    what came by its name, its time or its trigger, so that how near it is to the input says nothing. `times` are those
    that the input asks for, and `blank` says that nothing is known of them."""

    found: Sequence[Found]
    recent: frozenset[UUID]
    called_for: frozenset[UUID]
    unsearched: frozenset[UUID]
    bearing: Bearing
    times: Sequence[Span]
    blank: bool


def candidates(gathered: Gathered, text: str, *, reach: Reach, frame: str) -> Candidates:
    """What the sources gave, as far as this profile reaches, for they were asked before it was chosen.

    What was found by searching keeps the evidence that was found for it.
    """
    late = [*gathered.recent.own[: reach.events], *(f for one in gathered.recent.others[: reach.sessions] for f in one)]
    searched = {f.memory_id: f for f in gathered.recalled.found}
    unsearched = {f.memory_id: f for f in (*late, *_near(gathered, reach), *gathered.practice)}
    every = unsearched | searched | {f.memory_id: f for f in gathered.artifacts.found}
    patterns, known = gathered.knowledge.patterns, gathered.knowledge.known
    asked = {p.memory_id for p in called_for(patterns, text, types=known.types, frame=frame)}
    timely = _timely(gathered, every.values())
    then = timely if only_asks_when(text, gathered.times) else frozenset[UUID]()
    return Candidates(
        found=[f for f in every.values() if gathered.filters.admits(f.kind)],
        recent=frozenset(f.memory_id for f in late if f.memory_id not in searched),
        called_for=frozenset(asked),
        unsearched=frozenset(unsearched) | asked | then,
        times=gathered.times,
        blank=_blank(gathered, [f for f in every.values() if f.memory_id in timely], text),
        bearing=Bearing(
            keywords=keywords(text),
            mentioned=known.mentioned,
            salience=known.salience,
            steps=known.steps,
            trials={p.memory_id: Trials(p.successes, p.successes + p.failures) for p in patterns},
            timely=timely,
        ),
    )


def _timely(gathered: Gathered, every: Iterable[Found]) -> frozenset[UUID]:
    """Those of a time that is asked for; of what no search has found, what happened then."""
    if not gathered.times:
        return frozenset()
    late = (f for f in every if f.kind in DATED and any(span.holds(f.occurred_at) for span in gathered.times))
    return frozenset(gathered.recalled.timely) | {f.memory_id for f in late}


def _blank(gathered: Gathered, of_them: Iterable[Found], text: str) -> bool:
    """What only asks, as this input does, is of a time as well and tells nothing of it. What filters leave is told by
    them."""
    searched = (
        gathered.times != gathered.filters.times
        and "times" not in gathered.missing
        and "memories" not in gathered.missing
    )
    return searched and all(f.only_asks or f.echoes(text) for f in of_them)


def _near(gathered: Gathered, reach: Reach) -> Iterable[Found]:
    known = gathered.knowledge.known
    unasked = set(known.unasked) - set(known.unasked[: reach.salient])
    for found in known.found:
        if found.memory_id not in unasked and known.steps.get(found.memory_id, 0) <= reach.depth:
            yield found
