"""Profiles: named ways of scoring and ordering memories, as data; each value knows its own formula."""

import functools
import math
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, model_validator

from newton.content.shipped import shipped
from newton.content.yamlfile import Content, Named, pick, read_folder

Clock = Literal["created", "accessed", "occurred", "confirmed"]

Weight = Annotated[float, Field(ge=0, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]
Multiplier = Annotated[float, Field(gt=0, le=10)]

_HOURS_A_DAY = 24
_SECONDS_A_DAY = 86_400


class Weights(Content):
    """What each feature of a memory counts; only the relation between them matters."""

    similarity: Weight = 0
    lexical: Weight = 0
    type_priority: Weight = 0
    recency: Weight = 0
    importance: Weight = 0
    salience: Weight = 0
    outcome: Weight = 0
    usage: Weight = 0
    confidence: Weight = 0
    success_rate: Weight = 0
    depth: Weight = 0

    @model_validator(mode="after")
    def _weigh_something(self) -> "Weights":
        if not self.given:
            raise ValueError("weigh no feature")
        return self

    @functools.cached_property
    def given(self) -> dict[str, float]:
        """The features that count, with their weights."""
        features: dict[str, float] = dict(self)
        return {feature: weight for feature, weight in features.items() if weight}


FEATURES = tuple(Weights.model_fields)


class Decay(Content):
    """How fast age takes away from recency, and which clock tells the age. Its speed is said in exactly one way."""

    kind: Literal["exponential", "hyperbolic", "none"]
    clock: Clock = "created"
    half_life_days: float | None = Field(default=None, gt=0, description="The age at which half is left.")
    time_constant_hours: float | None = Field(default=None, gt=0, description="exp(-age/this) or 1/(1 + age/this).")
    rate_per_day: float | None = Field(default=None, gt=0, description="exp(-this x days) or 1/(1 + this x days).")

    @model_validator(mode="after")
    def _has_one_speed(self) -> "Decay":
        speeds = (self.half_life_days, self.time_constant_hours, self.rate_per_day)
        given = sum(speed is not None for speed in speeds)
        if given != (self.kind != "none"):
            wanted = "no speed" if self.kind == "none" else "one of half_life_days, time_constant_hours, rate_per_day"
            raise ValueError(f"of kind {self.kind} takes {wanted}, not {given} of them")
        return self

    @functools.cached_property
    def rate(self) -> float:
        """Per day; 0 for no decay."""
        if self.half_life_days is not None:
            return (math.log(2) if self.kind == "exponential" else 1) / self.half_life_days
        if self.time_constant_hours is not None:
            return _HOURS_A_DAY / self.time_constant_hours
        return self.rate_per_day or 0.0

    @property
    def half_life(self) -> timedelta | None:
        """The true one, whichever way the speed was said; None when nothing decays."""
        if not self.rate:
            return None
        return timedelta(days=(math.log(2) if self.kind == "exponential" else 1) / self.rate)

    def left(self, age: timedelta) -> float:
        """What remains at that age, 1 for the present; a memory from the future counts as present."""
        worn = self.rate * max(age.total_seconds(), 0.0) / _SECONDS_A_DAY
        return math.exp(-worn) if self.kind == "exponential" else 1 / (1 + worn)


class Outcomes(Content):
    """What a memory's outcome makes of it."""

    success: Multiplier = 1.2
    partial: Multiplier = 1.0
    failure: Multiplier = 0.8
    pending: Multiplier = 0.9
    none: Multiplier = 1.0

    def of(self, outcome: str | None) -> float:
        return getattr(self, outcome) if outcome in OUTCOMES else self.none


OUTCOMES = frozenset(Outcomes.model_fields)


class Usage(Content):
    """What use makes of a memory: a little more with each power of ten, up to a cap."""

    per_tenfold: float = Field(default=0.1, ge=0, le=10, description="What each tenfold use adds.")
    cap: float = Field(default=1.5, ge=1, le=10, description="The most that use can make of it.")

    def of(self, activations: int) -> float:
        return min(1 + self.per_tenfold * math.log10(activations), self.cap) if activations > 0 else 1.0


class Profile(Named):
    """A named way to turn a memory's features into a score, and scores into a context."""

    description: str = Field(min_length=1, max_length=500, description="One sentence: when to choose it.")
    weights: Weights = Field(description="A weight for each feature that counts.")
    combine: Literal["sum", "product"] = Field(
        default="sum", description="sum adds weight x feature; product multiplies feature ** weight."
    )
    recency: Decay = Field(description="How age counts.")
    outcome: Outcomes = Field(default=Outcomes(), description="A factor for each outcome.")
    usage: Usage = Field(default=Usage(), description="How use counts.")
    floor: Share = Field(
        default=0.0,
        description="What has less than this part of the best one's evidence stays out, but for lines of dialogue.",
    )
    near: Share = Field(
        default=0.0,
        description="The same where a context is as large as its input needs; then for lines of dialogue too.",
    )
    fill: Literal["stop", "skip", "downgrade"] = Field(
        default="downgrade", description="What to do with a memory that does not fit: stop, skip or downgrade."
    )
    order: Literal["best_first", "best_last", "chronological"] = Field(
        default="best_first", description="The order within a layer: best_first, best_last or chronological."
    )


def load_profiles() -> dict[str, Profile]:
    """The profiles that ship with Newton. Raises ConfigError naming file and line for the first mistake."""
    return read_folder(shipped("profiles"), Profile)


def profile_named(profiles: dict[str, Profile], name: str) -> Profile:
    """The profile of that name. Raises NotFoundError naming the nearest one and all of them."""
    return pick(profiles, name, "profile")
