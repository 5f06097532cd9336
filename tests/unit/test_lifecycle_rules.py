"""The rules of lifecycles: their thresholds, and that the table has every change that they make and no other."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.heart.lifecycle import transition_rules
from newton.heart.lifecycle.engine import MAX_SUMMARIZED_CHARACTERS, truncate_text
from newton.heart.lifecycle.transition_rules import Z_95, LifecycleThresholds, effectiveness, lower_bound
from newton.memory.memory import Kind
from newton.memory.store import ALLOWED_TRANSITIONS, AllowedTransition, PlannedTransition
from tests.cases import load_cases
from tests.support import DEFAULT_THRESHOLDS, NOON
from tests.unit.lives import (
    FACT_STATES,
    LATER,
    TOLD,
    USUAL,
    censor,
    episode,
    every_censor,
    every_fact,
    every_procedure,
    fact,
    facts_due,
    procedure,
    taken,
)

CURRENT = {"NEW", "CONFIRMED", "CORE"}
Other = TypeVar("Other", transition_rules.EpisodeAge, transition_rules.ProcedureRecord, transition_rules.CensorRecord)


def table(kind: Kind) -> set[AllowedTransition]:
    return {change for change in ALLOWED_TRANSITIONS if change.kind == kind}


def change(kind: Kind, step: PlannedTransition) -> AllowedTransition:
    return AllowedTransition(kind, step.from_state, step.event, step.to_state)


def test_the_table_has_every_change_that_the_rules_make_and_no_other() -> None:
    # S002-16, S002-17, S002-18, S002-19
    made: set[AllowedTransition] = set()
    for life in every_fact():
        for followed in ([], [fact(2, since=LATER)]):
            steps = [step for step in facts_due([life, *followed]) if step.memory_id == life.memory_id]
            made |= {change("fact", step) for step in steps}
            assert all(step.reason for step in steps)
            assert facts_due(taken([life, *followed], facts_due([life, *followed]))) == []
    by_hand = {
        one for one in table("fact") if one.event in ("unmarked", "withdrawn") or one.from_state == "INACTIVE"
    }  # of a person or a model, by no rule
    assert made == table("fact") - by_hand
    # the table has every change that the rules of episodes make and no other
    lives = [
        episode(state, timedelta(days=age)) for state in ("ACTIVE", "SUMMARIZED", "ARCHIVED") for age in (0, 50, 99)
    ]
    assert made_by(lives, lambda life: transition_rules.plan_episodes([life], USUAL, now=NOON), "episode") == table(
        "episode"
    )
    # the table has every change that the rules of procedures make and no other
    made = made_by(every_procedure(), lambda life: transition_rules.plan_procedures([life], USUAL), "procedure")
    capped = {c for c in table("procedure") if "ARCHIVED" in (c.from_state, c.to_state) and c.event != "retired"}
    assert made == table("procedure") - capped, "what there are too many of is set aside by the cap"
    # the table has every change that the rules of censors make and no other
    by_a_person = {
        AllowedTransition("censor", "CREATED", "released", "CREATED"),
        AllowedTransition("censor", "CREATED", "tightened", "ESCALATED"),
        AllowedTransition("censor", "ACTIVE", "tightened", "ESCALATED"),
    }
    made = made_by(every_censor(), lambda life: transition_rules.plan_censors([life], USUAL), "censor")
    assert made == table("censor") - by_a_person


def made_by(
    lives: Iterable[Other], due: Callable[[Other], list[PlannedTransition]], kind: Kind
) -> set[AllowedTransition]:
    """Every change that the rule makes of these; once made, nothing more is due."""
    made: set[AllowedTransition] = set()
    for life in lives:
        for step in due(life):
            assert step.reason
            assert due(replace(life, state=step.to_state)) == []
            made.add(change(kind, step))
    return made


DAY = st.integers(0, 4).map(lambda days: NOON + timedelta(days=days))
RARELY = st.sampled_from([False, False, True])


@st.composite
def lives_of_facts(draw: st.DrawFn) -> list[transition_rules.FactEvidence]:
    """Facts of two attributes, single-valued and many-valued, with any evidence."""
    return [
        fact(
            number,
            state=draw(st.sampled_from(FACT_STATES)),
            quarantined=draw(st.booleans()),
            attribute=draw(st.sampled_from(["lives in", "works at"])),
            single=draw(st.booleans()),
            since=draw(DAY),
            stated_at=draw(DAY),
            valid_to=draw(st.none() | DAY),
            created_at=draw(DAY),
            is_core=draw(RARELY),
            duplicate_of=UUID(int=99) if draw(RARELY) else None,
            generalizes=draw(st.sampled_from([0, 2, 3])),
            generalized=draw(RARELY),
            wrong=draw(RARELY),
            superseded_since=draw(st.none() | DAY) if draw(RARELY) else None,
            superseded_until=draw(st.none() | DAY),
            trust=draw(st.sampled_from(["user", "agent"])),
            **draw(st.sampled_from(TOLD)),
        )
        for number in range(1, 1 + draw(st.integers(0, 8)))
    ]


LIVES = lives_of_facts()


@given(LIVES)
def test_every_step_is_in_the_table_and_once_taken_none_is_due(lives: list[transition_rules.FactEvidence]) -> None:
    steps = facts_due(lives)
    assert {change("fact", step) for step in steps} <= ALLOWED_TRANSITIONS
    assert len({step.memory_id for step in steps}) == len(steps)
    assert facts_due(taken(lives, steps)) == []


@given(LIVES.flatmap(lambda lives: st.tuples(st.just(lives), st.permutations(lives))))
def test_the_order_in_which_facts_are_read_does_not_matter(
    both: tuple[list[transition_rules.FactEvidence], list[transition_rules.FactEvidence]],
) -> None:
    one, other = ({step.memory_id: step for step in facts_due(lives)} for lives in both)
    assert one == other


@given(LIVES.flatmap(st.permutations))
def test_the_order_in_which_facts_arrive_does_not_matter(lives: list[transition_rules.FactEvidence]) -> None:
    lives = [replace(life, state="NEW") for life in lives]
    arrived: list[transition_rules.FactEvidence] = []
    for life in lives:
        arrived = [*arrived, life]
        arrived = taken(arrived, facts_due(arrived))
    assert arrived == taken(lives, facts_due(lives))


@given(LIVES)
def test_one_value_holds_of_a_single_valued_attribute_and_it_is_the_newest(
    lives: list[transition_rules.FactEvidence],
) -> None:
    # S002-16
    after = taken(lives, facts_due(lives))
    current = [life for life in after if life.single and life.state in CURRENT and not life.quarantined]
    holding = [life for life in current if life.since <= LATER]
    competing: defaultdict[str | None, list[transition_rules.FactEvidence]] = defaultdict(list)
    for life in lives:
        if life.is_current_candidate(LATER):
            competing[life.attribute].append(life)
    newest = set[UUID]()
    for group in competing.values():
        newest |= {life.memory_id for life in group if not any(later.may_follow(life) for later in group)}
    assert {life.memory_id for life in holding} == newest
    contested = {newer for newer, _ in transition_rules.find_contested_values(lives, now=LATER)}
    settled = [life.attribute for life in holding if life.memory_id not in contested]
    assert len(settled) == len(set(settled)), "one value holds that is not contested"


@given(LIVES)
def test_no_fact_is_moved_by_one_of_another_attribute_or_by_a_many_valued_one(
    lives: list[transition_rules.FactEvidence],
) -> None:
    apart: defaultdict[object, list[transition_rules.FactEvidence]] = defaultdict(list)
    for life in lives:
        apart[life.attribute if life.single else life.memory_id].append(life)
    alone = {step.memory_id: step for group in apart.values() for step in facts_due(group)}
    assert {step.memory_id: step for step in facts_due(lives)} == alone


CASES = load_cases(__file__)

TICK = timedelta(microseconds=1)


def state_of(
    life: transition_rules.FactEvidence, thresholds: LifecycleThresholds = USUAL, now: datetime = LATER
) -> str:
    steps = transition_rules.plan_facts([life], thresholds, now=now)
    return steps[0].to_state if steps else life.state


@pytest.mark.parametrize(("sources", "state"), [(2, "CONFIRMED"), (3, "CORE"), (4, "CORE")])
def test_three_independent_sources_make_a_fact_core(sources: int, state: str) -> None:
    # S002-16
    assert state_of(fact(confirmations=4, sources=sources)) == state
    assert state_of(fact(generalizes=sources)) == ("NEW" if state == "CONFIRMED" else state)
    assert (
        state_of(fact(confirmations=9, sources=9), replace(DEFAULT_THRESHOLDS, core_fact_min_sources=10)) == "CONFIRMED"
    )


def test_a_fact_holds_again_when_told_again_and_what_was_wrong_takes_no_place() -> None:
    ended = fact(state="SUPERSEDED", valid_to=NOON + TICK)
    assert facts_due([ended]) == []
    assert [step.event for step in facts_due([replace(ended, since=NOON + 2 * TICK)])] == ["restored"]
    older, wrong = fact(1), fact(2, since=LATER, state="INACTIVE")
    assert facts_due([older, wrong]) == []
    assert state_of(fact(is_core=True)) == "CORE"
    assert state_of(fact(state="CORE")) == "CORE"


@pytest.mark.parametrize(("outside", "released"), [(1, False), (2, True), (3, True)])
def test_two_other_outside_origins_release_what_is_quarantined(outside: int, released: bool) -> None:
    steps = facts_due([fact(state="CONFIRMED", quarantined=True, confirmations=outside, outside=outside)])
    assert [(step.event, step.releases) for step in steps] == [("released", True)] * released


@pytest.mark.parametrize(("before_end", "state"), [(TICK, "NEW"), (timedelta(), "SUPERSEDED"), (-TICK, "SUPERSEDED")])
def test_a_fact_holds_until_its_end(before_end: timedelta, state: str) -> None:
    assert state_of(fact(valid_to=LATER), now=LATER - before_end) == state


@pytest.mark.parametrize(
    ("state", "age", "expected"),
    [
        ("ACTIVE", timedelta(days=30) - TICK, None),
        ("ACTIVE", timedelta(days=30), "SUMMARIZED"),
        ("ACTIVE", timedelta(days=30) + TICK, "SUMMARIZED"),
        ("SUMMARIZED", timedelta(days=90) - TICK, None),
        ("SUMMARIZED", timedelta(days=90), "ARCHIVED"),
        ("ACTIVE", timedelta(days=90) + TICK, "ARCHIVED"),
        ("ARCHIVED", timedelta(days=900), None),
        ("ACTIVE", -timedelta(days=1), None),
    ],
)
def test_an_episode_gives_up_its_details_with_age(state: str, age: timedelta, expected: str | None) -> None:
    # S002-17
    steps = transition_rules.plan_episodes([episode(state, age)], USUAL, now=NOON)
    assert [step.to_state for step in steps] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a b", "a b"),
        ("x" * MAX_SUMMARIZED_CHARACTERS, "x" * MAX_SUMMARIZED_CHARACTERS),
        ("x" * (MAX_SUMMARIZED_CHARACTERS + 1), "x" * MAX_SUMMARIZED_CHARACTERS + " …"),
        ("word " * MAX_SUMMARIZED_CHARACTERS, ("word " * (MAX_SUMMARIZED_CHARACTERS // 5 - 1)).strip() + " …"),
        (" " * (MAX_SUMMARIZED_CHARACTERS + 1) + "x", "…"),
    ],
)
def test_the_beginning_of_a_text_ends_at_a_word(text: str, kept: str) -> None:
    assert truncate_text(text) == kept


@pytest.mark.parametrize(
    ("activations", "successes", "failures", "state"), CASES["a_procedure_s_record_counts_from_five_uses_on"]
)
def test_a_procedure_s_record_counts_from_five_uses_on(
    activations: int, successes: int, failures: int, state: str
) -> None:
    # S002-18
    steps = transition_rules.plan_procedures([procedure("ACTIVE", activations, successes, failures)], USUAL)
    assert [step.to_state for step in steps] == ([] if state == "ACTIVE" else [state])


@pytest.mark.parametrize(
    ("activations", "wrong", "state"),
    CASES["a_censor_grows_stricter_at_its_threshold_and_goes_when_it_is_mostly_wrong"],
)
def test_a_censor_grows_stricter_at_its_threshold_and_goes_when_it_is_mostly_wrong(
    activations: int, wrong: int, state: str
) -> None:
    # S002-19
    steps = transition_rules.plan_censors([censor("CREATED", activations, wrong)], USUAL)
    assert [step.to_state for step in steps] == ([] if state == "CREATED" else [state])


def test_a_censor_grows_milder_only_when_matches_that_escalated_it_were_wrong() -> None:
    strictness = {"CREATED": 0, "ACTIVE": 1, "ESCALATED": 2, "RETIRED": 3}
    taken = [(life, step) for life in every_censor() for step in transition_rules.plan_censors([life], USUAL)]
    milder = [(life, step) for life, step in taken if strictness[step.to_state] < strictness[step.from_state]]
    assert len(milder) < len(taken)
    assert all(step.event == "relaxed" and life.escalated_by_matches for life, step in milder)


TRIALS = st.tuples(st.integers(0, 500), st.integers(0, 500))


@given(TRIALS)
def test_the_wilson_bound_is_where_the_share_is_just_credible(trials: tuple[int, int]) -> None:
    successes, failures = trials
    bound, judged = lower_bound(successes, failures), successes + failures
    assert 0 <= bound <= effectiveness(successes, failures) <= 1
    distance = effectiveness(successes, failures) - bound
    assert distance**2 * judged == pytest.approx(Z_95**2 * bound * (1 - bound), abs=1e-6)


@given(TRIALS)
def test_the_wilson_bound_rises_with_success_and_falls_with_failure(trials: tuple[int, int]) -> None:
    successes, failures = trials
    assert lower_bound(successes + 1, failures) > lower_bound(successes, failures)
    assert lower_bound(successes, failures + 1) <= lower_bound(successes, failures)
    assert lower_bound(2 * successes, 2 * failures) >= lower_bound(successes, failures), "more of the same is surer"


@given(st.lists(TRIALS, max_size=20))
def test_procedures_sort_by_their_record_also_without_any(records: list[tuple[int, int]]) -> None:
    # S002-18
    for measure in (effectiveness, lower_bound):
        shares = [measure(*record) for record in [*records, (0, 0)]]
        assert all(0 <= share <= 1 for share in shares), "a NaN is in no range"
        assert sorted(shares)[0] == 0
