"""Readings of the parts of a person's message that the person does not assert: who means what, and how far. Pure.

A phrase such as "I dreamt that" or "only kidding" decides, and has a reach: the sentence up to a contrast, what follows
it, the following messages of the session, the sentence before it, or all that precedes it. `commitment.yaml` has the
phrases of each language. What no phrase reaches is asserted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.text.languages import ENGLISH, LANGUAGES, detect_language, load_language
from newton.text.pasted_text import MASK

MAX_TAKING_BACK = 3  # words before the phrase of a message that takes back the message before it
MAX_BEFORE_ADDRESS = 2  # words before one that addresses the assistant
_SENTENCE = re.compile(
    r"[^\s.!?。！？](?:[^\n.!?…。！？]|[.!?…]+(?![\s)\"'”¤.!?…]|\Z)|(?<=\b[DMS][rst]|\b[dm]r)\."
    r"|(?<=\d)\.(?= [^\W\d_]))*[.!?…。！？)\"'”]*"
)
_COMMA = re.compile(r"[,;–—(，；]\s*")
_JOINT = re.compile(r"[;–—(]|(?:,? (?:and|but|und|aber|y|pero|et|mais|e|ma|mas|en|maar|и|но)|,) (?=\S)")


class CommitmentKind(StrEnum):
    """The ways in which a message says something without asserting it."""

    WISHED = "wished"
    PLANNED = "planned"
    IMAGINED = "imagined"
    REPORTED = "reported"
    DOUBTED = "doubted"
    DENIED = "denied"
    JOKED = "joked"


class UnassertedPart(NamedTuple):
    """A part of a message that is not asserted, from `start` to `end`, and the phrase that decided it."""

    start: int
    end: int
    commitment: CommitmentKind
    phrase: str


REACHES = ("here", "onward", "session", "before", "back")  # whose patterns have the kinds as named groups
OTHERS = ("left", "vouched", "contrast", "addressed", "asked")
Cues = Mapping[str, re.Pattern[str]]  # of one language, by reach


def read_commitment(message: str, *, is_framed: bool = False) -> list[UnassertedPart]:
    """Return the parts of a message that the person does not assert, in the order of the phrases that decided.

    Quotations in the message must be masked: their phrases are not the person's. A message that `is_framed` continues a
    role-play or the like until a phrase ends it.

    >>> [one.commitment.value for one in read_commitment("I dreamt that I quit. I work in a bakery now.")]
    ['imagined', 'imagined']
    >>> read_commitment("I sold the car. Only kidding!")[0][:3]
    (0, 29, <CommitmentKind.JOKED: 'joked'>)
    """
    sentences = [(one.start(), one.end()) for one in _SENTENCE.finditer(message)]
    held = UnassertedPart(0, 0, CommitmentKind.IMAGINED, "") if is_framed else None
    found, left = list[UnassertedPart](), 0
    for number, (start, end) in enumerate(sentences):
        cues = _list_cues(message, message[start:end])
        if held and any(one["left"].match(message, start, end) for one in cues):
            held, left = None, start
        if held:
            found.append(held._replace(start=start, end=end))
        elif begun := _search(("session", "onward"), cues, message, start, end):
            is_shown = begun.commitment is CommitmentKind.REPORTED and message[begun.end :].lstrip().startswith(MASK)
            is_asked = begun.commitment is CommitmentKind.IMAGINED and _asks_for_words(message[start:end])
            held = (
                None if is_shown or is_asked else begun
            )  # the form of the text that it presents shows where that ends
            found.append(begun._replace(start=_find_joint(message, start, begun.start), end=end))
        before = sentences[number - 1][0] if number else start
        found += _read_sentence(cues, message, (start, end), before=before, left=left)
    return found


def _asks_for_words(sentence: str) -> bool:
    """Return whether a sentence asks how something is said; what follows it is the person's own again."""
    match = re.fullmatch(r"\W*how (?:do|would|can|should)\b[^:]*\?\s*", sentence, re.IGNORECASE)
    return match is not None


def list_unasserted(message: str, *, is_framed: bool = False) -> list[UnassertedPart]:
    """Return the parts of a message, with masked quotations, that must not become facts; a plan may become one."""
    found = read_commitment(message, is_framed=is_framed)
    return [one for one in found if one.commitment is not CommitmentKind.PLANNED]


def find_reading(readings: Sequence[UnassertedPart], start: int, end: int) -> UnassertedPart | None:
    """Return the reading that covers most of a part of the message; None if the part is asserted."""
    return next((one for one in readings if 2 * (min(one.end, end) - max(one.start, start)) > end - start), None)


def find_plan(text: str) -> UnassertedPart | None:
    """Return the phrase by which a statement is a plan, a wish or a possibility; None if it tells what is.

    >>> find_plan("Next year I want to move to Linz.").phrase, find_plan("I moved to Linz.")
    ('want to', None)
    """
    readings = (
        one for one in read_commitment(text) if one.commitment in (CommitmentKind.PLANNED, CommitmentKind.WISHED)
    )
    return next((one for one in readings if one.end >= len(text.rstrip(" .!?"))), None)


def is_unreal(message: str) -> bool:
    """Return whether all that a message says is imagined or a joke; its quotations must be masked or left out.

    >>> is_unreal("I dreamt that I live in Rome."), is_unreal("I dreamt of Rome. In real life I live in Graz.")
    (True, False)
    """
    unreal = [
        one for one in read_commitment(message) if one.commitment in (CommitmentKind.IMAGINED, CommitmentKind.JOKED)
    ]
    sentences = [one.span() for one in _SENTENCE.finditer(message)]
    return bool(unreal) and all(find_reading(unreal, *span) for span in sentences)


def is_addressed(text: str, code: str) -> bool:
    """Return whether a sentence in the language `code` begins by addressing the assistant: a request, thanks."""
    match = _load_cues(code)["addressed"].search(text)
    is_first = match is not None and text[: match.start()].count(" ") < MAX_BEFORE_ADDRESS
    return is_first or asks_to_act(text, code)


def asks_to_act(text: str, code: str) -> bool:
    """Return whether a sentence in the language `code`, which is not English, begins with the verb of a request.

    >>> [asks_to_act(one, "de") for one in ("Schau in meine Mails.", "Dann lies sie vor.", "Ich schaue gern fern.")]
    [True, True, False]
    """
    return _load_cues(code)["asked"].search(text) is not None


def is_in_role(earlier: Sequence[str]) -> bool:
    """Return whether the earlier messages of a session began a role-play or the like that none of them has ended."""
    framed = False
    for message in earlier:
        cues = _list_cues(message, message)
        if _search(("session",), cues, message, 0, len(message)):
            framed = True
        elif framed and any(one["left"].match(message) for one in cues):
            framed = False
    return framed


def takes_back(message: str) -> UnassertedPart | None:
    """Return the phrase by which a message begins that takes back the message before it, as "just kidding" does.

    >>> takes_back("haha, just kidding!").phrase, takes_back("I sold the car. Just kidding.")
    ('just kidding', None)
    """
    reading = _search(("back",), _every_language(), message, 0, len(message))
    is_first = reading and len(re.findall(r"\w+", message[: reading.start])) <= MAX_TAKING_BACK
    return reading if is_first and not re.match(r" (?:about|of|with|myself)\b", message[reading.end :]) else None


def is_denial(text: str, code: str) -> bool:
    """Return whether a clause in the language `code` only denies a state, an identity or an event.

    >>> [is_denial(one, "en") for one in ("I'm not diabetic.", "No, I never moved.", "I'm not a morning person.")]
    [True, True, False]
    """
    denying, lasting = _load_denials(code)
    bare = text.replace("’", "'").strip(" .!,;。！")
    return denying.match(bare) is not None and not lasting.search(bare)


def list_denials(message: str) -> list[str]:
    """Return the clauses of a message that only deny something; its quotations must be masked or left out."""
    code = detect_language(message)
    clauses = (part for one in _SENTENCE.finditer(message) for part in _COMMA.split(one[0]))
    return [one.strip() for one in clauses if is_denial(one, code)]


def _read_sentence(
    cues: Sequence[Cues], message: str, span: tuple[int, int], *, before: int, left: int
) -> Iterator[UnassertedPart]:
    """Yield the readings by phrases of a sentence that reach no further than itself, or to what precedes it."""
    start, end = span
    if back := _search(("back",), _every_language(), message, start, end):
        yield back._replace(start=left, end=end)
    if any(one["vouched"].search(message, start, end) for one in cues):
        return
    if doubt := _search(("before",), cues, message, start, end):
        joint = _JOINT.search(message, doubt.end, end)
        yield doubt._replace(start=before, end=joint.start() if joint else end)
    if here := _search(("here",), cues, message, start, end):
        contrasts = (match.start() for one in cues if (match := one["contrast"].search(message, here.end, end)))
        yield here._replace(start=_find_joint(message, start, here.start), end=min(contrasts, default=end))


def _search(reaches: Sequence[str], cues: Sequence[Cues], message: str, start: int, end: int) -> UnassertedPart | None:
    """Return the first phrase of these reaches in a part of a message, as a reading of its own words."""
    matches = (one[reach].search(message, start, end) for reach in reaches for one in cues)
    match = next(filter(None, matches), None)
    return match and UnassertedPart(match.start(), match.end(), CommitmentKind(match.lastgroup or ""), match[0].strip())


def _find_joint(message: str, start: int, phrase: int) -> int:
    """Return where the part of a sentence begins that has a phrase: behind the last joint before it."""
    return max((one.end() for one in _JOINT.finditer(message, start, phrase + 1)), default=start)


def _list_cues(message: str, sentence: str) -> list[Cues]:
    codes = dict.fromkeys((detect_language(sentence), detect_language(message), ENGLISH))
    return [_load_cues(code) for code in codes]


@cache
def _every_language() -> Sequence[Cues]:
    return [_load_cues(code) for code in LANGUAGES]


@cache
def _load_cues(code: str) -> Cues:
    data = _read_data()[code]
    is_spaced = load_language(code).is_spaced
    reaches = {name: _compile_kinds(data[name], is_spaced=is_spaced) for name in REACHES}
    return reaches | {name: _compile(data.get(name, "(?!)"), is_spaced=is_spaced) for name in OTHERS}


@cache
def _load_denials(code: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    data = parse_trusted(files("newton.heart.statements").joinpath("denials.yaml").read_text(encoding="utf-8"))[code]
    denying = re.compile(data["denying"], re.IGNORECASE)
    return denying, _compile(data["lasting"], is_spaced=load_language(code).is_spaced)


@cache
def _read_data() -> Mapping[str, Any]:
    return parse_trusted(files("newton.heart.statements").joinpath("commitment.yaml").read_text(encoding="utf-8"))


def _compile_kinds(kinds: Mapping[str, str], *, is_spaced: bool) -> re.Pattern[str]:
    groups = (f"(?P<{kind}>{phrases.replace('; ', '|')})" for kind, phrases in kinds.items())
    return _compile("|".join(groups), is_spaced=is_spaced)


def _compile(pattern: str, *, is_spaced: bool) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'])(?:{pattern})(?!\w)" if is_spaced else pattern, re.IGNORECASE)
