"""Labels of facts: when a fact was told, what is in doubt, and that every token of them is accounted for.

Planted and seen to fail: a label without its separator in the tokens; a pair placed as two items.
"""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.assembly.assembler import AssemblyResult, assemble
from newton.cognition.assembly.fact_labels import (
    count_label_tokens,
    format_day,
    is_short_lived,
    label_facts,
    render_found,
)
from newton.cognition.assembly.scored_candidate import REPEATS_FACT, SHOWN_TOGETHER
from newton.content.profiles import load_profiles
from newton.memory.memory import Trust
from newton.memory.representations import start_prefix
from newton.memory.search_types import RetrievedMemory
from newton.providers.token_counter import count
from tests.support import examples
from tests.unit.assembling import make_setting, said, score_in_order

NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)
LABEL_TOKENS = count_label_tokens(count)
PROFILE = load_profiles()["evidence"]


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def fact(
    number: int,
    text: str,
    *,
    told: datetime = NOW,
    renewed: datetime | None = None,
    until: datetime | None = None,
    against: Sequence[int] = (),
    stored: datetime | None = None,
    **changed: object,
) -> RetrievedMemory:
    """A fact as the search returns it; `stored` is when it was written down, if before it is valid."""
    memory = said(number, text, told, prefix=start_prefix(f"{told:%Y-%m-%d}") if stored else "", **changed)
    contradicted_ids = [UUID(int=other) for other in against]
    return memory._replace(
        created_at=stored or told, renewed_at=renewed, valid_to=until, contradicted_ids=contradicted_ids
    )


def context(
    *best_first: RetrievedMemory,
    budget: int = 8_000,
    now: datetime = NOW,
    evidence: dict[UUID, list[UUID]] | None = None,
) -> AssemblyResult:
    labels = label_facts(best_first, now=now, tokens=LABEL_TOKENS)
    return assemble(
        score_in_order(best_first), make_setting(budget, fact_labels=labels, relation_evidence=evidence or {})
    )


def lines(assembly: AssemblyResult) -> list[str]:
    return assembly.block.text.splitlines()[1:]


@pytest.mark.parametrize("today", [date(2024, 2, 29), date(2026, 11, 23)])
def test_every_day_takes_four_tokens_with_its_colon(today: date) -> None:
    first = date(1890, 1, 1)
    days = {format_day(first + timedelta(days=n), today=today) for n in range(365 * 200)}
    days |= {format_day(date(year, 7, 1), today=today) for year in (1, 987, 2_500, 9_999)}
    assert len(days) > 1_000
    assert {count(f"- {day}: Bread is baked here\n") - count("- Bread is baked here\n") for day in days} == {4}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (fact(1, "Ines rents in Ghent."), "- Ines rents in Ghent."),
        (fact(1, "Ines rents in Ghent.", told=ago(11)), "- 12 Nov: Ines rents in Ghent."),
        (fact(1, "Ines rents in Ghent.", told=ago(740)), "- Nov '24: Ines rents in Ghent."),
        (fact(1, "Ines rents in Ghent.", told=ago(740), renewed=ago(21)), "- 2 Nov: Ines rents in Ghent."),
        (fact(1, "Ines rents in Ghent.", told=ago(740), renewed=NOW), "- Ines rents in Ghent."),
        (fact(1, "The mill stood here.", told=datetime(1871, 5, 1, tzinfo=UTC)), "- 1871: The mill stood here."),
        (fact(1, "Parking is free.", told=ago(80), until=ago(51)), "- until 3 Oct: Parking is free."),
        (fact(1, "Parking is free.", told=ago(80), until=ago(-5)), "- 4 Sep: Parking is free."),
        (fact(1, "Rent is 900.", told=ago(-8), stored=ago(3)), "- from 1 Dec: Rent is 900."),
        (fact(1, "Rent is 900.", told=ago(3), stored=ago(30)), "- 20 Nov: Rent is 900."),
        (fact(1, "Rent is 900.", told=NOW, stored=ago(30)), "- Rent is 900."),
        (fact(1, "Omar is on call.", told=ago(14)), "- 9 Nov: Omar is on call."),
        (fact(1, "Omar is on call.", told=ago(15)), "- 8 Nov, maybe outdated: Omar is on call."),
        (fact(1, "Omar is on call.", told=ago(400), renewed=ago(2)), "- 21 Nov: Omar is on call."),
        (fact(1, "The build uses Bazel.", trust="agent"), "- said by the assistant: The build uses Bazel."),
        (fact(1, "Eggs: price 3.20", told=ago(30), trust="agent"),
         "- said by the assistant, 24 Oct, maybe outdated: Eggs: price 3.20"),
        (fact(1, "From the shop.", told=ago(99), trust="operator"), "- 16 Aug: From the shop."),
        (fact(1, "Ghent has trams.", told=ago(99), kind="passage"), "- Ghent has trams."),
    ],
)  # fmt: skip
def test_a_fact_shows_as_of_when_it_is_known(given: RetrievedMemory, line: str) -> None:
    shown = context(given)
    assert lines(shown) == [line]
    assert shown.block.tokens == count(shown.block.text)


def test_the_day_of_a_fact_is_that_on_which_it_was_said_and_other_words_are_not_short_lived() -> None:
    born = fact(1, "A girl was born, she is called Signe.", told=ago(51))
    assert lines(context(born._replace(said_at=ago(20)))) == ["- 3 Nov: A girl was born, she is called Signe."]
    ended = born._replace(said_at=ago(20), valid_to=ago(40))
    assert lines(context(ended)) == ["- until 14 Oct: A girl was born, she is called Signe."]
    assert is_short_lived("The PRICE of milk") and is_short_lived("Milk is out of stock.")
    assert not is_short_lived("Stockholm is priceless; conversions are automatic.")


BERGEN = fact(1, "Carla lives in Bergen.", told=ago(11), against=[2])
OSLO = fact(2, "Carla lives in Oslo", told=ago(51), against=[1])


@pytest.mark.parametrize("best_first", [(BERGEN, OSLO), (OSLO, BERGEN)])
def test_facts_that_contradict_each_other_are_one_item_with_the_latest_first(
    best_first: Sequence[RetrievedMemory],
) -> None:
    shown = context(*best_first, fact(3, "Carla sails."))
    assert lines(shown) == [
        "- 12 Nov: Carla lives in Bergen.",
        "earlier 3 Oct: Carla lives in Oslo",
        "- Carla sails.",
    ]
    assert shown.block.tokens == count(shown.block.text)
    assert [c.detail for c in shown.candidates] == ["summary"] * 3
    assert [c.reason == SHOWN_TOGETHER for c in shown.candidates] == [False, True, False]
    assert {c.contradicted_ids for c in shown.candidates} == {(UUID(int=1),), (UUID(int=2),), ()}


def test_only_what_cannot_be_true_together_is_one_item() -> None:
    for other in (
        OSLO._replace(state="SUPERSEDED"),
        OSLO._replace(valid_to=ago(1)),
        OSLO._replace(occurred_at=ago(-9)),
        OSLO._replace(quarantined=True),
    ):
        assert "- 12 Nov: Carla lives in Bergen." in lines(context(BERGEN, other))
    # three that cannot be true together are one item even with doubtful authors
    third = fact(3, "Carla lives in Rome.", told=NOW, trust="agent", against=[1])
    assert lines(context(OSLO, BERGEN._replace(contradicted_ids=[UUID(int=2), UUID(int=3)]), third)) == [
        "- unsettled, said by the assistant, 23 Nov: Carla lives in Rome.",
        "or 12 Nov: Carla lives in Bergen.",
        "or 3 Oct: Carla lives in Oslo",
    ]
    # of a chain, only the facts that contradict the best one are beside it
    chain = [
        fact(n, f"Carla lives in {city}.", told=ago(20 - n), against=[n + 1], relevance=0.9 if n == 1 else 0.1)
        for n, city in enumerate(("Bergen", "Oslo", "Rome"), 1)
    ]
    assert lines(context(*chain)) == [
        "- 5 Nov: Carla lives in Oslo.",
        "earlier 4 Nov: Carla lives in Bergen.",
        "- unsettled, 6 Nov: Carla lives in Rome.",
    ]
    # without room for both neither is told
    full = context(BERGEN, OSLO)
    for budget in range(1, full.block.tokens + 1):
        shown = context(BERGEN, OSLO, budget=budget)
        assert ("Bergen" in shown.block.text) == ("Oslo" in shown.block.text)
        assert shown.block.tokens == count(shown.block.text) <= budget


@pytest.mark.parametrize(
    "latest",
    [
        fact(1, "Carla lives in Bergen.", told=ago(51), against=[2]),  # both in one message
        fact(1, "Carla lives in Bergen.", told=ago(11), against=[2], trust="agent"),
        fact(1, "Carla tolerates penicillin, she is not allergic.", told=ago(11), against=[2]),
    ],
)
def test_what_no_person_told_later_or_what_is_grave_stays_unsettled(latest: RetrievedMemory) -> None:
    first, second = lines(context(OSLO, latest))
    assert first.startswith("- unsettled, ") and second.startswith("or ")


def message(number: int, text: str, changed: str | None = None, position: int = 0) -> RetrievedMemory:
    found = fact(number, f"[2026-11-12] {text}", kind="exchange", told=ago(11))
    return found._replace(changed=changed, thread_id=UUID(int=99), position=position)


def test_the_clause_that_changed_is_named_and_the_rest_of_the_message_stands() -> None:
    said = message(1, "User: The rent is 900. I am allergic to nuts.", changed="The rent is 900.")
    alone = message(2, "User: Die Miete kostet 900.", changed="Die Miete kostet 900.", position=4)
    reply = message(3, "Assistant: So the rent is 900 now.", position=1)
    other = message(4, "Assistant: Bread without hazelnuts, then.", position=5)
    shown = context(said, alone, reply, other)
    assert lines(shown)[1:] == [
        "- changed since (The rent is 900.): User: The rent is 900. I am allergic to nuts.",
        "- changed since: User: Die Miete kostet 900.",
        "- Assistant: Bread without hazelnuts, then.",
    ]
    assert shown.block.tokens == count(shown.block.text)


# S001-21


def test_a_relation_is_left_out_where_its_fact_stands_and_a_search_says_what_is_not_current() -> None:
    relation = fact(9, "Carla lives in Bergen", kind="relation")
    evidence = {relation.memory_id: [UUID(int=1), UUID(int=7)]}
    home = BERGEN._replace(contradicted_ids=())
    shown = context(relation, home, evidence=evidence)
    assert lines(shown) == ["- 12 Nov: Carla lives in Bergen."]
    assert shown.candidates[0].reason == REPEATS_FACT
    gone = context(relation, home._replace(state="SUPERSEDED"), evidence=evidence)
    assert lines(gone) == ["- Carla lives in Bergen"]
    # a search result says in front of its text that it is not current
    plain = fact(1, "Ana lives in Oslo", told=ago(30))
    assert render_found(plain, plain.summary, NOW) == "Ana lives in Oslo"
    assert render_found(plain._replace(state="SUPERSEDED"), "text", NOW) == "superseded: text"
    assert render_found(plain._replace(valid_to=ago(3)), "text", NOW) == "until 20 Nov: text"
    assert render_found(plain._replace(valid_to=NOW + timedelta(days=3)), "text", NOW) == "text"
    assert (
        render_found(plain._replace(kind="exchange", changed="It is red"), "text", NOW)
        == "changed since (It is red): text"
    )


TEXTS = st.one_of(
    st.text(min_size=1, max_size=300).filter(str.strip), st.sampled_from(["On call", "'24: odd", "or so"])
)
FACTS = st.lists(
    st.tuples(
        TEXTS,
        st.integers(-400, 60_000),
        st.one_of(st.none(), st.integers(0, 400)),
        st.one_of(st.none(), st.integers(-400, 400)),
        st.sampled_from(["user", "agent", "operator"]),
        st.booleans(),
        st.lists(st.integers(0, 9), max_size=2),
    ),
    max_size=10,
)


@pytest.mark.slow
@examples(usual=100)
@given(FACTS, st.integers(1, 900))
def test_labels_and_pairs_stay_within_every_budget(
    told: list[tuple[str, int, int | None, int | None, Trust, bool, list[int]]], budget: int
) -> None:
    # S002-3
    facts = [
        fact(
            n,
            text,
            told=ago(days),
            renewed=None if again is None else ago(again),
            until=None if end is None else max(ago(end), ago(days)),
            trust=trust,
            against=[other for other in against if other != n],
            stored=ago(days + 1) if early else None,
        )
        for n, (text, days, again, end, trust, early, against) in enumerate(told)
    ]
    shown = context(*facts, budget=budget)
    assert shown.block.tokens == count(shown.block.text) <= budget
    inside = [c for c in shown.candidates if c.detail]
    assert len(re.findall(r"^(?:- |or |earlier )", shown.block.text, re.MULTILINE)) == len(inside)
    assert all(f" {c.context_line}\n" in shown.block.text for c in inside)
    assert all(c.label for c in inside if c.scored.found.told_at.date() != NOW.date())
