"""Two statements side by side: which words they share, and where each word belongs in either."""

from collections import Counter
from typing import NamedTuple

from newton.heart.statements.reading import Item, Reading, read

_OF_TIMES = frozenset({"in", "on", "at"})


class Side:
    """One statement beside the other: its words as they are compared. What is a name in either is one in both."""

    def __init__(self, own: Reading, other: Reading) -> None:
        self.reading = own
        self.items = [item for item in own.items if not item.is_plain_verb]
        both = (*own.items, *other.items)
        small = {item.surface for item in both if not item.capital}
        self._names = {i.surface for i in both if i.capital and not (i.first and i.surface in small)}
        self.keys = [self.key(item) for item in self.items]
        self.said = {feature for feature, _ in own.features}

    def key(self, item: Item) -> str:
        return item.surface if item.is_counted or item.surface in self._names else item.lemma

    def is_name(self, key: str) -> bool:
        return key in self._names

    def role(self, item: Item) -> str:
        """Where it belongs; on, at and in say one thing of times, at and in of names."""
        clause, _, last = item.role.rpartition(" ")
        if last in _OF_TIMES and item.is_time:
            last = ""
        elif last == "in" and self.is_name(item.surface):
            last = "at"
        return f"{clause} {last}".strip()

    def roles(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for item in self.items:
            found.setdefault(self.key(item), []).append(self.role(item))
        return {key: sorted(roles) for key, roles in found.items()}

    def times(self) -> list[str]:
        return [item.surface for item in self.items if item.is_time]


class Pair(NamedTuple):
    told: Side
    known: Side

    def extra(self) -> tuple[list[str], list[str]]:
        """The words that only one of them has, markers among them."""
        told = Counter([*self.told.keys, *self.told.reading.markers])
        known = Counter([*self.known.keys, *self.known.reading.markers])
        return list((told - known).elements()), list((known - told).elements())

    def shared(self) -> float:
        """The part of the words that both have, in [0, 1]."""
        words = len(self.told.keys) + len(self.known.keys)
        common = Counter(self.told.keys) & Counter(self.known.keys)
        return 2 * common.total() / words if words else 1.0

    def said(self, kind: frozenset[str]) -> tuple[set[str], set[str]]:
        return self.told.said & kind, self.known.said & kind


def paired(told: str, known: str) -> Pair:
    one, other = read(told), read(known)
    return Pair(Side(one, other), Side(other, one))
