"""Scoring of memories: the features of each one, combined to a score by the profile. Pure."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import NamedTuple
from uuid import UUID

from newton.cognition.sources.person import ABOUT_LAYER
from newton.content.frames import Frame
from newton.content.profiles import DecayClock, Profile, ScoreBoosts
from newton.memory.memory import Outcome
from newton.memory.search_types import RetrievedMemory
from newton.text.stems import WORD

# Layer of each kind.
LAYER_BY_KIND: Mapping[str, str] = {
    "fact": "facts",
    "passage": "documents",
    "item": "facts",
    "procedure": "procedures",
    "decision": "decisions",
    "exchange": "episodes",
    "episode": "episodes",
    "event": "episodes",
    "entity": "facts",
    "relation": "facts",
    "artifact": "session",
}

# Outcome of a procedure, by its state.
OUTCOME_BY_STATE: Mapping[str, Outcome] = {"EFFECTIVE": "success", "INEFFECTIVE": "failure"}

NEUTRAL_FACTOR = 1.0  # value of an unknown feature
NEUTRAL_SHARE = 0.5  # the same for salience, success rate and probability, which range from bad to good

# The features of a memory in stored order. `age_h` and `access_count` are not normalized and serve formulas.
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
    "task",
    "age_h",
    "access_count",
    "probability",
    "answers",
)
# Value of each feature when unknown.
NEUTRAL_FEATURES: Mapping[str, float] = {
    **dict.fromkeys(FEATURE_NAMES, NEUTRAL_FACTOR),
    "salience": NEUTRAL_SHARE,
    "success_rate": NEUTRAL_SHARE,
    "timely": 0.0,
    "task": 0.0,
    "age_h": 0.0,
    "access_count": 0.0,
    "probability": NEUTRAL_SHARE,
    "answers": 0.0,
}
_SECONDS_PER_HOUR = 3_600

Combine = Callable[[Sequence[float]], float]


class TrialCounts(NamedTuple):
    """The number of applications of a procedure, and of those with success."""

    successes: int
    applications: int

    @property
    def rate(self) -> float:
        """Return the success rate; `NEUTRAL_SHARE` if the procedure was never applied."""
        return self.successes / self.applications if self.applications > 0 else NEUTRAL_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySignals:
    """Relations of memories to the input. A value that is missing does not change scores.

    `keywords` are lower-case words of the input. `mentioned_ids` are memories that it names, `hops` the number of
    relations from those to another memory. `timely_ids` are memories from the times that it asks for, `task_ids` those
    of the current task.
    `estimate_relevance` returns the probability that a memory is relevant to the topic of the input, and
    `estimate_answer` that it answers the input, 0 if unknown.
    """

    keywords: frozenset[str] = frozenset()
    mentioned_ids: frozenset[UUID] = frozenset()
    salience: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    trials: Mapping[UUID, TrialCounts] = field(default_factory=dict[UUID, TrialCounts])
    hops: Mapping[UUID, int] = field(default_factory=dict[UUID, int])
    timely_ids: frozenset[UUID] = frozenset()
    task_ids: frozenset[UUID] = frozenset()
    estimate_relevance: Callable[[RetrievedMemory], float] = lambda _: NEUTRAL_SHARE
    estimate_answer: Callable[[RetrievedMemory], float] = lambda _: 0.0


NO_SIGNALS = QuerySignals()


# Features are rounded to float32, their stored precision, before scoring, so that a replay gives identical scores.
_STORED_FLOATS = struct.Struct(f"<{len(FEATURE_NAMES)}f")


class ScoredMemory(NamedTuple):
    """A memory with its score and its features, most of them from 0 to 1. `section` is that of a fact in a profile."""

    found: RetrievedMemory
    features: tuple[float, ...]
    score: float
    section: str | None = None

    @property
    def layer(self) -> str:
        return ABOUT_LAYER if self.section else LAYER_BY_KIND[self.found.kind]


def place_in_profile(scored: Sequence[ScoredMemory], sections: Mapping[UUID, str]) -> list[ScoredMemory]:
    """Return the memories, those of the profile of a person with their section."""
    return [one._replace(section=sections.get(one.found.memory_id)) for one in scored]


def score_from_features(found: RetrievedMemory, features: tuple[float, ...], profile: Profile) -> ScoredMemory:
    """Return the memory with the score that the profile computes from known features."""
    return ScoredMemory(found, features, create_combiner(profile)(features))


def create_scorer(
    *, profile: Profile, now: datetime, frame: Frame | None = None, signals: QuerySignals = NO_SIGNALS
) -> Callable[[RetrievedMemory], ScoredMemory]:
    """Return a function that computes features and score of a memory, by profile, frame and time. Scores are finite."""
    decay, usage = profile.recency.remaining_after_hours, profile.usage
    outcomes, no_outcome = dict(profile.outcome), profile.outcome.none
    priorities = {kind: frame.priority(kind) for kind in LAYER_BY_KIND} if frame else {}
    clock, combine = _select_clock(profile.recency.clock), create_combiner(profile)
    boost, salience = _create_boost(profile.boosts, signals), _create_salience(profile.boosts, signals)
    trials, hops, timely_ids, task_ids = signals.trials, signals.hops, signals.timely_ids, signals.task_ids
    estimate_relevance, estimate_answer = signals.estimate_relevance, signals.estimate_answer

    def score(found: RetrievedMemory) -> ScoredMemory:
        hours = max((now - clock(found)).total_seconds(), 0.0) / _SECONDS_PER_HOUR
        precise = (
            boost(found, hours),
            found.similarity,
            found.lexical,
            priorities.get(found.kind, NEUTRAL_FACTOR),
            decay(hours),
            found.effective_importance,
            salience(found),
            outcomes.get(OUTCOME_BY_STATE.get(found.state, found.outcome) or "none", no_outcome),
            usage.factor_for(found.uses),
            NEUTRAL_FACTOR if found.confidence is None else found.confidence,
            trials[found.memory_id].rate if trials and found.memory_id in trials else NEUTRAL_SHARE,
            1 / max(hops.get(found.memory_id, 1), 1) if hops else NEUTRAL_FACTOR,
            float(found.memory_id in timely_ids),
            float(found.memory_id in task_ids),
            hours,
            float(found.uses),
            estimate_relevance(found),
            estimate_answer(found),
        )
        features = _STORED_FLOATS.unpack(_STORED_FLOATS.pack(*precise))
        return ScoredMemory(found, features, combine(features))

    return score


def create_combiner(profile: Profile) -> Combine:
    """Return a function from features to a finite score. Raises InputError for an invalid expression of the profile."""
    if profile.expression is not None:
        # lazy: CEL takes 0.25 s to load, and few profiles have an expression
        compute = import_module("newton.cognition.scoring.score_expression").compile_formula(
            profile.expression, FEATURE_NAMES
        )
        return lambda features: compute(dict(zip(FEATURE_NAMES, features, strict=True)))
    weights = [(FEATURE_NAMES.index(name), weight) for name, weight in profile.weights.nonzero.items()]
    if profile.combine == "product":
        return lambda features: math.prod([max(features[index], 0.0) ** weight for index, weight in weights])
    return lambda features: sum([features[index] * weight for index, weight in weights])


def check_expression(expression: str) -> None:
    """Check the score expression of a profile. Raises InputError with the problem and the remedy."""
    import_module("newton.cognition.scoring.score_expression").check_formula(expression, FEATURE_NAMES)


def compute_contributions(features: Sequence[float], profile: Profile) -> dict[str, float]:
    """Return what each feature contributes to a score: a summand for a sum, a factor for a product.

    For an expression it is the score minus the score with a neutral value of the feature (ablation).
    """
    if profile.expression is not None:
        return _compute_ablations(features, profile)
    values: dict[str, float] = dict(zip(FEATURE_NAMES, features, strict=True))
    weights = profile.weights.nonzero.items()
    if profile.combine == "product":
        return {name: max(values[name], 0.0) ** weight for name, weight in weights}
    return {name: values[name] * weight for name, weight in weights}


def _compute_ablations(features: Sequence[float], profile: Profile) -> dict[str, float]:
    combine = create_combiner(profile)
    values: dict[str, float] = dict(zip(FEATURE_NAMES, features, strict=True))
    used = [name for name in FEATURE_NAMES if name in WORD.findall(profile.expression or "")]
    ablated = {name: combine([*(values | {name: NEUTRAL_FEATURES[name]}).values()]) for name in used}
    return {name: combine(features) - score for name, score in ablated.items()}


def _create_boost(boosts: ScoreBoosts, signals: QuerySignals) -> Callable[[RetrievedMemory, float], float]:
    """Return the function that multiplies the relevance by boosts for shared keywords and for fresh memories."""
    if boosts.keyword == 0 and boosts.fresh == 1:
        return lambda found, _: found.relevance

    def boosted(found: RetrievedMemory, hours: float) -> float:
        hits = len(signals.keywords.intersection(WORD.findall(found.summary.lower()))) if signals.keywords else 0
        return found.relevance * (1 + boosts.keyword * hits) * (boosts.fresh if hours < boosts.fresh_hours else 1.0)

    return boosted


def _create_salience(boosts: ScoreBoosts, signals: QuerySignals) -> Callable[[RetrievedMemory], float]:
    """Return the function for the salience: of an entity, the weight of a relation, the success rate of a procedure."""
    known_values = {memory_id: counts.rate for memory_id, counts in signals.trials.items()} | dict(signals.salience)
    if not known_values and not signals.mentioned_ids:
        return lambda _: NEUTRAL_SHARE

    def salience(found: RetrievedMemory) -> float:
        known = known_values.get(found.memory_id, NEUTRAL_SHARE)
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
