"""Profiles: the published numbers to the letter, true half-lives, and each mistake with its line."""

import math
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from newton.content.profiles import FEATURES, Decay, Outcomes, Profile, Usage, Weights, load_profiles, profile_named
from newton.content.shipped import shipped
from newton.content.yamlfile import read_folder
from newton.errors import ConfigError, NotFoundError

GOOD = """\
name: mine
description: For a test.
weights:
  similarity: 0.7
  recency: 0.3
recency:
  kind: exponential
  clock: confirmed
  half_life_days: 7
"""

SESSION = Decay(kind="hyperbolic", time_constant_hours=1)
DAILY_TAU24 = Decay(kind="exponential", time_constant_hours=24)
DAILY = Decay(kind="exponential", half_life_days=1)
MONTHLY = Decay(kind="exponential", half_life_days=30)


@pytest.fixture(scope="module")
def profiles() -> dict[str, Profile]:
    return load_profiles()


def test_what_ships(profiles: dict[str, Profile]) -> None:
    assert sorted(profiles) == ["balanced", "evidence", "important", "newton", "recent"]


def test_newton_weighs_as_published(profiles: dict[str, Profile]) -> None:  # S002-10
    newton = profiles["newton"]
    assert newton.weights.given == {
        "similarity": 0.50,
        "type_priority": 0.15,
        "recency": 0.15,
        "outcome": 0.10,
        "usage": 0.05,
        "confidence": 0.05,
    }
    assert (newton.combine, newton.fill, newton.order) == ("sum", "downgrade", "best_first")


@pytest.mark.parametrize("days", [0, 0.25, 1, 30, 365])
def test_newton_forgets_as_published(profiles: dict[str, Profile], days: float) -> None:  # S002-10
    recency = profiles["newton"].recency
    assert recency.clock == "occurred"  # a memory is as old as what it tells, not as its import
    assert recency.left(timedelta(days=days)) == pytest.approx(math.exp(-0.023 * days))


def test_the_true_half_life_of_newton_is_thirty_days_and_three_hours(profiles: dict[str, Profile]) -> None:  # S002-10
    half_life = profiles["newton"].recency.half_life
    assert half_life is not None
    assert half_life / timedelta(days=1) == pytest.approx(30.137, abs=0.001)
    assert profiles["newton"].recency.left(half_life) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("outcome", "factor"),
    [("success", 1.2), ("partial", 1.0), ("failure", 0.8), ("pending", 0.9), ("none", 1.0), (None, 1.0), ("odd", 1.0)],
)
def test_newton_judges_outcomes_as_published(
    profiles: dict[str, Profile], outcome: str | None, factor: float
) -> None:  # S002-10
    assert profiles["newton"].outcome.of(outcome) == factor
    assert Outcomes().of(outcome) == factor


@pytest.mark.parametrize(("times", "factor"), [(0, 1.0), (1, 1.0), (10, 1.1), (1_000, 1.3), (10**5, 1.5), (10**9, 1.5)])
def test_newton_values_use_as_published(profiles: dict[str, Profile], times: int, factor: float) -> None:  # S002-10
    assert profiles["newton"].usage.of(times) == pytest.approx(factor)
    assert Usage().of(times) == pytest.approx(factor)


@pytest.mark.parametrize(("hours", "left"), [(0, 1.0), (1, 0.5), (3, 0.25), (24, 0.04)])
def test_the_published_table_of_a_session(profiles: dict[str, Profile], hours: int, left: float) -> None:  # S000-6
    assert SESSION.left(timedelta(hours=hours)) == pytest.approx(left)
    assert profiles["balanced"].recency == SESSION


@pytest.mark.parametrize(
    ("decay", "hours"),
    [(SESSION, 1), (DAILY_TAU24, 16.6355), (DAILY, 24), (MONTHLY, 720)],
    ids=str,
)
def test_half_is_left_at_the_half_life(decay: Decay, hours: float) -> None:
    assert decay.half_life is not None
    assert decay.half_life / timedelta(hours=1) == pytest.approx(hours, abs=0.001)
    assert decay.left(decay.half_life) == pytest.approx(0.5)


def test_the_time_constant_is_the_literal_formula() -> None:
    assert DAILY_TAU24.left(timedelta(hours=7.5)) == pytest.approx(math.exp(-7.5 / 24))


def test_nothing_decays_without_decay(profiles: dict[str, Profile]) -> None:
    still = profiles["important"].recency
    assert still.left(timedelta(days=4_000)) == 1.0
    assert still.half_life is None


def test_a_memory_from_the_future_is_as_fresh_as_the_present() -> None:
    assert SESSION.left(timedelta(hours=-5)) == MONTHLY.left(timedelta(days=-1)) == 1.0


def test_recent_orders_by_access_at_any_age(profiles: dict[str, Profile]) -> None:  # S000-2
    recent = profiles["recent"]
    assert recent.weights.given == {"recency": 1.0}
    assert recent.recency.clock == "accessed"
    old = timedelta(days=36_500)
    assert recent.recency.left(old) > recent.recency.left(old + timedelta(minutes=1)) > 0


def test_important_looks_at_importance_alone(profiles: dict[str, Profile]) -> None:  # S000-3
    assert profiles["important"].weights.given == {"importance": 1.0}


def test_balanced_multiplies_importance_with_freshness(profiles: dict[str, Profile]) -> None:  # S000-4, S000-22
    balanced = profiles["balanced"]
    assert balanced.combine == "product"
    assert balanced.weights.given == {"importance": 1.0, "recency": 1.0}
    assert balanced.recency.clock == "created"
    items = [(7, timedelta(minutes=2)), (5, timedelta(minutes=10)), (10, timedelta(days=3)), (9, timedelta(days=5))]
    scores = [importance * balanced.recency.left(age) for importance, age in items]
    assert scores == pytest.approx([6.77, 4.29, 0.137, 0.074], rel=0.01)


def test_every_feature_may_be_weighed() -> None:
    weights = Weights(**dict.fromkeys(FEATURES, 0.5))
    assert list(weights.given) == [
        *("similarity", "lexical", "type_priority", "recency", "importance", "salience"),
        *("outcome", "usage", "confidence", "success_rate", "depth"),
    ]


WRONG = {
    "feature": (
        "  similarity: 0.7",
        "  similarty: 0.7",
        "4: 'similarty' is not a field of weights. Did you mean 'sim",
    ),
    "no feature": ("  similarity: 0.7\n  recency: 0.3", "  recency: 0", "3: weights weigh no feature."),
    "negative": ("  recency: 0.3", "  recency: -0.3", "5: weights.recency should be greater than or equal to 0, not"),
    "infinite": ("  recency: 0.3", "  recency: .inf", "5: weights.recency should be"),
    "decay": ("exponential", "exponental", "7: recency.kind should be 'exponential', 'hyperbolic' or 'none', not 'exp"),
    "clock": ("confirmed", "verified", "8: recency.clock should be 'created', 'accessed', 'occurred' or 'confirmed'"),
    "no speed": ("  half_life_days: 7\n", "", "6: recency of kind exponential takes one of half_life_days"),
    "two speeds": (
        "  half_life_days: 7",
        "  half_life_days: 7\n  rate_per_day: 1",
        "6: recency of kind exponential takes one of half_life_days, time_constant_hours, rate_per_day, not 2 of them.",
    ),
    "speed of none": ("exponential", "none", "6: recency of kind none takes no speed, not 1 of them."),
    "half-life of zero": ("days: 7", "days: 0", "9: recency.half_life_days should be greater than 0, not 0. The age"),
    "fill": ("weights:", "fill: squeeze\nweights:", "3: fill should be 'stop', 'skip' or 'downgrade', not 'squeeze'."),
    "order": ("weights:", "order: worst\nweights:", "3: order should be 'best_first', 'best_last' or 'chronological'"),
    "usage": ("weights:", "usage: {cap: 0.5}\nweights:", "3: usage.cap should be greater than or equal to 1, not 0.5."),
    "outcome": (
        "weights:",
        "outcome: {sucess: 1}\nweights:",
        "3: 'sucess' is not a field of outcome. Did you mean 's",
    ),
    "missing": ("description: For a test.\n", "", "1: description is missing. One sentence"),
}


@pytest.mark.parametrize(("good", "bad", "complaint"), WRONG.values(), ids=WRONG)
def test_a_mistake_names_its_file_and_line(tmp_path: Path, good: str, bad: str, complaint: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace(good, bad), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_folder(tmp_path, Profile)
    assert str(refused.value).startswith(f"{path}:{complaint}")


def test_a_good_profile_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD, encoding="utf-8")
    mine = read_folder(tmp_path, Profile)["mine"]
    assert mine.recency == Decay(kind="exponential", clock="confirmed", half_life_days=7)


def test_a_profile_cannot_be_changed(profiles: dict[str, Profile]) -> None:
    with pytest.raises(ValidationError):
        setattr(profiles["newton"], "fill", "stop")  # noqa: B010 (a plain assignment would not pass the type check)


def test_an_unknown_profile_names_the_nearest_and_all(profiles: dict[str, Profile]) -> None:
    assert profile_named(profiles, "newton") is profiles["newton"]
    with pytest.raises(NotFoundError) as missing:
        profile_named(profiles, "balancd")
    assert missing.value.hint == "Did you mean 'balanced'? Known: balanced, evidence, important, newton, recent."


def test_shipped_folders_are_found() -> None:
    assert any(shipped("frames").glob("*.yaml"))
    assert any(shipped("profiles").glob("*.yaml"))
    assert shipped("schema").is_dir()
