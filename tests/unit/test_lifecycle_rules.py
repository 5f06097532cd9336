"""The rules of the four kinds: what they can do at all, and what always holds whatever they are given."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from newton.heart.lifecycle import censors, episodes, facts, procedures
from newton.memory.memory import Kind
from newton.memory.transitions import ALLOWED_TRANSITIONS, AllowedTransition, PlannedTransition
from tests.support import NOON
from tests.unit.lives import (
    FACT_STATES,
    LATER,
    TOLD,
    USUAL,
    episode,
    every_censor,
    every_fact,
    every_procedure,
    fact,
    facts_due,
    taken,
)

CURRENT = {"NEW", "CONFIRMED", "CORE"}
Other = TypeVar("Other", episodes.EpisodeAge, procedures.ProcedureRecord, censors.CensorRecord)


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
        one for one in table("fact") if one.event == "unmarked" or one.from_state == "INACTIVE"
    }  # of a person, by no rule
    assert made == table("fact") - by_hand
    # the table has every change that the rules of episodes make and no other
    lives = [
        episode(state, timedelta(days=age)) for state in ("ACTIVE", "SUMMARIZED", "ARCHIVED") for age in (0, 50, 99)
    ]
    assert made_by(lives, lambda life: episodes.plan([life], USUAL, now=NOON), "episode") == table("episode")
    # the table has every change that the rules of procedures make and no other
    made = made_by(every_procedure(), lambda life: procedures.plan([life], USUAL), "procedure")
    capped = {c for c in table("procedure") if "ARCHIVED" in (c.from_state, c.to_state) and c.event != "retired"}
    assert made == table("procedure") - capped, "what there are too many of is set aside by the cap"
    # the table has every change that the rules of censors make and no other
    by_a_person = {
        AllowedTransition("censor", "CREATED", "released", "CREATED"),
        AllowedTransition("censor", "CREATED", "tightened", "ESCALATED"),
        AllowedTransition("censor", "ACTIVE", "tightened", "ESCALATED"),
    }
    made = made_by(every_censor(), lambda life: censors.plan([life], USUAL), "censor")
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
def lives_of_facts(draw: st.DrawFn) -> list[facts.FactEvidence]:
    """Facts of two attributes, single-valued and many-valued, with any evidence."""
    return [
        fact(
            number,
            state=draw(st.sampled_from(FACT_STATES)),
            quarantined=draw(st.booleans()),
            attribute=draw(st.sampled_from(["lives in", "works at"])),
            single=draw(st.booleans()),
            since=draw(DAY),
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
def test_every_step_is_in_the_table_and_once_taken_none_is_due(lives: list[facts.FactEvidence]) -> None:
    steps = facts_due(lives)
    assert {change("fact", step) for step in steps} <= ALLOWED_TRANSITIONS
    assert len({step.memory_id for step in steps}) == len(steps)
    assert facts_due(taken(lives, steps)) == []


@given(LIVES.flatmap(lambda lives: st.tuples(st.just(lives), st.permutations(lives))))
def test_the_order_in_which_facts_are_read_does_not_matter(
    both: tuple[list[facts.FactEvidence], list[facts.FactEvidence]],
) -> None:
    one, other = ({step.memory_id: step for step in facts_due(lives)} for lives in both)
    assert one == other


@given(LIVES.flatmap(st.permutations))
def test_the_order_in_which_facts_arrive_does_not_matter(lives: list[facts.FactEvidence]) -> None:
    lives = [replace(life, state="NEW") for life in lives]
    arrived: list[facts.FactEvidence] = []
    for life in lives:
        arrived = [*arrived, life]
        arrived = taken(arrived, facts_due(arrived))
    assert arrived == taken(lives, facts_due(lives))


@given(LIVES)
def test_one_value_holds_of_a_single_valued_attribute_and_it_is_the_newest(lives: list[facts.FactEvidence]) -> None:
    # S002-16
    after = taken(lives, facts_due(lives))
    current = [life for life in after if life.single and life.state in CURRENT and not life.quarantined]
    holding = [life for life in current if life.since <= LATER]
    competing: defaultdict[str | None, list[facts.FactEvidence]] = defaultdict(list)
    for life in lives:
        if life.is_current_candidate(LATER):
            competing[life.attribute].append(life)
    newest = set[UUID]()
    for group in competing.values():
        group.sort(key=lambda life: (life.since, life.created_at, life.memory_id))
        newest |= {
            life.memory_id
            for n, life in enumerate(group)
            if not any(later.may_follow(life) for later in group[n + 1 :])
        }
    assert {life.memory_id for life in holding} == newest
    contested = {newer for newer, _ in facts.find_contested_values(lives, now=LATER)}
    settled = [life.attribute for life in holding if life.memory_id not in contested]
    assert len(settled) == len(set(settled)), "one value holds that is not contested"


@given(LIVES)
def test_no_fact_is_moved_by_one_of_another_attribute_or_by_a_many_valued_one(lives: list[facts.FactEvidence]) -> None:
    apart: defaultdict[object, list[facts.FactEvidence]] = defaultdict(list)
    for life in lives:
        apart[life.attribute if life.single else life.memory_id].append(life)
    alone = {step.memory_id: step for group in apart.values() for step in facts_due(group)}
    assert {step.memory_id: step for step in facts_due(lives)} == alone
