"""Features and the score a profile makes of them."""

import math
from datetime import UTC, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.cognition.scoring.score import (
    FEATURE_NAMES,
    LAYER_BY_KIND,
    NEUTRAL_FEATURES,
    QuerySignals,
    ScoredMemory,
    TrialCounts,
    check_expression,
    compute_contributions,
    create_scorer,
)
from newton.cognition.scoring.score_expression import FUNCTIONS, compile_formula
from newton.content.frames import load_frames
from newton.content.profiles import FeatureWeights, load_profiles
from newton.errors import InputError
from newton.memory.search_types import RetrievedMemory
from tests.support import NOON
from tests.unit.assembling import found

FRAME = load_frames()["decision"]
PROFILES = load_profiles()
NEWTON, EVIDENCE = PROFILES["newton"], PROFILES["evidence"]
SCORING = {name: profile for name, profile in PROFILES.items() if not profile.by_frame}


def score(f: RetrievedMemory) -> float:
    return create_scorer(frame=FRAME, profile=NEWTON, now=NOON)(f).score


@given(
    st.builds(
        dict[str, object],
        kind=st.sampled_from(sorted(LAYER_BY_KIND)),
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
    score = create_scorer(frame=FRAME, profile=EVIDENCE, now=NOON)
    worst = found(
        kind="exchange",
        relevance=relevance + 0.12,
        outcome="failure",
        confidence=0.0,
        occurred_at=NOON - timedelta(days=4_000),
    )
    assert score(worst).score > score(found(relevance=relevance)._replace(**better)).score


def test_the_newton_profile_by_the_letter() -> None:
    # S002-10, S002-25, S000-F7
    old = found(relevance=0.8, occurred_at=NOON - timedelta(days=30), outcome="success", uses=100, confidence=0.5)
    expected = 0.5 * 0.8 + 0.15 * 0.6 + 0.15 * math.exp(-0.023 * 30) + 0.1 * 1.2 + 0.05 * 1.2 + 0.05 * 0.5
    assert score(old) == pytest.approx(expected)
    # confidence default 1.0
    assert score(found()) - score(found(confidence=0.0)) == pytest.approx(0.05)
    assert score(found(uses=0)) == pytest.approx(score(found(uses=1)))
    assert score(found(uses=10**9)) - score(found()) == pytest.approx(0.05 * 0.5)
    # relevance beats recency
    # half a year old and on the topic, against yesterday's small talk
    topic = found(relevance=1.0, occurred_at=NOON - timedelta(days=182))
    chatter = found(relevance=0.3, kind="exchange", occurred_at=NOON - timedelta(days=1))
    assert score(topic) > score(chatter)
    by_evidence = create_scorer(frame=FRAME, profile=EVIDENCE, now=NOON)
    assert by_evidence(found()).score > by_evidence(found(occurred_at=NOON - timedelta(days=90))).score


@pytest.mark.parametrize(
    ("outcome", "factor"), [("success", 1.2), ("partial", 1.0), ("failure", 0.8), ("pending", 0.9), (None, 1.0)]
)
def test_outcomes_weigh_as_the_design_says(outcome: str | None, factor: float) -> None:
    # S002-10
    assert score(found(outcome=outcome)) - score(found()) == pytest.approx(0.1 * (factor - 1))


def test_importance_and_entities_count_by_what_is_known() -> None:
    # S000-16, S000-F6, S001-20
    # what is used more matters more
    important = create_scorer(frame=FRAME, profile=load_profiles()["important"], now=NOON)
    given, core, plain = found(importance=0.9), found(importance=None, state="CORE"), found(importance=None)
    assert [important(one).score for one in (given, core, plain)] == pytest.approx([0.9, 0.5, 0.1])
    # an entity that the input names counts twice its salience
    named, other = found(), found()
    bearing = QuerySignals(
        salience={named.memory_id: 0.3, other.memory_id: 0.3}, mentioned_ids=frozenset({named.memory_id})
    )
    score_of = create_scorer(profile=PROFILES["support"], now=NOON, signals=bearing)
    assert [feature("salience", score_of(one)) for one in (named, other)] == pytest.approx([0.6, 0.3])
    assert feature("salience", score_of(found())) == 0.5, "S001-23: unless more is known"
    # what is not known is neutral
    item = create_scorer(profile=NEWTON, now=NOON)(found(confidence=None, uses=0, outcome=None, importance=0.5))
    known = {"similarity", "cosine", "lexical", "importance"}
    assert {n: f for n, f in zip(FEATURE_NAMES, item.features, strict=True) if n not in known} == {
        name: neutral for name, neutral in NEUTRAL_FEATURES.items() if name not in known
    }


@pytest.mark.parametrize("name", sorted(SCORING))
def test_every_score_is_explained_feature_by_feature(name: str) -> None:
    profile = load_profiles()[name]
    score_of = create_scorer(frame=FRAME, profile=profile, now=NOON + timedelta(hours=3))
    s = score_of(found(relevance=0.7, importance=0.4))
    parts = compute_contributions(s.features, profile)
    if profile.expression is None:
        whole = math.prod(parts.values()) if profile.combine == "product" else sum(parts.values())
        assert whole == pytest.approx(s.score)
        assert set(parts) == set(profile.weights.nonzero) <= set(FEATURE_NAMES)
    else:
        assert set(parts) == {"importance", "age_h", "access_count"}


def feature(name: str, scored: ScoredMemory) -> float:
    return scored.features[FEATURE_NAMES.index(name)]


def test_an_archetype_scores_by_the_letter() -> None:
    # S001-17, S001-19, S001-20, S001-23, S001-24
    score_of = create_scorer(
        profile=PROFILES["coding"], now=NOON, signals=QuerySignals(keywords=frozenset({"redis", "cache"}))
    )
    fresh = found(
        relevance=0.5, summary="Redis is our cache, said the Redis page", occurred_at=NOON - timedelta(hours=23)
    )
    stale = fresh._replace(occurred_at=NOON - timedelta(hours=24))
    assert score_of(fresh).score == pytest.approx(0.5 * 0.5 * 1.2 * 1.2 + 0.3 * math.exp(-23 / 24) + 0.2 * 0.5)
    assert score_of(stale).score == pytest.approx(0.5 * 0.5 * 1.2 + 0.3 * math.exp(-1) + 0.2 * 0.5)
    assert (
        feature("similarity", score_of(found(relevance=0.5, summary="rediscovered", occurred_at=stale.occurred_at)))
        == 0.5
    )


def test_salience_and_count_order_what_archetypes_rank() -> None:
    # S001-22, S001-23, S001-21
    tried = [TrialCounts(0, 0), TrialCounts(9, 10), TrialCounts(1, 10)]
    items = [found() for _ in tried]
    by_success = NEWTON.model_copy(update={"weights": FeatureWeights(success_rate=1.0)})
    trials = dict(zip([item.memory_id for item in items], tried, strict=True))
    score_of = create_scorer(profile=by_success, now=NOON, signals=QuerySignals(trials=trials))
    assert [score_of(item).score for item in items] == pytest.approx([0.5, 0.9, 0.1])
    # the salience of a procedure is its success rate
    # so the profiles of S001 place the one that helped more often first
    tried = [TrialCounts(0, 0), TrialCounts(9, 10), TrialCounts(1, 10)]
    items = [found() for _ in tried]
    trials = dict(zip([item.memory_id for item in items], tried, strict=True))
    score_of = create_scorer(profile=load_profiles()["coding"], now=NOON, signals=QuerySignals(trials=trials))
    scores = [score_of(item).score for item in items]
    assert scores[1] > scores[0] > scores[2]
    assert scores[1] - scores[2] == pytest.approx(0.2 * (0.9 - 0.1))
    # each step along relations counts less
    near, far = found(), found()
    score_of = create_scorer(profile=NEWTON, now=NOON, signals=QuerySignals(hops={near.memory_id: 1, far.memory_id: 3}))
    assert [feature("depth", score_of(one)) for one in (near, far, found())] == pytest.approx([1, 1 / 3, 1])
    score_of = create_scorer(profile=PROFILES["frequent"], now=NOON)
    scores = [score_of(found(uses=n)).score for n in (0, 1, 2, 50, 10_000)]
    assert scores == sorted(set(scores))


def test_the_published_formula_is_expressible() -> None:
    # S000-F5
    score_of = create_scorer(profile=PROFILES["custom"], now=NOON)
    item = found(importance=0.8, uses=20, created_at=NOON - timedelta(hours=3))
    assert score_of(item).score == pytest.approx(0.8 * 1 / (1 + 3) * math.log(1 + 20))
    told = compute_contributions(score_of(item).features, PROFILES["custom"])
    assert told["access_count"] == pytest.approx(score_of(item).score), "without a use it would count nothing"
    assert told["age_h"] == pytest.approx(score_of(item).score * (1 - 4))


EXTREME = st.builds(
    found,
    relevance=st.floats(0, 1),
    similarity=st.floats(-1, 1),
    lexical=st.floats(0, 1),
    importance=st.floats(0, 1),
    confidence=st.none() | st.floats(0, 1),
    outcome=st.sampled_from([None, "success", "partial", "failure", "pending"]),
    uses=st.integers(0, 2**31 - 1),
    created_at=st.datetimes(timezones=st.just(UTC)),
    accessed_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    occurred_at=st.datetimes(timezones=st.just(UTC)),
)


@given(EXTREME)
def test_every_score_is_finite(item: RetrievedMemory) -> None:
    for profile in SCORING.values():
        scored = create_scorer(profile=profile, frame=FRAME, now=NOON)(item)
        assert math.isfinite(scored.score) and scored.score >= 0
        assert all(map(math.isfinite, scored.features))
        assert all(map(math.isfinite, compute_contributions(scored.features, profile).values()))


ONES: dict[str, float] = dict.fromkeys(map(str, FEATURE_NAMES), 1.0)


@pytest.mark.parametrize(
    ("said", "worth"),
    [
        ("similarity", 1),
        ("1 / (1 + age_h)", 0.5),
        ("importance * 1/(1+age_h) * ln(1+access_count)", 0.5 * math.log(2)),
        ("2 * recency - 0.5", 1.5),
        ("age_h < 24 ? 1.2 : 1", 1.2),
        ("max(similarity, 3) + min(1, 0.5)", 3.5),
        ("pow(2, 10) + sqrt(4) + abs(-1) + exp(0) + log10(100)", 1024 + 2 + 1 + 1 + 2),
        ("-1e3", -1000),
    ],
)
def test_what_a_formula_says_is_computed(said: str, worth: float) -> None:  # S000-F5
    check_expression(said)
    assert compile_formula(said, FEATURE_NAMES)(ONES) == pytest.approx(worth)


@pytest.mark.parametrize("said", ["1 / (age_h - 1)", "ln(0 * age_h)", "pow(10, 400 * age_h)", "sqrt(-age_h)"])
def test_what_is_no_number_counts_nothing(said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert compile_formula(said, FEATURE_NAMES)(ONES) == 0.0
    assert capfd.readouterr().err == "", "the library prints what its functions raise"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("", "is empty"),
        ("importence", "Did you mean 'importance'"),
        ("__import__('os')", "is not an available function"),
        ("log(age_h)", "Did you mean 'log10'"),
        ("'a' + 'b'", "A formula contains only numbers"),
        ("[1, 2].all(x, x > 0)", "A formula contains only numbers"),
        ("age_h > 1", "The expression fails"),
        ("true", "The expression fails"),
        ("age_h.size()", "is not an available function"),
        ("ln(1, 2)", "gives a number for none"),
        ("ln()", "gives a number for none"),
        ("1 +", "Invalid CEL expression"),
        ("(" * 30 + "1" + ")" * 30, "nested too deep"),
        ("+" * 30 + "1", "in a row"),
        ("1 + " * 200 + "1", "801 characters"),
        ("age_h // 2", "Put comments into the description"),
    ],
)
def test_what_cannot_be_a_score_is_refused(said: str, complaint: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as refused:
        check_expression(said)
    assert complaint in str(refused.value)
    assert capfd.readouterr().err == ""


PIECES = st.sampled_from(
    ["1", "0.5", "age_h", "importance", "ln(", "pow(", "(", ")", "+", "-", "*", "/", ",", "?", ":"]
)


@given(st.lists(PIECES, max_size=40).map(" ".join))
def test_whatever_is_said_is_refused_or_computed(said: str) -> None:
    try:
        compute = compile_formula(said, FEATURE_NAMES)
    except InputError:
        return
    assert math.isfinite(compute(ONES))


@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(st.floats() | st.text(max_size=2), max_size=3))
def test_no_function_ever_fails(name: str, given_: list[object]) -> None:
    assert isinstance(FUNCTIONS[name](*given_), float)
