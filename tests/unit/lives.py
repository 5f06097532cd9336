"""Lives of the four kinds, in every state and with every evidence that there is."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from uuid import UUID

from newton.heart.lifecycle import transition_rules
from newton.memory.store import PlannedTransition
from tests.support import DEFAULT_THRESHOLDS, NOON

USUAL = DEFAULT_THRESHOLDS
LATER = NOON + timedelta(days=1)
FACT_STATES = ("NEW", "CONFIRMED", "CORE", "SUPERSEDED", "INACTIVE")
# What different tellings leave behind.
TOLD: Sequence[dict[str, int]] = (
    {},
    {"confirmations": 1},
    {"confirmations": 1, "sources": 1, "vouched": True},
    {"confirmations": 1, "outside": 1},
    {"confirmations": 2, "outside": 2},
    {"confirmations": 3, "sources": 3},
)


def fact(number: int = 1, **given: object) -> transition_rules.FactEvidence:
    plain = transition_rules.FactEvidence(
        memory_id=UUID(int=number),
        state="NEW",
        quarantined=False,
        subject_key="ana",
        attribute="lives in",
        single=True,
        since=NOON,
        stated_at=NOON,
        valid_to=None,
        created_at=NOON,
        is_core=False,
        duplicate_of=None,
        generalizes=0,
        generalized=False,
        wrong=False,
        superseded_since=None,
        superseded_until=None,
        trust="user",
        text="Ana lives in Graz.",
        confirmations=0,
        sources=0,
        outside=0,
        vouched=False,
    )
    return replace(plain, **given)  # pyright: ignore[reportArgumentType]  # named fields


def every_fact() -> Iterator[transition_rules.FactEvidence]:
    """A fact in each state with each combination of evidence."""
    yes = (False, True)
    for state, told, (quarantined, wrong, superseded), (merged, generalized, over, marked, generalizes) in product(
        FACT_STATES, TOLD, product(yes, repeat=3), product(yes, repeat=5)
    ):
        yield fact(
            state=state,
            quarantined=quarantined,
            wrong=wrong,
            superseded_since=NOON if superseded else None,
            duplicate_of=UUID(int=99) if merged else None,
            generalized=generalized,
            valid_to=NOON if over else None,
            is_core=marked,
            generalizes=3 if generalizes else 0,
            **told,
        )


def every_procedure() -> Iterator[transition_rules.ProcedureRecord]:
    for state, retired in product(("ACTIVE", "EFFECTIVE", "INEFFECTIVE", "RETIRED", "ARCHIVED"), (False, True)):
        for activations in range(12):
            for successes in range(activations + 1):
                for failures in range(activations - successes + 1):
                    yield procedure(state, activations, successes, failures, retired=retired)


def every_censor() -> Iterator[transition_rules.CensorRecord]:
    for state, retired in product(("CREATED", "ACTIVE", "ESCALATED", "RETIRED"), (False, True)):
        for threshold, activations in product(range(1, 6), range(12)):
            for wrong in range(activations + 1):
                life = censor(state, activations, wrong, threshold=threshold, retired=retired)
                yield from (life, replace(life, escalated_by_matches=state == "ESCALATED"))


def procedure(
    state: str, activations: int, successes: int, failures: int, *, retired: bool = False
) -> transition_rules.ProcedureRecord:
    return transition_rules.ProcedureRecord(
        memory_id=UUID(int=1),
        state=state,
        retired=retired,
        activations=activations,
        successes=successes,
        failures=failures,
    )


def censor(
    state: str, activations: int, wrong: int, *, threshold: int = 3, retired: bool = False
) -> transition_rules.CensorRecord:
    return transition_rules.CensorRecord(
        memory_id=UUID(int=1),
        state=state,
        retired=retired,
        threshold=threshold,
        activations=activations,
        false_positives=wrong,
    )


def episode(state: str, age: timedelta) -> transition_rules.EpisodeAge:
    return transition_rules.EpisodeAge(memory_id=UUID(int=1), state=state, ended_at=NOON - age)


def facts_due(lives: Sequence[transition_rules.FactEvidence], now: datetime = LATER) -> list[PlannedTransition]:
    return transition_rules.plan_facts(lives, USUAL, now=now)


def taken(
    lives: Iterable[transition_rules.FactEvidence], steps: Sequence[PlannedTransition]
) -> list[transition_rules.FactEvidence]:
    """The lives after the steps, as the database leaves them."""
    due = {step.memory_id: step for step in steps}
    return [
        replace(life, state=step.to_state, quarantined=life.quarantined and not step.releases)
        if (step := due.get(life.memory_id))
        else life
        for life in lives
    ]
