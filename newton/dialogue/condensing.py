"""A conversation in short: pieces of what tools put out, sentences that last, a summary that rolls on. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from newton.content.sections import Section
from newton.dialogue.gist import central
from newton.dialogue.recognising import Sense, recognised, telling
from newton.heart.chunking import passages
from newton.memory.memory import Count
from newton.memory.representations import ELLIPSIS, one_line

# Of one output no more pieces are kept than a context of usual size could hold all of; the beginning says what was
# done, the end how it went, and between them counts what names an error or a path.
MOST_PIECES, HEAD, TAIL = 12, 3, 3
LETTERS = 4  # of a token, about: what is far too long is thinned out before it is counted

FEWEST_WORDS, MOST_WORDS = 3, 40  # a shorter sentence states nothing alone, a longer one is no bullet
MOST_BULLETS = 4  # of one line
MOST_UNITS = 60  # that are tried for a summary

_SENTENCE = re.compile(r"(?<=[.!?…])\s+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_POINT = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How a session is condensed. In tokens: what a piece of an output may have, with how much of the one before it it
    begins, what the summary may have, and how much may be said since the last one. `every` counts lines."""

    chunk: int = 300
    overlap: int = 50
    every: int = 12
    summary: int = 400
    tail: int = 4_000


USUAL = Sizes()


def due(lines: int, tokens: int, sizes: Sizes) -> bool:
    """Whether so many lines of so many tokens since the last summary want another."""
    return lines >= sizes.every or (lines > 0 and tokens > sizes.tail)


def pieces(output: str, *, size: int, overlap: int, count: Count) -> list[str]:
    """What a tool put out, in pieces of at most `size` tokens and whole lines where they fit; of a long one the
    beginning, the end, and what names errors and paths between them."""
    lines = _lines(output, longest=size * LETTERS)
    cut = _cut(_thinned(lines, letters=size * LETTERS), size=size, overlap=overlap, count=count)
    if len(cut) <= MOST_PIECES:
        return cut
    between = range(HEAD, len(cut) - TAIL)
    kept = sorted(between, key=lambda n: (-telling(cut[n]), n))[: MOST_PIECES - HEAD - TAIL]
    return [*cut[:HEAD], *(cut[n] for n in sorted(kept)), *cut[-TAIL:]]


def _lines(output: str, *, longest: int) -> list[str]:
    lines = (line.rstrip() for line in output.splitlines())
    return [line[at : at + longest] for line in lines if line.strip() for at in range(0, len(line), longest)]


def _thinned(lines: Sequence[str], *, letters: int) -> Sequence[str]:
    """All lines, or of very many the first, the last, and those between them that tell something."""
    if sum(map(len, lines)) <= 2 * MOST_PIECES * letters:
        return lines
    head = _first(lines, HEAD * letters)
    tail = _first(lines[: len(head) - 1 : -1], TAIL * letters)[::-1]
    between = [line for line in lines[len(head) : len(lines) - len(tail)] if telling(line)]
    return [*head, *_first(between, MOST_PIECES * letters), *tail]


def _first(lines: Sequence[str], letters: int) -> list[str]:
    """The first of them, as many as have so many letters."""
    taken: list[str] = []
    for line in lines:
        letters -= len(line)
        if letters < 0:
            break
        taken.append(line)
    return taken


def _cut(lines: Sequence[str], *, size: int, overlap: int, count: Count) -> list[str]:
    # a line is a paragraph here, so that it stays whole where it fits
    chunks = passages([Section("", tuple(lines))], count=count, size=size, overlap=min(overlap, size - 1))
    return [chunk.text.replace("\n\n", "\n") for chunk in chunks]


def states(sentence: str) -> Sense | None:
    """What a sentence states that lasts: a decision, a task, a constraint, an error or a path; None when it asks, or
    states nothing of the kind.

    >>> said = ("We decided on Redis.", "It lies in src/app.py", "Shall we go on?", "How nice it is.")
    >>> [states(sentence) for sentence in said]
    ['decision', 'path', None, None]
    """
    if not FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS or sentence.rstrip("\"'”’) ").endswith("?"):
        return None
    return recognised(sentence)


def sentences(content: str) -> list[str]:
    """What a line says in its own words: without what it quotes, and without blocks of code."""
    said: list[str] = []
    fenced = False
    for line in content.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith(">"):
            plain = _POINT.sub("", line)
            said += [sentence for part in _SENTENCE.split(plain) if (sentence := one_line(part))]
    return said


def bullets(content: str) -> list[str]:
    """The sentences of a line that last, the first few of them."""
    return [sentence for sentence in dict.fromkeys(sentences(content)) if states(sentence)][:MOST_BULLETS]


def spoken(speaker: str, content: str) -> list[str]:
    """What a line adds to a summary: who says what, a sentence each."""
    return [f"{speaker}: {_shortened(sentence)}" for sentence in sentences(content)]


def _shortened(sentence: str) -> str:
    words = sentence.split()
    return sentence if len(words) <= MOST_WORDS else " ".join(words[:MOST_WORDS]) + ELLIPSIS


def summarised(units: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Of what was said, in order, as much as fits: how it began and how it stands, then by turns what lasts, the latest
    first, and what lies nearest the centre of it all."""
    own = list(dict.fromkeys(units))
    if not own or fits(own):
        return own
    places = {unit: place for place, unit in enumerate(own)}
    lasting = [unit for unit in reversed(own) if states(unit.partition(": ")[2])]
    turns = zip_longest(lasting[:MOST_UNITS], _central(own))
    tried = dict.fromkeys([own[0], own[-1], *(unit for unit in chain.from_iterable(turns) if unit in places)])
    taken: list[str] = []
    for unit in list(tried)[:MOST_UNITS]:
        more = sorted([*taken, unit], key=places.__getitem__)
        taken = more if fits(more) else taken
    return taken or own[:1]


def _central(units: Sequence[str]) -> list[str]:
    return central(units, most=MOST_UNITS // 3)
