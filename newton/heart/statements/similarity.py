"""Compare two statements without a model. Pure.

Cosine similarity cannot separate "will" from "was" or Tuesday from Thursday, so it never makes two statements equal.
They are equal when each word has its counterpart and no unmatched word changes the meaning.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Literal, NamedTuple

from newton.heart.statements.alignment import AlignedStatement, StatementPair, align_statements
from newton.heart.statements.lemmas import OPPOSITES, VERB_LEMMAS
from newton.heart.statements.numerals import SHORT_DAYS
from newton.heart.statements.parser import ParsedWord
from newton.heart.statements.tokenizer import fold_words, is_latin_script

MAX_CHARACTERS = 1_000  # characters; longer statements are only compared word by word
BELOW_SAME = 0.01  # distance below `same` of a statement that says more

_DENIALS = frozenset({"not", "notall", "ceased", "refuses", "denies", "avoids", "seldom"})
_QUANTIFIER_WORDS = "all some most many few several both only least more less almost about any"
_QUANTIFIERS = frozenset(_QUANTIFIER_WORDS.split())
_IS = "=be"
_NEGATING_PREFIXES = ("un", "in", "im", "dis", "non", "ir")


@dataclass(frozen=True, slots=True)
class StatementSimilarity:
    """The similarity of two statements in [0, 1], the verdict and a short reason."""

    similarity: float
    verdict: Literal["same", "near", "different"]
    reason: str


def compare_statements(
    new: str, known: str, *, cosine: float, same_min: float = 0.95, near_min: float = 0.85
) -> StatementSimilarity:
    """Compare two statements whose vectors have this cosine similarity. Symmetric except for the reason.

    `same` needs equal words, or the same words in another construction. A negation, or another person, number or time,
    makes them `different` whatever the cosine. Other pairs are `near` or `different` by the mean of cosine and word
    overlap, which stays below `same_min`.
    """
    cosine = min(max(cosine, 0.0), 1.0) if math.isfinite(cosine) else 0.0
    bounds = _Bounds(same_min, near_min)
    if max(len(new), len(known)) > MAX_CHARACTERS:
        alike = new.casefold().split() == known.casefold().split()
        return _THE_SAME if alike else bounds.classify(cosine, "long, and not word for word the same")
    one, other = fold_words(new), fold_words(known)
    if one == other and (one or new.strip() == known.strip()):
        return _THE_SAME
    if not is_latin_script(new + known):
        return _compare_other_script(one, other, cosine, bounds)
    return _compare_pair(align_statements(new, known), cosine, bounds)


def _compare_pair(pair: StatementPair, cosine: float, bounds: "_Bounds") -> StatementSimilarity:
    if because := _first_reason(_DIFFERENCE_CHECKS, pair):
        return StatementSimilarity(0.0, "different", because)
    if because := _first_reason(_SEPARATION_CHECKS, pair):
        return bounds.classify((cosine + pair.overlap()) / 2, because)
    if pair.new.keys == pair.known.keys:
        return _THE_SAME
    return StatementSimilarity(bounds.same + (1 - bounds.same) * cosine, "same", "the same, put differently")


def _first_reason(checks: Iterable[Callable[[StatementPair], str]], pair: StatementPair) -> str:
    return next(filter(None, (question(pair) for question in checks)), "")


_THE_SAME = StatementSimilarity(1.0, "same", "the same words")


class _Bounds(NamedTuple):
    same: float
    near: float

    def classify(self, similarity: float, reason: str) -> StatementSimilarity:
        similarity = min(similarity, self.same - BELOW_SAME)
        if similarity < self.near:
            return StatementSimilarity(similarity, "different", f"alike {similarity:.2f} only; {reason}")
        return StatementSimilarity(similarity, "near", f"alike {similarity:.2f}; {reason}")


def _compare_other_script(
    new_words: Sequence[str], known_words: Sequence[str], cosine: float, bounds: _Bounds
) -> StatementSimilarity:
    """Compare statements in scripts without rules, where the cosine alone is unreliable."""
    new, known = (
        Counter(word for word in words if any(c.isdigit() for c in word)) for words in (new_words, known_words)
    )
    if because := _contrast_reason("other number", new - known, known - new):
        return StatementSimilarity(0.0, "different", because)
    return bounds.classify(cosine, "not the very same words")


def _contrast_reason(what: str, new: Iterable[str], known: Iterable[str]) -> str:
    """Return the reason when each side has an item that the other lacks, else ""."""
    first, second = set(new), set(known)
    one, other = sorted(first - second), sorted(second - first)
    return f"{what}: {_format_words(one)} against {_format_words(other)}" if one and other else ""


def _format_words(words: Iterable[str]) -> str:
    return ", ".join(word.lstrip("#@") for word in words)


def _other_number(pair: StatementPair) -> str:
    new, known = (Counter(i.surface for i in side.items if i.is_number_or_time) for side in pair)
    return _contrast_reason("other number or time", (new - known).elements(), (known - new).elements())


def _denied_by_one(pair: StatementPair) -> str:
    new, known = pair.matching_features(_DENIALS)
    return "one denies it" if new != known else ""


def _other_mood(pair: StatementPair) -> str:
    new, known = ([f for f, _ in side.statement.features if f not in _DENIALS | _QUANTIFIERS] for side in pair)
    if new == known:
        return ""
    return f"other sense: {_format_words(new) or 'is'} against {_format_words(known) or 'is'}"


def _other_amount(pair: StatementPair) -> str:
    return _contrast_reason("other amount", *pair.matching_features(_QUANTIFIERS))


def _other_person(pair: StatementPair) -> str:
    return _contrast_reason("other person", pair.new.statement.persons, pair.known.statement.persons)


def _other_name(pair: StatementPair) -> str:
    new, known = pair.unmatched_words()
    return _contrast_reason("other name", filter(pair.new.is_name, new), filter(pair.known.is_name, known))


def _other_tense(pair: StatementPair) -> str:
    new, known = (_tenses_by_lemma(side.statement.items) for side in pair)
    apart = any(new[lemma].isdisjoint(known[lemma]) for lemma in new.keys() & known.keys())
    one, other = (_finite_tenses(side.statement.items) for side in pair)
    return "other tense" if apart or (one and other and one.isdisjoint(other)) else ""


def _tenses_by_lemma(items: Iterable[ParsedWord]) -> dict[str, set[bool]]:
    """Return whether each lemma is past tense, where the form is unambiguous."""
    found: dict[str, set[bool]] = {}
    for item in items:
        if item.past is not None:
            found.setdefault(item.lemma, set()).add(item.past)
    return found


def _finite_tenses(items: Iterable[ParsedWord]) -> set[bool]:
    return {item.past for item in items if item.finite and item.past is not None}


def _opposite_words(pair: StatementPair) -> str:
    new, known = pair.unmatched_words()
    for one, other in product(new[:20], known[:20]):
        undone = any(prefix + one == other or prefix + other == one for prefix in _NEGATING_PREFIXES)
        if undone or other in OPPOSITES.get(one, ()):
            return f"opposite: {one} against {other}"
    return ""


def _swapped_names(pair: StatementPair) -> str:
    names = [key for key in _moved_words(pair) if pair.new.is_name(key)]
    new, known = pair.new.roles_by_word(), pair.known.roles_by_word()
    if len(names) > 1 and Counter(r for n in names for r in new[n]) == Counter(r for n in names for r in known[n]):
        return f"{' and '.join(sorted(names))} change places"
    if _order_differs(pair, names_only=True):
        return "names change places"
    return ""


def _moved_words(pair: StatementPair) -> list[str]:
    """Return words that both have equally often, but in another role."""
    new, known = pair.new.roles_by_word(), pair.known.roles_by_word()
    return [key for key, roles in new.items() if len(known.get(key, ())) == len(roles) and known[key] != roles]


def _order_differs(pair: StatementPair, *, names_only: bool = False) -> bool:
    """Return whether words of the same role are in another order. `A is B` equals `B is A`."""
    moved = set(_moved_words(pair))
    new, known = (_words_by_role(side, moved, names_only=names_only) for side in pair)
    return any(_role_order_differs(pair, new[role], known[role]) for role in new.keys() & known.keys())


def _role_order_differs(pair: StatementPair, new: list[str], known: list[str]) -> bool:
    shared = {*new} & {*known}
    one, other = ([word for word in words if word == _IS or word in shared] for words in (new, known))
    return set(_equivalent_orders(pair.new, one)).isdisjoint(_equivalent_orders(pair.known, other))


def _equivalent_orders(side: AlignedStatement, words: list[str]) -> Iterator[tuple[str, ...]]:
    """Return the words in order, and reversed when one side of `is` is only a name.

    "Doctors are managers" does not imply "managers are doctors".
    """
    plain = [word for word in words if word != _IS]
    yield tuple(plain)
    if _IS in words:
        middle = words.index(_IS)
        sides = plain[:middle], plain[middle:]
        if any(part and all(side.is_name(word) or word.startswith("#") for word in part) for part in sides):
            yield tuple(sides[1] + sides[0])


def _words_by_role(side: AlignedStatement, moved: set[str], *, names_only: bool) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in side.statement.items:
        key = side.comparison_key(item)
        if item.lemma == _IS:
            found.setdefault("", []).append(_IS)
        elif not (item.is_plain_verb or item.is_time or key in moved or (names_only and not side.is_name(key))):
            found.setdefault(side.comparison_role(item), []).append(key)
    return found


def _says_more(pair: StatementPair) -> str:
    new, known = pair.unmatched_words()
    return f"only one has: {_format_words(sorted(dict.fromkeys([*new, *known]))[:5])}" if new or known else ""


def _belongs_elsewhere(pair: StatementPair) -> str:
    """Return whether a word takes another word's place; `budget of Lumen` equals `Lumen budget`."""
    moved = _moved_words(pair)
    new, known = pair.new.roles_by_word(), pair.known.roles_by_word()
    ways = {("".join(new[key]), "".join(known[key])) for key in moved}
    whole = all(_moved_as_group(side, moved) for side in pair)
    if whole and (
        ways <= {("of", "")} or ways <= {("", "of")} or (len(moved) == 1 and _is_compound_noun(pair, moved[0]))
    ):
        return ""
    return f"in another part: {_format_words(moved)}"


def _moved_as_group(side: AlignedStatement, moved: list[str]) -> bool:
    """Return whether all words of one marker moved together: a red door of the house is no door of the red house."""
    runs = groupby(zip(side.keys, side.items, strict=True), key=lambda pair: side.comparison_role(pair[1]))
    groups = [{key in moved for key, _ in run} for role, run in runs if role]
    return all(len(group) == 1 for group in groups)


def _is_compound_noun(pair: StatementPair, key: str) -> bool:
    """Return whether one statement has a compound of the other's phrase: allergy to nuts, nut allergy."""
    for one, other in (pair, pair[::-1]):
        if one.keys.count(key) == 1 and other.keys.count(key) == 1:
            governed, before = one.keys.index(key), other.keys.index(key)
            heads = one.items[max(governed - 1, 0) : governed], other.items[before + 1 : before + 2]
            nouns = all(head and not head[0].finite and not head[0].capital for head in heads)
            if (
                nouns
                and one.comparison_key(heads[0][0]) == other.comparison_key(heads[1][0])
                and not other.items[before].role
            ):
                return True
    return False


def _other_order(pair: StatementPair) -> str:
    return "in another order" if _order_differs(pair) else ""


def _times_elsewhere(pair: StatementPair) -> str:
    """Return the reason when several times refer to other words, judged by order."""
    new, known = pair.new.list_times(), pair.known.list_times()
    return "times in another order" if new != known and any(_has_scattered_times(side) for side in pair) else ""


def _has_scattered_times(side: AlignedStatement) -> bool:
    places = [n for n, item in enumerate(side.items) if item.is_time]
    kinds = Counter("day" if t[1:] in SHORT_DAYS else t[1:].rstrip("0123456789:") for t in side.list_times())
    return bool(places) and (places[-1] - places[0] >= len(places) or max(kinds.values()) > 1)


def _several_statements(pair: StatementPair) -> str:
    """Return the reason when compound statements differ in order, which decides who does what."""
    new, known = pair
    apart = (new.keys, new.statement.features) != (known.keys, known.statement.features)
    return (
        "several statements"
        if apart and (new.statement.has_several_clauses or known.statement.has_several_clauses)
        else ""
    )


def _other_owner(pair: StatementPair) -> str:
    """Return the reason when the owners differ. A missing her or his is implied; mine and yours differ."""
    new, known = pair.new.statement.persons, pair.known.statement.persons
    missing = {*new} ^ {*known}
    mixed = new != known and len({*new, *known}) > 1
    return "other owner" if mixed or missing - {"he", "she", "they"} else ""


def _other_modality_target(pair: StatementPair) -> str:
    """Return the reason when a modality applies to another word: can swim and runs, swims and can run."""
    for one, other in zip(_modality_anchors(pair.new), _modality_anchors(pair.known), strict=False):
        if one != other and all(anchor and not anchor.startswith(("#", "@")) for anchor in (one, other)):
            return f"{_format_words((one, other))}: another part is meant"
    return ""


def _modality_anchors(side: AlignedStatement) -> list[str]:
    return [anchor for feature, anchor in side.statement.features if feature not in _DENIALS | _QUANTIFIERS]


def _other_quantifier_target(pair: StatementPair) -> str:
    new, known = (Counter(f for f in side.statement.features if f[0] in _QUANTIFIERS) for side in pair)
    return "" if new == known else "one limits it"


def _other_negation_target(pair: StatementPair) -> str:
    """Return the reason when a negation applies to another word: `does not eat meat` equals `eats no meat`."""
    new, known = (sorted(f for f in side.statement.features if f[0] in _DENIALS) for side in pair)
    anchors = {anchor for _, anchor in (*new, *known)}
    alike = new == known or (
        len(new) == len(known) == 1 and all(_is_verb_with_object(side, anchors) for side in pair)
    )
    return "" if alike else "another part is denied"


def _is_verb_with_object(side: AlignedStatement, words: set[str]) -> bool:
    items = [item for item in side.items if item.lemma in words]
    if len(items) != 2 or len(words) != 2 or side.items.index(items[1]) != side.items.index(items[0]) + 1:
        return False
    verb, thing = items
    return verb.lemma in VERB_LEMMAS and thing.lemma not in VERB_LEMMAS and verb.role == thing.role


def _other_voice(pair: StatementPair) -> str:
    new, known = ({i.lemma: i.passive for i in side.items if i.passive is not None} for side in pair)
    apart = [lemma for lemma in new.keys() & known.keys() if new[lemma] != known[lemma]]
    return f"one is active, the other passive: {_format_words(apart)}" if apart else ""


def _is_or_has(pair: StatementPair) -> str:
    """Return the reason when one says `is` and the other `has`: the project is a problem, or has one."""
    for one, other in (pair, pair[::-1]):
        plain = any(item.lemma == _IS for item in other.statement.items)
        if (
            one.statement.expresses_ownership
            and plain
            and not other.statement.expresses_ownership
            and not any("of" in i.role for i in other.items)
        ):
            return "one is it, one has it"
    return ""


def _one_or_many(pair: StatementPair) -> str:
    for one, other in (pair, pair[::-1]):
        single = {item.lemma for item in one.items if item.single}
        many = {i.lemma for i in other.items if i.surface.endswith("s") and i.surface != i.lemma and not i.capital}
        if lemmas := single & (many - {i.lemma for i in one.items if i.surface.endswith("s")}):
            return f"one or many: {_format_words(sorted(lemmas))}"
    return ""


# Each check returns a short reason why the two differ, or "". The first checks are certain, the rest heuristic.
_DIFFERENCE_CHECKS: tuple[Callable[[StatementPair], str], ...] = (
    _other_number,
    _denied_by_one,
    _other_mood,
    _other_tense,
    _other_person,
    _other_amount,
    _other_name,
    _opposite_words,
    _swapped_names,
)
_SEPARATION_CHECKS: tuple[Callable[[StatementPair], str], ...] = (
    _says_more,
    _belongs_elsewhere,
    _other_order,
    _times_elsewhere,
    _several_statements,
    _other_owner,
    _other_quantifier_target,
    _other_modality_target,
    _other_negation_target,
    _other_voice,
    _is_or_has,
    _one_or_many,
)
