"""Features and the score a profile makes of them."""

import math
from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.score import FEATURES, LAYER_OF, contributions, scorer
from newton.content.frames import load_frames
from newton.content.profiles import load_profiles
from newton.ids import new_id
from newton.memory.recall import Found
from tests.support import NOON

FRAME = load_frames()["decision"]
NEWTON, EVIDENCE = (load_profiles()[name] for name in ("newton", "evidence"))


def found(**changed: object) -> Found:
    plain = Found(
        memory_id=new_id(),
        kind="fact",
        state="NEW",
        micro="m",
        summary="s",
        micro_tokens=3,
        summary_tokens=3,
        words=5,
        confidence=None,
        importance=0.1,
        outcome=None,
        uses=0,
        occurred_at=NOON,
        created_at=NOON,
        accessed_at=None,
        confirmed_at=None,
        trust="user",
        quarantined=False,
        ref=None,
        thread=None,
        place=None,
        similarity=0.5,
        lexical=0.5,
        relevance=1.0,
    )
    return plain._replace(**changed)


def score(f: Found) -> float:
    return scorer(frame=FRAME, profile=NEWTON, now=NOON)(f).score


@given(
    st.builds(
        dict[str, object],
        kind=st.sampled_from(sorted(LAYER_OF)),
        outcome=st.sampled_from([None, "success", "failure"]),
        uses=st.integers(0, 10**6),
        confidence=st.floats(0, 1),
        occurred_at=st.datetimes(NOON.replace(tzinfo=None) - timedelta(days=4_000), NOON.replace(tzinfo=None)).map(
            lambda at: at.replace(tzinfo=UTC)
        ),
    ),
    st.floats(0, 0.88),
)
def test_by_evidence_nothing_makes_up_for_being_beside_the_point(better: dict[str, object], relevance: float) -> None:
    # S002-25
    score = scorer(frame=FRAME, profile=EVIDENCE, now=NOON)
    worst = found(
        kind="exchange",
        relevance=relevance + 0.12,
        outcome="failure",
        confidence=0.0,
        occurred_at=NOON - timedelta(days=4_000),
    )
    assert score(worst).score > score(found(relevance=relevance)._replace(**better)).score


def test_by_evidence_the_later_of_two_alike_comes_first() -> None:
    score = scorer(frame=FRAME, profile=EVIDENCE, now=NOON)
    assert score(found()).score > score(found(occurred_at=NOON - timedelta(days=90))).score


def test_the_newton_profile_by_the_letter() -> None:
    # S002-10
    old = found(relevance=0.8, occurred_at=NOON - timedelta(days=30), outcome="success", uses=100, confidence=0.5)
    expected = 0.5 * 0.8 + 0.15 * 0.6 + 0.15 * math.exp(-0.023 * 30) + 0.1 * 1.2 + 0.05 * 1.2 + 0.05 * 0.5
    assert score(old) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("outcome", "factor"), [("success", 1.2), ("partial", 1.0), ("failure", 0.8), ("pending", 0.9), (None, 1.0)]
)
def test_outcomes_weigh_as_the_design_says(outcome: str | None, factor: float) -> None:
    # S002-10
    assert score(found(outcome=outcome)) - score(found()) == pytest.approx(0.1 * (factor - 1))


def test_a_stored_confidence_of_zero_is_zero_and_none_is_one() -> None:
    # S002-10: confidence default 1.0
    assert score(found()) - score(found(confidence=0.0)) == pytest.approx(0.05)


def test_never_used_is_neutral_and_use_is_capped() -> None:
    # S002-10
    assert score(found(uses=0)) == pytest.approx(score(found(uses=1)))
    assert score(found(uses=10**9)) - score(found()) == pytest.approx(0.05 * 0.5)


def test_relevance_beats_recency() -> None:
    # S002-25: half a year old and on the topic, against yesterday's small talk
    topic = found(relevance=1.0, occurred_at=NOON - timedelta(days=182))
    chatter = found(relevance=0.3, kind="exchange", occurred_at=NOON - timedelta(days=1))
    assert score(topic) > score(chatter)


def test_importance_is_what_a_person_gave_or_else_what_the_record_makes_of_it() -> None:
    # S000-16
    important = scorer(frame=FRAME, profile=load_profiles()["important"], now=NOON)
    given, core, plain = found(importance=0.9), found(importance=None, state="CORE"), found(importance=None)
    assert [important(one).score for one in (given, core, plain)] == pytest.approx([0.9, 0.5, 0.1])


@pytest.mark.parametrize("name", sorted(load_profiles()))
def test_every_score_is_explained_feature_by_feature(name: str) -> None:
    profile = load_profiles()[name]
    score_of = scorer(frame=FRAME, profile=profile, now=NOON + timedelta(hours=3))
    s = score_of(found(relevance=0.7, importance=0.4))
    given = contributions(s.features, profile)
    whole = math.prod(given.values()) if profile.combine == "product" else sum(given.values())
    assert whole == pytest.approx(s.score)
    assert set(given) == set(profile.weights.given) & set(FEATURES)
