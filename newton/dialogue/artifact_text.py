"""Texts of artifacts: chunks, names, media types, ranges of lines, passages that get vectors, rows of tables. Pure."""

import csv
import hashlib
import math
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from newton.errors import InputError
from newton.memory.hygiene import MAX_NAME_CHARACTERS
from newton.memory.redaction.redactor import redact_secrets
from newton.memory.representations import one_line
from newton.text.sentences import STOP_WORDS

# Delimiters of the texts whose first line names the columns, by media type.
TABLE_DELIMITERS: Mapping[str, str] = {"text/csv": ",", "text/tab-separated-values": "\t"}
MAX_VALUES = 100  # different values of a column that names kinds or states; a column of names or ids has more
MIN_ROWS_PER_VALUE = 10  # on average


def find_first_values(lines: Sequence[str], *, delimiter: str) -> dict[int, str]:
    """Return the values that occur for the first time in a row, by line number (the header is line 1).

    Only columns with few different values count, and only values with a letter. They are embedded separately, because
    they hardly affect the vector of a whole row.

    >>> rows = [f"{n},paid" for n in range(40)] + ["40,lost in transit"]
    >>> find_first_values(["order,state", *rows], delimiter=",")
    {2: 'paid', 42: 'lost in transit'}
    """
    header, *rows = [_split_row(line, delimiter) for line in lines] or [[]]
    numbered = [(number, row) for number, row in enumerate(rows, 2) if len(row) == len(header)]
    found: dict[int, list[str]] = {}
    for column in range(len(header)):
        first: dict[str, int] = {}
        for number, row in numbered:
            first.setdefault(row[column].strip(), number)
        if len(first) <= min(MAX_VALUES, len(numbered) / MIN_ROWS_PER_VALUE):
            for value, number in first.items():
                if any(character.isalpha() for character in value):
                    found.setdefault(number, []).append(value)
    return {number: ", ".join(found[number]) for number in sorted(found)}


def _split_row(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line; a line that is no valid row is one cell."""
    try:
        return next(csv.reader([line], delimiter=delimiter), list[str]())
    except csv.Error:
        return [line]


CHUNK_LINES, CHUNK_CHARS = 64, 6_000
MAX_LINE_CHARS = 2_000  # a longer line is stored as several lines
MAX_PASSAGES = 1_000  # of one artifact that get a vector
MAX_PASSAGE_CHARS = 400  # of a line that is embedded
MIN_PASSAGE_WORDS = 3
NUL_SAMPLE = 8_000  # characters or bytes in which a NUL byte shows that a content is no text

_VARIABLE = re.compile(r"\b[0-9a-f]{8,}\b|\d+", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}|\d+")
_CASE_CHANGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SUFFIX = re.compile(r"(?:ations?|ings?|ments?|ies|ed|es|s|e|y)\Z")
_MIN_STEM_CHARS = 3
_NAME_GAP = re.compile(r"[^\w./@+=-]+")
_RANGE = re.compile(r"(\d+)(?:\s*[-:]\s*(\d+)?)?|-(\d+)")
_MEDIA_TYPES = {
    ".py": "text/x-python",
    ".toml": "text/toml",
    ".yaml": "text/yaml",
    ".yml": "text/yaml",
    ".sql": "text/x-sql",
}


class ArtifactChunk(NamedTuple):
    """Consecutive lines of a text. `ending` is what follows them: a line break, or nothing within a very long line."""

    first_line: int
    line_count: int
    text: str
    ending: str


class ArtifactPassage(NamedTuple):
    """A line that is embedded, with its number, from 1."""

    first_line: int
    text: str


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines from `first` to `last`, from 1; `last` is None for the end of the text."""

    first: int
    last: int | None


def split_chunks(text: str) -> list[ArtifactChunk]:
    """Split a text into chunks that join to exactly the same text.

    >>> [tuple(chunk) for chunk in split_chunks("a\\nb\\n")]
    [(1, 2, 'a\\nb', '\\n')]
    """
    chunks: list[ArtifactChunk] = []
    pending: list[str] = []
    number, size = 1, 0
    for line, ending in _split_lines(text):
        pending.append(line)
        size += len(line) + 1
        if not ending or len(pending) == CHUNK_LINES or size >= CHUNK_CHARS:
            chunks.append(ArtifactChunk(number, len(pending), "\n".join(pending), ending))
            number, size = number + len(pending), 0
            pending = []
    if pending:
        chunks.append(ArtifactChunk(number, len(pending), "\n".join(pending), "\n"))
    return chunks


def join_chunks(chunks: Sequence[ArtifactChunk]) -> str:
    """Return the text of consecutive chunks."""
    return "".join(chunk.text + chunk.ending for chunk in chunks)


def count_lines(chunks: Sequence[ArtifactChunk]) -> int:
    return chunks[-1].first_line + chunks[-1].line_count - 1 if chunks else 0


def list_lines(text: str) -> list[str]:
    """Return the lines of a text as artifacts number them: a very long line is several."""
    return [line for line, _ in _split_lines(text)]


def _split_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line with its ending. A line of more than MAX_LINE_CHARS is divided at a space, if it has one."""
    *complete, last = text.split("\n")
    for line in complete:
        yield from _wrap_line(line, "\n")
    if last:
        yield from _wrap_line(last, "")


def _wrap_line(line: str, ending: str) -> Iterator[tuple[str, str]]:
    start = 0
    while len(line) - start > MAX_LINE_CHARS:
        space = line.rfind(" ", start + MAX_LINE_CHARS // 2, start + MAX_LINE_CHARS)
        end = space + 1 if space >= 0 else start + MAX_LINE_CHARS
        yield line[start:end], ""
        start = end
    yield line[start:], ending


def hash_text(text: str) -> bytes:
    """Return the SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode()).digest()


def parse_line_range(lines: str, *, line_count: int) -> LineRange:
    """Parse lines such as `120`, `120-180`, `120-` or `-50` (the last 50).

    Raises InputError for another form, for an end before the beginning, and for a beginning after the last line.

    >>> parse_line_range("-50", line_count=200)
    LineRange(first=151, last=200)
    """
    match = _RANGE.fullmatch(lines.strip())
    if match is None:
        raise InputError(
            f"{lines!r} is no range of lines.", hint="Write 120-180, 120-, 120 or -50 (the last 50 lines)."
        )
    if match[3]:
        return LineRange(max(line_count - int(match[3]) + 1, 1), line_count)
    first = max(int(match[1]), 1)
    is_open = "-" in lines or ":" in lines
    last = int(match[2]) if match[2] else None if is_open else first
    if last is not None and last < first:
        raise InputError(f"The range {lines!r} ends before it begins.", hint="Write the smaller line number first.")
    if first > line_count:
        raise InputError(f"The text has only {line_count:,} lines.", hint=f"Give lines from 1 to {line_count}.")
    return LineRange(first, last)


def make_name(label: str, *, suffix: str = "") -> str:
    """Return a name for an artifact made from a label, such as the description of a tool call.

    >>> make_name("bash pytest -q tests/unit", suffix=".out")
    'bash-pytest--q-tests/unit.out'
    """
    plain = _NAME_GAP.sub("-", redact_secrets(one_line(label))).strip("-./")
    return (plain[: MAX_NAME_CHARACTERS // 2].rstrip("-./") or "artifact") + suffix


def guess_media_type(name: str, text: str) -> str:
    """Return the media type of a text by the ending of its name, else by its first lines."""
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    if known := _MEDIA_TYPES.get(ending) or mimetypes.guess_type(name)[0]:
        return known
    head = text.split("\n", 4)[:4]
    commas = {line.count(",") for line in head}
    if len(head) > 2 and len(commas) == 1 and commas.pop() >= 2:
        return "text/csv"
    return "application/json" if text.lstrip()[:1] in ("{", "[") and text.rstrip()[-1:] in ("}", "]") else "text/plain"


def is_binary(data: bytes) -> bool:
    """Return whether a file is not UTF-8 text, judged by its beginning."""
    sample = data[:NUL_SAMPLE]
    if b"\0" in sample:
        return True
    try:
        sample.decode()
    except UnicodeDecodeError as error:
        return error.start < len(sample) - 4  # a character may be cut at the end of the sample
    return False


def mask_variables(line: str) -> str:
    """Replace numbers and ids in a line by `#`, so that lines of the same template become equal.

    >>> mask_variables("GET /api/4711 took 12 ms")
    'GET /api/# took # ms'
    """
    return _VARIABLE.sub("#", line)


def iter_stems(text: str) -> Iterator[str]:
    """Yield the words of a text without common endings, in lower case; identifiers are divided into their words.

    >>> list(iter_stems("maxUploadBytes was exceeded"))
    ['max', 'upload', 'byt', 'was', 'exceed']
    """
    for word in _WORD.findall(_CASE_CHANGE.sub(" ", text)):
        lower = word.casefold()
        stem = _SUFFIX.sub("", lower)
        yield stem if len(stem) >= _MIN_STEM_CHARS else lower


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    words = (word for word in _CASE_CHANGE.sub(" ", text).split() if word.casefold().strip(".,?!:;") not in STOP_WORDS)
    return frozenset(stem for stem in iter_stems(" ".join(words)) if len(stem) > 1)


def rank_unusual_lines(lines: Sequence[str]) -> list[int]:
    """Return line numbers, from 1, one for each template of lines; lines with the rarest words come first."""
    first_of: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if len(_WORD.findall(line)) >= MIN_PASSAGE_WORDS:
            first_of.setdefault(mask_variables(line), number)
    first_of = first_of or {line: number for number, line in enumerate(lines, 1) if line.strip()}
    stems = {number: frozenset(iter_stems(template)) for template, number in first_of.items()}
    frequency = Counter(stem for found in stems.values() for stem in found)
    return sorted(stems, key=lambda number: (-_rarity(stems[number], frequency, len(stems)), number))


def select_passages(lines: Sequence[str], *, media_type: str = "text/plain") -> list[ArtifactPassage]:
    """Return the lines to embed, at most MAX_PASSAGES: rows of a table with new values, then the most unusual lines."""
    delimiter = TABLE_DELIMITERS.get(media_type)
    texts = find_first_values(lines, delimiter=delimiter) if delimiter else {}
    for number in rank_unusual_lines(lines)[:MAX_PASSAGES]:
        texts.setdefault(number, lines[number - 1])
    chosen = sorted(list(texts)[:MAX_PASSAGES])
    return [ArtifactPassage(number, one_line(texts[number])[:MAX_PASSAGE_CHARS]) for number in chosen]


def _rarity(stems: frozenset[str], frequency: Mapping[str, int], total: int) -> float:
    """Return the mean inverse frequency of the rarer half of the words of a line."""
    weights = sorted((math.log(total / frequency[stem]) for stem in stems), reverse=True)
    rare = weights[: max(len(weights) // 2, 1)]
    return sum(rare) / len(rare) if rare else 0.0
