"""What state a fact should be in: it follows from its evidence, so the same evidence gives the same state. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from newton.heart.lifecycle.thresholds import Thresholds
from newton.memory.memory import PAST
from newton.memory.transitions import Step

INDEPENDENT = 2  # so many outside origins beside its own corroborate what is quarantined


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A fact with its evidence.

    `confirmations` counts the tellings after the first, for a fact that is not from outside only those that are not
    either; `sources` the independent ones among them that are not from outside, `outside` the other outside origins
    that say the same, and `vouched` is whether a person said so.
    It holds since it became true, or since it was last said to hold again.
    """

    memory_id: UUID
    state: str
    quarantined: bool
    subject_key: str | None
    attribute: str | None
    single: bool
    since: datetime
    valid_to: datetime | None
    created_at: datetime
    marked: bool
    same_as: UUID | None
    generalises: int
    generalised: bool
    wrong: bool
    superseded: bool
    confirmations: int
    sources: int
    outside: int
    vouched: bool

    @property
    def released(self) -> bool:
        """Whether it may count as knowledge."""
        return not self.quarantined or self.vouched or self.outside >= INDEPENDENT

    @property
    def disproved(self) -> bool:
        return self.wrong or self.state == "INACTIVE"

    def over(self, now: datetime) -> bool:
        return self.valid_to is not None and self.since <= self.valid_to <= now

    def competes(self, now: datetime) -> bool:
        """Whether it could be the one value of its attribute."""
        out = self.disproved or self.superseded or self.generalised or self.same_as is not None or self.over(now)
        return self.single and self.released and not out


class Fate(NamedTuple):
    """The state the evidence asks for, how it is called to come there, and why."""

    state: str
    event: str
    because: str


def plan(lives: Sequence[Life], thresholds: Thresholds, *, now: datetime) -> list[Step]:
    """The steps that are due, at most one for each fact. Lives of one single-valued attribute must come together."""
    following = successors(lives, now=now)
    steps: list[Step] = []
    for life in lives:
        fate = _ended(life, following, now) or _standing(life, thresholds)
        releases = life.quarantined and life.released and fate.state != "INACTIVE"
        if fate.state == life.state and not releases:
            continue
        event, because = _named(life, fate, releases=releases)
        steps.append(
            Step(
                memory_id=life.memory_id,
                event=event,
                before=life.state,
                after=fate.state,
                because=because,
                releases=releases,
            )
        )
    return steps


def successors(lives: Sequence[Life], *, now: datetime) -> dict[UUID, Life]:
    """For each value that a newer one of the same attribute has followed, that newer one."""
    groups: defaultdict[tuple[str | None, str | None], list[Life]] = defaultdict(list)
    for life in lives:
        if life.competes(now):
            groups[life.subject_key, life.attribute].append(life)
    following: dict[UUID, Life] = {}
    for group in groups.values():
        ordered = sorted(group, key=lambda life: (life.since, life.created_at, life.memory_id))
        following |= {life.memory_id: later for life, later in pairwise(ordered)}
    return following


def _ended(life: Life, following: Mapping[UUID, Life], now: datetime) -> Fate | None:
    """Why it is no current knowledge any more, or None."""
    if life.disproved:
        return Fate("INACTIVE", "disproved", "it was said to be wrong")
    if life.same_as:
        return Fate("SUPERSEDED", "merged", "another fact says the same")
    if life.generalised:
        return Fate("SUPERSEDED", "generalised", "a more general fact tells it")
    return _followed(life, following, now)


def _followed(life: Life, following: Mapping[UUID, Life], now: datetime) -> Fate | None:
    if life.superseded:
        return Fate("SUPERSEDED", "superseded", "another fact takes its place")
    if later := following.get(life.memory_id):
        return Fate("SUPERSEDED", "superseded", f"another value holds since {later.since:%Y-%m-%d}")
    if life.valid_to is not None and life.over(now):
        return Fate("SUPERSEDED", "expired", f"it held until {life.valid_to:%Y-%m-%d}")
    return None


def _standing(life: Life, thresholds: Thresholds) -> Fate:
    """What it is as current knowledge. Once a core fact, always one, as long as it holds."""
    if life.state == "CORE" or life.marked:
        return Fate("CORE", "established", "it was marked as core")
    if life.sources >= thresholds.core_sources:
        return Fate("CORE", "established", f"{life.sources} independent sources confirm it")
    if life.generalises >= thresholds.core_sources:
        return Fate("CORE", "established", f"it generalises {life.generalises} facts")
    if life.confirmations or life.state == "CONFIRMED":
        return Fate("CONFIRMED", "confirmed", f"it was said again, {life.confirmations} times in all")
    return Fate("NEW", "learnt", "nothing more is known of it")


def _named(life: Life, fate: Fate, *, releases: bool) -> tuple[str, str]:
    if releases:
        why = "a person said so too" if life.vouched else f"{life.outside} other origins say so too"
        return "released", f"{why}; {fate.because}"
    if life.state == "SUPERSEDED" and fate.state not in PAST:
        return "restored", f"nothing takes its place any more; {fate.because}"
    return fate.event, fate.because
