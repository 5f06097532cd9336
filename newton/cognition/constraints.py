"""The censors that count for an input, as its first section after the identity. Pure."""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.cognition.render import Block, item
from newton.heart.censors import Censor


class Constraint(NamedTuple):
    """A censor as it stands in a context."""

    memory_id: UUID
    block: Block


def constraints(known: Sequence[Censor], *, domains: Collection[str], most: int) -> list[Constraint]:
    """Those of every domain or of these, the strictest first as they come, as many as `most` tokens hold."""
    shown: list[Constraint] = []
    for censor in known:
        if censor.domain is not None and censor.domain not in domains:
            continue
        if censor.summary_tokens <= most:
            most -= censor.summary_tokens
            shown.append(Constraint(censor.memory_id, item(censor.line, censor.summary_tokens)))
    return shown
