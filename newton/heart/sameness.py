"""Whether two statements say the same, without a model. Pure.

Likeness of vectors cannot tell "will" from "was" or Tuesday from Thursday, so it never makes two statements the same:
they are when each word of one has its counterpart in the other and nothing that changes the meaning stands apart.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from newton.heart.numerals import SHORT_DAYS
from newton.heart.reading import LONGEST, Item, Reading, folded, in_english_letters, read
from newton.heart.vocabulary import EXCLUSIVE

JUST_BELOW = 0.01  # how far below `same` statements stay of which one says more

_DENIALS = frozenset({"not", "ceased", "refuses", "denies", "avoids", "seldom"})
_AMOUNTS = frozenset("all some most many few several both only least more less almost about any".split())
_UNDOING = ("un", "in", "im", "dis", "non", "ir")
_AMONG_NAMES = frozenset({"in", "on", "at"})


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two statements are, in [0, 1], what follows, and why in a few words."""

    similarity: float
    verdict: Literal["same", "near", "different"]
    because: str


def likeness(told: str, known: str, *, cosine: float, same: float = 0.95, near: float = 0.85) -> Likeness:
    """Compares two statements of which the vectors have this cosine. Any text will do; symmetric but for `because`.

    Same are statements with the same words, or the same words put differently. A statement that denies the other, or
    names another person, number or time, is different whatever the cosine. All else is near or different by its
    similarity, the mean of cosine and shared words, which stays below `same`.
    """
    cosine = min(max(cosine, 0.0), 1.0) if math.isfinite(cosine) else 0.0
    one, other = folded(told), folded(known)
    if one == other and (one or told.strip() == known.strip()):
        return Likeness(1.0, "same", "the same words")
    bounds = _Bounds(same, near)
    if max(len(told), len(known)) > LONGEST or not (in_english_letters(told) and in_english_letters(known)):
        return _unread(one, other, cosine, bounds)
    pair = _Pair(_Side(read(told), read(known)), _Side(read(known), read(told)))
    for guard in _GUARDS:
        if because := guard(pair):
            return Likeness(0.0, "different", because)
    for open_question in _OPEN:
        if because := open_question(pair):
            return bounds.apart((cosine + pair.shared()) / 2, because)
    if pair.told.keys == pair.known.keys:
        return Likeness(1.0, "same", "the same words")
    return Likeness(same + (1 - same) * cosine, "same", "the same, put differently")


class _Bounds(NamedTuple):
    same: float
    near: float

    def apart(self, similarity: float, because: str) -> Likeness:
        similarity = min(similarity, self.same - JUST_BELOW)
        if similarity < self.near:
            return Likeness(similarity, "different", f"alike {similarity:.2f} only; {because}")
        return Likeness(similarity, "near", f"alike {similarity:.2f}; {because}")


def _unread(one: Sequence[str], other: Sequence[str], cosine: float, bounds: _Bounds) -> Likeness:
    """Of a script without rules, or of a long text, the vector says too little: it sees signs of one kind or a part."""
    figures = [Counter(word for word in words if any(c.isdigit() for c in word)) for words in (one, other)]
    if figures[0] != figures[1]:
        return Likeness(0.0, "different", "other numbers")
    return bounds.apart(cosine, "not the very same words")


class _Side:
    """One statement beside the other: its words as they are compared. What is a name in either is one in both."""

    def __init__(self, own: Reading, other: Reading) -> None:
        self.reading = own
        self.items = [item for item in own.items if not item.is_plain_verb]
        self.names = {item.surface for item in own.items if item.capital}
        self._names = self.names | {item.surface for item in other.items if item.capital}
        self.keys = [self.key(item) for item in self.items]
        self.said = {feature for feature, _ in own.features}

    def key(self, item: Item) -> str:
        return item.surface if item.is_counted or item.surface in self._names else item.lemma

    def is_name(self, key: str) -> bool:
        return key in self._names

    def role(self, item: Item) -> str:
        """Where it belongs; on, at and in say one thing of times, and of names."""
        clause, _, last = item.role.rpartition(" ")
        if last in _AMONG_NAMES and item.is_time:
            last = ""
        elif last in _AMONG_NAMES and self.is_name(item.surface):
            last = "at"
        return f"{clause} {last}".strip()

    def roles(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for item in self.items:
            found.setdefault(self.key(item), []).append(self.role(item))
        return {key: sorted(roles) for key, roles in found.items()}

    def times(self) -> list[str]:
        return [item.surface for item in self.items if item.is_time]


class _Pair(NamedTuple):
    told: _Side
    known: _Side

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


def _against(what: str, told: Iterable[str], known: Iterable[str]) -> str:
    """The reason, if each of the two has something that the other has not."""
    first, second = set(told), set(known)
    one, other = sorted(first - second), sorted(second - first)
    return f"{what}: {_readable(one)} against {_readable(other)}" if one and other else ""


def _readable(words: Iterable[str]) -> str:
    return ", ".join(word.lstrip("#@") for word in words)


def _other_number(pair: _Pair) -> str:
    told, known = (Counter(i.surface for i in side.items if i.is_counted) for side in pair)
    return _against("other number or time", (told - known).elements(), (known - told).elements())


def _denied(pair: _Pair) -> str:
    told, known = pair.said(_DENIALS)
    return "one denies it" if told != known else ""


def _other_mood(pair: _Pair) -> str:
    told, known = ([f for f, _ in side.reading.features if f not in _DENIALS | _AMOUNTS] for side in pair)
    if told == known:
        return ""
    return f"other sense: {_readable(told) or 'is'} against {_readable(known) or 'is'}"


def _other_amount(pair: _Pair) -> str:
    return _against("other amount", *pair.said(_AMOUNTS))


def _other_person(pair: _Pair) -> str:
    return _against("other person", pair.told.reading.persons, pair.known.reading.persons)


def _other_name(pair: _Pair) -> str:
    told, known = pair.extra()
    return _against("other name", filter(pair.told.is_name, told), filter(pair.known.is_name, known))


def _other_tense(pair: _Pair) -> str:
    told, known = (_tenses(side.reading.items) for side in pair)
    apart = any(told[lemma].isdisjoint(known[lemma]) for lemma in told.keys() & known.keys())
    one, other = (_overall(side.reading.items) for side in pair)
    return "other tense" if apart or (one and other and one.isdisjoint(other)) else ""


def _tenses(items: Iterable[Item]) -> dict[str, set[bool]]:
    """Of each word of which the form tells, whether it is past."""
    found: dict[str, set[bool]] = {}
    for item in items:
        if item.past is not None:
            found.setdefault(item.lemma, set()).add(item.past)
    return found


def _overall(items: Iterable[Item]) -> set[bool]:
    return {item.past for item in items if item.finite and item.past is not None}


def _opposite(pair: _Pair) -> str:
    for one, other in _pairings(*pair.extra()):
        if any(one in row and other in row for row in EXCLUSIVE) or _undone(one, other) or _undone(other, one):
            return f"opposite: {one} against {other}"
    return ""


def _pairings(told: list[str], known: list[str]) -> Iterator[tuple[str, str]]:
    for one in told[:20]:
        for other in known[:20]:
            yield one, other


def _undone(one: str, other: str) -> bool:
    return any(one == prefix + other for prefix in _UNDOING)


def _places_changed(pair: _Pair) -> str:
    names = [key for key in _elsewhere(pair) if pair.told.is_name(key)]
    told, known = pair.told.roles(), pair.known.roles()
    if len(names) > 1 and Counter(r for n in names for r in told[n]) == Counter(r for n in names for r in known[n]):
        return f"{' and '.join(sorted(names))} change places"
    if _reordered(pair, names_only=True):
        return "names change places"
    return ""


def _elsewhere(pair: _Pair) -> list[str]:
    """The words that belong elsewhere in the other statement, though both have them as often."""
    told, known = pair.told.roles(), pair.known.roles()
    return [key for key, roles in told.items() if len(known.get(key, ())) == len(roles) and known[key] != roles]


def _reordered(pair: _Pair, *, names_only: bool = False) -> bool:
    """Whether words with the same role come in another order. `A is B` and `B is A` are in the same order."""
    moved = set(_elsewhere(pair))
    told, known = (_sequences(side, moved, names_only=names_only) for side in pair)
    return any(_disordered(told[role], known[role]) for role in told.keys() & known.keys())


def _disordered(told: list[str], known: list[str]) -> bool:
    shared = Counter(word for word in told if word != _IS) & Counter(word for word in known if word != _IS)
    one, other = ([word for word in words if word == _IS or word in shared] for words in (told, known))
    return not {tuple(order) for order in _turned(one)} & {tuple(order) for order in _turned(other)}


_IS = "=be"


def _turned(words: list[str]) -> Iterator[list[str]]:
    plain = [word for word in words if word != _IS]
    yield plain
    if _IS in words:
        middle = words.index(_IS)
        yield [word for word in words[middle:] + words[:middle] if word != _IS]


def _sequences(side: _Side, moved: set[str], *, names_only: bool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in side.reading.items:
        key = side.key(item)
        if item.lemma == _IS:
            found.setdefault("", []).append(_IS)
        elif not (item.is_plain_verb or item.is_time or key in moved or (names_only and not side.is_name(key))):
            found.setdefault(side.role(item), []).append(key)
    return found


def _says_more(pair: _Pair) -> str:
    told, known = pair.extra()
    return f"only one has: {_readable(sorted(dict.fromkeys([*told, *known]))[:5])}" if told or known else ""


def _belongs_elsewhere(pair: _Pair) -> str:
    """`budget of Lumen` and `Lumen budget` are alike, unless one word takes the place that the other leaves."""
    told, known = pair.told.roles(), pair.known.roles()
    changes = [(key, told[key], known[key]) for key in _elsewhere(pair)]
    if len(changes) == 1 and _compounded(pair, changes[0][0]):
        return ""
    ways = {("".join(before), "".join(after)) for _, before, after in changes}
    harmless = ways <= {("of", "")} or ways <= {("", "of")}
    return "" if harmless else f"in another part: {_readable(key for key, _, _ in changes)}"


def _compounded(pair: _Pair, key: str) -> bool:
    """Whether it is governed in one by the noun that it stands before in the other: allergy to peanuts, peanut allergy."""
    for one, other in (pair, pair[::-1]):
        if one.keys.count(key) == 1 and other.keys.count(key) == 1:
            governed, before = one.keys.index(key), other.keys.index(key)
            heads = one.items[max(governed - 1, 0) : governed], other.items[before + 1 : before + 2]
            nouns = all(head and not head[0].finite and not head[0].capital for head in heads)
            if nouns and one.key(heads[0][0]) == other.key(heads[1][0]) and not other.items[before].role:
                return True
    return False


def _other_order(pair: _Pair) -> str:
    return "in another order" if _reordered(pair) else ""


def _times_elsewhere(pair: _Pair) -> str:
    """Two times of one kind belong to two things: which to which is told by the order alone."""
    told, known = pair.told.times(), pair.known.times()
    kinds = Counter("day" if t[1:] in SHORT_DAYS else t[1:].rstrip("0123456789:") for t in told)
    return "times in another order" if told != known and max(kinds.values(), default=0) > 1 else ""


def _limits_elsewhere(pair: _Pair) -> str:
    told, known = (Counter(f for f in side.reading.features if f[0] in _AMOUNTS) for side in pair)
    return "" if told == known else "one limits it"


def _denies_elsewhere(pair: _Pair) -> str:
    """What is denied may be the verb or its object; with more words between them it is something else."""
    told, known = (sorted(f for f in side.reading.features if f[0] in _DENIALS) for side in pair)
    if told == known:
        return ""
    if len(told) != 1 or len(known) != 1 or any(pair.told.is_name(anchor) for _, anchor in (*told, *known)):
        return "another part is denied"
    lemmas = [item.lemma for item in pair.told.items]
    places = [lemmas.index(anchor) for _, anchor in (*told, *known) if anchor in lemmas]
    return "" if len(places) == 2 and abs(places[0] - places[1]) <= 1 else "another part is denied"


def _done_or_doing(pair: _Pair) -> str:
    told, known = ({i.lemma: i.passive for i in side.items if i.passive is not None} for side in pair)
    apart = [lemma for lemma in told.keys() & known.keys() if told[lemma] != known[lemma]]
    return f"one does it, to the other it is done: {_readable(apart)}" if apart else ""


def _is_or_has(pair: _Pair) -> str:
    told, known = pair.told.reading, pair.known.reading
    apart = (told.owning and known.identity) or (known.owning and told.identity)
    return "one is it, one has it" if apart and told.owning != known.owning and told.identity != known.identity else ""


def _one_or_many(pair: _Pair) -> str:
    for one, other in (pair, pair[::-1]):
        single = {item.lemma for item in one.items if item.single}
        many = {i.lemma for i in other.items if i.surface.endswith("s") and i.surface != i.lemma and not i.capital}
        if lemmas := single & (many - {i.lemma for i in one.items if i.surface.endswith("s")}):
            return f"one or many: {_readable(sorted(lemmas))}"
    return ""


_GUARDS: tuple[Callable[[_Pair], str], ...] = (
    _other_number,
    _denied,
    _other_mood,
    _other_tense,
    _other_person,
    _other_amount,
    _other_name,
    _opposite,
    _places_changed,
)
_OPEN: tuple[Callable[[_Pair], str], ...] = (
    _says_more,
    _belongs_elsewhere,
    _other_order,
    _times_elsewhere,
    _limits_elsewhere,
    _denies_elsewhere,
    _done_or_doing,
    _is_or_has,
    _one_or_many,
)
