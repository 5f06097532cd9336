"""Everything that the frame classifier reads from an input besides its embedding: language, n-grams, form. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from newton.cognition.frames.cues import CueIndex, build_cue_index, find_cues
from newton.cognition.frames.form import extract_form
from newton.cognition.frames.ngrams import extract_character_ngrams, extract_english_ngrams, extract_word_ngrams
from newton.content.frames import FrameLanguage
from newton.text.languages import ENGLISH, detect_languages


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFeatures:
    """The possible languages of an input (the most probable first), its n-grams and its features of form.

    `phrases` are the words of the input that gave a feature of form, by the name of the feature.
    """

    languages: tuple[str, ...]
    ngrams: frozenset[str]
    form: tuple[str, ...]
    phrases: Mapping[str, str]

    @property
    def is_english(self) -> bool:
        return self.languages[:1] == (ENGLISH,)


@dataclass(frozen=True, slots=True)
class FeatureExtractor:
    """Extracts features of form in the languages that it knows."""

    cue_indexes: Mapping[str, CueIndex]

    def extract(self, text: str) -> InputFeatures:
        """Return the features of a text. In an unknown language they are only punctuation, length and error texts."""
        languages = detect_languages(text)
        cues = find_cues(self.cue_indexes, languages, text)
        return InputFeatures(
            languages=languages,
            ngrams=self._extract_ngrams(text, languages[0] if languages else None),
            form=extract_form(text, cues),
            phrases={match.feature: match.phrase for match in cues},
        )

    def _extract_ngrams(self, text: str, language: str | None) -> frozenset[str]:
        if language is None:
            return frozenset()
        if language == ENGLISH:
            return extract_english_ngrams(text)
        if not self.cue_indexes[language].spaced:
            return extract_character_ngrams(text)
        return extract_word_ngrams(text)


def build_extractor(languages: Mapping[str, FrameLanguage]) -> FeatureExtractor:
    return FeatureExtractor({code: build_cue_index(language) for code, language in languages.items()})
