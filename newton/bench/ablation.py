"""Ablation: variants of context building that each leave out one feature, one search signal or one kind of memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from newton.cognition.bundles.cache import ContextCache
from newton.cognition.pipeline import ContextBuilder
from newton.content.profiles import FeatureWeights, Profile, select_profile
from newton.memory.memory import Kind
from newton.memory.ranking import DEFAULT_WEIGHTS, RankingWeights

BASELINE = "unchanged profile"
NEUTRAL_FRAME = "question"  # the frame whose profile is the default base profile
PUBLISHED_PROFILE = "newton"  # the profile with the published weights

# Ranking weights without one kind of evidence.
RANKING_ABLATIONS: Mapping[str, RankingWeights] = {
    "without vector search": replace(DEFAULT_WEIGHTS, similarity=0.0),
    "without word search": replace(DEFAULT_WEIGHTS, lexical=0.0),
    "without adjacent messages": replace(DEFAULT_WEIGHTS, neighbours=()),
    "without the speaker": replace(DEFAULT_WEIGHTS, speaker=0.0),
    "without the requested time": replace(DEFAULT_WEIGHTS, time_range=0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationVariant:
    """A variant of context building, made by `apply`. Without `profile`, each frame uses its own profile."""

    name: str
    profile: str | None = None
    apply: Callable[[ContextBuilder], ContextBuilder] = lambda contexts: contexts


def build_variants(profile: Profile, kinds: Sequence[Kind]) -> list[AblationVariant]:
    """Return the variants to compare: the unchanged profile, relevance alone, the published weights, and the ablations.

    An ablation leaves out one feature of the profile, one search signal, or one of `kinds` of memories.
    """
    weights = profile.weights.nonzero
    rankings = {
        **RANKING_ABLATIONS,
        **{f"without {kind}": replace(DEFAULT_WEIGHTS, excluded_kinds=frozenset({kind})) for kind in kinds},
    }
    return [
        AblationVariant(name=BASELINE, profile=profile.name),
        _with_weights(profile, "relevance alone", {"similarity": 1.0}),
        AblationVariant(name=f"profile {PUBLISHED_PROFILE}, as published", profile=PUBLISHED_PROFILE),
        *(
            _with_weights(profile, f"without {feature}", {k: v for k, v in weights.items() if k != feature})
            for feature in weights
            if feature != "similarity"
        ),
        *(
            AblationVariant(name=name, profile=profile.name, apply=_with_ranking(ranking))
            for name, ranking in rankings.items()
        ),
    ]


def select_base_profile(contexts: ContextBuilder, name: str | None) -> Profile:
    """Return the profile with this name; without a name, the profile of the frame NEUTRAL_FRAME."""
    return select_profile(contexts.profiles, name or contexts.frames[NEUTRAL_FRAME].profile, frame=NEUTRAL_FRAME)


def _with_ranking(ranking: RankingWeights) -> Callable[[ContextBuilder], ContextBuilder]:
    return lambda contexts: replace(contexts, ranking_weights=ranking, cache=ContextCache())


def _with_weights(profile: Profile, name: str, weights: Mapping[str, float]) -> AblationVariant:
    changes = {"name": name, "weights": FeatureWeights.model_validate(weights), "expression": None}
    changed = profile.model_copy(update=changes)
    return AblationVariant(
        name=name,
        profile=name,
        apply=lambda contexts: replace(contexts, profiles={**contexts.profiles, name: changed}, cache=ContextCache()),
    )
