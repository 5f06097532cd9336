"""The thresholds of the four kinds: just below, at and just above each; and what a procedure's record is worth."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.heart.lifecycle import censors, episodes, facts, procedures
from newton.heart.lifecycle.engine import MAX_SUMMARIZED_CHARACTERS, truncate_text
from newton.heart.lifecycle.procedures import Z_95, effectiveness, lower_bound
from newton.heart.lifecycle.thresholds import LifecycleThresholds
from tests.cases import load_cases
from tests.support import DEFAULT_THRESHOLDS, NOON
from tests.unit.lives import LATER, USUAL, censor, episode, every_censor, fact, facts_due, procedure

CASES = load_cases(__file__)

TICK = timedelta(microseconds=1)


def state_of(life: facts.FactEvidence, thresholds: LifecycleThresholds = USUAL, now: datetime = LATER) -> str:
    steps = facts.plan([life], thresholds, now=now)
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
    steps = episodes.plan([episode(state, age)], USUAL, now=NOON)
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
    steps = procedures.plan([procedure("ACTIVE", activations, successes, failures)], USUAL)
    assert [step.to_state for step in steps] == ([] if state == "ACTIVE" else [state])


@pytest.mark.parametrize(
    ("activations", "wrong", "state"),
    CASES["a_censor_grows_stricter_at_its_threshold_and_goes_when_it_is_mostly_wrong"],
)
def test_a_censor_grows_stricter_at_its_threshold_and_goes_when_it_is_mostly_wrong(
    activations: int, wrong: int, state: str
) -> None:
    # S002-19
    steps = censors.plan([censor("CREATED", activations, wrong)], USUAL)
    assert [step.to_state for step in steps] == ([] if state == "CREATED" else [state])


def test_a_censor_grows_milder_only_when_matches_that_escalated_it_were_wrong() -> None:
    strictness = {"CREATED": 0, "ACTIVE": 1, "ESCALATED": 2, "RETIRED": 3}
    taken = [(life, step) for life in every_censor() for step in censors.plan([life], USUAL)]
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
