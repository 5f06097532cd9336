"""What each feature and each source is worth: the same questions with it taken away."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from newton.cognition.context import Contexts
from newton.cognition.current import Shelf
from newton.content.profiles import Profile, Weights, profile_for
from newton.memory.memory import Kind
from newton.memory.ranking import USUAL, Weighing

AS_IT_IS = "as it is"
NEUTRAL = "question"  # the frame whose profile is taken apart, when none is named
LETTER = "newton"  # the profile of the published weights

# What counts as evidence, and the sources it comes from.
WEIGHINGS: Mapping[str, Weighing] = {
    "without meaning": replace(USUAL, meaning=0.0),
    "without words": replace(USUAL, words=0.0),
    "without neighbours": replace(USUAL, lent=()),
    "without the speaker": replace(USUAL, named=0.0),
    "without the time asked for": replace(USUAL, timed=0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A way to make contexts. Without a profile each frame takes its own."""

    name: str
    profile: str | None = None
    change: Callable[[Contexts], Contexts] = lambda contexts: contexts


def variants(profile: Profile, kinds: Sequence[Kind]) -> list[Variant]:
    """The profile as it is, relevance alone, the published weights, and the profile without each thing it goes by."""
    alone = _weighing(profile, "relevance alone", {"similarity": 1.0})
    features = [
        _weighing(profile, f"without {feature}", {k: v for k, v in profile.weights.given.items() if k != feature})
        for feature in profile.weights.given
        if feature != "similarity"
    ]
    evidence = [
        Variant(name=name, profile=profile.name, change=_searching(weighing)) for name, weighing in WEIGHINGS.items()
    ]
    sources = [
        Variant(
            name=f"without {kind}", profile=profile.name, change=_searching(replace(USUAL, without=frozenset({kind})))
        )
        for kind in kinds
    ]
    whole = Variant(name=AS_IT_IS, profile=profile.name)
    letter = Variant(name=f"profile {LETTER}, to the letter", profile=LETTER)
    return [whole, alone, letter, *features, *evidence, *sources]


def chosen(contexts: Contexts, name: str | None) -> Profile:
    """The profile that is taken apart: the one that is asked for, or that of the neutral frame."""
    return profile_for(contexts.profiles, name or contexts.frames[NEUTRAL].profile, frame=NEUTRAL)


def _searching(weighing: Weighing) -> Callable[[Contexts], Contexts]:
    return lambda contexts: replace(contexts, weighing=weighing, shelf=Shelf())


def _weighing(profile: Profile, name: str, weights: Mapping[str, float]) -> Variant:
    other = profile.model_copy(update={"name": name, "weights": Weights.model_validate(weights), "expression": None})
    return Variant(
        name=name,
        profile=name,
        change=lambda contexts: replace(contexts, profiles={**contexts.profiles, name: other}, shelf=Shelf()),
    )
