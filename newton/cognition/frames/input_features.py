"""Features that the frame classifier extracts from an input: language, n-grams, cue phrases and form. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from newton.content.frames import FrameLanguage
from newton.text.languages import ENGLISH, detect_languages

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
    """Return the text that the phrase has in a normalized text. A final `*` lets its last word have any ending."""
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


LENGTHS = ((2, "up to 2 words"), (6, "3 to 6 words"), (15, "7 to 15 words"), (40, "16 to 40 words"))
CHARS_PER_WORD = 2  # of a language that does not separate words
START_PREFIX = "starts with "
FIRST_PERSON = "first person"  # the cue of words such as I and our
OF_OTHERS = "question about others"
PAIR = " + "

# Cues of a request, a need or a problem; and those that ask where they start a sentence.
_REQUESTS = frozenset(
    {"request", "please", "action", "need", "should", "undecided", "explain", "remind", "pros cons", "invent", "ideas"}
    | {"error", "not working", "malfunction", "cause", "error text", "question mark"}
)
_STARTS = frozenset(
    START_PREFIX + cue for cue in ("what", "who", "when", "where", "which", "how many", "how", "why", "polar", "write")
)

_WORD = re.compile(r"[a-z0-9\u00c0-\u024f\u0400-\u04ff']+", re.IGNORECASE)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
_ERROR_TEXT = re.compile(
    r"Traceback|^\s+File \"|\b[A-Z]\w*(?:Error|Exception)\b|\b(?:ERROR|FATAL|WARN(?:ING)?|CRITICAL|SIG[A-Z]{3,})\b"
    r"|\b(?:exit (?:code|status)|HTTP|status|error) ?:?\d{1,3}\b|\b[45]0\d\b|\bat [\w.$]+\([\w.]+:\d+\)"
    r"|#(?:N/A|REF!|VALUE!)"
    r"|\b[EF]-?\d{2,3}\b|(?:npm|pip|cargo) ERR",
    re.MULTILINE,
)
_CODE = re.compile(
    r"\w+\(\w*\)|\w+\.\w{1,4}\b(?<!\.\d)|[{}<>=]{2}|\b\w+_\w+\b|`|=>|::|\b\w+/\w+\b|^\s*(?:def|for|while|if) ", re.M
)
_QUESTION = re.compile(r"[?\uff1f]")
_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f]\s*(?=\S)")


def extract_form(text: str, cues: Sequence[CueMatch]) -> tuple[str, ...]:
    """Return the names of the features of form that a text with these cues has, and of the pairs of them."""
    flags = list(_extract_flags(text[:MAX_CHARS]))
    names = sorted({match.feature for match in cues})
    if _QUESTION.search(text) and FIRST_PERSON not in names:
        flags.append(OF_OTHERS)
    starts = [f"{START_PREFIX}{match.feature}" for match in cues if match.is_start]
    paired = [*names, *(flag for flag in flags if not flag.endswith("words"))]
    return (*names, *starts, *flags, *(PAIR.join(pair) for pair in combinations(sorted(paired), 2)))


def asks_for_something(form: Sequence[str]) -> bool:
    """Return whether an input with these features asks, requests or reports a problem; False if it only informs."""
    return not (_REQUESTS | _STARTS).isdisjoint(form)


def _extract_flags(text: str) -> list[str]:
    found = {
        "error text": _ERROR_TEXT.search(text),
        "code": _CODE.search(text),
        "several lines": "\n" in text.strip(),
        "exclamation mark": "!" in text or "\uff01" in text,
        "colon": re.search(r":\s", text),
        "several sentences": _SENTENCE_END.search(text),
    }
    question = "question mark" if _QUESTION.search(text) else "no question mark"
    ends = ["question mark at the end"] if _QUESTION.search(text.rstrip()[-1:]) else []
    return [*(name for name, is_found in found.items() if is_found), question, *ends, _describe_length(text)]


def _describe_length(text: str) -> str:
    words = len(_WORD.findall(text)) + len(_UNSPACED.findall(text)) // CHARS_PER_WORD
    return next((name for limit, name in LENGTHS if words <= limit), "over 40 words")


MAX_TOKENS = 80
STEM_CHARS = 5


def _parse_word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# All other words are masked to their suffix, so that 'should we sell the barn' and 'should we drop the table' share
# grammar n-grams.
FUNCTION_WORDS = _parse_word_set("""
i me my mine myself we us our ours ourselves you your yours he him his she her it its they them their
this that these those who whom whose which what when where why how a an the some any all both each every no none not
never always again still yet already just only so too very more most less least much many few enough other another
same such and or but if than then because while although though since until before after during between among
through about against for of to in on at by with from into onto over under up down out off as like without per within
am is are was were be been being do does did done has have had having can could may might must shall should will
would ought let lets dont doesnt didnt isnt arent wasnt werent cant cannot couldnt wont wouldnt shouldnt havent hasnt
hadnt im ive id ill were weve wed well youre youve its thats theres whats whos hows heres here there now today
tomorrow yesterday tonight yes no ok okay please thanks sorry maybe perhaps either neither nor whether one two three
four five six seven next last first week weeks month months year years day days time make give get put take set want
need like think know help find keep go come say tell show use look feel
""")
SUFFIXES = ("ing", "tion", "est", "ed", "ly", "er", "s")

_PIECE = re.compile(r"[^\W\d_]+|\d+|[?!.,:;/]")
_CHARACTER = re.compile(r"[a-z]+|\d+|\S")


def extract_english_ngrams(text: str) -> frozenset[str]:
    """Return the words and word pairs of a text, and its grammar n-grams of up to 3 words.

    In grammar n-grams, content words are masked; `^` and `$` mark the start and the end of the text.

    >>> sorted(extract_english_ngrams("Sell it") - {"sell", "it", "sell it"})
    ['$', '*', '* it', '* it $', '^', '^ *', '^ * it', 'it $']
    """
    words = _tokenize(text)
    grammar = ["^", *map(_mask_content_word, words), "$"]
    return frozenset((*words, *_join_ngrams(words, 2), *grammar, *_join_ngrams(grammar, 2), *_join_ngrams(grammar, 3)))


def extract_word_ngrams(text: str) -> frozenset[str]:
    """Return the words, word pairs and first letters of long words, which stand for their stems.

    >>> sorted(extract_word_ngrams("Verkaufen?"))
    ['?', '? $', '^ verkaufen', 'verka-', 'verkaufen', 'verkaufen ?']
    """
    words = _tokenize(text)
    stems = (f"{word[:STEM_CHARS]}-" for word in words if len(word) > STEM_CHARS)
    return frozenset((*words, *_join_ngrams(["^", *words, "$"], 2), *stems))


def extract_character_ngrams(text: str) -> frozenset[str]:
    """Return n-grams of up to 3 characters, for languages that do not separate words.

    >>> sorted(extract_character_ngrams("\u4f60\u597d"))[:3]
    ['$', '^', '^\u4f60']
    """
    characters = ["^", *_CHARACTER.findall(text[:MAX_CHARS].lower()), "$"]
    return frozenset("".join(characters[at : at + n]) for n in (1, 2, 3) for at in range(len(characters) - n + 1))


def _tokenize(text: str) -> list[str]:
    plain = text[:MAX_CHARS].lower().replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    return _PIECE.findall(plain)[:MAX_TOKENS]


def _join_ngrams(tokens: Sequence[str], length: int) -> Iterator[str]:
    return (" ".join(tokens[at : at + length]) for at in range(len(tokens) - length + 1))


def _mask_content_word(word: str) -> str:
    """Return a function word unchanged, and `*` with the suffix for any other word.

    >>> tuple(_mask_content_word(word) for word in ("should", "launched", "2024", "barn"))
    ('should', '*ed', '#', '*')
    """
    if word in FUNCTION_WORDS or not word[0].isalnum():
        return word
    if word[0].isdigit():
        return "#"
    return next((f"*{ending}" for ending in SUFFIXES if word.endswith(ending) and len(word) > len(ending) + 2), "*")


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
