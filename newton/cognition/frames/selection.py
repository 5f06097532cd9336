"""Selection of the frame of an input by trained examples, patterns and the session's frame, or by a model. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from newton.cognition.frames.classifier import FrameClassifier, FrameFeature, select_reasons
from newton.cognition.frames.input_features import InputFeatures, asks_for_something
from newton.content.frames import Frame
from newton.memory.representations import one_line
from newton.providers.frame_reader import FrameReading, read_frames
from newton.text.greetings import says_resolved, strip_greeting

if TYPE_CHECKING:
    from newton.client.context import FrameSelection

Vector: TypeAlias = NDArray[np.float32]

DEFAULT_FRAME = "conversation"
PATTERN_WEIGHT = 1.0  # log odds of a full pattern match, beside the examples
PATTERN_ONLY_WEIGHT = 6.0  # the same for a frame without examples: a score above 0.5 wins
SESSION_FRAME_WEIGHT = 1.0  # log odds in favour of the session's frame
CLEAR_MARGIN = 19.0  # log odds at which one input changes the frame within a topic; otherwise it takes two
SAME_TOPIC = "the topic is the same"  # begins the reason for a frame that is kept from the session
SURE_CONFIDENCE = 0.97  # from here, with a pattern of the frame, 99 % of the choices are right
MIN_CONFIDENCE = 0.45  # below this, fewer than half of the choices are right (leave-one-out over the examples)
MIN_READING = 0.3  # the same of the reader, of which the confidence is true
MAX_PATTERN_CHARS = 250  # of the input that are matched with patterns: each character costs 6 microseconds
MAX_FEATURES = 8  # named in an explanation
TIEBREAK_FRAMES = 3  # frames offered to the model


@dataclass(frozen=True, slots=True)
class FrameEvidence:
    """Evidence for a frame: of its patterns (0 to 1), and of the classifier (a log probability).

    `prior` is 1.0 for the frame of the session, else 0.0. `weight` is the weight of the patterns.
    """

    pattern: float
    example: float
    prior: float
    weight: float = PATTERN_WEIGHT

    @property
    def score(self) -> float:
        return self.weight * self.pattern + self.example + SESSION_FRAME_WEIGHT * self.prior


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameChoice:
    """The selected frame with its confidence (0 to 1), the second best frame, the reason and the evidence.

    `unsure` means that the best frame had a confidence below `MIN_CONFIDENCE`, so the session's frame or
    `DEFAULT_FRAME` was selected instead. `forced` means that the caller named the frame. `languages` are those in which
    the input was read, the most probable first; none if it is in an unknown one. `features` are those that speak for
    and against the best frame, compared with the second best one. `is_informing` means that the input only tells
    something: it has no use for the questions of a frame.
    """

    frame: str
    confidence: float
    runner_up: str | None
    forced: bool
    unsure: bool
    reason: str
    evidence: Mapping[str, FrameEvidence]
    languages: tuple[str, ...] = ()
    features: tuple[FrameFeature, ...] = ()
    is_informing: bool = False

    @property
    def is_sure(self) -> bool:
        """Return whether examples and patterns agree on the frame, it has patterns alone, or the caller named it."""
        if self.forced or self.unsure or not (found := self.evidence.get(self.frame)):
            return self.forced
        return found.pattern > 0 and (self.confidence >= SURE_CONFIDENCE or found.weight == PATTERN_ONLY_WEIGHT)

    @property
    def top_frames(self) -> list[str]:
        """Return the names of the `TIEBREAK_FRAMES` frames with the most evidence, best first."""
        return _rank_frames(self.evidence)[:TIEBREAK_FRAMES]

    def as_json(self) -> "FrameSelection":
        """Return the choice in the form in which it is published and stored."""
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
            "languages": list(self.languages),
            "features": [
                {"kind": f.kind, "name": f.name, "phrase": f.phrase, "weight": round(f.weight, 4)}
                for f in self.features
            ],
        }


UNSELECTED_FRAME = FrameChoice(
    frame=DEFAULT_FRAME,
    confidence=0.0,
    runner_up=None,
    forced=False,
    unsure=True,
    reason="the selection of a frame failed",
    evidence={},
)


def force_frame(frame: str) -> FrameChoice:
    return FrameChoice(
        frame=frame,
        confidence=1.0,
        runner_up=None,
        forced=True,
        unsure=False,
        reason="the caller requested it",
        evidence={},
    )


def choose_frame(
    frames: Mapping[str, Frame],
    text: str,
    *,
    vector: Vector | None,
    classifier: FrameClassifier | None,
    session_frame: str | None,
) -> FrameChoice:
    """Select the frame with the most evidence for a text.

    `vector` embeds the text without its greeting; without it, patterns, n-grams and the session's frame decide. If the
    choice is unsure, select the session's frame or `DEFAULT_FRAME`, with the best frame as runner-up. A text that only
    reports something as resolved keeps the session's frame.
    """
    core = strip_greeting(text)
    inputs = classifier.extractor.extract(core) if classifier else None
    reading = read_frames(core) if classifier and classifier.is_shipped and inputs and inputs.is_english else None
    log_probabilities = classifier.predict_log_proba(inputs, vector) if classifier and inputs and not reading else {}
    log_probabilities = reading.rates if reading else log_probabilities
    evidence = _collect_evidence(frames, core, log_probabilities, session_frame)
    ranked = _rank_frames(evidence)
    fallback = session_frame if session_frame and session_frame in frames else DEFAULT_FRAME
    confidence = _compute_confidence([evidence[name].score for name in ranked])
    unsure, is_resolved = confidence < (MIN_READING if reading else MIN_CONFIDENCE), says_resolved(text)
    selected = fallback if unsure or is_resolved else ranked[0]
    explained = _explain_reading(reading, ranked) if reading else _explain(inputs, vector, classifier, ranked)
    features = _weigh_features(ranked, evidence, explained)
    reason = _explain_choice(frames[ranked[0]], core, evidence[ranked[0]], features, vector, classifier)
    if is_resolved:
        confidence, unsure, reason = 1.0, False, "the input only reports something as resolved"
    return FrameChoice(
        frame=selected,
        confidence=confidence,
        runner_up=next((name for name in ranked if name != selected), None),
        forced=False,
        unsure=unsure,
        reason=f"no frame has enough evidence; the best is {ranked[0]}: {reason}" if unsure else reason,
        evidence=evidence,
        languages=inputs.languages if inputs else (),
        features=features,
        is_informing=inputs is not None
        and not asks_for_something(inputs.form)
        and evidence[selected].weight == PATTERN_WEIGHT,
    )


def keep_session_frame(choice: FrameChoice, session_frame: str, *, pending_frame: str | None) -> FrameChoice:
    """Replace the chosen frame by the session's frame, for an input on the same topic.

    The choice is returned unchanged if the evidence for its frame exceeds that for the session's frame by
    `CLEAR_MARGIN`, or if the previous input suggested the same frame (`pending_frame`).
    """
    evidence = choice.evidence
    if choice.frame in (session_frame, pending_frame) or session_frame not in evidence or choice.frame not in evidence:
        return choice
    if evidence[choice.frame].score - evidence[session_frame].score >= CLEAR_MARGIN:
        return choice
    ranked = [session_frame, *(name for name in _rank_frames(evidence) if name != session_frame)]
    return replace(
        choice,
        frame=session_frame,
        confidence=_compute_confidence([evidence[name].score for name in ranked]),
        runner_up=choice.frame,
        reason=f"{SAME_TOPIC}, and one input is too little evidence for {choice.frame}: {choice.reason}",
    )


def apply_tiebreak(choice: FrameChoice, frame: str) -> FrameChoice:
    """Return the choice with `frame`, the answer of a model. An answer outside of `top_frames` changes nothing."""
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
        reason=f"a model chose it from {', '.join(choice.top_frames)}",
    )


def _collect_evidence(
    frames: Mapping[str, Frame], text: str, log_probabilities: Mapping[str, float], session_frame: str | None
) -> dict[str, FrameEvidence]:
    """Return the evidence for each frame.

    A frame without examples is scored by patterns alone; if they score above 0.5, it beats all examples.
    """
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


def _explain(
    inputs: InputFeatures | None, vector: Vector | None, classifier: FrameClassifier | None, ranked: Sequence[str]
) -> list[FrameFeature]:
    """Return the features of the classifier that speak for or against the best frame."""
    is_known = classifier and inputs and len(ranked) > 1 and set(ranked[:2]) <= set(classifier.frames)
    return classifier.explain(inputs, vector, *ranked[:2]) if classifier and inputs and is_known else []


def _explain_reading(reading: FrameReading, ranked: Sequence[str]) -> list[FrameFeature]:
    """Return what each word of an input adds to the log odds of the best frame against the second best one."""
    if len(ranked) < 2 or not set(ranked[:2]) <= reading.rates.keys():
        return []
    best, second = ([*reading.rates].index(name) for name in ranked[:2])
    return [
        FrameFeature("words", word, word, float(weights[best] - weights[second]))
        for word, weights in reading.words.items()
    ]


def _weigh_features(
    ranked: Sequence[str], evidence: Mapping[str, FrameEvidence], explained: Sequence[FrameFeature]
) -> tuple[FrameFeature, ...]:
    """Return the features that speak most for or against the best frame, compared with the second best one."""
    if len(ranked) < 2:
        return ()
    best, second = (evidence[name] for name in ranked[:2])
    found = [
        FrameFeature(
            "patterns", "patterns of the frame", "", best.weight * best.pattern - second.weight * second.pattern
        ),
        FrameFeature("session", "frame of the session", "", SESSION_FRAME_WEIGHT * (best.prior - second.prior)),
        *explained,
    ]
    reasons = select_reasons(sorted(found, key=lambda each: -abs(each.weight)), limit=MAX_FEATURES)
    return tuple(each._replace(weight=round(each.weight, 3)) for each in reasons)


def _explain_choice(
    frame: Frame,
    text: str,
    evidence: FrameEvidence,
    features: Sequence[FrameFeature],
    vector: Vector | None,
    classifier: FrameClassifier | None,
) -> str:
    """Return the reason for a frame: phrases, features of form, the most similar example, the session's frame."""
    matched = frame.matched_phrases(text[:MAX_PATTERN_CHARS])[:3]
    found = [feature.phrase for feature in features if feature.weight > 0 and feature.phrase]
    phrases = list(dict.fromkeys([*matched, *found]))[:3]
    forms = [feature.name for feature in features if feature.weight > 0 and feature.kind == "form"][:3]
    example = None
    if classifier and vector is not None and frame.name in classifier.frames:
        example = classifier.find_nearest_example(vector, frame.name)
    parts = [
        f"the input says {', '.join(repr(phrase) for phrase in phrases)}" if phrases else "",
        f"its form shows {', '.join(forms)}" if forms else "",
        f"it is similar to the example {example!r}" if example else "",
        "the session already has this frame" if evidence.prior else "",
    ]
    default = "its grammar is similar to that of the examples" if classifier else "no evidence for any frame"
    return "; ".join(filter(None, parts)) or default


def _score_patterns(frame: Frame, text: str) -> float:
    """Return the combined weight of the patterns that match the text, from 0 to 1 (noisy-or)."""
    return 1 - math.prod(1 - pattern.weight for pattern in frame.matching_patterns(text))


def _compute_confidence(scores: Sequence[float]) -> float:
    """Return the softmax probability of the first of the scores."""
    return 1 / sum(math.exp(score - scores[0]) for score in scores)


MAX_INPUT_CHARS = 1_000  # of the input in the prompt


class FrameOutput(BaseModel):
    """The model's answer: the name of a frame. The caller ignores a name that was not offered."""

    model_config = ConfigDict(frozen=True)

    frame: str


def build_tiebreak_prompt(text: str, frames: Sequence[Frame]) -> str:
    """Return the prompt that asks which frame fits the text.

    Angle brackets in the text are replaced, so that it cannot end the element that encloses it.
    """
    template = (resources.files("newton.cognition.frames") / "prompts" / "frame.md").read_text(encoding="utf-8")
    descriptions = "\n".join(f"- {frame.name}: {frame.description}" for frame in frames)
    return template.format(
        frames=descriptions, text=one_line(text[:MAX_INPUT_CHARS]).replace("<", "‹").replace(">", "›")
    )
