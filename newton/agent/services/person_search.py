"""The search for the names of a person in everything that is stored for an agent, and in log files."""

import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.text.words import AMBIGUOUS_NAMES, split_words

SQL = load("newton.agent.services", "person_search.sql")

MAX_WORD_LETTERS = 3  # a name that is not longer may be an ordinary word in lower case

_MARKS = "\u0300-\u036f"  # combining marks, which follow a letter in decomposed Unicode
_UNSPACED_LETTERS = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f"  # of scripts without spaces
# A name ends before a letter of such a script, and a stored JSON text has \n for a new line.
_START = rf"(?:(?<![\w{_MARKS}])|(?<=\\[nrt])|(?<=[{_UNSPACED_LETTERS}]))"
_END = rf"(?:(?![\w{_MARKS}])|(?=[{_UNSPACED_LETTERS}]))"
_GAP = r"(?:\s|\\[nrt])+"
_UNSPACED = re.compile(f"[{_UNSPACED_LETTERS}]")
_ALPHABETS = (range(0x41, 0x250), range(0x370, 0x530), range(0x1E00, 0x2000))
_STROKES = {"ø": "o", "ł": "l", "đ": "d", "ı": "i"}  # letters that Unicode does not decompose
ARTICLES = split_words("""
the der die das den dem des le la les du au el los al del il lo gli dal sul o a do da ao à pro pra no na de het
""")  # also with a preposition
_ARTICLE = re.compile(rf"(?:({'|'.join(sorted(ARTICLES))}) (?=[^\W\d_a-z]))?(.*)", re.DOTALL)
_POSSESSIVE = re.compile(r"['’]s$")


def build_name_pattern(names: Iterable[str]) -> str:
    """Return a regular expression, for Python and PostgreSQL, that finds the names as whole words.

    It ignores case and accents, except that a name that may be an ordinary word keeps its capital, as one after an
    article, which stands for all articles. Scripts without spaces have no words, so names in them are found anywhere.

    >>> found = re.compile(build_name_pattern(["Émile Roy", "Will"])).findall("EMILE ROY'S, Will, will, Willy")
    >>> found
    ['EMILE ROY', 'Will']
    """
    ordered = sorted(names, key=len, reverse=True)
    words = [_spell(one) for one in ordered if not _UNSPACED.search(one)]
    unspaced = [re.escape(one) for one in ordered if _UNSPACED.search(one)]
    return "|".join([*([f"{_START}(?:{'|'.join(words)}){_END}"] if words else []), *unspaced])


def fold_name(name: str) -> str:
    """Return a name without case, accents and the ending of a possessive.

    >>> fold_name("Wiśniewska's"), fold_name("Weiß"), fold_name("김")
    ('wisniewska', 'weiss', '김')
    """
    plain = unicodedata.normalize("NFC", " ".join(_POSSESSIVE.sub("", name).split()))
    return "".join(map(_fold_letter, plain)).replace("ß", "ss")


def is_searchable(name: str) -> bool:
    """Return whether a name has a letter or digit, so that its pattern does not match any text."""
    return any(map(str.isalnum, fold_name(name)))


def _spell(name: str) -> str:
    """Return the expression for the spellings of a name that differ in case and accents."""
    match = _ARTICLE.fullmatch(name)
    article, bare = match.groups() if match else ("", name)
    folded, start = fold_name(bare), bare[:1]
    may_be_word = article or folded in AMBIGUOUS_NAMES or len(folded) <= MAX_WORD_LETTERS
    parts = [_spell_part(part) for part in re.findall(r"ss| |.", folded)]
    if may_be_word and start.isupper():
        parts[0] = f"(?={_class_of(filter(str.isupper, _letters().get(folded[0], start)))}){parts[0]}"
    return "".join([f"(?:{'|'.join(map(_spell, sorted(ARTICLES)))}){_GAP}" if article else "", *parts])


def _spell_part(part: str) -> str:
    if part == "ss":
        return f"(?:{_spell_part('s') * 2}|[ßẞ])"
    if part == " ":
        return _GAP
    if part in "'’ʼ":
        return "['’ʼ]"
    return f"{_class_of(_letters()[part])}[{_MARKS}]*" if part in _letters() else re.escape(part)


def _class_of(letters: Iterable[str]) -> str:
    return f"[{''.join(letters)}]"


@cache
def _letters() -> Mapping[str, str]:
    """Return the letters of both cases, with and without accents, by the plain letter."""
    found = defaultdict[str, str](str)
    for letter in (chr(code) for alphabet in _ALPHABETS for code in alphabet):
        if letter.isalpha():
            found[_fold_letter(letter)] += letter
    return dict(found)


def _fold_letter(letter: str) -> str:
    """Return a letter in lower case and without accents. Syllables, as of Korean, stay whole."""
    first, *marks = unicodedata.normalize("NFD", letter.casefold())
    return _STROKES.get(first, first) if all(map(unicodedata.combining, marks)) else letter.lower()


ARCHIVED = "memory.archived_texts"
_CHUNK_BYTES = 1 << 20
_MAX_NAME_BYTES = 400
_MASK = b"x"


async def list_archived_texts(tx: Tx, *, agent_id: UUID) -> dict[UUID, str]:
    """Return the full texts that are stored compressed, by memory."""
    rows = await SQL["list_archived_texts"].fetch_all(tx, agent_id=agent_id)
    return {row["memory_id"]: zlib.decompress(row["compressed"]).decode() for row in rows}


async def count_matches(tx: Tx, pattern: str, *, agent_id: UUID) -> dict[str, int]:
    """Return the number of rows with a text that matches the pattern, by table. Tables without matches are left out."""
    found = dict[str, int]()
    for table in await SQL["list_tables"].fetch_all(tx):
        row = await SQL["count_matches"].fetch_one(tx, agent_id=agent_id, table_name=table["name"], pattern=pattern)
        assert row is not None
        found[table["name"]] = row["found"]
    expression = re.compile(pattern)
    archived = await list_archived_texts(tx, agent_id=agent_id)
    found[ARCHIVED] = sum(bool(expression.search(text)) for text in archived.values())
    return {name: number for name, number in found.items() if number}


def count_in_logs(paths: Iterable[Path], pattern: str) -> dict[str, int]:
    """Return how often the pattern is found in log files, by path. Files without a match are left out."""
    return {str(path): found for path in paths if (found := sum(1 for _ in _find_in_file(path, pattern)))}


def mask_in_logs(paths: Iterable[Path], pattern: str) -> None:
    """Overwrite what the pattern finds in log files in place, so that a process that appends to a file can go on."""
    for path in paths:
        with path.open("r+b") as file:
            for start, length in list(_find_in_file(path, pattern)):
                file.seek(start)
                file.write(_MASK * length)


def _find_in_file(path: Path, pattern: str) -> Iterator[tuple[int, int]]:
    """Yield the offset and length in bytes of each match in a file, which is read in overlapping chunks."""
    expression, seen = re.compile(pattern), -1
    with path.open("rb") as file:
        start = 0
        while chunk := file.read(_CHUNK_BYTES):
            text = chunk.decode("utf-8", "surrogateescape")
            for match in expression.finditer(text):
                offset, length = _count_bytes(text[: match.start()]), _count_bytes(match[0])
                if start + offset > seen and offset + length < _CHUNK_BYTES:
                    seen = start + offset
                    yield seen, length
            if len(chunk) < _CHUNK_BYTES:
                break
            start += _CHUNK_BYTES - _MAX_NAME_BYTES
            file.seek(start)


def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
