"""The censors that count for an input, as its first section after the identity. Pure."""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.cognition.assembly.render import TextBlock, render_item
from newton.heart.censors import Censor


class CensorLine(NamedTuple):
    """A censor as it stands in a context."""

    memory_id: UUID
    block: TextBlock


def select_censor_lines(censors: Sequence[Censor], *, domains: Collection[str], max_tokens: int) -> list[CensorLine]:
    """Those of every domain or of these, the strictest first as they come, as many as `most` tokens hold."""
    shown: list[CensorLine] = []
    for censor in censors:
        if censor.domain is not None and censor.domain not in domains:
            continue
        if censor.summary_tokens <= max_tokens:
            max_tokens -= censor.summary_tokens
            shown.append(CensorLine(censor.memory_id, render_item(censor.context_line, censor.summary_tokens)))
    return shown
