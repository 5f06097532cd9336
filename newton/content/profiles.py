"""Profiles: named ways to score and order memories, with a decay of recency, read from YAML files."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from newton.content.package_data import data_folder
from newton.content.yaml_files import (
    ExpressionCheck,
    NamedModel,
    StrictModel,
    check_expression,
    get_by_name,
    read_folder,
)
from newton.errors import ConfigError, InputError

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
    """The decrease of recency with age. Exactly one of the three rate fields is set; none of them for the kind "none".

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
        """Return the decay rate R per day of recency exp(-R x days) or 1/(1 + R x days); 0 if it does not decay."""
        if self.half_life_days is not None:
            # the decay reaches 1/2 when exp(-R x days) or, if hyperbolic, 1/(1 + R x days) does
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


ItemOrder = Literal["best_first", "best_last", "edges", "chronological", "clustered"]
OverflowMode = Literal["stop", "skip", "downgrade"]

Weight = Annotated[float, Field(ge=0, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]
Multiplier = Annotated[float, Field(gt=0, le=10)]
TypeNames = tuple[Annotated[str, Field(min_length=1, max_length=60)], ...]


class FeatureWeights(StrictModel):
    """The weight of each feature of a memory in its score. Only the ratios of the weights matter."""

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
    def _check_sum(self) -> "FeatureWeights":
        if not self.nonzero:
            raise ValueError("are all zero")
        return self

    @functools.cached_property
    def nonzero(self) -> dict[str, float]:
        """Return the weights that are not 0, by the name of the feature."""
        features: dict[str, float] = dict(self)
        return {feature: weight for feature, weight in features.items() if weight}


class OutcomeFactors(StrictModel):
    """The factor by which a memory's score is multiplied, for each outcome that a memory can have."""

    success: Multiplier = 1.2
    partial: Multiplier = 1.0
    failure: Multiplier = 0.8
    pending: Multiplier = 0.9
    none: Multiplier = 1.0

    def factor_for(self, outcome: str | None) -> float:
        """Return the factor for an outcome; that of `none` for None or an unknown outcome."""
        return getattr(self, outcome) if outcome in OUTCOME_NAMES else self.none


OUTCOME_NAMES = frozenset(OutcomeFactors.model_fields)


class UsageBoost(StrictModel):
    """The factor by which a memory's score is multiplied for its use.

    It grows with the logarithm of the number of uses, up to `cap`.
    """

    per_tenfold: float = Field(
        default=0.1, ge=0, le=10, description="How much the factor grows when the number of uses grows tenfold."
    )
    cap: float = Field(default=1.5, ge=1, le=10, description="Upper limit of the factor.")
    unused: float = Field(default=1.0, ge=0, le=1, description="Factor of a memory that was never used.")

    def factor_for(self, activations: int) -> float:
        """Return the factor for this number of uses."""
        return min(1 + self.per_tenfold * math.log10(activations), self.cap) if activations > 0 else self.unused


class ScoreBoosts(StrictModel):
    """Settings that raise a memory's score; factors of 1 change nothing."""

    keyword: float = Field(
        default=0, ge=0, le=1, description="How much each matching word adds to the factor of the similarity."
    )
    fresh: Multiplier = Field(
        default=1.0, description="Factor by which the similarity of fresh memories is multiplied."
    )
    fresh_hours: float = Field(
        default=24, gt=0, le=1e6, description="A memory that is younger than this, in hours, is fresh."
    )
    mentioned: Multiplier = Field(
        default=1.0, description="Factor by which the salience of an entity that the input names is multiplied."
    )


class GatherOptions(StrictModel):
    """Memories to consider in addition to the results of the search. Entities in the input are always considered."""

    depth: int = Field(default=1, ge=0, le=5, description="Number of relation steps from the entities in the input.")
    salient: int = Field(default=0, ge=0, le=100, description="The number of most salient entities to add.")
    events: int = Field(default=10, ge=0, le=200, description="The number of the session's last events to add.")
    sessions: int = Field(
        default=0, ge=0, le=50, description="The number of other sessions of which to add some recent events."
    )
    failures: bool = Field(default=True, description="Whether memories of failures may be in the context.")
    event_types: TypeNames = Field(
        default=(), description="The types of events that come first when more are found than are taken."
    )
    entity_types: TypeNames = Field(
        default=(), description="The types of entities that come first among those that the input does not name."
    )
    relation_types: TypeNames = Field(
        default=(), description="The types of relations that come first at each step from the entities in the input."
    )


def merge_gather_options(options: Iterable[GatherOptions]) -> GatherOptions:
    """Return the maximum of each option and all preferred types; the defaults if there are no options."""
    rows = [dict(option) for option in options] or [{}]
    return GatherOptions().model_copy(update={name: _merge_option([row[name] for row in rows]) for name in rows[0]})


def _merge_option(values: Sequence[Any]) -> object:
    is_list = isinstance(values[0], tuple)
    return tuple(dict.fromkeys(chain.from_iterable(values))) if is_list else max(values)


class Profile(NamedModel):
    """A named way to score memories (by weights, an expression, or another profile per frame) and to order them."""

    description: str = Field(
        min_length=1, max_length=500, description="One sentence that says when to choose the profile."
    )
    weights: FeatureWeights = Field(
        default=FeatureWeights.model_construct(), description="The weight of each feature in the score of a memory."
    )
    combine: Literal["sum", "product"] = Field(
        default="sum", description="The score: the sum of weight x feature, or the product of feature ** weight."
    )
    expression: str | None = Field(
        default=None,
        description="A CEL expression that computes a memory's score from its features, in place of weights.",
    )
    by_frame: dict[str, str] = Field(
        default={}, description="Instead of `weights`: the name of the profile to use, by frame."
    )
    otherwise: str = Field(default="balanced", description="The profile for a frame that by_frame does not name.")
    recency: RecencyDecay = Field(
        default=RecencyDecay(kind="none"),
        description="How the recency term of a memory's score falls with the age of the memory.",
    )
    outcome: OutcomeFactors = Field(
        default=OutcomeFactors(),
        description="The factor that multiplies a memory's score, for each outcome of the memory.",
    )
    usage: UsageBoost = Field(
        default=UsageBoost(),
        description="The factor that multiplies a memory's score; it is computed from the number of its uses.",
    )
    boosts: ScoreBoosts = Field(
        default=ScoreBoosts(), description="Factors of a memory's score for matching words, age and names."
    )
    reach: GatherOptions = Field(
        default=GatherOptions(), description="Memories to consider besides the search results."
    )
    floor: Share = Field(
        default=0.0, description="The minimum search score of a memory, as a share of the best; messages are exempt."
    )
    near: Share = Field(
        default=0.0,
        description="The minimum relevance of a message, as a share of the best, in contexts of automatic size.",
    )
    fill: OverflowMode = Field(
        default="downgrade",
        description="What to do if a memory does not fit: stop, skip it, or downgrade it to a shorter form.",
    )
    order: ItemOrder = Field(
        default="best_first", description=f"Order of the memories in a layer: {', '.join(get_args(ItemOrder))}."
    )
    alike: float = Field(default=0.5, gt=0, le=1, description="The minimum cosine similarity of memories in a cluster.")

    @field_validator("expression")
    @classmethod
    def _check_expression(cls, expression: str | None, info: ValidationInfo) -> str | None:
        check = cast("dict[str, ExpressionCheck]", info.context or {}).get("check")
        return expression if expression is None or check is None else check_expression(expression, check)

    @model_validator(mode="after")
    def _check_scoring(self) -> "Profile":
        fields = [name for name in ("weights", "expression", "by_frame") if name in self.model_fields_set]
        if len(fields) != 1:
            actual = " and ".join(fields) or "none"
            raise ValueError(f"takes one of weights, expression and by_frame, not {actual}")
        return self

    def as_json(self) -> dict[str, Any]:
        """Return the profile's name, weights and limits as JSON, as each context publishes them."""
        return {"name": self.name, "weights": self.weights.nonzero, "reach": self.reach.model_dump(mode="json")}

    def with_time_constant(self, hours: float) -> "Profile":
        """Return a copy with another time constant of its recency decay.

        Raises InputError if it is not positive, or if there is no decay.
        """
        return self.model_copy(update={"recency": self.recency.with_time_constant(hours)})


def load_profiles(extra: Path | None = None, check: ExpressionCheck | None = None) -> dict[str, Profile]:
    """Load the profiles that ship with Newton; a profile in the folder `extra` replaces the one of the same name.

    Expressions in `extra` must pass `check`. Raises ConfigError with file and line of the first mistake.
    """
    known = dict(_load_shipped_profiles())
    if extra is not None:
        known = {**known, **read_folder(extra.expanduser(), Profile, {"check": check} if check else None)}
    for profile in known.values():
        _check_references(profile, known)
    return known


@functools.cache
def _load_shipped_profiles() -> Mapping[str, Profile]:
    return read_folder(data_folder("profiles"), Profile)


def _check_references(profile: Profile, known: Mapping[str, Profile]) -> None:
    for name in {profile.otherwise, *profile.by_frame.values()} if profile.by_frame else ():
        if name not in known or known[name].by_frame:
            valid = ", ".join(sorted(name for name, one in known.items() if not one.by_frame))
            what = f"The profile {profile.name!r} selects {name!r}, which is not a profile that scores memories."
            raise ConfigError(what, hint=f"Select one of {valid}.")


def get_profile(profiles: Mapping[str, Profile], name: str) -> Profile:
    """Return the profile with this name.

    Raises NotFoundError for an unknown one, with the nearest name and all others.
    """
    return get_by_name(profiles, name, "profile")


def select_profile(profiles: Mapping[str, Profile], name: str, *, frame: str | None) -> Profile:
    """Return the profile with this name or, if it selects other profiles, the one for `frame`.

    Raises NotFoundError for an unknown profile.
    """
    profile = get_profile(profiles, name)
    return profiles[profile.by_frame.get(frame or "", profile.otherwise)] if profile.by_frame else profile
