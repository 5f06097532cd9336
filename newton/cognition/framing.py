"""Which frame an input asks for. Deterministic: patterns, likeness to examples, and the session's frame. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from newton.cognition.opening import substance
from newton.content.frames import Frame

Vector: TypeAlias = NDArray[np.float32]

DEFAULT = "conversation"
EXAMPLE = 3.0  # a likeness moves less than a pattern does, and says more
RIDGE = 4.0  # how far directions are kept from fitting single examples
PRIOR = 0.3  # what it takes to leave the session's frame
SHARPNESS = 4.0  # how decisively a lead in evidence becomes confidence
FLOOR = 0.5  # of the development set, below it lie 1 in 100 of the right choices and 3 in 7 of the wrong ones
LONGEST = 250  # characters that are searched for patterns: each costs 6 microseconds


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a frame: patterns in [0, 1], likeness to its examples (1 at most or so), 1 for the session's."""

    pattern: float
    example: float
    prior: float

    @property
    def score(self) -> float:
        return self.pattern + EXAMPLE * self.example + PRIOR * self.prior


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The frame chosen, how surely (0 to 1), what came second, the reason in words, and the evidence for each frame.

    `unsure` says that the best frame stayed below the floor: then the session's frame holds on, else the neutral one.
    """

    frame: str
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str
    evidence: Mapping[str, Evidence]


def forced(name: str) -> Choice:
    return Choice(
        frame=name, confidence=1.0, runner_up=None, forced=True, unsure=False, reason="it was asked for", evidence={}
    )


def choose(
    frames: Mapping[str, Frame],
    text: str,
    *,
    vector: Vector | None,
    directions: Mapping[str, Vector],
    prior: str | None,
) -> Choice:
    """The frame with the most evidence. Without a vector, patterns and prior decide alone.

    `directions` come from `directions()`; `vector` is the unit vector of the text's substance. When the best frame is
    not sure enough, it is the runner-up of the frame that is used instead, and the confidence told is its own.
    """
    said = substance(text[:LONGEST])
    evidence = {
        name: Evidence(
            pattern=_pattern(frame, said),
            example=_likeness(directions[name], vector) if vector is not None and name in directions else 0.0,
            prior=1.0 if name == prior else 0.0,
        )
        for name, frame in frames.items()
    }
    ranked = sorted(evidence, key=lambda name: (-evidence[name].score, name != DEFAULT, name))
    confidence = _confidence([evidence[name].score for name in ranked])
    unsure = confidence < FLOOR
    used = (prior if prior and prior in frames else DEFAULT) if unsure else ranked[0]
    reason = _reason(frames[ranked[0]], said, evidence[ranked[0]])
    return Choice(
        frame=used,
        confidence=confidence,
        runner_up=next((name for name in ranked if name != used), None),
        forced=False,
        unsure=unsure,
        reason=f"nothing speaks clearly enough; most for {ranked[0]}: {reason}" if unsure else reason,
        evidence=evidence,
    )


def directions(examples: Mapping[str, Sequence[Vector]]) -> dict[str, Vector]:
    """What tells each frame's examples from those of the others: weights of a ridge regression, the constant last.

    Each frame counts the same, however many examples it has.
    """
    rows = np.stack([np.append(vector, 1.0) for vectors in examples.values() for vector in vectors]).astype(np.float64)
    place = np.repeat(np.arange(len(examples)), [len(vectors) for vectors in examples.values()])
    weight = (len(rows) / len(examples) / np.bincount(place))[place][:, None]
    penalty = np.diag([*[RIDGE] * (rows.shape[1] - 1), 1e-6])  # the constant is free
    solved = np.linalg.solve(rows.T @ (rows * weight) + penalty, rows.T @ (np.eye(len(examples))[place] * weight))
    return {name: solved[:, n].astype(np.float32) for n, name in enumerate(examples)}


def _likeness(direction: Vector, vector: Vector) -> float:
    return float(direction[:-1] @ vector + direction[-1])


def _reason(frame: Frame, text: str, evidence: Evidence) -> str:
    """In words, the strongest first."""
    parts = [
        (evidence.pattern, f"it says {', '.join(repr(phrase) for phrase in frame.phrases(text)[:3])}"),
        (EXAMPLE * evidence.example, f"it is like its examples ({evidence.example:.2f})"),
        (PRIOR * evidence.prior, "the session is in it"),
    ]
    return "; ".join(told for weight, told in sorted(parts, reverse=True) if weight > 0) or "nothing speaks for any"


def _pattern(frame: Frame, text: str) -> float:
    """Independent hints add up without passing 1."""
    return 1 - math.prod(1 - pattern.weight for pattern in frame.evidence(text))


def _confidence(scores: Sequence[float]) -> float:
    """The first one's share of a softmax over the scores."""
    return 1 / sum(math.exp(SHARPNESS * (score - scores[0])) for score in scores)
