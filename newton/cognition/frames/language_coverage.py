"""In which languages frames are chosen, and which languages lack examples of a frame. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from newton.content.frames import Frame
from newton.text.languages import detect_languages

MIN_EXAMPLES = 3  # of a frame in a language


@dataclass(frozen=True, slots=True)
class LanguageCoverage:
    """The codes of the languages in which all frames have examples, and by frame those in which it has too few."""

    languages: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]


def measure_coverage(frames: Mapping[str, Frame], languages: Iterable[str]) -> LanguageCoverage:
    """Return in which of the languages, given by their codes, the frames are chosen."""
    codes = tuple(languages)
    examples = [(frame.name, text) for frame in frames.values() for text in frame.examples]
    counts = Counter((name, code) for name, text in examples for code in detect_languages(text)[:1])
    missing = {name: tuple(code for code in codes if counts[name, code] < MIN_EXAMPLES) for name in frames}
    return LanguageCoverage(
        languages=tuple(code for code in codes if not any(code in lacking for lacking in missing.values())),
        missing={name: lacking for name, lacking in missing.items() if lacking},
    )
