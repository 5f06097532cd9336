"""Cues: phrases of a language that show the form of an input, such as a question word or a report of an error. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from newton.content.frames import FrameLanguage

MAX_CHARS = 400  # read from the start of an input: the request comes early
MAX_GAP_WORDS = 4
MAX_GAP_CHARS = 8  # of a gap in a language that does not separate words
START = "^"

_WORD_OR_STOP = re.compile(r"[^\W_]+|[.!?:;\n\u3002\uff01\uff1f]")
_OPENING_COMMA = re.compile(r"^(\W*(?:[^\W_]+\W+){0,2}?[^\W_]+)\s*[,\u2013\u2014\uff0c\u3001-]\s")
_STOPS = frozenset(".!?:;\n\u3002\uff01\uff1f")


class CueMatch(NamedTuple):
    """A phrase of a cue that occurs in an input, and whether it is at the start of a sentence."""

    cue: str
    phrase: str
    is_start: bool

    @property
    def feature(self) -> str:
        """Return the name of the cue as a feature of form."""
        return self.cue.replace("_", " ")


@dataclass(frozen=True, slots=True)
class CueIndex:
    """The phrases of one language, prepared for the search in a normalized text (`normalize_text`)."""

    spaced: bool
    plain: Sequence[tuple[str, str]]  # cue and phrase as it occurs in the normalized text
    symbols: Sequence[tuple[str, str]]  # cue and phrase without letters, such as ':)'
    gapped: Sequence[tuple[str, re.Pattern[str]]]

    def find(self, text: str) -> list[CueMatch]:
        """Return the first phrase of each cue that occurs in the text."""
        normalized, raw = normalize_text(text, spaced=self.spaced), text[:MAX_CHARS].lower()
        found = dict[str, CueMatch]()
        for cue, phrase in self.plain:
            if cue not in found and (at := normalized.find(phrase)) >= 0:
                is_start = START in phrase or normalized[: at + 1].rstrip(" ").endswith(START)
                found[cue] = CueMatch(cue, phrase.strip(" ^"), is_start)
        for cue, pattern in self.gapped:
            if cue not in found and (match := pattern.search(normalized)):
                found[cue] = CueMatch(cue, match[0].strip(" ^"), normalized[: match.start() + 1].rstrip().endswith("^"))
        for cue, phrase in self.symbols:
            if cue not in found and phrase in raw:
                found[cue] = CueMatch(cue, phrase, is_start=False)
        return list(found.values())


def build_cue_index(language: FrameLanguage) -> CueIndex:
    phrases = [(cue, phrase.lower()) for cue in language.cues for phrase in language.list_phrases(cue)]
    worded = [(cue, phrase.strip('"')) for cue, phrase in phrases]
    plain = [(cue, _to_needle(phrase, language)) for cue, phrase in worded if _is_plain(phrase)]
    gapped = [(cue, _to_pattern(phrase, language)) for cue, phrase in worded if _has_gap(phrase)]
    symbols = [(cue, phrase) for cue, phrase in worded if not re.search(r"\w", phrase)]
    return CueIndex(language.is_spaced, plain, symbols, gapped)


def normalize_text(text: str, *, spaced: bool) -> str:
    """Return the words in lower case, each sentence after `^`. Words are padded by spaces if the language has them.

    >>> normalize_text("Hi there! Don't wait", spaced=True)
    ' ^ hi there ^ don t wait '
    """
    opened = _OPENING_COMMA.sub(r"\1: ", text[:MAX_CHARS])
    tokens = [START, *(START if t in _STOPS else t for t in _WORD_OR_STOP.findall(opened.lower()))]
    joined = [t for n, t in enumerate(tokens) if t != START or n == 0 or tokens[n - 1] != START]
    return f" {' '.join(joined)} " if spaced else "".join(joined)


def find_cues(indexes: Mapping[str, CueIndex], languages: Sequence[str], text: str) -> list[CueMatch]:
    """Return the cues that occur in the text, in the phrases of any of these languages, preferably of the first."""
    found = {match.cue: match for code in reversed(languages) for match in indexes[code].find(text)}
    return list(found.values())


def _has_gap(phrase: str) -> bool:
    return "~" in phrase or " * " in phrase


def _is_plain(phrase: str) -> bool:
    return not _has_gap(phrase) and re.search(r"\w", phrase) is not None


def _to_needle(phrase: str, language: FrameLanguage) -> str:
    """Return the text that the phrase has in a normalized text. An ending `*` leaves its last word open."""
    body = phrase.lstrip(START).rstrip("*")
    words = " ".join(re.findall(r"[^\W_]+", body)) if language.is_spaced else "".join(re.findall(r"[^\W_]+", body))
    start = START if phrase.startswith(START) else ""
    if not language.is_spaced:
        return start + words
    return f" {start} {words}".replace("  ", " ") + ("" if phrase.endswith("*") else " ")


def _to_pattern(phrase: str, language: FrameLanguage) -> re.Pattern[str]:
    parts = [
        "*" if part == "*" else r" ".join(re.escape(word) for word in re.findall(r"[^\W_]+|\*", part))
        for part in re.split(r"~| (?=\* )", phrase.replace(" ~ ", "~"))
    ]
    gap = rf"(?: [^ ^]+){{0,{MAX_GAP_WORDS}}} " if language.is_spaced else rf"[^^]{{0,{MAX_GAP_CHARS}}}"
    body = gap.join(part.removeprefix(r"\* ").removeprefix(r"\*") for part in parts)
    return re.compile(f" {body} " if language.is_spaced else body)
