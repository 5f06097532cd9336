"""A reader of JSON as language models write it: cut off, within prose, with other quotes, commas or comments. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

MAX_STARTS = 50  # brackets in a text that are tried as the start of a value
MAX_NESTING = 30
QUOTES = {'"': '"', "'": "'", "“": "“”", "”": "“”"}  # an opening quote, and those that close it
_OPENING = re.compile(r"[{\[]")
_SKIPPED = re.compile(r"(?:\s+|//[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_BARE_WORD = re.compile(r"[\w.+$-]+")
_AFTER_TEXT = re.compile(r"\s*(?:[,:}\]]|\Z|//|/\*|```)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nan": None}
_LEFT_OUT = object()  # a value that the end of the text cuts


class FoundValue(NamedTuple):
    """A JSON value in a text. `is_cut` means that the text ends within it."""

    value: object
    is_cut: bool


def find_json_values(text: str) -> Iterator[FoundValue]:
    """Yield the objects and lists in a text, also those that are not valid JSON.

    Of a value that the end of the text cuts, the complete items remain: within a list, an item that is cut is left out.

    >>> [found.value for found in find_json_values("As {you} like: ```json\\n{'same': True,}\\n``` [1, {\\"a\\": 2")]
    [{'same': True}, [1]]
    """
    position = 0
    for _ in range(MAX_STARTS):
        start = _OPENING.search(text, position)
        if start is None:
            return
        reader = _LenientReader(text, start.start())
        try:
            value = reader.read_value(MAX_NESTING)
        except ValueError:
            position = start.end()
            continue
        yield FoundValue(value, reader.is_cut)
        position = reader.position


@dataclass(slots=True)
class _LenientReader:
    """Reads a JSON value of a text from `position` on, also one with mistakes that models make.

    Raises ValueError if there is none, or if it is nested too deeply.
    """

    text: str
    position: int
    is_cut: bool = False

    def read_value(self, depth: int) -> object:
        if not depth:
            raise ValueError
        match self._peek():
            case "{":
                return self._read_object(depth)
            case "[":
                return self._read_list(depth)
            case char if char in QUOTES:
                return self._read_text()
            case "":
                return self._cut()
            case _:
                return self._read_word()

    def _read_object(self, depth: int) -> object:
        """Read an object from its opening brace on. A field that the end of the text cuts is left out."""
        fields: dict[str, object] = {}
        self.position += 1
        while (char := self._peek()) != "}":
            if char == ",":
                self.position += 1
                continue
            name = self._read_text() if char in QUOTES else self._read_key() if char else self._cut()
            colon = self._peek()
            if name is _LEFT_OUT or not colon:
                self.is_cut = True
                return fields
            if colon != ":":
                raise ValueError
            self.position += 1
            value = self.read_value(depth - 1)
            if value is not _LEFT_OUT:
                fields[str(name)] = value
            if self.is_cut:
                return fields
        self.position += 1
        return fields

    def _read_list(self, depth: int) -> object:
        items: list[object] = []
        self.position += 1
        while (char := self._peek()) != "]":
            if char == ",":
                self.position += 1
                continue
            item = self.read_value(depth - 1)
            if self.is_cut:
                return items
            items.append(item)
        self.position += 1
        return items

    def _read_text(self) -> object:
        """Read a text in quotes.

        A quote inside it that no comma, colon or bracket follows belongs to it: models forget to escape it.
        """
        closing = QUOTES[self.text[self.position]]
        self.position += 1
        pieces: list[str] = []
        while self.position < len(self.text):
            char = self.text[self.position]
            self.position += 1
            if char == "\\":
                pieces.append(self._read_escape())
            elif char in closing and _AFTER_TEXT.match(self.text, self.position):
                return _clean("".join(pieces))
            else:
                pieces.append(char)
        return self._cut()

    def _read_escape(self) -> str:
        char = self.text[self.position : self.position + 1]
        self.position += 1
        if char != "u":
            return _ESCAPES.get(char, char)
        digits = self.text[self.position : self.position + 4]
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            return ""
        self.position += 4
        return chr(int(digits, 16))

    def _read_key(self) -> str:
        found = _BARE_WORD.match(self.text, self.position)
        if not found:
            raise ValueError
        self.position = found.end()
        return found[0]

    def _read_word(self) -> object:
        """Read a number or a constant. Raises ValueError for another word."""
        word = self._read_key()
        if not self._peek():
            return self._cut()  # more of it may have been cut
        if word.lower() in _CONSTANTS:
            return _CONSTANTS[word.lower()]
        return cast("object", json.loads(word))

    def _cut(self) -> Any:
        self.is_cut = True
        return _LEFT_OUT

    def _peek(self) -> str:
        """Skip spaces and comments; return the next character, or an empty text at the end."""
        found = _SKIPPED.match(self.text, self.position)
        self.position = found.end() if found else self.position
        return self.text[self.position : self.position + 1]


def _clean(text: str) -> str:
    """Join the surrogates of a text, and remove NUL, which no database stores."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
