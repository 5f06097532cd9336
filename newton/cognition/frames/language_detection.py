"""Detection of the languages of an input by its letters and known words. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from newton.content.frames import FrameLanguage

ENGLISH = "en"
MAX_CHARS = 400
FUNCTION_WORD_WEIGHT = 1.0
EXAMPLE_WORD_WEIGHT = 0.4  # of a word that only the examples and cues of a language have
LETTER_WEIGHT = 0.7  # of each letter that English does not have; the same against a letter of no language
CANDIDATE_SHARE = 0.6  # of the best score, for a second language
MIN_SCORE = 0.15  # per word; below it, the language is unknown
MIN_WORDS = 4  # a shorter text without known words is taken for English: a name, a command

_WORD = re.compile(r"[^\W\d_]+")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_NOT_RUSSIAN = re.compile(r"[\u0402-\u040f\u0452-\u045f\u0404\u0406\u0407\u0490\u0491]")
_LATIN = re.compile(r"[a-z\u00c0-\u024f]", re.IGNORECASE)
_OTHER_SCRIPT = re.compile(r"[\u0370-\u03ff\u0530-\u1fff\uac00-\ud7af]")
_SCRIPT_LANGUAGES = frozenset({"ru", "zh", "ja"})


@dataclass(frozen=True, slots=True)
class LanguageDetector:
    """Known words and letters of the languages in Latin script, with the weight of each for a language."""

    words: Mapping[str, Mapping[str, float]]
    letters: Mapping[str, Mapping[str, float]]

    def detect(self, text: str) -> tuple[str, ...]:
        """Return the codes of the languages that the text may be in, the most probable first; none if unknown."""
        start = text[:MAX_CHARS]
        by_script = _detect_script(start)
        return self._detect_words(start) if by_script is None else by_script

    def _detect_words(self, text: str) -> tuple[str, ...]:
        words = [word.lower() for word in _WORD.findall(text)]
        scores: dict[str, float] = defaultdict(float)
        for word in words:
            for code, weight in self.words.get(word, {}).items():
                scores[code] += weight
        for letter in set(text.lower()) & self.letters.keys():
            for code, weight in self.letters[letter].items():
                scores[code] += weight
        foreign = sum(not letter.isascii() and letter not in self.letters for letter in set("".join(words)))
        best = max(scores.values(), default=0.0)
        if best <= 0 and len(words) < MIN_WORDS and text.isascii():
            return (ENGLISH,)
        min_score = MIN_SCORE * len(words) if len(words) >= MIN_WORDS else 0.0
        if best - LETTER_WEIGHT * foreign <= min_score:
            return ()
        ranked = sorted(scores, key=lambda code: (-scores[code], code != ENGLISH, code))
        return tuple(code for code in ranked if scores[code] >= CANDIDATE_SHARE * best)[:3]


def build_detector(languages: Mapping[str, FrameLanguage], examples: Iterable[tuple[str, str]]) -> LanguageDetector:
    """Build a detector. `examples` are pairs of a language code and a text."""
    latin = {code: language for code, language in languages.items() if code not in _SCRIPT_LANGUAGES}
    weights: dict[str, dict[str, float]] = defaultdict(dict)
    for code, text in _list_texts(latin, examples):
        for word in _WORD.findall(text.lower()):
            weights[word][code] = EXAMPLE_WORD_WEIGHT
    for code, language in latin.items():
        for word in _WORD.findall(language.function_words.lower()):
            weights[word][code] = FUNCTION_WORD_WEIGHT
    letters: dict[str, dict[str, float]] = defaultdict(dict)
    for code, language in latin.items():
        for letter in language.letters:
            letters[letter][code] = LETTER_WEIGHT
    return LanguageDetector(_share(weights), _share(letters))


def _list_texts(
    languages: Mapping[str, FrameLanguage], examples: Iterable[tuple[str, str]]
) -> Iterable[tuple[str, str]]:
    yield from ((code, text) for code, text in examples if code in languages)
    for code, language in languages.items():
        yield from ((code, phrases.replace("*", "_")) for phrases in language.cues.values())


def _share(weights: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Divide the weight of a word by the number of languages that have it."""
    return {key: {code: each / len(codes) for code, each in codes.items()} for key, codes in weights.items()}


def _detect_script(text: str) -> tuple[str, ...] | None:
    """Return the languages of a text that is not in Latin script; None if it is."""
    han, kana = len(_HAN.findall(text)), len(_KANA.findall(text))
    cyrillic, latin = len(_CYRILLIC.findall(text)), len(_LATIN.findall(text))
    other = len(_OTHER_SCRIPT.findall(text))
    if kana and 4 * (han + kana) > latin:
        return ("ja",)
    if han and 4 * han > latin:
        return ("zh",)
    if 2 * cyrillic > latin and cyrillic:
        return () if _NOT_RUSSIAN.search(text) else ("ru",)
    return () if other > latin else None
