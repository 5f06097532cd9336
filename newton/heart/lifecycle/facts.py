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
from newton.memory.quarantine import is_confirmed
from newton.memory.transitions import PlannedTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvidence:
    """A fact with its evidence.

    Outside sources are those with trust `tool` or `web`. `confirmations` counts repeated statements; outside ones count
    only for a fact from outside. `sources` counts independent sources that are not outside, `outside` the outside
    sources besides the first. `vouched`: a person stated the fact. `since`: the start of validity or the last renewal.
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
    is_core: bool
    duplicate_of: UUID | None
    generalizes: int
    generalized: bool
    wrong: bool
    superseded: bool
    confirmations: int
    sources: int
    outside: int
    vouched: bool

    @property
    def is_released(self) -> bool:
        """Return whether the fact may be used as knowledge."""
        return not self.quarantined or is_confirmed(by_person=self.vouched, other_origins=self.outside)

    @property
    def is_disproved(self) -> bool:
        return self.wrong or self.state == "INACTIVE"

    def has_expired(self, now: datetime) -> bool:
        return self.valid_to is not None and self.since <= self.valid_to <= now

    def is_current_candidate(self, now: datetime) -> bool:
        """Return whether the fact can be the current value of a single-valued attribute."""
        merged = self.generalized or self.duplicate_of is not None
        ended = self.is_disproved or self.superseded or merged or self.has_expired(now)
        return self.single and self.is_released and not ended


class TargetState(NamedTuple):
    """The state that the evidence requires, with the event and the reason of the transition to it."""

    state: str
    event: str
    reason: str


def plan(facts: Sequence[FactEvidence], thresholds: LifecycleThresholds, *, now: datetime) -> list[PlannedTransition]:
    """Return the due transitions, at most one per fact. Values of one single-valued attribute must come together."""
    successors = find_successors(facts, now=now)
    steps: list[PlannedTransition] = []
    for fact in facts:
        target = _end_state(fact, successors, now) or _current_state(fact, thresholds)
        releases = fact.quarantined and fact.is_released and target.state != "INACTIVE"
        if target.state != fact.state or releases:
            event, reason = _describe_transition(fact, target, releases=releases)
            steps.append(PlannedTransition(fact.memory_id, event, fact.state, target.state, reason, releases))
    return steps


def find_successors(facts: Sequence[FactEvidence], *, now: datetime) -> dict[UUID, FactEvidence]:
    """Map each superseded value of an attribute to the value that follows it."""
    groups: defaultdict[tuple[str | None, str | None], list[FactEvidence]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: (fact.since, fact.created_at, fact.memory_id)):
        if fact.is_current_candidate(now):
            groups[fact.subject_key, fact.attribute].append(fact)
    return {fact.memory_id: later for group in groups.values() for fact, later in pairwise(group)}


def _end_state(fact: FactEvidence, successors: Mapping[UUID, FactEvidence], now: datetime) -> TargetState | None:
    """Return the state of a fact that is no longer current, or None."""
    if fact.is_disproved:
        return TargetState("INACTIVE", "disproved", "it was retracted or disproved")
    if fact.duplicate_of:
        return TargetState("SUPERSEDED", "merged", "it duplicates another fact")
    if fact.generalized:
        return TargetState("SUPERSEDED", "generalized", "a more general fact covers it")
    return _superseded_state(fact, successors, now)


def _superseded_state(fact: FactEvidence, successors: Mapping[UUID, FactEvidence], now: datetime) -> TargetState | None:
    if fact.superseded:
        return TargetState("SUPERSEDED", "superseded", "another fact supersedes it")
    if later := successors.get(fact.memory_id):
        return TargetState("SUPERSEDED", "superseded", f"a newer value is valid since {later.since:%Y-%m-%d}")
    if fact.valid_to is not None and fact.has_expired(now):
        return TargetState("SUPERSEDED", "expired", f"it was valid until {fact.valid_to:%Y-%m-%d}")
    return None


def _current_state(fact: FactEvidence, thresholds: LifecycleThresholds) -> TargetState:
    """Return the state of a current fact. A core fact stays core while it is current."""
    if fact.state == "CORE" or fact.is_core:
        return TargetState("CORE", "established", "it was marked as core")
    if fact.sources >= thresholds.core_fact_min_sources:
        return TargetState("CORE", "established", f"{fact.sources} independent sources confirm it")
    if fact.generalizes >= thresholds.core_fact_min_sources:
        return TargetState("CORE", "established", f"it generalizes {fact.generalizes} facts")
    if fact.confirmations or fact.state == "CONFIRMED":
        return TargetState("CONFIRMED", "confirmed", f"number of confirmations: {fact.confirmations}")
    return TargetState("NEW", "learnt", "it has no confirmations")


def _describe_transition(fact: FactEvidence, target: TargetState, *, releases: bool) -> tuple[str, str]:
    """Return the event and the reason of a transition."""
    if releases:
        cause = "a person confirmed it" if fact.vouched else f"{fact.outside} other origins state the same"
        return "released", f"{cause}; {target.reason}"
    if fact.state == "SUPERSEDED" and target.state not in PAST_STATES:
        return "restored", f"nothing supersedes it any longer; {target.reason}"
    return target.event, target.reason
