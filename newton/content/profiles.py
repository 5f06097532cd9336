"""Profiles: named ways to score and order memories, as data."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, cast

import yaml
from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from newton.content.package_data import data_folder
from newton.content.yaml_models import NamedModel, StrictModel, get_by_name, read_folder
from newton.errors import ConfigError, ConflictError, InputError

DecayClock = Literal["created", "accessed", "occurred", "confirmed"]
ItemOrder = Literal["best_first", "best_last", "edges", "chronological", "clustered"]
OverflowMode = Literal["stop", "skip", "downgrade"]
DecayPreset = Literal["session", "daily_tau24", "daily", "monthly"]
ExpressionCheck = Callable[[str], None]

Weight = Annotated[float, Field(ge=0, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]
Multiplier = Annotated[float, Field(gt=0, le=10)]

_HOURS_A_DAY = 24
_SECONDS_AN_HOUR = 3_600


class FeatureWeights(StrictModel):
    """The relative weight of each feature of a memory."""

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
    def _weigh_something(self) -> "FeatureWeights":
        if not self.nonzero:
            raise ValueError("weigh no feature")
        return self

    @functools.cached_property
    def nonzero(self) -> dict[str, float]:
        """Return the features with a non-zero weight."""
        features: dict[str, float] = dict(self)
        return {feature: weight for feature, weight in features.items() if weight}


FEATURES = tuple(FeatureWeights.model_fields)

# The parameters behind each preset, named after its use.
DECAY_PRESETS: Mapping[DecayPreset, Mapping[str, str | float]] = {
    "session": {"kind": "hyperbolic", "time_constant_hours": 1},
    "daily_tau24": {"kind": "exponential", "time_constant_hours": 24},
    "daily": {"kind": "exponential", "half_life_days": 1},
    "monthly": {"kind": "exponential", "half_life_days": 30},
}


class Decay(StrictModel):
    """Decay of recency with age, and the clock that measures age. Exactly one speed field is set.

    In a file, `preset` stands for a kind with its speed.
    """

    kind: Literal["exponential", "hyperbolic", "none"]
    clock: DecayClock = "created"
    half_life_days: float | None = Field(default=None, gt=0, description="The half-life, in days.")
    time_constant_hours: float | None = Field(default=None, gt=0, description="exp(-age/this) or 1/(1 + age/this).")
    rate_per_day: float | None = Field(default=None, gt=0, description="exp(-this x days) or 1/(1 + this x days).")

    @model_validator(mode="before")
    @classmethod
    def _expand_preset(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        said = cast("dict[str, object]", data)
        if "preset" not in said:
            return said
        preset = said["preset"]
        if not set(said) <= {"preset", "clock"} or preset not in DECAY_PRESETS:
            raise ValueError(f"takes one preset of {', '.join(DECAY_PRESETS)}, and beside it only a clock")
        return {
            **{name: value for name, value in said.items() if name != "preset"},
            **DECAY_PRESETS[cast("DecayPreset", preset)],
        }

    @model_validator(mode="after")
    def _check_single_rate(self) -> "Decay":
        speeds = (self.half_life_days, self.time_constant_hours, self.rate_per_day)
        given = sum(speed is not None for speed in speeds)
        if given != (self.kind != "none"):
            wanted = "no speed" if self.kind == "none" else "one of half_life_days, time_constant_hours, rate_per_day"
            raise ValueError(f"of kind {self.kind} takes {wanted}, not {given} of them")
        return self

    @functools.cached_property
    def rate(self) -> float:
        """Return the rate per day; 0 for no decay."""
        if self.half_life_days is not None:
            return (math.log(2) if self.kind == "exponential" else 1) / self.half_life_days
        if self.time_constant_hours is not None:
            return _HOURS_A_DAY / self.time_constant_hours
        return self.rate_per_day or 0.0

    @property
    def half_life(self) -> timedelta | None:
        """Return the half-life, whichever field set the speed; None without decay."""
        if not self.rate:
            return None
        return timedelta(days=(math.log(2) if self.kind == "exponential" else 1) / self.rate)

    def remaining(self, age: timedelta) -> float:
        """Return the remaining fraction at that age; a negative age counts as 0."""
        return self.remaining_after_hours(age.total_seconds() / _SECONDS_AN_HOUR)

    def remaining_after_hours(self, hours: float) -> float:
        """Return the remaining fraction at an age in hours."""
        worn = self.rate * max(hours, 0.0) / _HOURS_A_DAY
        return math.exp(-worn) if self.kind == "exponential" else 1 / (1 + worn)

    def with_time_constant(self, hours: float) -> "Decay":
        """Return the decay with this time constant. Raises InputError when it is not above 0, or nothing decays."""
        if self.kind == "none":
            raise InputError("This profile does not decay.", hint="Omit the hours, or choose the profile balanced.")
        if not 0 < hours < math.inf:
            raise InputError(f"A decay of {hours} hours is not possible.", hint="Give a number above 0, such as 0.5.")
        return Decay(kind=self.kind, clock=self.clock, time_constant_hours=hours)


class OutcomeFactors(StrictModel):
    """The factor on a memory's score for each outcome."""

    success: Multiplier = 1.2
    partial: Multiplier = 1.0
    failure: Multiplier = 0.8
    pending: Multiplier = 0.9
    none: Multiplier = 1.0

    def factor_for(self, outcome: str | None) -> float:
        return getattr(self, outcome) if outcome in OUTCOME_NAMES else self.none


OUTCOME_NAMES = frozenset(OutcomeFactors.model_fields)


class UsageBoost(StrictModel):
    """The factor on a memory's score by use: logarithmic (base 10) with an upper limit."""

    per_tenfold: float = Field(default=0.1, ge=0, le=10, description="The addition for each tenfold use.")
    cap: float = Field(default=1.5, ge=1, le=10, description="The upper limit of the factor.")
    unused: float = Field(default=1.0, ge=0, le=1, description="The factor of a memory that was never used.")

    def factor_for(self, activations: int) -> float:
        return min(1 + self.per_tenfold * math.log10(activations), self.cap) if activations > 0 else self.unused


class ScoreBoosts(StrictModel):
    """Factors that raise a memory's score; 1 is neutral."""

    keyword: float = Field(
        default=0, ge=0, le=1, description="The addition to similarity for each matching word of the input."
    )
    fresh: Multiplier = Field(default=1.0, description="The factor on the similarity of fresh memories.")
    fresh_hours: float = Field(default=24, gt=0, le=1e6, description="A memory younger than this is fresh.")
    mentioned: Multiplier = Field(
        default=1.0, description="The factor on the salience of entities that the input names."
    )


class GatherOptions(StrictModel):
    """The candidates gathered beside the search results. Entities named in the input are always looked up."""

    depth: int = Field(
        default=1, ge=0, le=5, description="Steps along relations from the entities that the input names."
    )
    salient: int = Field(default=0, ge=0, le=100, description="The number of most salient entities to add.")
    events: int = Field(default=10, ge=0, le=200, description="The number of the session's last events to add.")
    sessions: int = Field(default=0, ge=0, le=50, description="The number of other sessions whose highlights to add.")
    failures: bool = Field(default=True, description="Whether failed memories may be in the context.")


def merge_gather_options(options: Iterable[GatherOptions]) -> GatherOptions:
    """Return options that cover each of the given ones."""
    every = list(options) or [GatherOptions()]
    return GatherOptions(
        depth=max(reach.depth for reach in every),
        salient=max(reach.salient for reach in every),
        events=max(reach.events for reach in every),
        sessions=max(reach.sessions for reach in every),
        failures=any(reach.failures for reach in every),
    )


class Profile(NamedModel):
    """A named way to score memories and to order them in a context.

    It scores by weights, by an expression, or by a profile that it selects by frame.
    """

    description: str = Field(min_length=1, max_length=500, description="One sentence: when to choose it.")
    weights: FeatureWeights = Field(
        default=FeatureWeights.model_construct(), description="A weight for each feature that is used."
    )
    combine: Literal["sum", "product"] = Field(
        default="sum", description="sum adds weight x feature; product multiplies feature ** weight."
    )
    expression: str | None = Field(default=None, description="A formula in place of weights: CEL over the features.")
    by_frame: dict[str, str] = Field(default={}, description="In place of weights: the profile for each frame.")
    otherwise: str = Field(default="balanced", description="The profile for a frame that by_frame does not name.")
    recency: Decay = Field(default=Decay(kind="none"), description="How age counts.")
    outcome: OutcomeFactors = Field(default=OutcomeFactors(), description="A factor for each outcome.")
    usage: UsageBoost = Field(default=UsageBoost(), description="How use counts.")
    boosts: ScoreBoosts = Field(default=ScoreBoosts(), description="Factors for words, freshness and names.")
    reach: GatherOptions = Field(
        default=GatherOptions(), description="The candidates gathered beside the search results."
    )
    floor: Share = Field(
        default=0.0,
        description="What has less than this part of the best one's evidence stays out, but for lines of dialogue.",
    )
    near: Share = Field(
        default=0.0,
        description="Where a context is as large as its input needs: a line of dialogue that has less than this part of"
        " the best one's relevance stays out.",
    )
    fill: OverflowMode = Field(
        default="downgrade", description="The action for a memory that does not fit: stop, skip or downgrade."
    )
    order: ItemOrder = Field(
        default="best_first",
        description="The order within a layer: best_first, best_last, edges, chronological or clustered.",
    )
    alike: float = Field(
        default=0.5, gt=0, le=1, description="The minimum cosine similarity of two memories in one cluster."
    )

    @field_validator("expression")
    @classmethod
    def _check_expression(cls, expression: str | None, info: ValidationInfo) -> str | None:
        check = cast("dict[str, ExpressionCheck]", info.context or {}).get("check")
        if expression is not None and check is not None:
            try:
                check(expression)
            except InputError as error:
                raise ValueError(f"is refused: {error.what.rstrip('.')} ({error.hint.rstrip('.')})") from None
        return expression

    @model_validator(mode="after")
    def _scores_in_one_way(self) -> "Profile":
        ways = [name for name in ("weights", "expression", "by_frame") if name in self.model_fields_set]
        if len(ways) != 1:
            said = " and ".join(ways) or "none"
            raise ValueError(f"scores by one of weights, expression and by_frame, not by {said}")
        return self

    def with_time_constant(self, hours: float) -> "Profile":
        """Return the profile with another decay time constant. Raises InputError when nothing decays."""
        return self.model_copy(update={"recency": self.recency.with_time_constant(hours)})


def load_profiles(extra: Path | None = None, check: ExpressionCheck | None = None) -> dict[str, Profile]:
    """Load the profiles that ship with Newton, overlaid by the user's own folder; the same name replaces one.

    `check` raises InputError for an invalid expression in the user's files. Raises ConfigError with file and line for
    the first mistake; then nothing is loaded.
    """
    known = read_folder(data_folder("profiles"), Profile)
    if extra is not None:
        known = {**known, **read_folder(extra.expanduser(), Profile, {"check": check} if check else None)}
    for profile in known.values():
        _check_references(profile, known)
    return known


def write_profile(profile: Profile, folder: Path) -> Path:
    """Write the profile to a file in the folder. Raises ConflictError when its name exists, and ConfigError for an
    invalid name or a folder that cannot be written."""
    said = profile.model_dump(mode="json", exclude_defaults=True)
    path = folder.expanduser() / f"{profile.name}.yaml"
    try:
        Profile.model_validate(said)
        with path.open("x", encoding="utf-8") as file:
            yaml.safe_dump(said, file, sort_keys=False, allow_unicode=True, width=120)
    except ValidationError:
        raise ConfigError(f"{profile.name!r} is not a valid name.", hint="Use lower-case letters, - and _.") from None
    except FileExistsError:
        raise ConflictError(f"There is a file {path}.", hint="Choose another name, or delete it.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="Name a folder you may write.") from None
    return path


def _check_references(profile: Profile, known: Mapping[str, Profile]) -> None:
    for named in {profile.otherwise, *profile.by_frame.values()} if profile.by_frame else ():
        if named not in known or known[named].by_frame:
            raise ConfigError(
                f"The profile {profile.name!r} chooses {named!r}, which scores nothing.",
                hint=f"Name one of {', '.join(sorted(name for name, one in known.items() if not one.by_frame))}.",
            )


def get_profile(profiles: Mapping[str, Profile], name: str) -> Profile:
    """Return the profile of that name. Raises NotFoundError that suggests the nearest name and lists all."""
    return get_by_name(profiles, name, "profile")


def select_profile(profiles: Mapping[str, Profile], name: str, *, frame: str | None) -> Profile:
    """Return the named profile, or the one it selects for the frame. Raises NotFoundError."""
    profile = get_profile(profiles, name)
    return profiles[profile.by_frame.get(frame or "", profile.otherwise)] if profile.by_frame else profile
