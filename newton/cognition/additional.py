"""What the caller adds to a context in words of its own. Pure."""

from typing import NamedTuple

from newton.cognition.render import Block, item
from newton.memory.memory import Count
from newton.memory.representations import bullet, one_line


class Additional(NamedTuple):
    """The lines that fit, and how many do not."""

    blocks: tuple[Block, ...]
    left_out: int


def lines(text: str, *, count: Count) -> list[Block]:
    """Each line of the text as an item of its own: it can begin no section."""
    folded = [one_line(line) for line in text.splitlines()]
    return [item(line, count(bullet(line))) for line in folded if line]


def fitted(blocks: list[Block], *, most: int) -> Additional:
    """The first of them that `most` tokens hold, whole: none is cut, and none is passed over for a later one."""
    kept: list[Block] = []
    for block in blocks:
        if block.tokens > most:
            break
        most -= block.tokens
        kept.append(block)
    return Additional(tuple(kept), len(blocks) - len(kept))
