"""Rules of the lifecycle: when the evidence moves a fact, procedure, censor or episode to another state. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from typing import NamedTuple
from uuid import UUID

from newton.heart.speakers import may_replace
from newton.memory.memory import (
    ARCHIVED,
    PAST_STATES,
    PERSON_TIERS,
    ShortForms,
    TokenCounter,
    Trust,
    is_confirmed,
)
from newton.memory.representations import to_bullet
from newton.memory.store import PlannedTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleThresholds:
    """The counts, ages and rates (in [0, 1]) at which states change, and the maximum number of memories per kind.

    The maximum numbers are settings.
    """

    core_fact_min_sources: int = 3
    max_facts_per_attribute: int = 10
    episode_summarize_after: timedelta = timedelta(days=30)
    episode_archive_after: timedelta = timedelta(days=90)
    procedure_min_uses: int = 5
    procedure_effective_min_rate: float = 0.6
    procedure_ineffective_max_rate: float = 0.4
    censor_min_uses: int = 5
    censor_max_false_positive_rate: float = 0.5
    max_events: int
    max_entities: int
    max_relations: int
    max_procedures: int
    max_passages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorRecord:
    """A censor with its statistics since it was last made a warning. `retired` is True if a person retired it.

    `escalated_by_matches` is False if a person made it blocking.
    """

    memory_id: UUID
    state: str
    retired: bool
    threshold: int
    activations: int
    false_positives: int
    escalated_by_matches: bool = False


def plan_censors(records: Sequence[CensorRecord], thresholds: LifecycleThresholds) -> list[PlannedTransition]:
    """Return the state transitions that are due, at most one for each censor."""
    active = (record for record in records if record.state != "RETIRED")
    return [step for record in active if (step := _plan_censor(record, thresholds))]


def _plan_censor(record: CensorRecord, thresholds: LifecycleThresholds) -> PlannedTransition | None:
    if record.retired:
        return PlannedTransition(record.memory_id, "retired", record.state, "RETIRED", "a person retired it")
    wrong, total = record.false_positives, record.activations
    if total >= thresholds.censor_min_uses and wrong / total > thresholds.censor_max_false_positive_rate:
        reason = f"{wrong} of {total} matches were false positives"
        return PlannedTransition(record.memory_id, "retired", record.state, "RETIRED", reason)
    correct, is_escalated = total - wrong, record.state == "ESCALATED"
    if is_escalated and record.escalated_by_matches and correct < record.threshold:
        reason = f"after a false positive only {correct} of its matches are correct; it warns again"
        return PlannedTransition(record.memory_id, "relaxed", record.state, "ACTIVE", reason)
    if not is_escalated and correct >= record.threshold:
        reason = f"it matched correctly {correct} times; from now on it blocks"
        return PlannedTransition(record.memory_id, "escalated", record.state, "ESCALATED", reason)
    if record.state == "CREATED" and total:
        return PlannedTransition(record.memory_id, "triggered", record.state, "ACTIVE", "it matched for the first time")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeAge:
    """An episode with its state and the time of its end."""

    memory_id: UUID
    state: str
    ended_at: datetime


def plan_episodes(
    episodes: Sequence[EpisodeAge], thresholds: LifecycleThresholds, *, now: datetime
) -> list[PlannedTransition]:
    """Return the state transitions that are due. The age of an episode is counted from its end."""
    return [step for episode in episodes if (step := _plan_episode(episode, thresholds, now))]


def _plan_episode(episode: EpisodeAge, thresholds: LifecycleThresholds, now: datetime) -> PlannedTransition | None:
    age = now - episode.ended_at
    if age >= thresholds.episode_archive_after and episode.state != "ARCHIVED":
        reason = f"it ended {age.days} days ago; its full text is archived"
        return PlannedTransition(episode.memory_id, "archived", episode.state, "ARCHIVED", reason)
    if age >= thresholds.episode_summarize_after and episode.state == "ACTIVE":
        reason = f"it ended {age.days} days ago; only the beginning of its text is kept"
        return PlannedTransition(episode.memory_id, "summarized", episode.state, "SUMMARIZED", reason)
    return None


# A fact stated on a machine with a fast clock holds at once.
MAX_CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvidence:
    """A fact with the evidence that decides on its state.

    `confirmations` counts repeated statements; those by tools and the web count only if the fact came from there.
    `sources` counts the independent sources that are neither tools nor the web, `outside` the tools and web sources
    besides the first one. `vouched` means that a person confirmed the fact, `single` that its attribute has one value
    at a time, `generalized` that a general fact covers it, and `wrong` that it, or a fact that it generalizes, was
    retracted. `since` is the start of its validity or its last repetition, and `stated_at` the same, but not after the
    time when it was stored. `superseded_since` and `superseded_until`
    are the start and end of validity of the fact that supersedes it.
    """

    memory_id: UUID
    state: str
    quarantined: bool
    subject_key: str | None
    attribute: str | None
    single: bool
    since: datetime
    stated_at: datetime
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
    text: str
    confirmations: int
    sources: int
    outside: int
    vouched: bool

    @property
    def is_released(self) -> bool:
        """Return whether the fact is not in quarantine, or has the confirmations to leave it."""
        return not self.quarantined or is_confirmed(by_person=self.vouched, other_origins=self.outside)

    @property
    def is_disproved(self) -> bool:
        """Return whether the fact is known to be wrong; INACTIVE is the state of facts that were found to be."""
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

    @property
    def is_of_person(self) -> bool:
        return self.vouched or self.trust in PERSON_TIERS

    def is_later(self, other: "FactEvidence") -> bool:
        """Return whether the fact begins later than another one.

        Of a person's fact and another one, the one that was stated later: no date of a model outlasts a person's word.
        """
        start = self.since if self.is_of_person or not other.is_of_person else self.stated_at
        other_start = other.since if other.is_of_person or not self.is_of_person else other.stated_at
        return (start, self.created_at, self.memory_id) > (other_start, other.created_at, other.memory_id)

    def may_follow(self, older: "FactEvidence") -> bool:
        """Return whether the fact may supersede an older fact on the same subject and attribute."""
        trust: Trust = "user" if self.vouched else self.trust
        state = "CORE" if older.is_core else older.state
        return self.is_later(older) and may_replace(
            trust, older.text, state=state, trust=older.trust, is_vouched=older.vouched
        )


class TargetState(NamedTuple):
    """The state that a fact should have, with the event and the reason of the transition to it."""

    state: str
    event: str
    reason: str


def plan_facts(
    facts: Sequence[FactEvidence], thresholds: LifecycleThresholds, *, now: datetime
) -> list[PlannedTransition]:
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


def find_successors(facts: Sequence[FactEvidence], *, now: datetime) -> dict[UUID, FactEvidence]:
    """Return the superseded facts on single-valued attributes by id, each with the later fact that supersedes it."""
    return {
        fact.memory_id: later
        for values in _group_values(facts, now)
        for fact in values
        if (later := next((later for later in values if later.may_follow(fact)), None))
    }


def find_contested_values(facts: Sequence[FactEvidence], *, now: datetime) -> list[tuple[UUID, UUID]]:
    """Return pairs of ids of contradictory facts: the later fact, and an older one that it may not supersede."""
    successors = find_successors(facts, now=now)
    groups = [[one for one in group if one.memory_id not in successors] for group in _group_values(facts, now)]
    pairs = [pair if pair[0].is_later(pair[1]) else pair[::-1] for group in groups for pair in combinations(group, 2)]
    return [(later.memory_id, fact.memory_id) for later, fact in pairs]


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


INEFFECTIVE_MARK = "(It failed in most of its uses: prefer another way, or change it.) "
Z_95 = 1.959963984540054  # two-sided 95 % quantile of the normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureRecord:
    """A procedure with the counts of its uses. `retired` is True if it was replaced or retired."""

    memory_id: UUID
    state: str
    retired: bool
    activations: int
    successes: int
    failures: int


def effectiveness(successes: int, failures: int) -> float:
    """Return the share of successes among the uses that succeeded or failed; 0 if there are none.

    >>> effectiveness(3, 1), effectiveness(0, 0)
    (0.75, 0.0)
    """
    rated = successes + failures
    return successes / rated if rated else 0.0


def lower_bound(successes: int, failures: int) -> float:
    """Return the lower bound of the 95 % Wilson score interval of the success rate.

    >>> round(lower_bound(5, 0), 3), round(lower_bound(50, 0), 3), lower_bound(0, 0)
    (0.566, 0.929, 0.0)
    """
    trials = successes + failures
    if not trials:
        return 0.0
    share = successes / trials
    middle = share + Z_95 * Z_95 / (2 * trials)
    spread = Z_95 * math.sqrt(share * (1 - share) / trials + Z_95 * Z_95 / (4 * trials * trials))
    return max((middle - spread) / (1 + Z_95 * Z_95 / trials), 0.0)


def mark_forms(forms: ShortForms, state: str, *, count_tokens: TokenCounter) -> ShortForms:
    """Return the short forms for this state. The summary of an ineffective procedure begins with INEFFECTIVE_MARK."""
    plain = forms.summary.removeprefix(INEFFECTIVE_MARK)
    summary = INEFFECTIVE_MARK + plain if state == "INEFFECTIVE" else plain
    header_tokens = forms.summary_tokens - count_tokens(to_bullet(forms.summary))
    return ShortForms(forms.micro, summary, forms.micro_tokens, header_tokens + count_tokens(to_bullet(summary)))


def plan_procedures(records: Sequence[ProcedureRecord], thresholds: LifecycleThresholds) -> list[PlannedTransition]:
    """Return the state transitions that are due, at most one for each procedure."""
    return [step for record in records if (step := _plan_procedure(record, thresholds))]


def _plan_procedure(record: ProcedureRecord, thresholds: LifecycleThresholds) -> PlannedTransition | None:
    state, event, reason = _target_state(record, thresholds)
    if state == record.state or (record.state == ARCHIVED and state != "RETIRED"):
        return None
    event = "restored" if record.state == "RETIRED" else event
    return PlannedTransition(record.memory_id, event, record.state, state, reason)


def _target_state(record: ProcedureRecord, thresholds: LifecycleThresholds) -> tuple[str, str, str]:
    """Return the state that the results of a procedure require, with the event and the reason of the transition."""
    if record.retired:
        return "RETIRED", "retired", "a newer version replaced it, or it was removed"
    rate, rated = effectiveness(record.successes, record.failures), record.successes + record.failures
    reason = f"{record.successes} of {rated} rated uses succeeded"
    if rated and record.activations >= thresholds.procedure_min_uses:
        if rate > thresholds.procedure_effective_min_rate:
            return "EFFECTIVE", "proved", reason
        if rate < thresholds.procedure_ineffective_max_rate:
            return "INEFFECTIVE", "failed", reason
    return "ACTIVE", "reopened", reason
