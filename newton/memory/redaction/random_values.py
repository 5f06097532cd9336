"""Secrets by their class: a random string near a word of the family of secrets, in a secret URL, or in a column. Pure.

Such a string has a form of no known service. What surrounds it decides: its label in an assignment, a header, a query
or a sentence. Labels such as "commit", "sha256" and "order" say that it is none.
"""

import re
from collections.abc import Iterator, Sequence

import re2

from newton.memory.redaction.labelled_values import UUID, Labels, is_literal, is_mixed, is_plain_term, looks_random
from newton.memory.redaction.rule_files import load_words
from newton.memory.redaction.tally import SecretSpan

KIND = "secret"
_AFTER_CHARS = 60
_ZONE_CHARS = 90  # before a string in which its label is
_BEFORE_CHARS = 14  # before a label in which a harmless word counts
_NEAR_CHARS = 40  # before a string in which a harmless label counts
_MIN_SEGMENT = 12
_MIN_HEX, _MIN_LABELLED, _MIN_NEAR, _MIN_HOOK = 32, 16, 20, 6
_MAX_ROWS, _MAX_HEADER, _MAX_HEADER_LINE = 100, 24, 1_000
_ALTERNATIONS_PER_CHARS = 10

_WORDS = load_words("random_values.yaml")
# with a digit, after which more follows: few words and names have one
_CANDIDATE = re2.compile(rb"[A-Za-z+/_.~%-]{0,40}[0-9][A-Za-z0-9+/_.~%-]{4,}={0,2}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}$")
_SEPARATOR = re.compile(r"[+/_.~=-]|%[0-9A-Fa-f]{2}")
_HEX = re.compile(r"(?:0x)?[0-9A-Fa-f]+$")
_NO_SECRET = re.compile(r"AAAA[A-Z]3Nza|age1[a-z0-9]{50}|(?:x|y|z)pub|h1:|sha\d+[-:]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BARE_LINE = re.compile(r"[\s>*#|\"'`-]*(?:<\w+>)?[\"'`]?$")


def _compile(alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W\d_])")


_FAMILY = re.compile(rf"(?<![^\W_])(?:{_WORDS['family']}|{_WORDS['short']})(?![^\W\d_])|{_WORDS['unspaced']}")
_HARMLESS = _compile(_WORDS["harmless"])
_STRONG_UUID = re.compile(r"(?:api|secret|access|auth|licen[cs]e)[ _-]?(?:key|token|secret)|secret|passw")
# Between a label and its value: the rest of the name, an operator or "is", and what opens the value.
_LINK = re.compile(
    r"[\w.)\]} -]{0,24}[\"'`\\)>\]]*\s{0,4}(?:=>|:=|==?|:|：|,|=\\?\""
    r"|\b(?:is|was|ist|lautet|est|es|è|é|jest|är|er|to|value)\b"
    r"|は|是|为|為|은|는)[ \t]{0,4}(?:[\"']?value[\"']?\s?[:=]\s?)?"
    r"[\\\"'`«“(<\[{]*(?:0x|base64:|bearer |basic |token )?$"
)
# After a value: "is my key", "<- the token", "# key of the shop"; no verb that a commit begins with.
_NAMING = re.compile(
    r"[\"'`»”)\]};,.]{0,3}\s{1,4}(?:(?:is|was|are|as|ist|war|als|est|comme|es|como|è|come|é|to|jest|jako|är|er|som|это)\b|<?[-=–—]+>?|←|↑|#|//|\()"
    r"[^\n]{2,50}"
)
_FLAG = re.compile(r"(?<=[\w-])[ =][\"']?$")
_QUERY = re.compile(rf"[?&;](?:[\w.-]{{0,20}}-)?(?:{_WORDS['signed']})=$")
_COOKIE = re.compile(r"cookie:", re.IGNORECASE)
_URL = re.compile(r"://[^\s\"'<>`]{8,}")
_SECRET_PATH = re.compile(rf"(?:^|[/.-])(?:{_WORDS['paths']})(?=[/-])", re.IGNORECASE)
_PATH_PART = re.compile(r"[A-Za-z0-9_~-]{6,}")
_COLUMNS = frozenset(_WORDS["columns"].split("|"))
_COLUMN_MARK = re.compile(r"\s*[|;\t,]\s*")


def find_random_values(text: str, lowered: str, labels: Labels) -> Iterator[SecretSpan]:
    """Yield the random strings of a text that what surrounds them makes secrets.

    `lowered` is the text in lower case, of the same length, and `labels` are the positions of those that it contains.
    """
    raw = text.encode("ascii", "replace")
    position = 0
    while match := _CANDIDATE.search(raw, position):
        start, position = match.span()
        found = text[start:position]
        value = found if _BASE64.match(found) else found.lstrip("+/_.~%-")
        start, value = position - len(value), value.rstrip(".")
        if len(value) < _MIN_LABELLED or not is_random(value):
            continue
        if _is_labelled(text, start, value) or _is_named_after(text, start, value):
            yield SecretSpan(start, start + len(value), KIND)
    if "://" in text:
        yield from _find_in_urls(text)
    for label in _COLUMNS & labels.keys():
        yield from _find_in_columns(text, lowered, label, labels[label])


def is_random(value: str) -> bool:
    """Return whether a part of a string has letters and digits in turn, as random strings have them.

    >>> is_random("feature-api-6b68xd6gk5-gkr4t"), is_random("f3791fe50a7fc61545d6"), is_random("manylinux2014_x86_64")
    (False, True, False)
    """
    longest = max(_SEPARATOR.split(value), key=len)
    needed = max(2, len(longest) // _ALTERNATIONS_PER_CHARS)
    return len(longest) >= _MIN_SEGMENT and looks_random(longest, alternations=needed)


def _is_labelled(text: str, start: int, value: str) -> bool:
    """Return whether words before a string say that it is secret: in its label, or near it in the sentence."""
    zone = text[_find_zone(text, start) : start]
    if _NO_SECRET.match(value) or zone.endswith(("base64,", "@", "sha256:")):
        return False
    if _QUERY.search(zone.lower()) or (
        zone.endswith("=") and _COOKIE.search(text, text.rfind("\n", 0, start) + 1, start)
    ):
        return True
    spaced = _CAMEL.sub(" ", zone).lower()
    label = next(reversed(list(_FAMILY.finditer(spaced))), None)
    if label is None or _HARMLESS.search(spaced, max(label.start() - _BEFORE_CHARS, 0), label.start()):
        return False
    gap = spaced[label.end() :]
    if _HARMLESS.search(gap):
        return False
    if UUID.match(value):
        return bool(_LINK.match(gap)) and bool(_STRONG_UUID.search(spaced, max(label.start() - _BEFORE_CHARS, 0)))
    return bool(_LINK.match(gap) or _FLAG.match(gap)) or _is_near(zone, spaced, value)


def _is_near(zone: str, spaced: str, value: str) -> bool:
    """Return whether a string that only shares a sentence with its label is secret: a long one, not in a path."""
    is_part_of_path = zone.endswith(("/", "\\", "=")) or "://" in zone.rpartition(" ")[2]
    if is_part_of_path or _HARMLESS.search(spaced[-_NEAR_CHARS:]):
        return False
    return len(value) >= (_MIN_HEX if _HEX.match(value) else _MIN_NEAR)


def _is_named_after(text: str, start: int, value: str) -> bool:
    """Return whether the rest of the line says that a string is secret, such as "is the new API key"."""
    end = start + len(value)
    named = _NAMING.match(text[end : end + _AFTER_CHARS].partition("\n")[0].lower())
    if named is None or UUID.match(value) or _HARMLESS.search(named[0]) or not _FAMILY.search(named[0]):
        return False
    line = text.rfind("\n", 0, start) + 1
    before = text[max(line, start - _ZONE_CHARS) : start].lower()
    return not (_HARMLESS.search(before) or before.endswith(("/", "=", "@", ":")))


def _find_zone(text: str, start: int) -> int:
    """Return where the text begins in which the label of a string is: on its line, or on the line before a bare one."""
    line = text.rfind("\n", 0, start) + 1
    if line and _BARE_LINE.match(text, line, start):
        line = text.rfind("\n", 0, line - 1) + 1
    return max(line, start - _ZONE_CHARS)


def _find_in_urls(text: str) -> Iterator[SecretSpan]:
    """Yield random parts of the path of a URL after a word such as "webhook" or "reset"."""
    for url in _URL.finditer(text):
        end = url.start() + len(re.split(r"[?#]", url[0])[0])
        if word := _SECRET_PATH.search(text, url.start(), end):
            for part in _PATH_PART.finditer(text, word.end(), end):
                is_of_hook = "hook" in word[0].lower() and len(part[0]) < _MIN_LABELLED
                if (is_of_hook and looks_random(part[0])) or (len(part[0]) >= _MIN_LABELLED and is_random(part[0])):
                    yield SecretSpan(part.start(), part.end(), KIND)


def _find_in_columns(text: str, lowered: str, label: str, ends: Sequence[int]) -> Iterator[SecretSpan]:
    """Yield the cells of a table below a header such as "password". A header repeated within a table adds none."""
    done = 0
    for position in ends:
        start, end = lowered.rfind("\n", 0, position) + 1, lowered.find("\n", position)
        if end < 0:
            return
        if position < done or end - start > _MAX_HEADER_LINE:
            continue
        header = [cell.strip("\"' ") for cell in _COLUMN_MARK.split(lowered[start:end])]
        columns = [place for place, cell in enumerate(header) if cell.endswith(label) and len(cell) < _MAX_HEADER]
        done = end
        if len(header) > 1 and columns:
            for first, done in _find_rows(text, end + 1, len(header)):
                yield from _find_cells(text[first:done], first, columns)


def _find_rows(text: str, start: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield where the lines of a table with `width` columns begin and end."""
    for _ in range(_MAX_ROWS):
        end = text.find("\n", start)
        end = end if end >= 0 else len(text)
        if len(_COLUMN_MARK.findall(text, start, end)) + 1 != width or start >= len(text):
            return
        yield start, end
        start = end + 1


def _find_cells(line: str, start: int, columns: list[int]) -> Iterator[SecretSpan]:
    marks = [(0, 0), *(mark.span() for mark in _COLUMN_MARK.finditer(line)), (len(line), len(line))]
    for column in columns:
        first, last = marks[column][1], marks[column + 1][0]
        if _is_cell(line[first:last].strip("\"'")):
            yield SecretSpan(start + first, start + last, "password")


def _is_cell(cell: str) -> bool:
    is_code = is_mixed(cell) or (any(map(str.isdigit, cell)) and len(cell) < 9)
    return len(cell) >= 4 and is_code and " " not in cell and is_literal(cell) and not is_plain_term(cell)
