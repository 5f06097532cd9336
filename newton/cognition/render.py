"""The context as text. Pure: the same items give the same bytes, and their stored token counts add up to its own.

Every block ends with one line end and begins with "#", "-" or a letter. Between such blocks no token can form, so
the tokens of the whole are the sum of the tokens of the blocks, and nothing has to be counted again.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from newton.memory.representations import Count, bullet

# The sections in order. A frame's header carries its name, so it is made with the frame.
TITLES: Mapping[str, str] = {
    "identity": "Identity",
    "censors": "Active Constraints",
    "frame": "Current Approach",
    "working": "Current Focus",
    "decisions": "Relevant Past Decisions",
    "facts": "Known Information",
    "procedures": "",  # each has a header of its own
    "episodes": "Past Experience",
    "additional": "Additional Context",
    "note": "Note",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the context: its text, which is whole lines, and the tokens it costs."""

    text: str
    tokens: int


def header(layer: str) -> str:
    return f"## {TITLES[layer]}\n" if TITLES[layer] else ""


def headers(count: Count) -> dict[str, int]:
    """Tokens of each section's header."""
    return {layer: count(header(layer)) for layer in TITLES}


@functools.lru_cache(maxsize=256)
def approach(name: str, questions: tuple[str, ...], *, count: Count, most: int) -> Block:
    """The frame's section within `most` tokens: with as many of its questions as fit, or empty.

    Remembered, because counting tokens is too slow to be done for every context.
    """
    for kept in range(len(questions), -1, -1):
        asked = f"Consider: {' '.join(questions[:kept])}\n" if kept else ""
        text = f"## {TITLES['frame']}: {name}\n{asked}"
        if (tokens := count(text)) <= most:
            return Block(text, tokens)
    return Block("", 0)


def item(line: str, tokens: int) -> Block:
    return Block(bullet(line), tokens)


def render(sections: Mapping[str, Sequence[Block]], *, header_tokens: Mapping[str, int]) -> Block:
    """All sections that hold something, in order, under their headers."""
    blocks: list[Block] = []
    for layer in TITLES:
        if held := [block for block in sections.get(layer, ()) if block.text]:
            if layer != "frame" and TITLES[layer]:
                blocks.append(Block(header(layer), header_tokens[layer]))
            blocks += held
    return Block("".join(block.text for block in blocks), sum(block.tokens for block in blocks))
