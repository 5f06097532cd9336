"""What state a fact should be in: it follows from its evidence, so the same evidence gives the same state. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.memory import PAST_STATES
from newton.memory.transitions import PlannedTransition

MIN_INDEPENDENT_ORIGINS = 2  # so many outside origins beside its own corroborate what is quarantined


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvidence:
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
    def is_released(self) -> bool:
        """Whether it may count as knowledge."""
        return not self.quarantined or self.vouched or self.outside >= MIN_INDEPENDENT_ORIGINS

    @property
    def is_disproved(self) -> bool:
        return self.wrong or self.state == "INACTIVE"

    def has_expired(self, now: datetime) -> bool:
        return self.valid_to is not None and self.since <= self.valid_to <= now

    def is_current_candidate(self, now: datetime) -> bool:
        """Whether it could be the one value of its attribute."""
        out = (
            self.is_disproved
            or self.superseded
            or self.generalised
            or self.same_as is not None
            or self.has_expired(now)
        )
        return self.single and self.is_released and not out


class TargetState(NamedTuple):
    """The state the evidence asks for, how it is called to come there, and why."""

    state: str
    event: str
    reason: str


def plan(facts: Sequence[FactEvidence], thresholds: LifecycleThresholds, *, now: datetime) -> list[PlannedTransition]:
    """The steps that are due, at most one for each fact. Lives of one single-valued attribute must come together."""
    following = find_successors(facts, now=now)
    steps: list[PlannedTransition] = []
    for life in facts:
        fate = _end_state(life, following, now) or _current_state(life, thresholds)
        releases = life.quarantined and life.is_released and fate.state != "INACTIVE"
        if fate.state == life.state and not releases:
            continue
        event, because = _describe_transition(life, fate, releases=releases)
        steps.append(
            PlannedTransition(
                memory_id=life.memory_id,
                event=event,
                from_state=life.state,
                to_state=fate.state,
                reason=because,
                releases=releases,
            )
        )
    return steps


def find_successors(facts: Sequence[FactEvidence], *, now: datetime) -> dict[UUID, FactEvidence]:
    """For each value that a newer one of the same attribute has followed, that newer one."""
    groups: defaultdict[tuple[str | None, str | None], list[FactEvidence]] = defaultdict(list)
    for life in facts:
        if life.is_current_candidate(now):
            groups[life.subject_key, life.attribute].append(life)
    following: dict[UUID, FactEvidence] = {}
    for group in groups.values():
        ordered = sorted(group, key=lambda life: (life.since, life.created_at, life.memory_id))
        following |= {life.memory_id: later for life, later in pairwise(ordered)}
    return following


def _end_state(fact: FactEvidence, successors: Mapping[UUID, FactEvidence], now: datetime) -> TargetState | None:
    """Why it is no current knowledge any more, or None."""
    if fact.is_disproved:
        return TargetState("INACTIVE", "disproved", "it was said to be wrong")
    if fact.same_as:
        return TargetState("SUPERSEDED", "merged", "another fact says the same")
    if fact.generalised:
        return TargetState("SUPERSEDED", "generalised", "a more general fact tells it")
    return _superseded_state(fact, successors, now)


def _superseded_state(fact: FactEvidence, successors: Mapping[UUID, FactEvidence], now: datetime) -> TargetState | None:
    if fact.superseded:
        return TargetState("SUPERSEDED", "superseded", "another fact takes its place")
    if later := successors.get(fact.memory_id):
        return TargetState("SUPERSEDED", "superseded", f"another value holds since {later.since:%Y-%m-%d}")
    if fact.valid_to is not None and fact.has_expired(now):
        return TargetState("SUPERSEDED", "expired", f"it held until {fact.valid_to:%Y-%m-%d}")
    return None


def _current_state(fact: FactEvidence, thresholds: LifecycleThresholds) -> TargetState:
    """What it is as current knowledge. Once a core fact, always one, as long as it holds."""
    if fact.state == "CORE" or fact.marked:
        return TargetState("CORE", "established", "it was marked as core")
    if fact.sources >= thresholds.core_min_sources:
        return TargetState("CORE", "established", f"{fact.sources} independent sources confirm it")
    if fact.generalises >= thresholds.core_min_sources:
        return TargetState("CORE", "established", f"it generalises {fact.generalises} facts")
    if fact.confirmations or fact.state == "CONFIRMED":
        return TargetState("CONFIRMED", "confirmed", f"it was said again, {fact.confirmations} times in all")
    return TargetState("NEW", "learnt", "nothing more is known of it")


def _describe_transition(fact: FactEvidence, target: TargetState, *, releases: bool) -> tuple[str, str]:
    if releases:
        why = "a person said so too" if fact.vouched else f"{fact.outside} other origins say so too"
        return "released", f"{why}; {target.reason}"
    if fact.state == "SUPERSEDED" and target.state not in PAST_STATES:
        return "restored", f"nothing takes its place any more; {target.reason}"
    return target.event, target.reason
