"""The short form of an artifact in a prompt: its name and size, head, tail, and the lines that may matter. Pure."""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from newton.dialogue.artifact_storage.artifact_text import content_stems, iter_stems, mask_variables, rank_unusual_lines
from newton.memory.memory import TokenCounter
from newton.memory.representations import ELLIPSIS
from newton.text.sentences import ERROR_PATTERN

MAX_LINE_CHARS = 300  # of a line in a digest
HEAD_SHARE, TAIL_SHARE = 0.15, 0.2  # of the tokens of a digest; the lines that matter get the rest
REQUEST_WEIGHT, ERROR_WEIGHT = 3.0, 1.0  # of a word of the request that a single line has, and of an error
MIN_LINE_TOKENS = 8
REQUEST_CHARS = 400  # of the beginning and of the end of a pasted text, where a person writes the request


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestInput:
    """A text to shorten: the name and version of its artifact, its lines, and the request that it serves."""

    name: str
    version: int
    lines: Sequence[str]
    byte_count: int
    request: str = ""


def render_digest(digest: DigestInput, *, max_tokens: int, count_tokens: TokenCounter) -> str:
    """Return the digest of an artifact in at most `max_tokens`, if its first line fits. Each line has its number."""
    heading = (
        f"[Artifact {digest.name}, version {digest.version}: {len(digest.lines):,} lines,"
        f" {digest.byte_count:,} bytes, stored whole. Here are its beginning, its end, and lines that may matter."
        f" `read_artifact` returns other lines, or those that a search finds.]"
    )
    left = max_tokens - count_tokens(heading + "\n")
    total = len(digest.lines)
    head = _take(digest, range(total), int(left * HEAD_SHARE), count_tokens)
    tail = _take(digest, range(total - 1, len(head) - 1, -1), int(left * TAIL_SHARE), count_tokens)
    between = range(len(head), total - len(tail))
    used = sum(_cost(digest, index, count_tokens) for index in (*head, *tail))
    ranked = _rank_lines(digest, between, limit=max(left, 0))
    chosen = sorted({*head, *tail, *_take(digest, ranked, left - used, count_tokens, skips=True)})
    return "\n".join([heading, *_render_lines(digest, chosen)])


def find_request(text: str) -> str:
    """Return the parts of a pasted text in which a person says what it is for: its beginning and its end."""
    return text if len(text) <= 2 * REQUEST_CHARS else f"{text[:REQUEST_CHARS]}\n{text[-REQUEST_CHARS:]}"


def _render_lines(digest: DigestInput, chosen: Sequence[int]) -> Iterable[str]:
    before = -1
    for index in chosen:
        if index > before + 1:
            yield ELLIPSIS.strip()
        yield _render_line(digest, index)
        before = index


def _render_line(digest: DigestInput, index: int) -> str:
    line = digest.lines[index].rstrip()
    short = line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS].rstrip() + ELLIPSIS
    return f"{index + 1}| {short}"


def _cost(digest: DigestInput, index: int, count_tokens: TokenCounter) -> int:
    return count_tokens(_render_line(digest, index) + "\n") + 1  # the ellipsis before it


def _take(
    digest: DigestInput, indexes: Iterable[int], max_tokens: int, count_tokens: TokenCounter, *, skips: bool = False
) -> list[int]:
    """Return the first of these lines that fit into `max_tokens`; with `skips`, pass over those that do not fit."""
    taken: list[int] = []
    left = max_tokens
    for index in indexes:
        cost = _cost(digest, index, count_tokens)
        if cost <= left:
            taken.append(index)
            left -= cost
        elif not skips or left < MIN_LINE_TOKENS:
            break
    return taken


def _rank_lines(digest: DigestInput, between: range, *, limit: int) -> list[int]:
    """Return the lines that may matter: in turn one with words of the request or an error, and an unusual one."""
    relevant = _rank_relevant(digest, between, limit=limit)
    unusual = [number - 1 for number in rank_unusual_lines(digest.lines)[:limit] if number - 1 in between]
    pairs = chain.from_iterable(zip_longest(relevant, unusual))
    return list(dict.fromkeys(index for index in pairs if index is not None))


def _rank_relevant(digest: DigestInput, between: range, *, limit: int) -> list[int]:
    """Return the lines with words of the request, rare ones first, and with errors."""
    wanted = content_stems(digest.request)
    templates = [mask_variables(line) for line in digest.lines]
    counts = Counter(templates)
    found_in = {template: wanted.intersection(iter_stems(template)) for template in counts} if wanted else {}
    frequency = Counter[str]()
    for template, found in found_in.items():
        frequency.update(dict.fromkeys(found, counts[template]))
    scores: dict[int, float] = {}
    seen = Counter[str]()
    for index in between:
        line, template = digest.lines[index], templates[index]
        score = REQUEST_WEIGHT * sum(
            math.log(1 + len(templates) / frequency[stem]) / math.log(1 + len(templates))
            for stem in found_in.get(template, ())
        )
        score += ERROR_WEIGHT if ERROR_PATTERN.search(line[:MAX_LINE_CHARS]) else 0
        if score:
            seen[template] += 1
            scores[index] = score / seen[template]  # the first line of each template before its repetitions
    return heapq.nsmallest(limit, scores, key=lambda index: (-scores[index], index))
