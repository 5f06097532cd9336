"""Rules for fact states. The state is a function of the evidence, so equal evidence gives an equal state. Pure."""

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

MIN_INDEPENDENT_ORIGINS = 2  # further outside origins that release a quarantined fact


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvidence:
    """A fact with its evidence.

    `confirmations` counts the statements after the first; for a fact that is not from outside, only those that are not
    from outside either. `sources` counts the independent ones among them that are not from outside, `outside` the other
    outside origins that state the same. `vouched` is True when a person stated it. `since` is the start of validity or
    the last renewal.
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
        """Return whether the fact may be used as knowledge."""
        return not self.quarantined or self.vouched or self.outside >= MIN_INDEPENDENT_ORIGINS

    @property
    def is_disproved(self) -> bool:
        return self.wrong or self.state == "INACTIVE"

    def has_expired(self, now: datetime) -> bool:
        return self.valid_to is not None and self.since <= self.valid_to <= now

    def is_current_candidate(self, now: datetime) -> bool:
        """Return whether it can be the current value of a single-valued attribute."""
        out = (
            self.is_disproved
            or self.superseded
            or self.generalised
            or self.same_as is not None
            or self.has_expired(now)
        )
        return self.single and self.is_released and not out


class TargetState(NamedTuple):
    """The state that follows from the evidence, the event of the transition and the reason."""

    state: str
    event: str
    reason: str


def plan(facts: Sequence[FactEvidence], thresholds: LifecycleThresholds, *, now: datetime) -> list[PlannedTransition]:
    """Return the due transitions, at most one per fact. Facts of one single-valued attribute must be planned
    together.
    """
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
    """Map each superseded value to the next value of the same attribute."""
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
    """Return the state of a fact that is not current, or None."""
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
    """Return the state of a current fact. A core fact stays core while it is current."""
    if fact.state == "CORE" or fact.marked:
        return TargetState("CORE", "established", "it was marked as core")
    if fact.sources >= thresholds.core_fact_min_sources:
        return TargetState("CORE", "established", f"{fact.sources} independent sources confirm it")
    if fact.generalises >= thresholds.core_fact_min_sources:
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
