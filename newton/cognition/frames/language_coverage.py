"""In which languages frames are chosen, and what is missing in each: examples of a frame, or the embedding. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from newton.cognition.frames.input_features import FeatureExtractor
from newton.cognition.frames.language_detection import ENGLISH
from newton.content.frames import Frame, FrameLanguage

MIN_EXAMPLES = 3  # of a frame in a language


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageCoverage:
    """The titles of the languages in which all frames have examples, and by frame those in which it has too few.

    `by_form_only` are the languages in which the embedding model has no effect that can be relied on.
    """

    languages: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]
    by_form_only: tuple[str, ...]


def measure_coverage(
    frames: Mapping[str, Frame],
    languages: Mapping[str, FrameLanguage],
    extractor: FeatureExtractor,
    *,
    is_multilingual: bool,
) -> LanguageCoverage:
    """Return in which languages the frames are chosen. `is_multilingual` describes the embedding model."""
    counts = Counter(
        (frame.name, code)
        for frame in frames.values()
        for text in frame.examples
        for code in extractor.detector.detect(text)[:1]
    )
    missing = {
        name: tuple(each.title for code, each in languages.items() if counts[name, code] < MIN_EXAMPLES)
        for name in frames
    }
    return LanguageCoverage(
        languages=tuple(
            each.title for each in languages.values() if not any(each.title in m for m in missing.values())
        ),
        missing={name: titles for name, titles in missing.items() if titles},
        by_form_only=() if is_multilingual else tuple(e.title for code, e in languages.items() if code != ENGLISH),
    )
