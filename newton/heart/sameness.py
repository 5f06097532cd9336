"""Whether two statements say the same, without a model. Pure.

Likeness of vectors cannot tell "will" from "was" or Tuesday from Thursday, so it never makes two statements the same:
they are when each word of one has its counterpart in the other and nothing that changes the meaning stands apart.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Literal, NamedTuple

from newton.heart.statements.numerals import SHORT_DAYS
from newton.heart.statements.pairing import Pair, Side, paired
from newton.heart.statements.reading import Item
from newton.heart.statements.stems import OPPOSITES, VERB_LEMMAS
from newton.heart.statements.words import folded, in_latin_letters

LONGEST = 1_000  # characters; statements that are longer are compared word for word only
JUST_BELOW = 0.01  # how far below `same` statements stay of which one says more

_DENIALS = frozenset({"not", "notall", "ceased", "refuses", "denies", "avoids", "seldom"})
_AMOUNT_WORDS = "all some most many few several both only least more less almost about any"
_AMOUNTS = frozenset(_AMOUNT_WORDS.split())
_IS = "=be"
_UNDOING = ("un", "in", "im", "dis", "non", "ir")


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
    bounds = _Bounds(same, near)
    if max(len(told), len(known)) > LONGEST:
        alike = told.casefold().split() == known.casefold().split()
        return _THE_SAME if alike else bounds.apart(cosine, "long, and not word for word the same")
    one, other = folded(told), folded(known)
    if one == other and (one or told.strip() == known.strip()):
        return _THE_SAME
    if not in_latin_letters(told + known):
        return _unread(one, other, cosine, bounds)
    return _read(paired(told, known), cosine, bounds)


def _read(pair: Pair, cosine: float, bounds: "_Bounds") -> Likeness:
    if because := _first(_DIFFERENT, pair):
        return Likeness(0.0, "different", because)
    if because := _first(_APART, pair):
        return bounds.apart((cosine + pair.shared()) / 2, because)
    if pair.told.keys == pair.known.keys:
        return _THE_SAME
    return Likeness(bounds.same + (1 - bounds.same) * cosine, "same", "the same, put differently")


def _first(questions: Iterable[Callable[[Pair], str]], pair: Pair) -> str:
    return next(filter(None, (question(pair) for question in questions)), "")


_THE_SAME = Likeness(1.0, "same", "the same words")


class _Bounds(NamedTuple):
    same: float
    near: float

    def apart(self, similarity: float, because: str) -> Likeness:
        similarity = min(similarity, self.same - JUST_BELOW)
        if similarity < self.near:
            return Likeness(similarity, "different", f"alike {similarity:.2f} only; {because}")
        return Likeness(similarity, "near", f"alike {similarity:.2f}; {because}")


def _unread(one: Sequence[str], other: Sequence[str], cosine: float, bounds: _Bounds) -> Likeness:
    """Of a script without rules here the vector says too little: it often sees signs of one kind."""
    told, known = (Counter(word for word in words if any(c.isdigit() for c in word)) for words in (one, other))
    if because := _against("other number", told - known, known - told):
        return Likeness(0.0, "different", because)
    return bounds.apart(cosine, "not the very same words")


def _against(what: str, told: Iterable[str], known: Iterable[str]) -> str:
    """The reason, if each of the two has something that the other has not."""
    first, second = set(told), set(known)
    one, other = sorted(first - second), sorted(second - first)
    return f"{what}: {_readable(one)} against {_readable(other)}" if one and other else ""


def _readable(words: Iterable[str]) -> str:
    return ", ".join(word.lstrip("#@") for word in words)


def _other_number(pair: Pair) -> str:
    told, known = (Counter(i.surface for i in side.items if i.is_counted) for side in pair)
    return _against("other number or time", (told - known).elements(), (known - told).elements())


def _denied(pair: Pair) -> str:
    told, known = pair.said(_DENIALS)
    return "one denies it" if told != known else ""


def _other_mood(pair: Pair) -> str:
    told, known = ([f for f, _ in side.reading.features if f not in _DENIALS | _AMOUNTS] for side in pair)
    if told == known:
        return ""
    return f"other sense: {_readable(told) or 'is'} against {_readable(known) or 'is'}"


def _other_amount(pair: Pair) -> str:
    return _against("other amount", *pair.said(_AMOUNTS))


def _other_person(pair: Pair) -> str:
    return _against("other person", pair.told.reading.persons, pair.known.reading.persons)


def _other_name(pair: Pair) -> str:
    told, known = pair.extra()
    return _against("other name", filter(pair.told.is_name, told), filter(pair.known.is_name, known))


def _other_tense(pair: Pair) -> str:
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


def _opposite(pair: Pair) -> str:
    told, known = pair.extra()
    for one, other in product(told[:20], known[:20]):
        undone = any(prefix + one == other or prefix + other == one for prefix in _UNDOING)
        if undone or other in OPPOSITES.get(one, ()):
            return f"opposite: {one} against {other}"
    return ""


def _places_changed(pair: Pair) -> str:
    names = [key for key in _elsewhere(pair) if pair.told.is_name(key)]
    told, known = pair.told.roles(), pair.known.roles()
    if len(names) > 1 and Counter(r for n in names for r in told[n]) == Counter(r for n in names for r in known[n]):
        return f"{' and '.join(sorted(names))} change places"
    if _reordered(pair, names_only=True):
        return "names change places"
    return ""


def _elsewhere(pair: Pair) -> list[str]:
    """The words that belong elsewhere in the other statement, though both have them as often."""
    told, known = pair.told.roles(), pair.known.roles()
    return [key for key, roles in told.items() if len(known.get(key, ())) == len(roles) and known[key] != roles]


def _reordered(pair: Pair, *, names_only: bool = False) -> bool:
    """Whether words with the same role come in another order. `A is B` and `B is A` are in the same order."""
    moved = set(_elsewhere(pair))
    told, known = (_sequences(side, moved, names_only=names_only) for side in pair)
    return any(_disordered(pair, told[role], known[role]) for role in told.keys() & known.keys())


def _disordered(pair: Pair, told: list[str], known: list[str]) -> bool:
    shared = {*told} & {*known}
    one, other = ([word for word in words if word == _IS or word in shared] for words in (told, known))
    return set(_turned(pair.told, one)).isdisjoint(_turned(pair.known, other))


def _turned(side: Side, words: list[str]) -> Iterator[tuple[str, ...]]:
    """The words as they stand, and the other way round if one side of `is` is but a name. Managers are not doctors
    because doctors are managers."""
    plain = [word for word in words if word != _IS]
    yield tuple(plain)
    if _IS in words:
        middle = words.index(_IS)
        sides = plain[:middle], plain[middle:]
        if any(part and all(side.is_name(word) or word.startswith("#") for word in part) for part in sides):
            yield tuple(sides[1] + sides[0])


def _sequences(side: Side, moved: set[str], *, names_only: bool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in side.reading.items:
        key = side.key(item)
        if item.lemma == _IS:
            found.setdefault("", []).append(_IS)
        elif not (item.is_plain_verb or item.is_time or key in moved or (names_only and not side.is_name(key))):
            found.setdefault(side.role(item), []).append(key)
    return found


def _says_more(pair: Pair) -> str:
    told, known = pair.extra()
    return f"only one has: {_readable(sorted(dict.fromkeys([*told, *known]))[:5])}" if told or known else ""


def _belongs_elsewhere(pair: Pair) -> str:
    """`budget of Lumen` and `Lumen budget` are alike, unless one word takes the place that another leaves."""
    moved = _elsewhere(pair)
    told, known = pair.told.roles(), pair.known.roles()
    ways = {("".join(told[key]), "".join(known[key])) for key in moved}
    whole = all(_governed_whole(side, moved) for side in pair)
    if whole and (ways <= {("of", "")} or ways <= {("", "of")} or (len(moved) == 1 and _compounded(pair, moved[0]))):
        return ""
    return f"in another part: {_readable(moved)}"


def _governed_whole(side: Side, moved: list[str]) -> bool:
    """Whether what one marker governs moved all together: the red door of the house has no red house."""
    runs = groupby(zip(side.keys, side.items, strict=True), key=lambda pair: side.role(pair[1]))
    groups = [{key in moved for key, _ in run} for role, run in runs if role]
    return all(len(group) == 1 for group in groups)


def _compounded(pair: Pair, key: str) -> bool:
    """Whether it is governed in one by the noun that it stands before in the other: allergy to nuts, nut allergy."""
    for one, other in (pair, pair[::-1]):
        if one.keys.count(key) == 1 and other.keys.count(key) == 1:
            governed, before = one.keys.index(key), other.keys.index(key)
            heads = one.items[max(governed - 1, 0) : governed], other.items[before + 1 : before + 2]
            nouns = all(head and not head[0].finite and not head[0].capital for head in heads)
            if nouns and one.key(heads[0][0]) == other.key(heads[1][0]) and not other.items[before].role:
                return True
    return False


def _other_order(pair: Pair) -> str:
    return "in another order" if _reordered(pair) else ""


def _times_elsewhere(pair: Pair) -> str:
    """Of times apart from each other the order tells to what they belong."""
    told, known = pair.told.times(), pair.known.times()
    return "times in another order" if told != known and any(_scattered(side) for side in pair) else ""


def _scattered(side: Side) -> bool:
    places = [n for n, item in enumerate(side.items) if item.is_time]
    kinds = Counter("day" if t[1:] in SHORT_DAYS else t[1:].rstrip("0123456789:") for t in side.times())
    return bool(places) and (places[-1] - places[0] >= len(places) or max(kinds.values()) > 1)


def _several(pair: Pair) -> str:
    """Of several statements the order tells who does what, and what is denied."""
    told, known = pair
    apart = (told.keys, told.reading.features) != (known.keys, known.reading.features)
    return "several statements" if apart and (told.reading.several or known.reading.several) else ""


def _owner_apart(pair: Pair) -> str:
    """A missing her or his is understood; mine and yours are not."""
    told, known = pair.told.reading.persons, pair.known.reading.persons
    missing = {*told} ^ {*known}
    mixed = told != known and len({*told, *known}) > 1
    return "other owner" if mixed or missing - {"he", "she", "they"} else ""


def _means_elsewhere(pair: Pair) -> str:
    """Who can swim and runs, does not swim and can run."""
    for one, other in zip(_moods(pair.told), _moods(pair.known), strict=False):
        if one != other and all(anchor and not anchor.startswith(("#", "@")) for anchor in (one, other)):
            return f"{_readable((one, other))}: another part is meant"
    return ""


def _moods(side: Side) -> list[str]:
    return [anchor for feature, anchor in side.reading.features if feature not in _DENIALS | _AMOUNTS]


def _limits_elsewhere(pair: Pair) -> str:
    told, known = (Counter(f for f in side.reading.features if f[0] in _AMOUNTS) for side in pair)
    return "" if told == known else "one limits it"


def _denies_elsewhere(pair: Pair) -> str:
    """What is denied may be the verb or what follows it: does not eat meat, eats no meat."""
    told, known = (sorted(f for f in side.reading.features if f[0] in _DENIALS) for side in pair)
    anchors = {anchor for _, anchor in (*told, *known)}
    alike = told == known or (len(told) == len(known) == 1 and all(_verb_and_object(side, anchors) for side in pair))
    return "" if alike else "another part is denied"


def _verb_and_object(side: Side, words: set[str]) -> bool:
    items = [item for item in side.items if item.lemma in words]
    if len(items) != 2 or len(words) != 2 or side.items.index(items[1]) != side.items.index(items[0]) + 1:
        return False
    verb, thing = items
    return verb.lemma in VERB_LEMMAS and thing.lemma not in VERB_LEMMAS and verb.role == thing.role


def _done_or_doing(pair: Pair) -> str:
    told, known = ({i.lemma: i.passive for i in side.items if i.passive is not None} for side in pair)
    apart = [lemma for lemma in told.keys() & known.keys() if told[lemma] != known[lemma]]
    return f"one does it, to the other it is done: {_readable(apart)}" if apart else ""


def _is_or_has(pair: Pair) -> str:
    """The project is a problem, or has one. What somebody has is what is his: the owner may stand after `of`."""
    for one, other in (pair, pair[::-1]):
        plain = any(item.lemma == _IS for item in other.reading.items)
        if one.reading.owning and plain and not other.reading.owning and not any("of" in i.role for i in other.items):
            return "one is it, one has it"
    return ""


def _one_or_many(pair: Pair) -> str:
    for one, other in (pair, pair[::-1]):
        single = {item.lemma for item in one.items if item.single}
        many = {i.lemma for i in other.items if i.surface.endswith("s") and i.surface != i.lemma and not i.capital}
        if lemmas := single & (many - {i.lemma for i in one.items if i.surface.endswith("s")}):
            return f"one or many: {_readable(sorted(lemmas))}"
    return ""


# Each says in a few words what sets the two apart, or nothing: for certain, or as far as one can read it.
_DIFFERENT: tuple[Callable[[Pair], str], ...] = (
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
_APART: tuple[Callable[[Pair], str], ...] = (
    _says_more,
    _belongs_elsewhere,
    _other_order,
    _times_elsewhere,
    _several,
    _owner_apart,
    _limits_elsewhere,
    _means_elsewhere,
    _denies_elsewhere,
    _done_or_doing,
    _is_or_has,
    _one_or_many,
)
