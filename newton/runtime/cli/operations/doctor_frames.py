"""Check of `newton doctor`: in which languages frames are chosen."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from newton.cognition.frames.language_coverage import measure_coverage
from newton.cognition.frames.training import NO_EMBEDDER, knows_languages, load_extractor
from newton.content.frames import Frame, load_frame_languages


class LanguageRemark(NamedTuple):
    """What is served in which languages, and a remedy for what is not; an empty remedy if all is."""

    detail: str
    hint: str


def describe_frame_languages(frames: Mapping[str, Frame], identity: str | None) -> Iterator[LanguageRemark]:
    """Yield remarks on the languages of the frames. `identity` is that of the embedding model."""
    is_multilingual = knows_languages(identity or NO_EMBEDDER)
    coverage = measure_coverage(frames, load_frame_languages(), load_extractor(), is_multilingual=is_multilingual)
    if coverage.languages:
        detail = (
            f"frames are chosen in {', '.join(coverage.languages)}; in other languages mostly the neutral frame is used"
        )
        yield LanguageRemark(detail, "")
    for name, titles in coverage.missing.items():
        hint = "Add examples in these languages to its file."
        yield LanguageRemark(f"the frame {name} has too few examples in {', '.join(titles)}", hint)
    if identity and coverage.by_form_only:
        titles = ", ".join(coverage.by_form_only)
        detail = f"the embedding model knows only English, so frames are chosen by words and form in {titles}"
        yield LanguageRemark(detail, "Use a multilingual embedding model if most inputs are in these languages.")
