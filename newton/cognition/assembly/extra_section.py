"""What the caller adds to a context in words of its own. Pure."""

from typing import NamedTuple

from newton.cognition.assembly.render import TextBlock, render_item
from newton.memory.memory import TokenCounter
from newton.memory.representations import one_line, to_bullet


class ExtraSection(NamedTuple):
    """The lines that fit, and how many do not."""

    blocks: tuple[TextBlock, ...]
    omitted_count: int


def render_extra_lines(text: str, *, count_tokens: TokenCounter) -> list[TextBlock]:
    """Each line of the text as an item of its own: it can begin no section."""
    folded = [one_line(line) for line in text.splitlines()]
    return [render_item(line, count_tokens(to_bullet(line))) for line in folded if line]


def fit_extra_lines(blocks: list[TextBlock], *, max_tokens: int) -> ExtraSection:
    """The first of them that `most` tokens hold, whole: none is cut, and none is passed over for a later one."""
    kept: list[TextBlock] = []
    for block in blocks:
        if block.tokens > max_tokens:
            break
        max_tokens -= block.tokens
        kept.append(block)
    return ExtraSection(tuple(kept), len(blocks) - len(kept))
