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
from newton.content.profiles import DecayClock, Profile, ScoreBoosts
from newton.memory.memory import Outcome
from newton.memory.search_types import RetrievedMemory

# Where each kind is shown.
LAYER_BY_KIND: Mapping[str, str] = {
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
OUTCOME_BY_STATE: Mapping[str, Outcome] = {"EFFECTIVE": "success", "INEFFECTIVE": "failure"}

NEUTRAL_FACTOR = 1.0  # what an unknown feature counts: it neither helps nor hurts
NEUTRAL_SHARE = 0.5  # the same where the scale runs from bad to good, as of salience and success

# The features of a memory, in the order in which they are kept. The last two are as they are, for formulas.
FEATURE_NAMES = (
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
NEUTRAL_FEATURES: Mapping[str, float] = {
    **dict.fromkeys(FEATURE_NAMES, NEUTRAL_FACTOR),
    "salience": NEUTRAL_SHARE,
    "success_rate": NEUTRAL_SHARE,
    "timely": 0.0,
    "age_h": 0.0,
    "access_count": 0.0,
}
_SECONDS_PER_HOUR = 3_600
_WORD = re.compile(r"\w+")

Combine = Callable[[Sequence[float]], float]


class TrialCounts(NamedTuple):
    """How often something was tried, and how often that went well."""

    successes: int
    applications: int

    @property
    def rate(self) -> float:
        """The share of successes; of what was never tried, neither good nor bad."""
        return self.successes / self.applications if self.applications > 0 else NEUTRAL_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySignals:
    """What is known of memories for this input beside themselves. What is not known is neutral.

    `keywords` are words of the input, in lower case; `mentioned` is what it names; `steps` is how many relations lead
    from there to a memory; `timely` are those of a time that it asks for.
    """

    keywords: frozenset[str] = frozenset()
    mentioned_ids: frozenset[UUID] = frozenset()
    salience: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    trials: Mapping[UUID, TrialCounts] = field(default_factory=dict[UUID, TrialCounts])
    hops: Mapping[UUID, int] = field(default_factory=dict[UUID, int])
    timely_ids: frozenset[UUID] = frozenset()


NO_SIGNALS = QuerySignals()


# Features are as exact as a float of four bytes before anything is made of them: so many bytes keep them, and what is
# made of the kept ones is what was made of them then.
_STORED_FLOATS = struct.Struct(f"<{len(FEATURE_NAMES)}f")


class ScoredMemory(NamedTuple):
    """A memory with its features in about [0, 1], and the score the profile makes of them."""

    found: RetrievedMemory
    features: tuple[float, ...]
    score: float

    @property
    def layer(self) -> str:
        return LAYER_BY_KIND[self.found.kind]


def score_from_features(found: RetrievedMemory, features: tuple[float, ...], profile: Profile) -> ScoredMemory:
    """The memory with the score that the profile makes of features that are known."""
    return ScoredMemory(found, features, create_combiner(profile)(features))


def create_scorer(
    *, profile: Profile, now: datetime, frame: Frame | None = None, signals: QuerySignals = NO_SIGNALS
) -> Callable[[RetrievedMemory], ScoredMemory]:
    """How this profile scores a memory at this moment; a frame lends its priorities. Every score is finite."""
    left, usage = profile.recency.remaining_after_hours, profile.usage
    outcomes, without = dict(profile.outcome), profile.outcome.none
    priorities = {kind: frame.priority(kind) for kind in LAYER_BY_KIND} if frame else {}
    clock, combine = _select_clock(profile.recency.clock), create_combiner(profile)
    boosted = _create_boost(profile.boosts, signals)
    salience, trials, steps = _create_salience(profile.boosts, signals), signals.trials, signals.hops
    timely = signals.timely_ids

    def scored(found: RetrievedMemory) -> ScoredMemory:
        hours = max((now - clock(found)).total_seconds(), 0.0) / _SECONDS_PER_HOUR
        precise = (
            boosted(found, hours),
            found.similarity,
            found.lexical,
            priorities.get(found.kind, NEUTRAL_FACTOR),
            left(hours),
            found.effective_importance,
            salience(found),
            outcomes.get(OUTCOME_BY_STATE.get(found.state, found.outcome) or "none", without),
            usage.factor_for(found.uses),
            NEUTRAL_FACTOR if found.confidence is None else found.confidence,
            trials[found.memory_id].rate if trials and found.memory_id in trials else NEUTRAL_SHARE,
            1 / max(steps.get(found.memory_id, 1), 1) if steps else NEUTRAL_FACTOR,
            float(found.memory_id in timely),
            hours,
            float(found.uses),
        )
        features = _STORED_FLOATS.unpack(_STORED_FLOATS.pack(*precise))
        return ScoredMemory(found, features, combine(features))

    return scored


def create_combiner(profile: Profile) -> Combine:
    """How the profile makes one finite number of the features. Raises InputError for an expression that is none."""
    if profile.expression is not None:
        # CEL takes a quarter of a second to load, and hardly a profile has an expression
        compute = import_module("newton.cognition.scoring.formula").compile_formula(profile.expression, FEATURE_NAMES)
        return lambda features: compute(dict(zip(FEATURE_NAMES, features, strict=True)))
    weights = [(FEATURE_NAMES.index(name), weight) for name, weight in profile.weights.nonzero.items()]
    if profile.combine == "product":
        return lambda features: math.prod([max(features[place], 0.0) ** weight for place, weight in weights])
    return lambda features: sum([features[place] * weight for place, weight in weights])


def check_expression(expression: str) -> None:
    """Nothing, if a profile can score by it. Raises InputError that says what is wrong and what to do."""
    import_module("newton.cognition.scoring.formula").check_formula(expression, FEATURE_NAMES)


def compute_contributions(features: Sequence[float], profile: Profile) -> dict[str, float]:
    """What each feature that counts gave to the score: its weighted value in a sum, its factor in a product; in an
    expression, how much less the score would be if nothing were known of it."""
    if profile.expression is not None:
        return _compute_ablations(features, profile)
    given = [(name, features[FEATURE_NAMES.index(name)], weight) for name, weight in profile.weights.nonzero.items()]
    if profile.combine == "product":
        return {name: max(feature, 0.0) ** weight for name, feature, weight in given}
    return {name: feature * weight for name, feature, weight in given}


def _compute_ablations(features: Sequence[float], profile: Profile) -> dict[str, float]:
    combine = create_combiner(profile)
    score = combine(features)
    named = [name for name in FEATURE_NAMES if name in _WORD.findall(profile.expression or "")]
    without = {
        name: combine(
            [NEUTRAL_FEATURES[name] if name == other else f for other, f in zip(FEATURE_NAMES, features, strict=True)]
        )
        for name in named
    }
    return {name: score - rest for name, rest in without.items()}


def _create_boost(boosts: ScoreBoosts, signals: QuerySignals) -> Callable[[RetrievedMemory, float], float]:
    """Similarity x (1 + a bit for each word of the input) x a factor for what is fresh."""
    if boosts.keyword == 0 and boosts.fresh == 1:
        return lambda found, _: found.relevance

    def boosted(found: RetrievedMemory, hours: float) -> float:
        hits = len(signals.keywords.intersection(_WORD.findall(found.summary.lower()))) if signals.keywords else 0
        return found.relevance * (1 + boosts.keyword * hits) * (boosts.fresh if hours < boosts.fresh_hours else 1.0)

    return boosted


def _create_salience(boosts: ScoreBoosts, signals: QuerySignals) -> Callable[[RetrievedMemory], float]:
    if not signals.salience and not signals.mentioned_ids:
        return lambda _: NEUTRAL_SHARE

    def salience(found: RetrievedMemory) -> float:
        known = signals.salience.get(found.memory_id, NEUTRAL_SHARE)
        return known * boosts.mentioned if found.memory_id in signals.mentioned_ids else known

    return salience


def _select_clock(clock: DecayClock) -> Callable[[RetrievedMemory], datetime]:
    match clock:
        case "accessed":
            return lambda found: found.accessed_at or found.created_at
        case "confirmed":
            return lambda found: found.confirmed_at or found.created_at
        case "occurred":
            return lambda found: found.occurred_at
        case "created":
            return lambda found: found.created_at
