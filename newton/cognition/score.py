"""How well a memory serves this input: one feature vector each, combined by the profile. Pure and explained."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.content.frames import Frame
from newton.content.profiles import Clock, Profile
from newton.memory.recall import Found

# Where each kind is shown.
LAYER_OF: Mapping[str, str] = {"fact": "facts", "exchange": "episodes", "episode": "episodes"}

NEUTRAL = 1.0  # what an unknown feature counts: it neither helps nor hurts


@dataclass(frozen=True, slots=True)
class Scored:
    """A memory with its features in about [0, 1], and the score the profile makes of them."""

    found: Found
    features: Mapping[str, float]
    score: float

    @property
    def memory_id(self) -> UUID:
        return self.found.memory_id

    @property
    def layer(self) -> str:
        return LAYER_OF[self.found.kind]

    @property
    def summary_tokens(self) -> int:
        return self.found.summary_tokens

    @property
    def micro_tokens(self) -> int:
        return self.found.micro_tokens


def scored(found: Found, *, frame: Frame, profile: Profile, now: datetime) -> Scored:
    features = {
        "similarity": found.relevance,
        "cosine": found.similarity or 0.0,
        "lexical": found.lexical,
        "type_priority": frame.priority(found.kind),
        "recency": profile.recency.left(now - _clock(found, profile.recency.clock)),
        "importance": found.importance,
        "outcome": profile.outcome.of(found.outcome),
        "usage": profile.usage.of(found.uses),
        "confidence": NEUTRAL if found.confidence is None else found.confidence,
    }
    return Scored(found, features, combined(features, profile))


def combined(features: Mapping[str, float], profile: Profile) -> float:
    """
    A feature that is not known counts as 1: neutral in a product, the same for everyone in a sum.
    """
    weights = profile.weights.given
    if profile.combine == "product":
        return math.prod(features.get(name, NEUTRAL) ** weight for name, weight in weights.items())
    return sum(weight * features.get(name, NEUTRAL) for name, weight in weights.items())


def contributions(features: Mapping[str, float], profile: Profile) -> dict[str, float]:
    """What each feature gave to the score: its weighted value in a sum, its factor in a product."""
    if profile.combine == "product":
        return {name: features.get(name, NEUTRAL) ** weight for name, weight in profile.weights.given.items()}
    return {name: weight * features.get(name, NEUTRAL) for name, weight in profile.weights.given.items()}


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
