"""Ablation: the same questions without each feature and each source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from newton.cognition.bundles.cache import ContextCache
from newton.cognition.pipeline import ContextBuilder
from newton.content.profiles import FeatureWeights, Profile, select_profile
from newton.memory.memory import Kind
from newton.memory.ranking import DEFAULT_WEIGHTS, RankingWeights

BASELINE = "as it is"
NEUTRAL_FRAME = "question"  # the frame whose profile is taken apart, when none is named
PUBLISHED_PROFILE = "newton"  # the profile of the published weights

# What counts as evidence, and the sources it comes from.
RANKING_ABLATIONS: Mapping[str, RankingWeights] = {
    "without meaning": replace(DEFAULT_WEIGHTS, similarity=0.0),
    "without words": replace(DEFAULT_WEIGHTS, lexical=0.0),
    "without neighbours": replace(DEFAULT_WEIGHTS, neighbours=()),
    "without the speaker": replace(DEFAULT_WEIGHTS, speaker=0.0),
    "without the time asked for": replace(DEFAULT_WEIGHTS, time_range=0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationVariant:
    """A variant of context building. Without a profile, each frame uses its own."""

    name: str
    profile: str | None = None
    apply: Callable[[ContextBuilder], ContextBuilder] = lambda contexts: contexts


def build_variants(profile: Profile, kinds: Sequence[Kind]) -> list[AblationVariant]:
    """The profile as it is, relevance alone, the published weights, and the profile without each thing it goes by."""
    alone = _with_weights(profile, "relevance alone", {"similarity": 1.0})
    features = [
        _with_weights(profile, f"without {feature}", {k: v for k, v in profile.weights.nonzero.items() if k != feature})
        for feature in profile.weights.nonzero
        if feature != "similarity"
    ]
    evidence = [
        AblationVariant(name=name, profile=profile.name, apply=_with_ranking(weighing))
        for name, weighing in RANKING_ABLATIONS.items()
    ]
    sources = [
        AblationVariant(
            name=f"without {kind}",
            profile=profile.name,
            apply=_with_ranking(replace(DEFAULT_WEIGHTS, excluded_kinds=frozenset({kind}))),
        )
        for kind in kinds
    ]
    whole = AblationVariant(name=BASELINE, profile=profile.name)
    letter = AblationVariant(name=f"profile {PUBLISHED_PROFILE}, to the letter", profile=PUBLISHED_PROFILE)
    return [whole, alone, letter, *features, *evidence, *sources]


def select_base_profile(contexts: ContextBuilder, name: str | None) -> Profile:
    """Return the named profile, or that of the neutral frame."""
    return select_profile(contexts.profiles, name or contexts.frames[NEUTRAL_FRAME].profile, frame=NEUTRAL_FRAME)


def _with_ranking(ranking: RankingWeights) -> Callable[[ContextBuilder], ContextBuilder]:
    return lambda contexts: replace(contexts, ranking_weights=ranking, cache=ContextCache())


def _with_weights(profile: Profile, name: str, weights: Mapping[str, float]) -> AblationVariant:
    other = profile.model_copy(
        update={"name": name, "weights": FeatureWeights.model_validate(weights), "expression": None}
    )
    return AblationVariant(
        name=name,
        profile=name,
        apply=lambda contexts: replace(contexts, profiles={**contexts.profiles, name: other}, cache=ContextCache()),
    )
