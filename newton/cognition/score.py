"""How well a memory serves this input: one feature vector each, combined by the profile. Pure and explained."""

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import NamedTuple
from uuid import UUID

from newton.content.frames import Frame
from newton.content.profiles import Boosts, Clock, Profile
from newton.memory.memory import Outcome
from newton.memory.recall import Found

# Where each kind is shown.
LAYER_OF: Mapping[str, str] = {
    "fact": "facts",
    "passage": "facts",
    "procedure": "procedures",
    "decision": "decisions",
    "exchange": "episodes",
    "episode": "episodes",
    "event": "episodes",
    "entity": "facts",
    "relation": "facts",
    "artifact": "session",
}

# A procedure's own outcome is what its record says of it.
RECORDS: Mapping[str, Outcome] = {"EFFECTIVE": "success", "INEFFECTIVE": "failure"}

NEUTRAL = 1.0  # what an unknown feature counts: it neither helps nor hurts
MIDDLING = 0.5  # the same where the scale runs from bad to good, as of salience and success

# The features of a memory, in the order in which they are kept. The last two are as they are, for formulas.
FEATURES = (
    "similarity",
    "cosine",
    "lexical",
    "type_priority",
    "recency",
    "importance",
    "salience",
    "outcome",
    "usage",
    "confidence",
    "success_rate",
    "depth",
    "timely",
    "age_h",
    "access_count",
)
# What a feature counts of a memory of which nothing is known.
NEUTRALS: Mapping[str, float] = {
    **dict.fromkeys(FEATURES, NEUTRAL),
    "salience": MIDDLING,
    "success_rate": MIDDLING,
    "timely": 0.0,
    "age_h": 0.0,
    "access_count": 0.0,
}
_SECONDS_AN_HOUR = 3_600
_WORD = re.compile(r"\w+")

Combine = Callable[[Sequence[float]], float]


class Trials(NamedTuple):
    """How often something was tried, and how often that went well."""

    successes: int
    applications: int

    @property
    def rate(self) -> float:
        """The share of successes; of what was never tried, neither good nor bad."""
        return self.successes / self.applications if self.applications > 0 else MIDDLING


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearing:
    """What is known of memories for this input beside themselves. What is not known is neutral.

    `keywords` are words of the input, in lower case; `mentioned` is what it names; `steps` is how many relations lead
    from there to a memory; `timely` are those of a time that it asks for.
    """

    keywords: frozenset[str] = frozenset()
    mentioned: frozenset[UUID] = frozenset()
    salience: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    trials: Mapping[UUID, Trials] = field(default_factory=dict[UUID, Trials])
    steps: Mapping[UUID, int] = field(default_factory=dict[UUID, int])
    timely: frozenset[UUID] = frozenset()


UNKNOWN = Bearing()


# Features are as exact as a float of four bytes before anything is made of them: so many bytes keep them, and what is
# made of the kept ones is what was made of them then.
_KEPT = struct.Struct(f"<{len(FEATURES)}f")


class Scored(NamedTuple):
    """A memory with its features in about [0, 1], and the score the profile makes of them."""

    found: Found
    features: tuple[float, ...]
    score: float

    @property
    def layer(self) -> str:
        return LAYER_OF[self.found.kind]


def rescored(found: Found, features: tuple[float, ...], profile: Profile) -> Scored:
    """The memory with the score that the profile makes of features that are known."""
    return Scored(found, features, combiner(profile)(features))


def scorer(
    *, profile: Profile, now: datetime, frame: Frame | None = None, bearing: Bearing = UNKNOWN
) -> Callable[[Found], Scored]:
    """How this profile scores a memory at this moment; a frame lends its priorities. Every score is finite."""
    left, usage = profile.recency.left_after, profile.usage
    outcomes, without = dict(profile.outcome), profile.outcome.none
    priorities = {kind: frame.priority(kind) for kind in LAYER_OF} if frame else {}
    clock, combine = _clock(profile.recency.clock), combiner(profile)
    boosted = _boosted(profile.boosts, bearing)
    salience, trials, steps = _salience(profile.boosts, bearing), bearing.trials, bearing.steps
    timely = bearing.timely

    def scored(found: Found) -> Scored:
        hours = max((now - clock(found)).total_seconds(), 0.0) / _SECONDS_AN_HOUR
        precise = (
            boosted(found, hours),
            found.similarity,
            found.lexical,
            priorities.get(found.kind, NEUTRAL),
            left(hours),
            found.matters,
            salience(found),
            outcomes.get(RECORDS.get(found.state, found.outcome) or "none", without),
            usage.of(found.uses),
            NEUTRAL if found.confidence is None else found.confidence,
            trials[found.memory_id].rate if trials and found.memory_id in trials else MIDDLING,
            1 / max(steps.get(found.memory_id, 1), 1) if steps else NEUTRAL,
            float(found.memory_id in timely),
            hours,
            float(found.uses),
        )
        features = _KEPT.unpack(_KEPT.pack(*precise))
        return Scored(found, features, combine(features))

    return scored


def combiner(profile: Profile) -> Combine:
    """How the profile makes one finite number of the features. Raises InputError for an expression that is none."""
    if profile.expression is not None:
        # CEL takes a quarter of a second to load, and hardly a profile has an expression
        compute = import_module("newton.cognition.formula").formula(profile.expression, FEATURES)
        return lambda features: compute(dict(zip(FEATURES, features, strict=True)))
    weights = [(FEATURES.index(name), weight) for name, weight in profile.weights.given.items()]
    if profile.combine == "product":
        return lambda features: math.prod([max(features[place], 0.0) ** weight for place, weight in weights])
    return lambda features: sum([features[place] * weight for place, weight in weights])


def check_expression(expression: str) -> None:
    """Nothing, if a profile can score by it. Raises InputError that says what is wrong and what to do."""
    import_module("newton.cognition.formula").check(expression, FEATURES)


def contributions(features: Sequence[float], profile: Profile) -> dict[str, float]:
    """What each feature that counts gave to the score: its weighted value in a sum, its factor in a product; in an
    expression, how much less the score would be if nothing were known of it."""
    if profile.expression is not None:
        return _effects(features, profile)
    given = [(name, features[FEATURES.index(name)], weight) for name, weight in profile.weights.given.items()]
    if profile.combine == "product":
        return {name: max(feature, 0.0) ** weight for name, feature, weight in given}
    return {name: feature * weight for name, feature, weight in given}


def _effects(features: Sequence[float], profile: Profile) -> dict[str, float]:
    combine = combiner(profile)
    score = combine(features)
    named = [name for name in FEATURES if name in _WORD.findall(profile.expression or "")]
    without = {
        name: combine([NEUTRALS[name] if name == other else f for other, f in zip(FEATURES, features, strict=True)])
        for name in named
    }
    return {name: score - rest for name, rest in without.items()}


def _boosted(boosts: Boosts, bearing: Bearing) -> Callable[[Found, float], float]:
    """Similarity x (1 + a bit for each word of the input) x a factor for what is fresh."""
    if boosts.keyword == 0 and boosts.fresh == 1:
        return lambda found, _: found.relevance

    def boosted(found: Found, hours: float) -> float:
        hits = len(bearing.keywords.intersection(_WORD.findall(found.summary.lower()))) if bearing.keywords else 0
        return found.relevance * (1 + boosts.keyword * hits) * (boosts.fresh if hours < boosts.fresh_hours else 1.0)

    return boosted


def _salience(boosts: Boosts, bearing: Bearing) -> Callable[[Found], float]:
    if not bearing.salience and not bearing.mentioned:
        return lambda _: MIDDLING

    def salience(found: Found) -> float:
        known = bearing.salience.get(found.memory_id, MIDDLING)
        return known * boosts.mentioned if found.memory_id in bearing.mentioned else known

    return salience


def _clock(clock: Clock) -> Callable[[Found], datetime]:
    match clock:
        case "accessed":
            return lambda found: found.accessed_at or found.created_at
        case "confirmed":
            return lambda found: found.confirmed_at or found.created_at
        case "occurred":
            return lambda found: found.occurred_at
        case "created":
            return lambda found: found.created_at
