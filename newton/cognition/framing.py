"""Which frame an input asks for. Deterministic: likeness to examples, patterns, and the session's frame. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from newton.cognition.likeness import Likeness
from newton.cognition.opening import closes, substance
from newton.content.frames import Frame

Vector: TypeAlias = NDArray[np.float32]

DEFAULT = "conversation"
PATTERN = 1.0  # what a certain pattern adds to what the examples taught, in natural logarithms of odds
ALONE = 6.0  # what it counts where there are no examples: from a half on it speaks for the frame
PRIOR = 1.0  # the odds of another frame must be e times better to leave the session's
FLOOR = 0.45  # over the examples, left out in turn, fewer than half of the choices below it are right
LONGEST = 250  # characters that are searched for patterns: each costs 6 microseconds
CLOSE = 3  # so many of the first are put before a model


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a frame: patterns (0 to 1), the logarithm of its probability by examples, 1 for the session's."""

    pattern: float
    example: float
    prior: float
    weight: float = PATTERN

    @property
    def score(self) -> float:
        return self.weight * self.pattern + self.example + PRIOR * self.prior


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

    @property
    def close(self) -> list[str]:
        """The frames with the most evidence, best first."""
        return _ranked(self.evidence)[:CLOSE]

    def outline(self) -> dict[str, object]:
        """The public form: what every door answers, and what is stored."""
        return {
            "name": self.frame,
            "confidence": round(self.confidence, 4),
            "runner_up": self.runner_up,
            "forced": self.forced,
            "unsure": self.unsure,
            "reason": self.reason,
            "evidence": {
                name: {part: round(getattr(e, part), 4) for part in ("pattern", "example", "prior")}
                for name, e in self.evidence.items()
            },
        }


def forced(name: str) -> Choice:
    return Choice(
        frame=name, confidence=1.0, runner_up=None, forced=True, unsure=False, reason="it was asked for", evidence={}
    )


def choose(
    frames: Mapping[str, Frame],
    text: str,
    *,
    vector: Vector | None,
    likeness: Likeness | None,
    prior: str | None,
) -> Choice:
    """The frame with the most evidence. Without a vector, words and prior decide alone.

    `vector` is of the text behind its polite opening. When the best frame is not sure enough, it is the runner-up of
    the frame that is used instead, and the confidence told is its own. What only says that something is right again
    asks for nothing, and leaves the session in its frame.
    """
    said = substance(text)
    evidence = _evidence(frames, said, likeness.of(said, vector) if likeness else {}, prior)
    ranked = _ranked(evidence)
    if closes(text):
        return _closed(_usual(frames, prior), ranked, evidence)
    confidence = _confidence([evidence[name].score for name in ranked])
    unsure = confidence < FLOOR
    used = _usual(frames, prior) if unsure else ranked[0]
    reason = _reason(frames[ranked[0]], said, evidence[ranked[0]], vector, likeness)
    return Choice(
        frame=used,
        confidence=confidence,
        runner_up=next((name for name in ranked if name != used), None),
        forced=False,
        unsure=unsure,
        reason=f"nothing speaks clearly enough; most for {ranked[0]}: {reason}" if unsure else reason,
        evidence=evidence,
    )


def _usual(frames: Mapping[str, Frame], prior: str | None) -> str:
    """The session's frame, else the neutral one."""
    return prior if prior and prior in frames else DEFAULT


def _closed(used: str, ranked: Sequence[str], evidence: Mapping[str, Evidence]) -> Choice:
    return Choice(
        frame=used,
        confidence=1.0,
        runner_up=next((name for name in ranked if name != used), None),
        forced=False,
        unsure=False,
        reason="it only says that something is right again",
        evidence=evidence,
    )


def settled(choice: Choice, name: str) -> Choice:
    """The choice after a model was asked which of the close frames it is. Any other answer changes nothing."""
    if name not in choice.close:
        return choice
    ranked = [name, *(other for other in _ranked(choice.evidence) if other != name)]
    scores = [choice.evidence[each].score for each in ranked]
    return replace(
        choice,
        frame=name,
        confidence=_confidence(scores),
        runner_up=ranked[1] if len(ranked) > 1 else None,
        unsure=False,
        reason=f"a model took it out of {', '.join(choice.close)}",
    )


def _evidence(
    frames: Mapping[str, Frame], said: str, learnt: Mapping[str, float], prior: str | None
) -> dict[str, Evidence]:
    """A frame without examples has its patterns alone: from a half on they beat what the examples speak for."""
    best = max((learnt[name] for name in frames if name in learnt), default=0.0)
    return {
        name: Evidence(
            pattern=_pattern(frame, said[:LONGEST]),
            example=learnt[name] if name in learnt else best - ALONE / 2,
            prior=1.0 if name == prior else 0.0,
            weight=PATTERN if name in learnt else ALONE,
        )
        for name, frame in frames.items()
    }


def _ranked(evidence: Mapping[str, Evidence]) -> list[str]:
    return sorted(evidence, key=lambda name: (-evidence[name].score, name != DEFAULT, name))


def _reason(frame: Frame, said: str, evidence: Evidence, vector: Vector | None, likeness: Likeness | None) -> str:
    """In words: what it says, which example it is like, and the session."""
    phrases = list(frame.phrases(said[:LONGEST])[:3])
    example = None
    if likeness and frame.name in likeness.frames:
        phrases = phrases or likeness.words(said, frame.name, most=3)
        example = None if vector is None else likeness.nearest(vector, frame.name)
    parts = [
        f"it says {', '.join(repr(phrase) for phrase in phrases)}" if phrases else "",
        f"it is like {example!r}" if example else "",
        "the session is in it" if evidence.prior else "",
    ]
    return "; ".join(part for part in parts if part) or (
        "it has the form of its examples" if likeness else "nothing speaks for any"
    )


def _pattern(frame: Frame, text: str) -> float:
    """Independent hints add up without passing 1."""
    return 1 - math.prod(1 - pattern.weight for pattern in frame.evidence(text))


def _confidence(scores: Sequence[float]) -> float:
    """The first one's share of a softmax over the scores."""
    return 1 / sum(math.exp(score - scores[0]) for score in scores)
