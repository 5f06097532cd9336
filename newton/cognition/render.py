"""The context as text. Pure: the same items give the same bytes, and their stored token counts add up to its own.

Every block ends with one line end and begins with "#", "-", a letter or a digit. Between such blocks no token can form,
so the tokens of the whole are the sum of the tokens of the blocks, and nothing has to be counted again.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from newton.memory.memory import Count
from newton.memory.representations import bullet, day_in_front

# The sections in order. A frame's header carries its name, so it is made with the frame.
TITLES: Mapping[str, str] = {
    "identity": "Identity",
    "censors": "Active Constraints",
    "frame": "Current Approach",
    "root": "Tasks",
    "path": "",  # they stand below the root
    "siblings": "",
    "working": "Current Focus",
    "session": "Earlier in This Session",
    "decisions": "Relevant Past Decisions",
    "facts": "Known Information",
    "procedures": "",  # each has a header of its own
    "episodes": "Past Experience",
    "additional": "Additional Context",
    "note": "Note",
}

LASTING = ("identity", "censors")

# In these sections what is of a day stands under it, and does not say it again.
BY_DAY = frozenset({"episodes"})


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the context: its text, which is whole lines, and the tokens it costs."""

    text: str
    tokens: int


def header(layer: str) -> str:
    return f"## {TITLES[layer]}\n" if TITLES[layer] else ""


def halves(context: str) -> tuple[str, str]:
    """The sections of a context that hold whatever the input is, and those that were made for it.

    >>> halves("## Identity\\n- I am Ada.\\n## Note\\n- Be sure.\\n")
    ('## Identity\\n- I am Ada.\\n', '## Note\\n- Be sure.\\n')
    """
    lines = context.splitlines(keepends=True)
    lasting = {header(layer) for layer in LASTING}
    end = next((n for n, line in enumerate(lines) if line.startswith("## ") and line not in lasting), len(lines))
    return "".join(lines[:end]), "".join(lines[end:])


def headers(count: Count) -> dict[str, int]:
    """Tokens of each section's header."""
    return {layer: count(header(layer)) for layer in TITLES}


@dataclass(frozen=True, slots=True)
class DayTokens:
    """What a day costs: as a heading, and in front of a line. Both are the same for every day and every line."""

    heading: int
    in_front: int


@functools.lru_cache(maxsize=4)
def day_tokens(count: Count) -> DayTokens:
    day = "2000-01-01"
    return DayTokens(count(_heading(day)), count(bullet(f"{day_in_front(day)}a")) - count(bullet("a")))


def under(day: str, tokens: DayTokens) -> Block:
    """The heading of what is of that day."""
    return Block(_heading(day), tokens.heading)


def _heading(day: str) -> str:
    return f"{day}:\n"


@functools.lru_cache(maxsize=256)
def approach(name: str, questions: tuple[str, ...], censors: tuple[str, ...] = (), *, count: Count, most: int) -> Block:
    """The frame's section within `most` tokens: with its censors and as many of its questions as fit, or empty.

    Remembered, because counting tokens is too slow to be done for every context.
    """
    tries = [(kept, censors) for kept in range(len(questions), -1, -1)]
    for kept, barred in (*tries, (0, ())):
        asked = f"Consider: {' '.join(questions[:kept])}\n" if kept else ""
        avoided = f"Constraints: {' '.join(barred)}\n" if barred else ""
        text = f"## {TITLES['frame']}: {name}\n{asked}{avoided}"
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
