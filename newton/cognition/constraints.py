"""The censors that count for an input, as its first section after the identity. Pure."""

from collections.abc import Collection, Sequence

from newton.cognition.render import Block, item
from newton.heart.censors import Censor


def constraints(known: Sequence[Censor], *, domains: Collection[str], most: int) -> list[Block]:
    """Those of every domain or of these, the strictest first as they come, as many as `most` tokens hold."""
    blocks: list[Block] = []
    for censor in known:
        if censor.domain is not None and censor.domain not in domains:
            continue
        if censor.summary_tokens <= most:
            most -= censor.summary_tokens
            blocks.append(item(censor.line, censor.summary_tokens))
    return blocks
