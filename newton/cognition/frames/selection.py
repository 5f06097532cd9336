"""Which frame an input asks for. Deterministic: likeness to examples, patterns, and the session's frame. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from newton.cognition.frames.classifier import FrameClassifier
from newton.cognition.greetings import says_resolved, strip_greeting
from newton.content.frames import Frame

if TYPE_CHECKING:
    from newton.client.context import FrameSelection

Vector: TypeAlias = NDArray[np.float32]

DEFAULT_FRAME = "conversation"
PATTERN_WEIGHT = 1.0  # what a certain pattern adds to what the examples taught, in natural logarithms of odds
PATTERN_ONLY_WEIGHT = 6.0  # what it counts where there are no examples: from a half on it speaks for the frame
SESSION_FRAME_WEIGHT = 1.0  # the odds of another frame must be e times better to leave the session's
MIN_CONFIDENCE = 0.45  # over the examples, left out in turn, fewer than half of the choices below it are right
MAX_PATTERN_CHARS = 250  # characters that are searched for patterns: each costs 6 microseconds
TIEBREAK_FRAMES = 3  # so many of the first are put before a model


@dataclass(frozen=True, slots=True)
class FrameEvidence:
    """What speaks for a frame: patterns (0 to 1), the logarithm of its probability by examples, 1 for the session's."""

    pattern: float
    example: float
    prior: float
    weight: float = PATTERN_WEIGHT

    @property
    def score(self) -> float:
        return self.weight * self.pattern + self.example + SESSION_FRAME_WEIGHT * self.prior


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameChoice:
    """The frame chosen, how surely (0 to 1), what came second, the reason in words, and the evidence for each frame.

    `unsure` says that the best frame stayed below the floor: then the session's frame holds on, else the neutral one.
    """

    frame: str
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str
    evidence: Mapping[str, FrameEvidence]

    @property
    def top_frames(self) -> list[str]:
        """The frames with the most evidence, best first."""
        return _rank_frames(self.evidence)[:TIEBREAK_FRAMES]

    def as_json(self) -> "FrameSelection":
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


def force_frame(frame: str) -> FrameChoice:
    return FrameChoice(
        frame=frame, confidence=1.0, runner_up=None, forced=True, unsure=False, reason="it was asked for", evidence={}
    )


def choose_frame(
    frames: Mapping[str, Frame],
    text: str,
    *,
    vector: Vector | None,
    classifier: FrameClassifier | None,
    session_frame: str | None,
) -> FrameChoice:
    """The frame with the most evidence. Without a vector, words and prior decide alone.

    `vector` is of the text behind its polite opening. When the best frame is not sure enough, it is the runner-up of
    the frame that is used instead, and the confidence told is its own. What only says that something is right again
    asks for nothing, and leaves the session in its frame.
    """
    said = strip_greeting(text)
    evidence = _collect_evidence(
        frames, said, classifier.predict_log_proba(said, vector) if classifier else {}, session_frame
    )
    ranked = _rank_frames(evidence)
    if says_resolved(text):
        return _keep_session_frame(_fallback_frame(frames, session_frame), ranked, evidence)
    confidence = _compute_confidence([evidence[name].score for name in ranked])
    unsure = confidence < MIN_CONFIDENCE
    used = _fallback_frame(frames, session_frame) if unsure else ranked[0]
    reason = _explain_choice(frames[ranked[0]], said, evidence[ranked[0]], vector, classifier)
    return FrameChoice(
        frame=used,
        confidence=confidence,
        runner_up=next((name for name in ranked if name != used), None),
        forced=False,
        unsure=unsure,
        reason=f"nothing speaks clearly enough; most for {ranked[0]}: {reason}" if unsure else reason,
        evidence=evidence,
    )


def _fallback_frame(frames: Mapping[str, Frame], session_frame: str | None) -> str:
    """The session's frame, else the neutral one."""
    return session_frame if session_frame and session_frame in frames else DEFAULT_FRAME


def _keep_session_frame(frame: str, ranked_frames: Sequence[str], evidence: Mapping[str, FrameEvidence]) -> FrameChoice:
    return FrameChoice(
        frame=frame,
        confidence=1.0,
        runner_up=next((name for name in ranked_frames if name != frame), None),
        forced=False,
        unsure=False,
        reason="it only says that something is right again",
        evidence=evidence,
    )


def apply_tiebreak(choice: FrameChoice, frame: str) -> FrameChoice:
    """The choice after a model was asked which of the close frames it is. Any other answer changes nothing."""
    if frame not in choice.top_frames:
        return choice
    ranked = [frame, *(other for other in _rank_frames(choice.evidence) if other != frame)]
    scores = [choice.evidence[each].score for each in ranked]
    return replace(
        choice,
        frame=frame,
        confidence=_compute_confidence(scores),
        runner_up=ranked[1] if len(ranked) > 1 else None,
        unsure=False,
        reason=f"a model took it out of {', '.join(choice.top_frames)}",
    )


def _collect_evidence(
    frames: Mapping[str, Frame], text: str, log_probabilities: Mapping[str, float], session_frame: str | None
) -> dict[str, FrameEvidence]:
    """A frame without examples has its patterns alone: from a half on they beat what the examples speak for."""
    best = max((log_probabilities[name] for name in frames if name in log_probabilities), default=0.0)
    return {
        name: FrameEvidence(
            pattern=_score_patterns(frame, text[:MAX_PATTERN_CHARS]),
            example=log_probabilities[name] if name in log_probabilities else best - PATTERN_ONLY_WEIGHT / 2,
            prior=1.0 if name == session_frame else 0.0,
            weight=PATTERN_WEIGHT if name in log_probabilities else PATTERN_ONLY_WEIGHT,
        )
        for name, frame in frames.items()
    }


def _rank_frames(evidence: Mapping[str, FrameEvidence]) -> list[str]:
    return sorted(evidence, key=lambda name: (-evidence[name].score, name != DEFAULT_FRAME, name))


def _explain_choice(
    frame: Frame, text: str, evidence: FrameEvidence, vector: Vector | None, classifier: FrameClassifier | None
) -> str:
    """In words: what it says, which example it is like, and the session."""
    phrases = list(frame.matched_phrases(text[:MAX_PATTERN_CHARS])[:3])
    example = None
    if classifier and frame.name in classifier.frames:
        phrases = phrases or classifier.find_top_ngrams(text, frame.name, limit=3)
        example = None if vector is None else classifier.find_nearest_example(vector, frame.name)
    parts = [
        f"it says {', '.join(repr(phrase) for phrase in phrases)}" if phrases else "",
        f"it is like {example!r}" if example else "",
        "the session is in it" if evidence.prior else "",
    ]
    return "; ".join(part for part in parts if part) or (
        "it has the form of its examples" if classifier else "nothing speaks for any"
    )


def _score_patterns(frame: Frame, text: str) -> float:
    """Independent hints add up without passing 1."""
    return 1 - math.prod(1 - pattern.weight for pattern in frame.matching_patterns(text))


def _compute_confidence(scores: Sequence[float]) -> float:
    """The first one's share of a softmax over the scores."""
    return 1 / sum(math.exp(score - scores[0]) for score in scores)
