"""Texts of session artifacts: chunks of tool output, sentences worth remembering, and a rolling summary. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from newton.content.sections import DocumentSection
from newton.heart.chunking import split_passages
from newton.memory.memory import TokenCounter
from newton.memory.representations import ELLIPSIS, one_line
from newton.text.pasted_text import MASK, mask_pasted_text
from newton.text.sentences import CueKind, central_sentences, classify_sentence, count_cues, split_sentences

# Chunks kept of one output: as many as fit into a usual context. The first show what was done, the last the outcome.
MAX_CHUNKS, HEAD_CHUNKS, TAIL_CHUNKS = 12, 3, 3
CHARS_PER_TOKEN = 4  # estimate, to thin out a very long output before its tokens are counted

MIN_WORDS, MAX_WORDS = 3, 40  # of a lasting sentence
MAX_BULLETS = 4  # of one message
MAX_SENTENCES = 60  # candidates of a summary

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_POINT = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySizes:
    """The sizes, in tokens, of the chunks of tool output, of their overlap, and of the summary of a session.

    A new summary is due after `max_new_messages` messages or `max_new_tokens` tokens.
    """

    chunk_tokens: int = 300
    overlap_tokens: int = 50
    max_new_messages: int = 12
    summary_tokens: int = 400
    max_new_tokens: int = 4_000


DEFAULT_SIZES = SummarySizes()


def is_due(messages: int, tokens: int, sizes: SummarySizes) -> bool:
    """Return True if this many messages and tokens since the last summary require a new one."""
    return messages >= sizes.max_new_messages or (messages > 0 and tokens > sizes.max_new_tokens)


def chunk_output(output: str, *, max_tokens: int, overlap: int, count_tokens: TokenCounter) -> list[str]:
    """Split a tool's output into chunks of at most `max_tokens`, at line breaks where possible.

    Of a long output, return the first and last chunks, and of those between, the ones with the most errors and paths.
    """
    max_chars = max_tokens * CHARS_PER_TOKEN
    lines = _thin_out(_split_lines(output, max_chars=max_chars), max_chars=max_chars)
    chunks = _chunk_lines(lines, size=max_tokens, overlap=overlap, count_tokens=count_tokens)
    if len(chunks) <= MAX_CHUNKS:
        return chunks
    between = range(HEAD_CHUNKS, len(chunks) - TAIL_CHUNKS)
    kept = sorted(between, key=lambda n: (-count_cues(chunks[n]), n))[: MAX_CHUNKS - HEAD_CHUNKS - TAIL_CHUNKS]
    return [*chunks[:HEAD_CHUNKS], *(chunks[n] for n in sorted(kept)), *chunks[-TAIL_CHUNKS:]]


def _split_lines(output: str, *, max_chars: int) -> list[str]:
    lines = (line.rstrip() for line in output.splitlines())
    return [line[at : at + max_chars] for line in lines if line.strip() for at in range(0, len(line), max_chars)]


def _thin_out(lines: Sequence[str], *, max_chars: int) -> Sequence[str]:
    """Return all lines. If there are very many, return the first, the last, and those between with errors or paths."""
    if sum(map(len, lines)) <= 2 * MAX_CHUNKS * max_chars:
        return lines
    head = _take_first(lines, HEAD_CHUNKS * max_chars)
    tail = _take_first(lines[: len(head) - 1 : -1], TAIL_CHUNKS * max_chars)[::-1]
    between = [line for line in lines[len(head) : len(lines) - len(tail)] if count_cues(line)]
    return [*head, *_take_first(between, MAX_CHUNKS * max_chars), *tail]


def _take_first(lines: Sequence[str], max_chars: int) -> list[str]:
    """Return the first lines that together have at most `max_chars` characters."""
    taken: list[str] = []
    for line in lines:
        max_chars -= len(line)
        if max_chars < 0:
            break
        taken.append(line)
    return taken


def _chunk_lines(lines: Sequence[str], *, size: int, overlap: int, count_tokens: TokenCounter) -> list[str]:
    # each line is a paragraph, so that it is not split if it fits
    chunks = split_passages(
        [DocumentSection("", tuple(lines))], count_tokens=count_tokens, size=size, overlap=min(overlap, size - 1)
    )
    return [chunk.text.replace("\n\n", "\n") for chunk in chunks]


def classify_lasting(sentence: str) -> CueKind | None:
    """Return the kind of a sentence worth remembering (such as a decision); None for questions and other sentences.

    >>> sentences = ("We decided on Redis.", "It lies in src/app.py", "Shall we go on?", "How nice it is.")
    >>> [classify_lasting(sentence) for sentence in sentences]
    ['decision', 'path', None, None]
    """
    if not MIN_WORDS <= len(sentence.split()) <= MAX_WORDS or sentence.rstrip("\"'”’) ").endswith("?"):
        return None
    return classify_sentence(sentence)


def unquoted_sentences(content: str) -> list[str]:
    """Split a message into sentences. Quoted lines and code blocks are left out."""
    sentences: list[str] = []
    fenced = False
    for line in content.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith(">"):
            plain = _POINT.sub("", line)
            sentences += map(one_line, split_sentences(plain))
    return sentences


def lasting_sentences(content: str) -> list[str]:
    """Return the first few sentences of a message that are worth remembering, without pasted text."""
    own = unquoted_sentences(mask_pasted_text(content))
    return [one for one in dict.fromkeys(own) if MASK not in one and classify_lasting(one)][:MAX_BULLETS]


def speaker_sentences(speaker: str, content: str) -> list[str]:
    """Return the sentences of a message, each after the name of the speaker and cut to MAX_WORDS words."""
    return [f"{speaker}: {_shorten(sentence)}" for sentence in unquoted_sentences(content)]


def _shorten(sentence: str) -> str:
    words = sentence.split()
    return sentence if len(words) <= MAX_WORDS else " ".join(words[:MAX_WORDS]) + ELLIPSIS


def summarize(candidates: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Select sentences for a summary, as many as `fits` accepts; return them in their original order.

    The first and the last sentence are selected first, then alternately one worth remembering, the latest first, and a
    central one.
    """
    unique = list(dict.fromkeys(candidates))
    if not unique or fits(unique):
        return unique
    positions = {unit: position for position, unit in enumerate(unique)}
    lasting = [unit for unit in reversed(unique) if classify_lasting(unit.partition(": ")[2])]
    pairs = zip_longest(lasting[:MAX_SENTENCES], central_sentences(unique, limit=MAX_SENTENCES // 3))
    ranked = dict.fromkeys([unique[0], unique[-1], *(unit for unit in chain.from_iterable(pairs) if unit in positions)])
    selected: list[str] = []
    for unit in list(ranked)[:MAX_SENTENCES]:
        extended = sorted([*selected, unit], key=positions.__getitem__)
        selected = extended if fits(extended) else selected
    return selected or unique[:1]
