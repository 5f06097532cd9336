"""Rules that derive the state of a fact from the evidence, so that equal evidence gives an equal state. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from typing import NamedTuple
from uuid import UUID

from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.memory import PAST_STATES, PERSON_TIERS, TRUST_TIERS, Trust, is_confirmed
from newton.memory.store import PlannedTransition

# A fact stated on a machine with a fast clock holds at once.
MAX_CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvidence:
    """A fact with the evidence that decides on its state.

    `confirmations` counts repeated statements; those by tools and the web count only if the fact came from there.
    `sources` counts the independent sources that are neither tools nor the web, `outside` the tools and web sources
    besides the first one. `vouched` means that a person confirmed the fact. `since` is the start of its validity or its
    last repetition. `superseded_since` and `superseded_until` are the start and end of validity of the fact that
    supersedes it.
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
    superseded_since: datetime | None
    superseded_until: datetime | None
    trust: Trust
    confirmations: int
    sources: int
    outside: int
    vouched: bool

    @property
    def is_released(self) -> bool:
        """Return whether the fact is not in quarantine, or has enough evidence to leave it."""
        return not self.quarantined or is_confirmed(by_person=self.vouched, other_origins=self.outside)

    @property
    def is_disproved(self) -> bool:
        return self.wrong or self.state == "INACTIVE"

    def has_expired(self, now: datetime) -> bool:
        return self.valid_to is not None and self.since <= self.valid_to <= now

    def is_superseded(self, now: datetime) -> bool:
        """Return whether a fact that is valid now supersedes this one."""
        if self.superseded_since is None or self.superseded_since > now + MAX_CLOCK_SKEW:
            return False
        return self.superseded_until is None or self.superseded_until > now

    def is_current_candidate(self, now: datetime) -> bool:
        """Return whether the fact can be the current value of a single-valued attribute."""
        merged = self.generalized or self.duplicate_of is not None
        ended = self.is_disproved or self.is_superseded(now) or merged or self.has_expired(now)
        return self.single and self.is_released and not ended and self.since <= now + MAX_CLOCK_SKEW

    def may_follow(self, older: "FactEvidence") -> bool:
        """Return whether the fact may supersede an older fact on the same subject and attribute."""
        trust: Trust = "user" if self.vouched else self.trust
        is_core = older.is_core or older.state == "CORE"
        return may_supersede(trust, known=older.trust, is_confirmed=older.vouched or is_core)


class TargetState(NamedTuple):
    """The state that a fact should have, with the event and the reason of the transition to it."""

    state: str
    event: str
    reason: str


def plan(facts: Sequence[FactEvidence], thresholds: LifecycleThresholds, *, now: datetime) -> list[PlannedTransition]:
    """Return the state transitions that are due, at most one for each fact.

    All facts on one single-valued attribute of a subject must be given together.
    """
    successors = find_successors(facts, now=now)
    steps: list[PlannedTransition] = []
    for fact in facts:
        target = _end_state(fact, successors, now) or _current_state(fact, thresholds)
        releases = fact.quarantined and fact.is_released and target.state != "INACTIVE"
        if target.state != fact.state or releases:
            event, reason = _describe_transition(fact, target, releases=releases)
            steps.append(PlannedTransition(fact.memory_id, event, fact.state, target.state, reason, releases))
    return steps


def may_supersede(trust: Trust, *, known: Trust, is_confirmed: bool) -> bool:
    """Return whether a statement of this trust may supersede a fact of trust `known` without a decision by a person.

    A statement by a person may supersede any fact. Another statement may supersede neither a fact of higher trust nor
    one that a person confirmed.
    """
    if trust in PERSON_TIERS:
        return True
    return not is_confirmed and TRUST_TIERS.index(trust) <= TRUST_TIERS.index(known)


def find_successors(facts: Sequence[FactEvidence], *, now: datetime) -> dict[UUID, FactEvidence]:
    """Return the superseded facts on single-valued attributes by id, each with the later fact that supersedes it."""
    return {
        fact.memory_id: later
        for values in _group_values(facts, now)
        for n, fact in enumerate(values)
        if (later := next((later for later in values[n + 1 :] if later.may_follow(fact)), None))
    }


def find_contested_values(facts: Sequence[FactEvidence], *, now: datetime) -> list[tuple[UUID, UUID]]:
    """Return pairs of ids of contradictory facts: the later fact, and an older one that it may not supersede."""
    successors = find_successors(facts, now=now)
    groups = [[one for one in group if one.memory_id not in successors] for group in _group_values(facts, now)]
    return [(later.memory_id, fact.memory_id) for group in groups for fact, later in combinations(group, 2)]


def _group_values(facts: Sequence[FactEvidence], now: datetime) -> Iterable[list[FactEvidence]]:
    """Return the facts that may be current, in one list for each subject and single-valued attribute, oldest first."""
    groups: defaultdict[tuple[str | None, str | None], list[FactEvidence]] = defaultdict(list)
    for fact in sorted(facts, key=lambda fact: (fact.since, fact.created_at, fact.memory_id)):
        if fact.is_current_candidate(now):
            groups[fact.subject_key, fact.attribute].append(fact)
    return groups.values()


def _end_state(fact: FactEvidence, successors: Mapping[UUID, FactEvidence], now: datetime) -> TargetState | None:
    """Return the state of a fact that is no longer current; None if the fact is current."""
    if fact.is_disproved:
        return TargetState("INACTIVE", "disproved", "it was retracted or disproved")
    if fact.duplicate_of:
        return TargetState("SUPERSEDED", "merged", "it duplicates another fact")
    if fact.generalized:
        return TargetState("SUPERSEDED", "generalized", "a more general fact covers it")
    return _superseded_state(fact, successors, now)


def _superseded_state(fact: FactEvidence, successors: Mapping[UUID, FactEvidence], now: datetime) -> TargetState | None:
    if fact.is_superseded(now):
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
    """Return the event and the reason of the transition of a fact to its target state."""
    if releases:
        cause = "a person confirmed it" if fact.vouched else f"{fact.outside} other origins state the same"
        return "released", f"{cause}; {target.reason}"
    if fact.state == "SUPERSEDED" and target.state not in PAST_STATES:
        return "restored", f"nothing supersedes it any longer; {target.reason}"
    return target.event, target.reason
