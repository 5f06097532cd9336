"""Profiles: the published numbers to the letter, true half-lives, and each mistake with its line."""

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from newton.cognition.scoring.score import check_expression
from newton.content.package_data import data_folder
from newton.content.profiles import (
    DECAY_PRESETS,
    FeatureWeights,
    ItemOrder,
    OutcomeFactors,
    OverflowMode,
    Profile,
    RecencyDecay,
    UsageBoost,
    get_profile,
    load_profiles,
    select_profile,
)
from newton.content.yaml_files import read_folder
from newton.errors import ConfigError, InputError, NotFoundError
from tests.cases import load_cases

CASES = load_cases(__file__)

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

SESSION, DAILY_TAU24, DAILY, MONTHLY = (RecencyDecay.model_validate({"preset": name}) for name in DECAY_PRESETS)


@pytest.fixture(scope="module")
def profiles() -> dict[str, Profile]:
    return load_profiles()


def test_newton_weighs_and_forgets_as_published(profiles: dict[str, Profile]) -> None:
    # S002-10
    # the ruling on scoring
    assert sorted(profiles) == [
        *("auto", "balanced", "clustered", "coding", "custom", "evidence", "frequent", "important", "newton", "recent"),
        *("research", "support"),
    ]
    # newton weighs as published
    newton = profiles["newton"]
    assert newton.weights.nonzero == {
        "similarity": 0.50,
        "type_priority": 0.15,
        "recency": 0.15,
        "outcome": 0.10,
        "usage": 0.05,
        "confidence": 0.05,
    }
    assert (newton.combine, newton.fill, newton.order) == ("sum", "downgrade", "best_first")
    # the true half life of newton is thirty days and three hours
    half_life = profiles["newton"].recency.half_life
    assert half_life is not None
    assert half_life / timedelta(days=1) == pytest.approx(30.137, abs=0.001)
    assert profiles["newton"].recency.remaining(half_life) == pytest.approx(0.5)
    assert DAILY_TAU24.remaining(timedelta(hours=7.5)) == pytest.approx(math.exp(-7.5 / 24))
    still = profiles["important"].recency
    assert still.remaining(timedelta(days=4_000)) == 1.0
    assert still.half_life is None
    assert SESSION.remaining(timedelta(hours=-5)) == MONTHLY.remaining(timedelta(days=-1)) == 1.0


@pytest.mark.parametrize("days", [0, 0.25, 1, 30, 365])
def test_newton_forgets_as_published(profiles: dict[str, Profile], days: float) -> None:  # S002-10
    recency = profiles["newton"].recency
    assert recency.clock == "occurred"  # a memory is as old as what it tells, not as its import
    assert recency.remaining(timedelta(days=days)) == pytest.approx(math.exp(-0.023 * days))


@pytest.mark.parametrize(
    ("outcome", "factor"),
    [("success", 1.2), ("partial", 1.0), ("failure", 0.8), ("pending", 0.9), ("none", 1.0), (None, 1.0), ("odd", 1.0)],
)
def test_newton_judges_outcomes_as_published(
    profiles: dict[str, Profile], outcome: str | None, factor: float
) -> None:  # S002-10
    assert profiles["newton"].outcome.factor_for(outcome) == factor
    assert OutcomeFactors().factor_for(outcome) == factor


@pytest.mark.parametrize(("times", "factor"), [(0, 1.0), (1, 1.0), (10, 1.1), (1_000, 1.3), (10**5, 1.5), (10**9, 1.5)])
def test_newton_values_use_as_published(profiles: dict[str, Profile], times: int, factor: float) -> None:  # S002-10
    assert profiles["newton"].usage.factor_for(times) == pytest.approx(factor)
    assert UsageBoost().factor_for(times) == pytest.approx(factor)


@pytest.mark.parametrize(("hours", "left"), [(0, 1.0), (1, 0.5), (3, 0.25), (24, 0.04)])
def test_the_published_table_of_a_session(profiles: dict[str, Profile], hours: int, left: float) -> None:  # S000-6
    assert SESSION.remaining(timedelta(hours=hours)) == pytest.approx(left)
    assert profiles["balanced"].recency == SESSION


@pytest.mark.parametrize(
    ("decay", "hours"),
    [(SESSION, 1), (DAILY_TAU24, 16.6355), (DAILY, 24), (MONTHLY, 720)],
    ids=str,
)
def test_half_is_left_at_the_half_life(decay: RecencyDecay, hours: float) -> None:
    assert decay.half_life is not None
    assert decay.half_life / timedelta(hours=1) == pytest.approx(hours, abs=0.001)
    assert decay.remaining(decay.half_life) == pytest.approx(0.5)


def test_archetypes_order_as_published(profiles: dict[str, Profile]) -> None:
    # S000-2, S000-3, S000-4, S000-22, S000-F2
    recent = profiles["recent"]
    assert recent.weights.nonzero == {"recency": 1.0}
    assert recent.recency.clock == "accessed"
    old = timedelta(days=36_500)
    assert recent.recency.remaining(old) > recent.recency.remaining(old + timedelta(minutes=1)) > 0
    assert profiles["important"].weights.nonzero == {"importance": 1.0}
    # balanced multiplies importance with freshness
    balanced = profiles["balanced"]
    assert balanced.combine == "product"
    assert balanced.weights.nonzero == {"importance": 1.0, "recency": 1.0}
    assert balanced.recency.clock == "created"
    items = [(7, timedelta(minutes=2)), (5, timedelta(minutes=10)), (10, timedelta(days=3)), (9, timedelta(days=5))]
    scores = [importance * balanced.recency.remaining(age) for importance, age in items]
    assert scores == pytest.approx([6.77, 4.29, 0.137, 0.074], rel=0.01)
    uses = [profiles["frequent"].usage.factor_for(n) for n in (0, 1, 2, 10, 1_000, 10**8)]
    assert uses == sorted(set(uses)), "every count has a value of its own"
    # the speed of a decay can be given
    quick = profiles["balanced"].with_time_constant(0.5)
    assert [quick.recency.remaining(timedelta(hours=h)) for h in (0, 0.5, 1.5)] == pytest.approx([1, 0.5, 0.25])
    assert quick.recency.clock == "created"
    for hours in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="is not possible"):
            profiles["balanced"].with_time_constant(hours)
    with pytest.raises(InputError, match="does not fall with its age"):
        profiles["important"].with_time_constant(0.5)


def test_a_good_profile_is_read_and_cannot_be_changed(tmp_path: Path, profiles: dict[str, Profile]) -> None:
    weights = FeatureWeights(**dict.fromkeys(FeatureWeights.model_fields, 0.5))
    assert list(weights.nonzero) == [
        *("similarity", "lexical", "type_priority", "recency", "importance", "salience"),
        *("outcome", "usage", "confidence", "success_rate", "depth"),
    ]
    (tmp_path / "mine.yaml").write_text(GOOD, encoding="utf-8")
    mine = read_folder(tmp_path, Profile)["mine"]
    assert mine.recency == RecencyDecay(kind="exponential", clock="confirmed", half_life_days=7)
    with pytest.raises(ValidationError):
        setattr(profiles["newton"], "fill", "stop")  # noqa: B010 (a plain assignment would not pass the type check)


WRONG = CASES["WRONG"]


@pytest.mark.parametrize(("good", "bad", "complaint"), WRONG.values(), ids=WRONG)
def test_a_mistake_names_its_file_and_line(tmp_path: Path, good: str, bad: str, complaint: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD.replace(good, bad), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        read_folder(tmp_path, Profile)
    assert str(refused.value).startswith(f"{path}:{complaint}")


def test_an_unknown_profile_names_the_nearest_and_the_document_tells_of_all(profiles: dict[str, Profile]) -> None:
    # S000-24
    assert get_profile(profiles, "newton") is profiles["newton"]
    with pytest.raises(NotFoundError) as missing:
        get_profile(profiles, "balancd")
    assert missing.value.hint == f"Did you mean 'balanced'? The profiles are: {', '.join(sorted(profiles))}."
    assert any(data_folder("frames").glob("*.yaml"))
    assert any(data_folder("profiles").glob("*.yaml"))
    assert data_folder("schema").is_dir()
    # the document tells of every profile decay and order
    told = (data_folder("profiles").parent / "docs" / "profiles.md").read_text(encoding="utf-8")
    for name in (*profiles, *DECAY_PRESETS, *get_args(ItemOrder), *get_args(OverflowMode)):
        assert f"`{name}`" in told, name
    assert "(importance.md)" in told and "| 16.6 h |" in told


LITERAL: dict[str, Callable[[float], float]] = {
    "session": lambda h: 1 / (1 + h),
    "daily_tau24": lambda h: math.exp(-h / 24),
    "daily": lambda h: 0.5 ** (h / 24),
    "monthly": lambda h: 0.5 ** (h / 24 / 30),
}


@pytest.mark.parametrize(("preset", "literal"), LITERAL.items(), ids=LITERAL)
def test_each_preset_is_its_literal_formula(preset: str, literal: Callable[[float], float]) -> None:
    # the ruling on recency; S001-17
    decay = RecencyDecay.model_validate({"preset": preset, "clock": "confirmed"})
    assert decay.clock == "confirmed"
    for hours in (0.0, 0.25, 1.0, 16.6, 24.0, 100.0, 9_999.0):
        assert decay.remaining(timedelta(hours=hours)) == pytest.approx(literal(hours))


@pytest.mark.parametrize(
    ("name", "weights"),
    [("coding", (0.5, 0.3, 0.2)), ("support", (0.4, 0.4, 0.2)), ("research", (0.6, 0.2, 0.2))],
)
def test_the_archetypes_weigh_as_published(
    profiles: dict[str, Profile], name: str, weights: tuple[float, ...]
) -> None:  # S001-17, S001-18, S001-19, S001-20, S001-24
    profile = profiles[name]
    assert profile.combine == "sum"
    assert profile.weights.nonzero == dict(zip(("similarity", "recency", "salience"), weights, strict=True))
    assert profile.recency == RecencyDecay(kind="exponential", time_constant_hours=24, clock="occurred")
    assert (profile.boosts.keyword, profile.boosts.fresh, profile.boosts.fresh_hours) == (0.1, 1.2, 24)
    assert profile.boosts.mentioned == 2.0


@pytest.mark.parametrize(("frame", "chosen"), CASES["auto_chooses_by_the_frame_alone"])
def test_auto_chooses_by_the_frame_alone(
    profiles: dict[str, Profile], frame: str | None, chosen: str
) -> None:  # S000-F1
    assert select_profile(profiles, "auto", frame=frame).name == chosen
    assert select_profile(profiles, "newton", frame=frame).name == "newton"


def test_a_profile_of_ones_own_replaces_one_and_chooses_only_one_that_scores(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\ndescription: D.\nby_frame: {debug: auto}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="'mine' selects 'auto', which is not a profile"):
        load_profiles(tmp_path)
    # a profile of ones own is added and one of the same name wins
    (tmp_path / "mine.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "recent.yaml").write_text(GOOD.replace("name: mine", "name: recent"), encoding="utf-8")
    known = load_profiles(tmp_path)
    assert known["mine"].weights.nonzero == known["recent"].weights.nonzero == {"similarity": 0.7, "recency": 0.3}


def test_an_expression_that_cannot_be_computed_names_its_line(tmp_path: Path) -> None:  # S000-F5
    own = GOOD.replace("weights:\n  similarity: 0.7\n  recency: 0.3\n", 'expression: "importence * 2"\n')
    (tmp_path / "mine.yaml").write_text(own, encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"mine.yaml:3: expression is invalid: 'importence' is not a known variable .Did you"
    ):
        load_profiles(tmp_path, check_expression)
    (tmp_path / "mine.yaml").write_text(own.replace("importence", "importance"), encoding="utf-8")
    assert load_profiles(tmp_path, check_expression)["mine"].expression == "importance * 2"
