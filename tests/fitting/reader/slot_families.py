"""Pairs of statements drawn from families: the values of one slot of one holder, and ways to state and change them.

A line of a file `tests/data/slot_families/*.jsonl` is one family. `states`, `changes`, `ends` and `beside` are
sentences with `{v}` in the place of a value and `{old}` in that of the older one. `beside` leaves every value as it is.
"""

import json
import random
from collections.abc import Sequence
from typing import NamedTuple

from tests.fitting.reader.pairs import DATA, StatementPair

FOLDER = DATA / "slot_families"
CALIBRATED_EACH = 5  # every fifth family is left out of the training
# How often a pair of each kind is drawn.
SHARES = {"plain": 34, "announced": 12, "happened": 6, "same": 12, "beside": 26, "other": 10}
REWORDED = 0.9  # of the pairs of two states, those in two wordings


class SlotFamily(NamedTuple):
    """The values of one slot of one holder, and sentences about them."""

    author: str
    is_single: bool
    values: Sequence[str]
    states: Sequence[str]
    changes: Sequence[str]
    ends: Sequence[str]
    beside: Sequence[str]


def load_families(*, calibrated: bool) -> list[SlotFamily]:
    """Return the families of all authors that the training has, or those that it has not."""
    rows = [
        (path.stem, n, json.loads(line))
        for path in sorted(FOLDER.glob("*.jsonl"))
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines())
    ]
    return [
        SlotFamily(author, one["single"], *(one[name] for name in ("values", "states", "changes", "ends", "beside")))
        for author, n, one in rows
        if (n % CALIBRATED_EACH == 0) == calibrated
    ]


class FamilyDraw:
    """A source of pairs of families, in an order that a seed decides."""

    def __init__(self, families: Sequence[SlotFamily], seed: int) -> None:
        """Take families, at least two."""
        self._families, self._random = families, random.Random(seed)

    def draw_pairs(self, count: int) -> list[StatementPair]:
        """Return so many pairs, of the kinds and in the shares of `SHARES`."""
        kinds = self._random.choices([*SHARES], [*SHARES.values()], k=count)
        return [pair for kind in kinds if (pair := self._draw(kind))]

    def _draw(self, kind: str) -> StatementPair | None:
        choose, family = self._random.choice, self._random.choice(self._families)
        first, second = self._random.sample(family.values, 2)
        form = choose(family.states)
        older, label = _fill(form, first), float(family.is_single)
        if kind == "plain":
            newer = _fill(self._reword(family.states, form), second)
        elif kind == "announced" and family.changes:
            newer, label = self._draw_end(family, family.changes, first, second)
        elif kind == "happened" and family.ends:
            newer, label = self._draw_end(family, family.ends, first, second)
        elif kind == "same":
            newer, label = _fill(self._reword(family.states, form), first), 0.0
        elif kind == "beside":
            newer, label = _fill(choose(family.beside), second, first), 0.0
        else:
            other = choose(self._families)
            if other is family:
                return None
            newer, label = _fill(choose([*other.states, *other.changes]), *self._random.sample(other.values, 2)), 0.0
        return StatementPair(older, newer, label, f"families {kind}{'' if family.is_single else ' of several'}")

    def _draw_end(self, family: SlotFamily, forms: Sequence[str], first: str, second: str) -> tuple[str, float]:
        """Return a sentence that ends the first value, or one of several others, which leaves the first as it is."""
        form = self._random.choice(forms)
        if family.is_single or self._random.random() < 0.5:
            return _fill(form, second, first), float(family.is_single or "{old}" in form)
        others = [one for one in family.values if one not in (first, second)]
        return _fill(form, second, self._random.choice(others)), 0.0

    def _reword(self, forms: Sequence[str], form: str) -> str:
        others = [one for one in forms if one != form]
        return self._random.choice(others) if self._random.random() < REWORDED else form


def _fill(form: str, value: str, old: str = "") -> str:
    return form.replace("{v}", value).replace("{old}", old or value)
