"""Measure which frames labelled inputs get, and whether the confidence is calibrated. Run it by scripts/measure-frames.

The inputs are in tests/data/frames: `development` may be looked at while examples, cues and constants are chosen;
`held_out` may not, so its misses are printed only when asked for.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from newton.cognition.frames.classifier import FrameClassifier
from newton.cognition.frames.selection import choose_frame
from newton.cognition.frames.training import load_or_train
from newton.content.frames import load_frames
from newton.providers.minilm import MiniLM
from newton.text.greetings import strip_greeting

DATA = Path(__file__).parents[1] / "data" / "frames"
BINS = 10


class LabelledInput(NamedTuple):
    """An input and the frame that a careful reader chooses for it."""

    frame: str
    text: str


class FrameOutcome(NamedTuple):
    """The frame that an input got. `best` is the most probable frame, even if the choice was unsure."""

    expected: str
    text: str
    chosen: str
    best: str
    confidence: float


def list_languages(name: str) -> list[str]:
    """Return the languages of a set of labelled inputs, English first."""
    return sorted(
        (path.stem for path in (DATA / name).glob("*.txt")), key=lambda language: (language != "en", language)
    )


def read_inputs(name: str, language: str) -> list[LabelledInput]:
    """Read `tests/data/frames/<name>/<language>.txt`: lines `== frame`, each before the inputs of that frame."""
    frame, inputs = "", list[LabelledInput]()
    for line in (DATA / name / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            frame = line[3:]
        elif line:
            inputs.append(LabelledInput(frame, line.replace("\\n", "\n")))
    return inputs


def choose_all(
    inputs: Sequence[LabelledInput], classifier: FrameClassifier | None, embedder: MiniLM | None
) -> list[FrameOutcome]:
    """Choose a frame for each input, without a session."""
    frames = load_frames()
    outcomes: list[FrameOutcome] = []
    for expected, text in inputs:
        vector = embedder.embed_now([strip_greeting(text)])[0] if embedder else None
        choice = choose_frame(frames, text, vector=vector, classifier=classifier, session_frame=None)
        best = choice.top_frames[0]
        outcomes.append(FrameOutcome(expected, text, choice.frame, best, choice.confidence))
    return outcomes


def compute_accuracy(outcomes: Sequence[FrameOutcome]) -> float:
    return float(np.mean([each.chosen == each.expected for each in outcomes]))


def compute_frame_accuracies(outcomes: Sequence[FrameOutcome]) -> dict[str, float]:
    names = dict.fromkeys(each.expected for each in outcomes)
    return {name: compute_accuracy([each for each in outcomes if each.expected == name]) for name in sorted(names)}


def compute_calibration_error(outcomes: Sequence[FrameOutcome]) -> float:
    """Return the expected calibration error of the confidence in the best frame, in `BINS` bins of equal width."""
    confidence = np.array([each.confidence for each in outcomes])
    right = np.array([each.best == each.expected for each in outcomes])
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    members = [bins == n for n in range(BINS) if (bins == n).any()]
    return float(sum(each.mean() * abs(confidence[each].mean() - right[each].mean()) for each in members))


def format_outcomes(name: str, outcomes: Sequence[FrameOutcome]) -> str:
    frames = " ".join(f"{frame[:5]} {share:4.0%}" for frame, share in compute_frame_accuracies(outcomes).items())
    error, wrong = compute_calibration_error(outcomes), [each for each in outcomes if each.chosen != each.expected]
    certain = sum(each.confidence > 0.9 for each in wrong)
    accuracy = compute_accuracy(outcomes)
    return f"{name:<6}{len(outcomes):>4} {accuracy:6.1%}  ECE {error:.3f}  wrong above .9: {certain:<3} {frames}"


def format_misses(outcomes: Sequence[FrameOutcome]) -> str:
    wrong = (each for each in outcomes if each.chosen != each.expected)
    return "\n".join(f"  {e.expected} -> {e.chosen} ({e.best} {e.confidence:.2f}): {e.text!r}" for e in wrong)


def measure(arguments: Sequence[str]) -> None:
    """Print one line per language, and with `--misses` the inputs that got another frame."""
    options = {argument for argument in arguments if argument.startswith("--")}
    name, *languages = [argument for argument in arguments if argument not in options]
    embedder = None if "--without-embedder" in options else MiniLM()
    classifier = asyncio.run(load_or_train(load_frames(), embedder, cache=Path("nowhere")))
    others: list[FrameOutcome] = []
    for language in languages or list_languages(name):
        outcomes = choose_all(read_inputs(name, language), classifier, embedder)
        print(format_outcomes(language, outcomes))
        if "--misses" in options:
            print(format_misses(outcomes))
        others += outcomes if language != "en" else []
    if others:
        print(format_outcomes("others", others))


if __name__ == "__main__":
    measure(sys.argv[1:])
