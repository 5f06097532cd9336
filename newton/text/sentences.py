"""Sentences of a text: their kind by cue words (error, decision, task, path), and the most central ones. Pure.

All patterns take linear time. Cue words are English; paths, URLs, names and errors are found in any language.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

MIN_WORDS, MAX_WORDS = 4, 40  # of a sentence that may be selected
SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+(?=\S)|\n+")
_WORD = re.compile(r"\w[\w'’]+")
_STOP_WORDS_TEXT = """
about after all also and any are been but can could did does doing don't for from get going good got great had has have
her him his how i'm it's its just know like make more much not now one our out really said she should some something
sounds than thank thanks that that's the their them then there they thing think this time too very want was way well
were what when which who will with would yeah yes you your
"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())  # words without a topic


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text; a line break ends one.

    >>> split_sentences("It broke. Why?\\n- A fuse")
    ['It broke.', 'Why?', '- A fuse']
    """
    return [sentence for part in SENTENCE_END.split(text) if (sentence := part.strip())]


def central_sentences(texts: Sequence[str], *, limit: int) -> list[str]:
    """Return at most `limit` sentences of the texts, in their order: those closest to the centroid of all sentences.

    Closeness is the cosine similarity of word counts. Sentences similar to a selected one are skipped.
    """
    sentences = list(dict.fromkeys(s for text in texts for s in split_sentences(text)))
    counts = {s: bag for s in sentences if MIN_WORDS <= len(s.split()) <= MAX_WORDS and (bag := _count_words(s))}
    positions = {s: position for position, s in enumerate(sentences)}
    centroid = sum(counts.values(), Counter[str]())
    ranked = sorted(counts, key=lambda s: (-_cosine(counts[s], centroid), positions[s]))
    selected: list[str] = []
    for sentence in ranked:
        if len(selected) == limit:
            break
        if all(_cosine(counts[sentence], counts[other]) < 0.5 for other in selected):
            selected.append(sentence)
    return sorted(selected, key=positions.__getitem__)


def _count_words(text: str) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text.casefold()) if len(word) > 2 and word not in STOP_WORDS)


def _cosine(first: Counter[str], second: Counter[str]) -> float:
    dot = sum(times * second[word] for word, times in first.items())
    return dot / (_norm(first) * _norm(second)) if dot else 0.0


def _norm(bag: Counter[str]) -> float:
    return math.sqrt(sum(times * times for times in bag.values()))


CueKind = Literal["error", "decision", "constraint", "task", "path"]

MAX_SENTENCE_CHARS = 4_000  # a longer one is truncated
MAX_NAME_CHARS = 400  # of a path or a URL; a longer one is ignored

# Errors as programs print them.
ERROR_PATTERN = re.compile(
    r"\b(?:\w++(?:(?<=Error)|(?<=Exception)|(?<=Warning))"
    r"|(?:Traceback|FAILED|panic|fatal|errno|not found|denied|timed out)\b"
    r"|(?:error|ERROR)[\[: ]|exit(?:ed)? (?:with )?(?:code|status) [1-9])"
)
# Cues in people's words; the first kind that matches counts.
_CUE_SOURCES: tuple[tuple[CueKind, str], ...] = (
    (
        "error",
        r"\b(?:dead end|did(?:n't| not) (?:work|help|fix)|does(?:n't| not) (?:work|help)|fail(?:s|ed|ing|ures?)?|"
        r"gave up|no luck|made (?:it|things) worse|ruled out|rolled back|reverted|turned out wrong|in vain|"
        r"crash(?:es|ed|ing)?|segfault|panicked|time-?outs?|broken|refused)\b",
    ),
    (
        "decision",
        r"\b(?:decid(?:e|ed|es)|decision|we(?:'ll| will| shall) (?:use|go|take|keep|do|drop|stay)|"
        r"let'?s (?:use|go|take|keep|stick|stay|drop)|chose|chosen|choose|going with|agreed|settled on|instead of|"
        r"prefers?|preferred|the plan is|i(?:'ll| will) (?:use|go with))\b",
    ),
    (
        "constraint",
        r"\b(?:must(?:n't)?|never|always|do(?:n't| not) (?:touch|use|change|delete|commit|push)|may not|"
        r"only (?:use|if|when|after|before|on|in)|at most|at least|no (?:more|less) than|no later than|constraint|"
        r"required?|requires|forbidden|allowed|limit(?:ed)? (?:of|to)|deadline)\b",
    ),
    (
        "task",
        r"\b(?:to-?do|tasks?|needs? to|ha(?:ve|s) to|next (?:steps?|up)|action items?|due (?:on|by|in)|remind me|"
        r"remember to|should|open (?:item|question|point)|still (?:missing|open|need|to)|blocked|remains? to|later we|"
        r"has yet to|not yet|follow[- ]up|pending|unclear)\b",
    ),
)
_CUES: tuple[tuple[CueKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _CUE_SOURCES
)

# Requests. The lookahead distinguishes "Run the tests" from "Run 5 failed".
_ASKS = re.compile(
    r"\W*+(?>(?:(?:ok(?:ay)?|hey|hi|hello|well|now|then|so|and|also|first|next|just)\b\W++){0,3})"
    r"(?:please|pls|kindly|(?:can|could|would|will) (?:you|we)|i(?:'d| would) like|i (?:want|need) you to|"
    r"(?:let'?s|let us) (?:look|see|check|try|find|fix)|"
    r"(?:look|check|fix|find|see|show|tell|explain|run|rerun|try|test|debug|investigate|read|open|write|add|make|create|"
    r"build|update|change|rename|remove|delete|move|implement|refactor|review|summari[sz]e|list|print|search|go|give|"
    r"help|compare|describe|analy[sz]e|install|deploy|start|stop|restart|repeat|continue|undo)"
    r"(?! (?:\S{1,20} )?(?:fail(?:s|ed|ing|ures?)?|errors?|is|was|are|were|did|does|has|had|crash\w*|broke)\b))"
    r"\b",
    re.IGNORECASE,
)

_ENDINGS = (
    "cfg|conf|cpp|cs|css|csv|db|diff|env|go|hpp|html?|ini|ipynb|java|jsx?|json|kt|lock|log|md|pdf|php|png|proto|py|rb|rs"
    "|sh|sql|svg|swift|toml|tsx?|txt|xml|ya?ml|zip"
)
_NAME = re.compile(
    r"(?<![\w/.:@+-])(?=~?[\w./@+-])(?:(?P<root>[A-Za-z]:\\|~?\.{0,2}/)?[\w.@+-]++(?>(?:[/\\][\w.@+-]++)+)"
    rf"|(?:(?:[\w@+-]++\.){{1,6}}?(?i:{_ENDINGS})|[\w@+-]{{2,100}}+\.[ch])(?![\w@+(-]|\.\w))"
)
_URL = re.compile(r"\bhttps?://[^\s<>\"')\]]++")
_SURE = re.compile(r"[/~.]|[A-Za-z]:\\|https?:")
_ENDING = re.compile(r"\.[A-Za-z]\w{0,4}\Z")


def classify_sentence(sentence: str) -> CueKind | None:
    """Return the kind of a sentence (decision, error, path, …) by the first cue that matches; None if none does.

    >>> [classify_sentence(text) for text in ("We chose Redis.", "It raised a KeyError.", "See src/a.py", "And/or.")]
    ['decision', 'error', 'path', None]
    """
    sentence = sentence[:MAX_SENTENCE_CHARS]
    if ERROR_PATTERN.search(sentence):
        return "error"
    for kind, cue in _CUES:
        if cue.search(sentence):
            return kind
    return "path" if any(map(_is_path_or_url, find_names(sentence))) else None


def is_request(sentence: str) -> bool:
    """Return True if the sentence asks for an action.

    >>> [is_request(text) for text in ("Please look at failure 0.", "Fix the KeyError.", "Run 5 failed.", "It failed.")]
    [True, True, False, False]
    """
    return _ASKS.match(sentence[:MAX_SENTENCE_CHARS]) is not None


def count_cues(output: str) -> int:
    """Return the number of errors, paths and URLs in a tool's output."""
    return sum(1 for _ in ERROR_PATTERN.finditer(output)) + sum(map(_is_path_or_url, find_names(output)))


def find_names(text: str) -> list[str]:
    """Return the URLs and paths in a text, exactly as written.

    >>> find_names("see src/app.py:12, notes.txt, then https://example.org/a.")
    ['https://example.org/a', 'src/app.py', 'notes.txt']
    """
    urls = [url.rstrip(".,;:!?") for url in _URL.findall(text)]
    paths = [_trim_name(hit) for hit in _NAME.finditer(_URL.sub(" ", text))]
    return [name for name in (*urls, *paths) if 0 < len(name) <= MAX_NAME_CHARS]


def _trim_name(hit: re.Match[str]) -> str:
    """Return the matched name without punctuation around it; empty if no path remains."""
    if hit.lastgroup is None and "/" not in hit[0] and "\\" not in hit[0]:
        return hit[0]
    name = hit[0].rstrip("/\\.@+-")
    inner = name[len(hit["root"] or "") :]
    return name if "/" in inner or "\\" in inner else ""


def _is_path_or_url(name: str) -> bool:
    """Return True if the name can only be a path or a URL, unlike `and/or`."""
    return bool(_SURE.match(name) or _ENDING.search(name[-6:]))
