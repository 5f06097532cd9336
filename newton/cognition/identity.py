"""The identity as the first section of a context. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from newton.cognition.render import Block
from newton.heart.tenets import Identity, Tenet, rendered


class Presence(NamedTuple):
    """What of an identity a context shows, in order, and what its layer has no room for. That is for the person to be
    told: a model that reads of lines which it is not shown can only wonder about them. `gone` are the words of lines
    that hold no more: said again as somebody's words, they would hold again."""

    version: int = 0
    shown: tuple[Tenet, ...] = ()
    unshown: tuple[Tenet, ...] = ()
    gone: frozenset[str] = frozenset()

    @property
    def blocks(self) -> list[Block]:
        return [Block(rendered(tenet.part, tenet.words), tenet.tokens) for tenet in self.shown]

    def as_json(self) -> dict[str, object]:
        return {"version": self.version, "shown": _ids(self.shown), "unshown": _ids(self.unshown)}


def room(layers: Mapping[str, int], headers: Mapping[str, int]) -> int:
    """The tokens that the lines of an identity have in a context."""
    return layers["identity"] - headers["identity"]


def presence(identity: Identity, *, most: int) -> Presence:
    """The lines that count most, whole, as far as `most` tokens go; it ends before the first one that does not fit.

    A shorter one behind that would fit, but then a larger budget could lose a line that a smaller one has.
    """
    ranked = identity.ranked
    kept = 0
    for tenet in ranked:
        if tenet.tokens > most:
            break
        most -= tenet.tokens
        kept += 1
    return Presence(identity.version, tuple(ranked[:kept]), tuple(ranked[kept:]), identity.gone)


def _ids(tenets: tuple[Tenet, ...]) -> list[str]:
    return [str(tenet.tenet_id) for tenet in tenets]
