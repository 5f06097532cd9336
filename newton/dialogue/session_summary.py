"""A conversation in short: pieces of what tools put out, sentences that last, a summary that rolls on. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from newton.content.sections import DocumentSection
from newton.dialogue.sentence_centrality import central_sentences
from newton.dialogue.sentence_cues import CueKind, classify_sentence, count_cues
from newton.heart.chunking import split_passages
from newton.memory.memory import TokenCounter
from newton.memory.representations import ELLIPSIS, one_line

# Of one output no more pieces are kept than a context of usual size could hold all of; the beginning says what was
# done, the end how it went, and between them counts what names an error or a path.
MAX_CHUNKS, HEAD_CHUNKS, TAIL_CHUNKS = 12, 3, 3
CHARS_PER_TOKEN = 4  # of a token, about: what is far too long is thinned out before it is counted

MIN_WORDS, MAX_WORDS = 3, 40  # a shorter sentence states nothing alone, a longer one is no bullet
MAX_BULLETS = 4  # of one line
MAX_SENTENCES = 60  # that are tried for a summary

_SENTENCE = re.compile(r"(?<=[.!?…])\s+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_POINT = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySizes:
    """How a session is condensed. In tokens: what a piece of an output may have, with how much of the one before it it
    begins, what the summary may have, and how much may be said since the last one. `every` counts lines."""

    chunk_tokens: int = 300
    overlap_tokens: int = 50
    max_new_messages: int = 12
    summary_tokens: int = 400
    max_new_tokens: int = 4_000


DEFAULT_SIZES = SummarySizes()


def is_due(messages: int, tokens: int, sizes: SummarySizes) -> bool:
    """Whether so many lines of so many tokens since the last summary want another."""
    return messages >= sizes.max_new_messages or (messages > 0 and tokens > sizes.max_new_tokens)


def chunk_output(output: str, *, max_tokens: int, overlap: int, count_tokens: TokenCounter) -> list[str]:
    """What a tool put out, in pieces of at most `size` tokens and whole lines where they fit; of a long one the
    beginning, the end, and what names errors and paths between them."""
    lines = _split_lines(output, max_chars=max_tokens * CHARS_PER_TOKEN)
    cut = _chunk_lines(
        _thin_out(lines, max_chars=max_tokens * CHARS_PER_TOKEN),
        size=max_tokens,
        overlap=overlap,
        count_tokens=count_tokens,
    )
    if len(cut) <= MAX_CHUNKS:
        return cut
    between = range(HEAD_CHUNKS, len(cut) - TAIL_CHUNKS)
    kept = sorted(between, key=lambda n: (-count_cues(cut[n]), n))[: MAX_CHUNKS - HEAD_CHUNKS - TAIL_CHUNKS]
    return [*cut[:HEAD_CHUNKS], *(cut[n] for n in sorted(kept)), *cut[-TAIL_CHUNKS:]]


def _split_lines(output: str, *, max_chars: int) -> list[str]:
    lines = (line.rstrip() for line in output.splitlines())
    return [line[at : at + max_chars] for line in lines if line.strip() for at in range(0, len(line), max_chars)]


def _thin_out(lines: Sequence[str], *, max_chars: int) -> Sequence[str]:
    """All lines, or of very many the first, the last, and those between them that tell something."""
    if sum(map(len, lines)) <= 2 * MAX_CHUNKS * max_chars:
        return lines
    head = _take_first(lines, HEAD_CHUNKS * max_chars)
    tail = _take_first(lines[: len(head) - 1 : -1], TAIL_CHUNKS * max_chars)[::-1]
    between = [line for line in lines[len(head) : len(lines) - len(tail)] if count_cues(line)]
    return [*head, *_take_first(between, MAX_CHUNKS * max_chars), *tail]


def _take_first(lines: Sequence[str], max_chars: int) -> list[str]:
    """The first of them, as many as have so many letters."""
    taken: list[str] = []
    for line in lines:
        max_chars -= len(line)
        if max_chars < 0:
            break
        taken.append(line)
    return taken


def _chunk_lines(lines: Sequence[str], *, size: int, overlap: int, count_tokens: TokenCounter) -> list[str]:
    # a line is a paragraph here, so that it stays whole where it fits
    chunks = split_passages(
        [DocumentSection("", tuple(lines))], count_tokens=count_tokens, size=size, overlap=min(overlap, size - 1)
    )
    return [chunk.text.replace("\n\n", "\n") for chunk in chunks]


def classify_lasting(sentence: str) -> CueKind | None:
    """What a sentence states that lasts: a decision, a task, a constraint, an error or a path; None when it asks, or
    states nothing of the kind.

    >>> said = ("We decided on Redis.", "It lies in src/app.py", "Shall we go on?", "How nice it is.")
    >>> [classify_lasting(sentence) for sentence in said]
    ['decision', 'path', None, None]
    """
    if not MIN_WORDS <= len(sentence.split()) <= MAX_WORDS or sentence.rstrip("\"'”’) ").endswith("?"):
        return None
    return classify_sentence(sentence)


def split_sentences(content: str) -> list[str]:
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


def lasting_sentences(content: str) -> list[str]:
    """The sentences of a line that last, the first few of them."""
    return [sentence for sentence in dict.fromkeys(split_sentences(content)) if classify_lasting(sentence)][
        :MAX_BULLETS
    ]


def speaker_sentences(speaker: str, content: str) -> list[str]:
    """What a line adds to a summary: who says what, a sentence each."""
    return [f"{speaker}: {_shorten(sentence)}" for sentence in split_sentences(content)]


def _shorten(sentence: str) -> str:
    words = sentence.split()
    return sentence if len(words) <= MAX_WORDS else " ".join(words[:MAX_WORDS]) + ELLIPSIS


def summarize(candidates: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Of what was said, in order, as much as fits: how it began and how it stands, then by turns what lasts, the latest
    first, and what lies nearest the centre of it all."""
    own = list(dict.fromkeys(candidates))
    if not own or fits(own):
        return own
    places = {unit: place for place, unit in enumerate(own)}
    lasting = [unit for unit in reversed(own) if classify_lasting(unit.partition(": ")[2])]
    turns = zip_longest(lasting[:MAX_SENTENCES], _central_sentences(own))
    tried = dict.fromkeys([own[0], own[-1], *(unit for unit in chain.from_iterable(turns) if unit in places)])
    taken: list[str] = []
    for unit in list(tried)[:MAX_SENTENCES]:
        more = sorted([*taken, unit], key=places.__getitem__)
        taken = more if fits(more) else taken
    return taken or own[:1]


def _central_sentences(candidates: Sequence[str]) -> list[str]:
    return central_sentences(candidates, limit=MAX_SENTENCES // 3)
