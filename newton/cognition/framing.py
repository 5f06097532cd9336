"""Which frame an input asks for. Deterministic: patterns, nearest examples, and the frame the session is in. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from newton.content.frames import Frame

Vector: TypeAlias = NDArray[np.float32]

DEFAULT = "conversation"
EXAMPLE = 4.0  # a cosine moves less than a pattern does, and says more
PRIOR = 0.3  # what it takes to leave the session's frame
SHARPNESS = 4.0  # how decisively a lead in evidence becomes confidence
LONGEST = 2_000  # characters that are searched for patterns


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for one frame: its patterns in [0, 1], the cosine to its examples, 1 if the session is in it."""

    pattern: float
    example: float
    prior: float

    @property
    def score(self) -> float:
        return self.pattern + EXAMPLE * self.example + PRIOR * self.prior


@dataclass(frozen=True, slots=True)
class Choice:
    """The frame chosen, how surely (0 to 1), what came second, and the evidence for each frame."""

    frame: str
    confidence: float
    runner_up: str | None
    forced: bool
    evidence: Mapping[str, Evidence]


def forced(name: str) -> Choice:
    return Choice(frame=name, confidence=1.0, runner_up=None, forced=True, evidence={})


def choose(
    frames: Mapping[str, Frame],
    text: str,
    *,
    vector: Vector | None,
    centroids: Mapping[str, Vector],
    prior: str | None,
) -> Choice:
    """The frame with the most evidence. Without a vector, patterns and prior decide alone.

    `centroids` holds the direction of each frame's example sentences; `vector` is the input's. All are unit vectors.
    """
    evidence = {
        name: Evidence(
            pattern=_pattern(frame, text[:LONGEST]),
            example=float(centroids[name] @ vector) if vector is not None and name in centroids else 0.0,
            prior=1.0 if name == prior else 0.0,
        )
        for name, frame in frames.items()
    }
    ranked = sorted(evidence, key=lambda name: (-evidence[name].score, name != DEFAULT, name))
    return Choice(
        frame=ranked[0],
        confidence=_confidence([evidence[name].score for name in ranked]),
        runner_up=ranked[1] if len(ranked) > 1 else None,
        forced=False,
        evidence=evidence,
    )


def centroid(examples: Sequence[Vector]) -> Vector:
    """The direction that the unit vectors share, as a unit vector."""
    mean = np.stack(examples).mean(axis=0)
    return (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)


def _pattern(frame: Frame, text: str) -> float:
    """Independent hints add up without passing 1."""
    return 1 - math.prod(1 - pattern.weight for pattern in frame.evidence(text))


def _confidence(scores: Sequence[float]) -> float:
    """The first one's share of a softmax over the scores."""
    return 1 / sum(math.exp(SHARPNESS * (score - scores[0])) for score in scores)
