"""Splitting of the sections of a document into chunks with a limited number of tokens. Pure."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from newton.content.sections import UNKNOWN_SPAN, DocumentSection, LineSpan
from newton.memory.memory import TokenCounter
from newton.memory.representations import one_line

CHUNK_TOKENS = 300
OVERLAP_TOKENS = 50

# Ordinary text has fewer characters per token, so a longer text is cut without counting its tokens.
_MAX_CHARACTERS_PER_TOKEN = 8
_MAX_SEPARATOR_CHARACTERS = 40  # characters of white space between two sentences
_NON_SPACE = re.compile(r"\S")
_SENTENCE_END = re.compile(r"(?:[.!?…][\"'”’»)\]]*(?=\s)|[。！？][”’」』）]*)(\s*)")


class TextChunk(NamedTuple):
    """A chunk of a document. `tokens` counts `text` without `heading`.

    `location` is its position in the document, such as "page 3" or "lines 10-42"; "" if it is unknown. `date` is the
    date of the text itself, such as that of an e-mail.
    """

    heading: str
    text: str
    tokens: int
    location: str = ""
    date: datetime | None = None


class _Unit(NamedTuple):
    """A sentence, a line, or a part of a long sentence. `before` is the white space between it and the unit before."""

    before: str
    text: str
    tokens: int
    lines: LineSpan = UNKNOWN_SPAN

    @property
    def cost(self) -> int:
        return self.tokens + ("\n" in self.before)


# A block is never split between chunks: a paragraph that fits into one chunk, or one unit of a longer paragraph.
_Block = list[_Unit]


@dataclass(frozen=True, slots=True)
class _DraftChunk:
    """A chunk that is not final yet. Its first `overlap_units` units repeat the end of the previous chunk."""

    units: _Block
    overlap_units: int
    text: str
    tokens: int


def split_passages(
    sections: Iterable[DocumentSection],
    *,
    count_tokens: TokenCounter,
    size: int = CHUNK_TOKENS,
    overlap: int = OVERLAP_TOKENS,
) -> list[TextChunk]:
    """Return the text of the sections as chunks of at most `size` tokens, in order.

    A chunk begins with up to `overlap` tokens of sentences from the end of the previous chunk of its section. Each
    section is split by itself, so an edit changes only the chunks of the edited section; short sections are not merged.
    A paragraph that is too long is split into sentences and lines, and a sentence that is too long into words. The
    text that a section repeats begins each of its chunks and counts as part of them. Raises ValueError for an invalid
    size or overlap.
    """
    if size < 8 or not 0 <= overlap < size:
        raise ValueError("size must be at least 8 tokens, and overlap smaller than size")
    splitter = _SectionSplitter(count_tokens=count_tokens, size=size, overlap=overlap)
    return [chunk for section in sections for chunk in splitter.split_section(section)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SectionSplitter:
    count_tokens: TokenCounter
    size: int
    overlap: int
    by_line: bool = False

    def split_section(self, section: DocumentSection) -> Iterator[TextChunk]:
        repeated = self._fit_repeated(section.repeated)
        room = self.size - (self.count_tokens(repeated) if repeated else 0)
        overlap = 0 if section.by_line else min(self.overlap, room - 1)
        splitter = replace(self, size=room, overlap=overlap, by_line=section.by_line)
        for draft in splitter.split(section):
            lines = [unit.lines for unit in draft.units if unit.lines[0]]
            first, last = (min(lines)[0], max(end for _, end in lines)) if lines else UNKNOWN_SPAN
            text = repeated + draft.text
            tokens = self.count_tokens(text) if repeated else draft.tokens
            yield TextChunk(section.heading, text, tokens, section.locate(first, last), section.date)

    def _fit_repeated(self, repeated: str) -> str:
        """Return the text that begins each chunk as a line, cut to less than half a chunk, so that content fits too."""
        if not repeated:
            return ""
        half = replace(self, size=max(self.size // 2 - 1, 1), by_line=True)
        unit = next(half._split_to_fit("", one_line(repeated)))
        return f"{unit.text}\n"

    def split(self, section: DocumentSection) -> list[_DraftChunk]:
        spans = section.spans or (UNKNOWN_SPAN,) * len(section.paragraphs)
        pairs = zip(section.paragraphs, spans, strict=True)
        blocks = deque(block for paragraph, span in pairs for block in self._to_blocks(paragraph, span))
        chunks: list[_DraftChunk] = []
        while blocks:
            chunks.append(self._fill_chunk(self._overlap_of(chunks[-1]) if chunks else [], blocks))
        return self._merge_last(chunks)

    def _fill_chunk(self, tail: _Block, blocks: deque[_Block]) -> _DraftChunk:
        """Build a chunk of `tail` and of as many blocks of the queue, at least one, as fit by estimated tokens."""
        added = [blocks.popleft()]
        room = self.size - _token_cost(tail) - _token_cost(added[0])
        while blocks and _token_cost(blocks[0]) <= room:
            added.append(blocks.popleft())
            room -= _token_cost(added[-1])
        return self._fit_to_size(tail, added, blocks)

    def _fit_to_size(self, tail: _Block, added: list[_Block], blocks: deque[_Block]) -> _DraftChunk:
        """Build a chunk of `tail` and `added`; move blocks back to the queue until the text fits into `size` tokens.

        The sum of the token counts of units is only an estimate for the joined text.
        """
        while True:
            units = [*tail, *(unit for block in added for unit in block)]
            text = _join_units(units)
            tokens = self.count_tokens(text)
            if tokens <= self.size or len(units) == 1:
                return _DraftChunk(units, len(tail), text, tokens)
            if len(added) > 1:
                blocks.appendleft(added.pop())
            elif tail:
                tail = tail[1:]
            else:
                # a block that does not fit alone: keep its first unit, and queue each further one as its own block
                blocks.extendleft([unit] for unit in reversed(added[0][1:]))
                added = [added[0][:1]]

    def _overlap_of(self, chunk: _DraftChunk) -> _Block:
        """Return the last units of a chunk that the next chunk repeats. They are never all units of the chunk."""
        tail: _Block = []
        for unit in reversed(chunk.units[chunk.overlap_units + 1 :]):
            if _token_cost(tail) + unit.cost > self.overlap:
                break
            tail.insert(0, unit)
        while tail and self.count_tokens(_join_units(tail)) > self.overlap:
            tail = tail[1:]
        return tail

    def _merge_last(self, chunks: list[_DraftChunk]) -> list[_DraftChunk]:
        """Return the chunks with the last two merged if both together fit into one."""
        if len(chunks) < 2:
            return chunks
        *others, before, last = chunks
        units = [*before.units, *last.units[last.overlap_units :]]
        text = _join_units(units)
        tokens = self.count_tokens(text)
        return chunks if tokens > self.size else [*others, _DraftChunk(units, before.overlap_units, text, tokens)]

    def _to_blocks(self, paragraph: str, span: LineSpan) -> list[_Block]:
        units = list(self._iter_units(paragraph, span))
        return [units] if _token_cost(units) <= self.size else [[unit] for unit in units]

    def _iter_units(self, paragraph: str, span: LineSpan) -> Iterator[_Unit]:
        before, lines = "\n" if self.by_line else "\n\n", paragraph.split("\n")
        # the lines of a paragraph of prose are joined, so that only their range is known
        is_exact = span[0] and span[1] - span[0] + 1 == len(lines)
        for number, line in enumerate(lines, span[0]):
            at = (number, number) if is_exact else span
            for space, sentence in self._split_line(line.rstrip()):
                yield from (unit._replace(lines=at) for unit in self._split_to_fit(before or space, sentence))
                before = ""
            before = (before + "\n")[:_MAX_SEPARATOR_CHARACTERS]

    def _split_line(self, line: str) -> Iterable[tuple[str, str]]:
        if self.by_line:
            return [("", line)] if line.strip() else []
        return _split_sentences(line)

    def _split_to_fit(self, before: str, text: str) -> Iterator[_Unit]:
        """Yield the text as one unit if it fits into a chunk, otherwise as several units that do.

        The tokens of a very long text are not counted: it cannot fit.
        """
        if len(text) <= self.size * _MAX_CHARACTERS_PER_TOKEN and (tokens := self.count_tokens(text)) <= self.size:
            yield _Unit(before, text, tokens)
            return
        start = len(text) - len(text.lstrip())
        while start < len(text):
            unit = self._cut_piece(before, text, start)
            yield unit
            end = start + len(unit.text)
            rest = _NON_SPACE.search(text, end)
            start = rest.start() if rest else len(text)
            before = text[end:start][:_MAX_SEPARATOR_CHARACTERS]

    def _cut_piece(self, before: str, text: str, start: int) -> _Unit:
        room = self.size * _MAX_CHARACTERS_PER_TOKEN
        while True:
            piece = _cut_at_word(text, start, room)
            tokens = self.count_tokens(piece)
            if tokens <= self.size or len(piece) == 1:
                return _Unit(before, piece, tokens)
            room = max(1, min(len(piece) - 1, len(piece) * self.size // tokens))


def _cut_at_word(text: str, start: int, max_chars: int) -> str:
    """Return up to `max_chars` characters from `start`. The cut is at the last space, if it is in their second half."""
    piece = text[start : start + max_chars]
    if start + max_chars < len(text) and not text[start + max_chars].isspace():
        cut = max(piece.rfind(" "), piece.rfind("\t"))
        piece = piece[:cut] if cut > max_chars // 2 else piece
    return piece.rstrip()


def _split_sentences(line: str) -> Iterator[tuple[str, str]]:
    """Yield pairs: the white space before a sentence, and the sentence."""
    before, start = "", 0
    for end in _SENTENCE_END.finditer(line):
        yield before, line[start : end.start(1)]
        before, start = end[1][:_MAX_SEPARATOR_CHARACTERS], end.end()
    if start < len(line):
        yield before, line[start:]


def _token_cost(units: _Block) -> int:
    return sum(unit.cost for unit in units)


def _join_units(units: _Block) -> str:
    return "".join(unit.before + unit.text for unit in units).removeprefix(units[0].before)
