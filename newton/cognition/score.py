"""How well a memory serves this input: one feature vector each, combined by the profile. Pure and explained."""

import math
import struct
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from newton.content.frames import Frame
from newton.content.profiles import Clock, Profile
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
}

# A procedure's own outcome is what its record says of it.
RECORDS: Mapping[str, Outcome] = {"EFFECTIVE": "success", "INEFFECTIVE": "failure"}

NEUTRAL = 1.0  # what an unknown feature counts: it neither helps nor hurts


# The features of a memory, in the order in which they are kept.
FEATURES = (
    "similarity",
    "cosine",
    "lexical",
    "type_priority",
    "recency",
    "importance",
    "outcome",
    "usage",
    "confidence",
)


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
    return Scored(found, features, combined(features, _weights(profile), profile.combine))


def scorer(*, frame: Frame, profile: Profile, now: datetime) -> Callable[[Found], Scored]:
    """How this frame and profile score a memory at this moment."""
    decay, outcomes, usage = profile.recency, profile.outcome, profile.usage
    priorities = {kind: frame.priority(kind) for kind in LAYER_OF}
    weights = _weights(profile)

    def scored(found: Found) -> Scored:
        precise = (
            found.relevance,
            found.similarity,
            found.lexical,
            priorities[found.kind],
            decay.left(now - _clock(found, decay.clock)),
            found.matters,
            outcomes.of(RECORDS.get(found.state, found.outcome)),
            usage.of(found.uses),
            NEUTRAL if found.confidence is None else found.confidence,
        )
        features = _KEPT.unpack(_KEPT.pack(*precise))
        return Scored(found, features, combined(features, weights, profile.combine))

    return scored


def combined(features: tuple[float, ...], weights: tuple[float, ...], combine: Literal["sum", "product"]) -> float:
    """The features, each with its weight, as a sum or a product."""
    pairs = zip(features, weights, strict=True)
    if combine == "product":
        return math.prod([feature**weight for feature, weight in pairs])
    return sum([feature * weight for feature, weight in pairs])


def contributions(features: tuple[float, ...], profile: Profile) -> dict[str, float]:
    """What each feature that counts gave to the score: its weighted value in a sum, its factor in a product."""
    given = [
        (name, feature, weight)
        for name, feature, weight in zip(FEATURES, features, _weights(profile), strict=True)
        if weight
    ]
    if profile.combine == "product":
        return {name: feature**weight for name, feature, weight in given}
    return {name: feature * weight for name, feature, weight in given}


def _weights(profile: Profile) -> tuple[float, ...]:
    """A weight for each of FEATURES. What no memory has yet would be the same for all, and is left out."""
    return tuple(profile.weights.given.get(name, 0.0) for name in FEATURES)


def _clock(found: Found, clock: Clock) -> datetime:
    match clock:
        case "accessed":
            return found.accessed_at or found.created_at
        case "confirmed":
            return found.confirmed_at or found.created_at
        case "occurred":
            return found.occurred_at
        case "created":
            return found.created_at
