"""Cuts a document's sections into passages of bounded length. Pure: the token counter is passed in."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from newton.content.sections import Section
from newton.memory.memory import Count

SIZE = 300
OVERLAP = 50

# No text worth reading has more letters than this in a token, so a longer one need not be counted to be cut.
_MOST_LETTERS = 8
_MOST_BETWEEN = 8  # characters of the white space between two sentences
_SENTENCE_END = re.compile(r"(?:[.!?…][\"'”’»)\]]*(?=\s)|[。！？][”’」』）]*)(\s*)")
_BLANK = re.compile(r"\s*")


class Chunk(NamedTuple):
    """`tokens` is the count of the text alone; the heading is where it stands, not a part of it."""

    heading: str
    text: str
    tokens: int


class _Unit(NamedTuple):
    """A sentence or a line, or a piece of one that is too long; `before` is what parts it from the unit before it."""

    before: str
    text: str
    tokens: int

    @property
    def cost(self) -> int:
        return self.tokens + ("\n" in self.before)


# What goes into one chunk or another, but undivided: a paragraph that fits into one, or else a unit of it.
_Block = list[_Unit]


@dataclass(frozen=True, slots=True)
class _Cut:
    """One chunk in the making; its first `repeated` units ended the chunk before it."""

    units: _Block
    repeated: int
    text: str
    tokens: int


def passages(sections: Iterable[Section], *, count: Count, size: int = SIZE, overlap: int = OVERLAP) -> list[Chunk]:
    """The sections as chunks of at most `size` tokens, in order. A chunk begins with the sentences that ended the one
    before it in its section, as many as `overlap` tokens hold.

    What a section is cut into depends on nothing outside it, so an edit changes only chunks of its own section; for
    this the shortest sections stay chunks of their own. Paragraphs are kept whole where they fit, else sentences and
    lines, else words. Takes about three times as long as counting the text.
    """
    if size < 8 or not 0 <= overlap < size:
        raise ValueError("a chunk has at least 8 tokens, and its overlap fewer than it")
    cutter = _Cutter(count=count, size=size, overlap=overlap)
    return [Chunk(section.heading, cut.text, cut.tokens) for section in sections for cut in cutter.cut(section)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cutter:
    count: Count
    size: int
    overlap: int

    def cut(self, section: Section) -> list[_Cut]:
        blocks = deque(block for paragraph in section.paragraphs for block in self._blocks(paragraph))
        made: list[_Cut] = []
        while blocks:
            made.append(self._filled(self._tail(made[-1]) if made else [], blocks))
        return self._merged(made)

    def _filled(self, tail: _Block, blocks: deque[_Block]) -> _Cut:
        """Takes as many blocks as seem to fit, at least one."""
        taken = [blocks.popleft()]
        room = self.size - _cost(tail) - _cost(taken[0])
        while blocks and _cost(blocks[0]) <= room:
            taken.append(blocks.popleft())
            room -= _cost(taken[-1])
        return self._checked(tail, taken, blocks)

    def _checked(self, tail: _Block, taken: list[_Block], blocks: deque[_Block]) -> _Cut:
        """The chunk of tail and taken, less what its own count forbids; the sum of its parts' counts is no bound."""
        while True:
            units = [*tail, *(unit for block in taken for unit in block)]
            text = _joined(units)
            tokens = self.count(text)
            if tokens <= self.size or len(units) == 1:
                return _Cut(units, len(tail), text, tokens)
            if len(taken) > 1:
                blocks.appendleft(taken.pop())
            elif tail:
                tail = tail[1:]
            else:
                blocks.extendleft([unit] for unit in reversed(taken[0][1:]))
                taken = [taken[0][:1]]

    def _tail(self, cut: _Cut) -> _Block:
        """The last units that the next chunk repeats, but never all that this one had to say."""
        tail: _Block = []
        for unit in reversed(cut.units[cut.repeated + 1 :]):
            if _cost(tail) + unit.cost > self.overlap:
                break
            tail.insert(0, unit)
        while tail and self.count(_joined(tail)) > self.overlap:
            tail = tail[1:]
        return tail

    def _merged(self, made: list[_Cut]) -> list[_Cut]:
        """What is left at the end joins the chunk before it, if there is room by the count of both."""
        if len(made) < 2:
            return made
        *others, before, last = made
        units = [*before.units, *last.units[last.repeated :]]
        text = _joined(units)
        tokens = self.count(text)
        return made if tokens > self.size else [*others, _Cut(units, before.repeated, text, tokens)]

    def _blocks(self, paragraph: str) -> list[_Block]:
        units = list(self._units(paragraph))
        return [units] if _cost(units) <= self.size else [[unit] for unit in units]

    def _units(self, paragraph: str) -> Iterator[_Unit]:
        before = "\n\n"
        for line in paragraph.split("\n"):
            for space, sentence in _sentences(line.rstrip()):
                yield from self._fitting(before or space, sentence)
                before = ""
            before = (before + "\n")[:_MOST_BETWEEN]

    def _fitting(self, before: str, text: str) -> Iterator[_Unit]:
        """The text, or pieces of it that fit. No count sees more than a few chunks of text."""
        if len(text) <= self.size * _MOST_LETTERS and (tokens := self.count(text)) <= self.size:
            yield _Unit(before, text, tokens)
            return
        at = len(text) - len(text.lstrip())
        while at < len(text):
            unit = self._piece(before, text, at)
            yield unit
            at += len(unit.text)
            end = _BLANK.match(text, at)
            before, at = (text[at : end.end()][:_MOST_BETWEEN], end.end()) if end else ("", at)

    def _piece(self, before: str, text: str, at: int) -> _Unit:
        room = self.size * _MOST_LETTERS
        while True:
            piece = _up_to_word(text, at, room)
            tokens = self.count(piece)
            if tokens <= self.size or len(piece) == 1:
                return _Unit(before, piece, tokens)
            room = max(1, min(len(piece) - 1, len(piece) * self.size // tokens))


def _up_to_word(text: str, at: int, room: int) -> str:
    """At most so many characters from there on, ended at a word if one ends in the last half."""
    piece = text[at : at + room]
    if at + room < len(text) and not text[at + room].isspace():
        cut = max(piece.rfind(" "), piece.rfind("\t"))
        piece = piece[:cut] if cut > room // 2 else piece
    return piece.rstrip()


def _sentences(line: str) -> Iterator[tuple[str, str]]:
    """Each sentence after the white space that parts it from the one before."""
    before, start = "", 0
    for end in _SENTENCE_END.finditer(line):
        yield before, line[start : end.start(1)]
        before, start = end[1][:_MOST_BETWEEN], end.end()
    if start < len(line):
        yield before, line[start:]


def _cost(units: _Block) -> int:
    return sum(unit.cost for unit in units)


def _joined(units: _Block) -> str:
    return "".join(unit.before + unit.text for unit in units).removeprefix(units[0].before)
