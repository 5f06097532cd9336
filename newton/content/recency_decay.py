"""Recency decay: how the recency of a memory falls with its age, by a formula that profiles choose."""

import functools
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Literal, cast

from pydantic import Field, model_validator

from newton.content.yaml_models import StrictModel
from newton.errors import InputError

DecayClock = Literal["created", "accessed", "occurred", "confirmed"]
DecayPreset = Literal["session", "daily_tau24", "daily", "monthly"]

_HOURS_A_DAY = 24
_SECONDS_AN_HOUR = 3_600

# The parameters of each preset.
DECAY_PRESETS: Mapping[DecayPreset, Mapping[str, str | float]] = {
    "session": {"kind": "hyperbolic", "time_constant_hours": 1},
    "daily_tau24": {"kind": "exponential", "time_constant_hours": 24},
    "daily": {"kind": "exponential", "half_life_days": 1},
    "monthly": {"kind": "exponential", "half_life_days": 30},
}


class RecencyDecay(StrictModel):
    """The decrease of recency with age. Exactly one of the three rate fields is set; none for the kind "none".

    In a YAML file, `preset` can stand in place of the kind and the rate.
    """

    kind: Literal["exponential", "hyperbolic", "none"]
    clock: DecayClock = "created"
    half_life_days: float | None = Field(
        default=None, gt=0, description="The half-life of the recency of a memory, in days."
    )
    time_constant_hours: float | None = Field(
        default=None,
        gt=0,
        description="Time constant T in hours; the recency of a memory is exp(-age/T) or 1/(1 + age/T).",
    )
    rate_per_day: float | None = Field(
        default=None, gt=0, description="Rate R per day; the recency of a memory is exp(-R x days) or 1/(1 + R x days)."
    )

    @model_validator(mode="before")
    @classmethod
    def _expand_preset(cls, data: object) -> object:
        if not isinstance(data, dict) or "preset" not in data:
            return cast("object", data)
        fields = dict(cast("dict[str, object]", data))
        preset = fields.pop("preset")
        if not set(fields) <= {"clock"} or preset not in DECAY_PRESETS:
            raise ValueError(f"takes as preset one of {', '.join(DECAY_PRESETS)}, and beside it only the field clock")
        return {**fields, **DECAY_PRESETS[cast("DecayPreset", preset)]}

    @model_validator(mode="after")
    def _check_single_rate(self) -> "RecencyDecay":
        rates = (self.half_life_days, self.time_constant_hours, self.rate_per_day)
        count = sum(rate is not None for rate in rates)
        if count != (self.kind != "none"):
            expected = "no rate" if self.kind == "none" else "one of half_life_days, time_constant_hours, rate_per_day"
            raise ValueError(f"of kind {self.kind} takes {expected}, not {count} of them")
        return self

    @functools.cached_property
    def rate(self) -> float:
        """Return the decay rate per day; 0 if recency does not decay."""
        if self.half_life_days is not None:
            return (math.log(2) if self.kind == "exponential" else 1) / self.half_life_days
        if self.time_constant_hours is not None:
            return _HOURS_A_DAY / self.time_constant_hours
        return self.rate_per_day or 0.0

    @property
    def half_life(self) -> timedelta | None:
        """Return the age at which recency is halved; None if it does not decay."""
        halving = math.log(2) if self.kind == "exponential" else 1
        return timedelta(days=halving / self.rate) if self.rate else None

    def remaining(self, age: timedelta) -> float:
        """Return the recency at an age, from 1 (new) to 0. A negative age counts as 0."""
        return self.remaining_after_hours(age.total_seconds() / _SECONDS_AN_HOUR)

    def remaining_after_hours(self, hours: float) -> float:
        """Return the recency at an age in hours, from 1 (new) to 0. A negative age counts as 0."""
        decayed = self.rate * max(hours, 0.0) / _HOURS_A_DAY
        return math.exp(-decayed) if self.kind == "exponential" else 1 / (1 + decayed)

    def with_time_constant(self, hours: float) -> "RecencyDecay":
        """Return a copy with this time constant. Raises InputError if it is not positive, or if there is no decay."""
        if self.kind == "none":
            raise InputError(
                "In this profile the score of a memory does not fall with its age, so hours do not apply.",
                hint="Omit the hours, or choose a profile with decay, such as balanced.",
            )
        if not 0 < hours < math.inf:
            raise InputError(
                f"A decay of {hours} hours is not possible.", hint="Give a number of hours above 0, such as 0.5."
            )
        return RecencyDecay(kind=self.kind, clock=self.clock, time_constant_hours=hours)
