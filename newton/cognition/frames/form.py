"""Features of form of an input, the same for all languages: cues, punctuation, length, error text and code. Pure."""

import re
from collections.abc import Sequence
from itertools import combinations

from newton.cognition.frames.cues import CueMatch

MAX_CHARS = 400
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
    """Return the names of the features that the text has, and of their pairs."""
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
