"""The context as text. Pure: the same items give the same bytes, and their stored token counts add up to its own.

Every block ends with one line end and begins with "#", "-", a letter or a digit. Between such blocks no token can form,
so the tokens of the whole are the sum of the tokens of the blocks, and nothing has to be counted again.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from newton.memory.memory import TokenCounter
from newton.memory.representations import date_prefix, to_bullet

# The sections in order. A frame's header carries its name, so it is made with the frame.
SECTION_TITLES: Mapping[str, str] = {
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

INPUT_INDEPENDENT_LAYERS = ("identity", "censors")

# In these sections what is of a day stands under it, and does not say it again.
LAYERS_BY_DAY = frozenset({"episodes"})


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A piece of the context: its text, which is whole lines, and the tokens it costs."""

    text: str
    tokens: int


def render_header(layer: str) -> str:
    return f"## {SECTION_TITLES[layer]}\n" if SECTION_TITLES[layer] else ""


def split_by_input_dependence(context: str) -> tuple[str, str]:
    """The sections of a context that hold whatever the input is, and those that were made for it.

    >>> split_by_input_dependence("## Identity\\n- I am Ada.\\n## Note\\n- Be sure.\\n")
    ('## Identity\\n- I am Ada.\\n', '## Note\\n- Be sure.\\n')
    """
    lines = context.splitlines(keepends=True)
    lasting = {render_header(layer) for layer in INPUT_INDEPENDENT_LAYERS}
    end = next((n for n, line in enumerate(lines) if line.startswith("## ") and line not in lasting), len(lines))
    return "".join(lines[:end]), "".join(lines[end:])


def count_header_tokens(count_tokens: TokenCounter) -> dict[str, int]:
    """Tokens of each section's header."""
    return {layer: count_tokens(render_header(layer)) for layer in SECTION_TITLES}


@dataclass(frozen=True, slots=True)
class DayTokens:
    """What a day costs: as a heading, and in front of a line. Both are the same for every day and every line."""

    heading: int
    prefix: int


@functools.lru_cache(maxsize=4)
def count_day_tokens(count_tokens: TokenCounter) -> DayTokens:
    day = "2000-01-01"
    return DayTokens(
        count_tokens(_format_day_heading(day)),
        count_tokens(to_bullet(f"{date_prefix(day)}a")) - count_tokens(to_bullet("a")),
    )


def render_day_heading(day: str, tokens: DayTokens) -> TextBlock:
    """The heading of what is of that day."""
    return TextBlock(_format_day_heading(day), tokens.heading)


def _format_day_heading(day: str) -> str:
    return f"{day}:\n"


@functools.lru_cache(maxsize=256)
def render_frame_section(
    frame: str,
    questions: tuple[str, ...],
    censors: tuple[str, ...] = (),
    *,
    count_tokens: TokenCounter,
    max_tokens: int,
) -> TextBlock:
    """The frame's section within `most` tokens: with its censors and as many of its questions as fit, or empty.

    Remembered, because counting tokens is too slow to be done for every context.
    """
    tries = [(kept, censors) for kept in range(len(questions), -1, -1)]
    for kept, barred in (*tries, (0, ())):
        asked = f"Consider: {' '.join(questions[:kept])}\n" if kept else ""
        avoided = f"Constraints: {' '.join(barred)}\n" if barred else ""
        text = f"## {SECTION_TITLES['frame']}: {frame}\n{asked}{avoided}"
        if (tokens := count_tokens(text)) <= max_tokens:
            return TextBlock(text, tokens)
    return TextBlock("", 0)


def render_item(line: str, tokens: int) -> TextBlock:
    return TextBlock(to_bullet(line), tokens)


def render(sections: Mapping[str, Sequence[TextBlock]], *, header_tokens: Mapping[str, int]) -> TextBlock:
    """All sections that hold something, in order, under their headers."""
    blocks: list[TextBlock] = []
    for layer in SECTION_TITLES:
        if held := [block for block in sections.get(layer, ()) if block.text]:
            if layer != "frame" and SECTION_TITLES[layer]:
                blocks.append(TextBlock(render_header(layer), header_tokens[layer]))
            blocks += held
    return TextBlock("".join(block.text for block in blocks), sum(block.tokens for block in blocks))
