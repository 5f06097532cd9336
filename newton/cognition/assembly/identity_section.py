"""The identity as the first section of a context. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from newton.cognition.assembly.render import TextBlock
from newton.heart.identity.tenets import Identity, Tenet, render_tenet


class IdentitySection(NamedTuple):
    """What of an identity a context shows, in order, and what its layer has no room for. That is for the person to be
    told: a model that reads of lines which it is not shown can only wonder about them. `gone` are the words of lines
    that hold no more: said again as somebody's words, they would hold again."""

    version: int = 0
    shown: tuple[Tenet, ...] = ()
    omitted: tuple[Tenet, ...] = ()
    removed_texts: frozenset[str] = frozenset()

    @property
    def blocks(self) -> list[TextBlock]:
        return [TextBlock(render_tenet(tenet.part, tenet.text), tenet.tokens) for tenet in self.shown]

    def as_json(self) -> dict[str, object]:
        return {"version": self.version, "shown": _list_ids(self.shown), "unshown": _list_ids(self.omitted)}


def compute_identity_tokens(layers: Mapping[str, int], header_tokens: Mapping[str, int]) -> int:
    """The tokens that the lines of an identity have in a context."""
    return layers["identity"] - header_tokens["identity"]


def select_identity_lines(identity: Identity, *, max_tokens: int) -> IdentitySection:
    """The lines that count most, whole, as far as `most` tokens go; it ends before the first one that does not fit.

    A shorter one behind that would fit, but then a larger budget could lose a line that a smaller one has.
    """
    ranked = identity.by_priority
    kept = 0
    for tenet in ranked:
        if tenet.tokens > max_tokens:
            break
        max_tokens -= tenet.tokens
        kept += 1
    return IdentitySection(identity.version, tuple(ranked[:kept]), tuple(ranked[kept:]), identity.removed_texts)


def _list_ids(tenets: tuple[Tenet, ...]) -> list[str]:
    return [str(tenet.tenet_id) for tenet in tenets]
