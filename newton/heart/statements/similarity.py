"""Comparison of two statements by words and grammar, without a model. Pure.

Cosine similarity does not separate "will" from "was" or Tuesday from Thursday, so it alone never makes two statements
equal.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Literal, NamedTuple

from newton.heart.statements.alignment import AlignedStatement, StatementPair, align_statements
from newton.heart.statements.parser import ParsedWord
from newton.heart.statements.tokenizer import fold_words, is_latin_script
from newton.text.english import OPPOSITES, VERB_LEMMAS
from newton.text.languages import ENGLISH, detect_language
from newton.text.numerals import SHORT_DAYS

MAX_CHARACTERS = 1_000  # longer statements are only compared word by word
MIN_REPEATED_WORDS = 2  # of a statement that is contained in another
BELOW_SAME = 0.01  # distance below `same_min` of statements that differ

_DENIALS = frozenset({"not", "notall", "ceased", "refuses", "denies", "avoids", "seldom"})
_QUANTIFIER_WORDS = "all some most many few several both only least more less almost about any"
_QUANTIFIERS = frozenset(_QUANTIFIER_WORDS.split())
_IS = "=be"
_NEGATING_PREFIXES = ("un", "in", "im", "dis", "non", "ir")


@dataclass(frozen=True, slots=True)
class StatementSimilarity:
    """The similarity of two statements in [0, 1], the verdict on whether they say the same, and its reason.

    `contained` is the one of them whose words all stand in the other, without a certain difference.
    """

    similarity: float
    verdict: Literal["same", "near", "different"]
    reason: str
    contained: Literal["new", "known"] | None = None


def compare_statements(
    new: str, known: str, *, cosine: float, same_min: float = 0.95, near_min: float = 0.85
) -> StatementSimilarity:
    """Compare two statements whose vectors have this cosine similarity. Only the reason depends on their order.

    The verdict `same` requires equal words, or the same words in another construction. A negation, or another person,
    number or time, makes it `different` whatever the cosine. Other pairs are `near` or `different` by the mean of
    cosine and word overlap, which stays below `same_min`.
    """
    cosine = min(max(cosine, 0.0), 1.0) if math.isfinite(cosine) else 0.0
    bounds = _Bounds(same_min, near_min)
    if max(len(new), len(known)) > MAX_CHARACTERS:
        equal = new.casefold().split() == known.casefold().split()
        return _SAME_WORDS if equal else bounds.classify(cosine, "too long to compare, and the words differ")
    one, other = fold_words(new), fold_words(known)
    if one == other and (one or new.strip() == known.strip()):
        return _SAME_WORDS
    if not is_latin_script(new + known) or detect_language(f"{new} {known}") != ENGLISH:
        return _compare_other_script(one, other, cosine, bounds)
    return _compare_pair(align_statements(new, known), cosine, bounds)


def _compare_pair(pair: StatementPair, cosine: float, bounds: "_Bounds") -> StatementSimilarity:
    if reason := _first_reason(_DIFFERENCE_CHECKS, pair):
        return StatementSimilarity(0.0, "different", reason)
    if reason := _first_reason(_SEPARATION_CHECKS, pair):
        return replace(bounds.classify((cosine + pair.overlap()) / 2, reason), contained=_find_contained(pair))
    if pair.new.keys == pair.known.keys:
        return _SAME_WORDS
    return StatementSimilarity(bounds.same + (1 - bounds.same) * cosine, "same", "the same in another construction")


def _find_contained(pair: StatementPair) -> Literal["new", "known"] | None:
    new, known = pair.unmatched_words()
    if not known and len(pair.known.keys) >= MIN_REPEATED_WORDS:
        return "known"
    return "new" if not new and len(pair.new.keys) >= MIN_REPEATED_WORDS else None


def _first_reason(checks: Iterable[Callable[[StatementPair], str]], pair: StatementPair) -> str:
    return next(filter(None, (check(pair) for check in checks)), "")


_SAME_WORDS = StatementSimilarity(1.0, "same", "the same words")


class _Bounds(NamedTuple):
    same: float
    near: float

    def classify(self, similarity: float, reason: str) -> StatementSimilarity:
        similarity = min(similarity, self.same - BELOW_SAME)
        if similarity < self.near:
            return StatementSimilarity(similarity, "different", f"similarity only {similarity:.2f}; {reason}")
        return StatementSimilarity(similarity, "near", f"similarity {similarity:.2f}; {reason}")


def _compare_other_script(
    new_words: Sequence[str], known_words: Sequence[str], cosine: float, bounds: _Bounds
) -> StatementSimilarity:
    """Compare statements that are not in English, by their numbers and the cosine similarity."""
    new, known = (Counter(w for w in words if any(map(str.isdigit, w))) for words in (new_words, known_words))
    if reason := _contrast_reason("other number", new - known, known - new):
        return StatementSimilarity(0.0, "different", reason)
    return bounds.classify(cosine, "the words differ")


def _contrast_reason(what: str, new: Iterable[str], known: Iterable[str]) -> str:
    """Return a reason if each side has an item that the other lacks, otherwise ""."""
    first, second = set(new), set(known)
    one, other = sorted(first - second), sorted(second - first)
    return f"{what}: {_format_words(one)} against {_format_words(other)}" if one and other else ""


def _format_words(words: Iterable[str]) -> str:
    return ", ".join(word.lstrip("#@") for word in words)


def _other_number(pair: StatementPair) -> str:
    new, known = (Counter(i.surface for i in side.items if i.is_number_or_time) for side in pair)
    return _contrast_reason("other number or time", (new - known).elements(), (known - new).elements())


def _negated_by_one(pair: StatementPair) -> str:
    new, known = pair.matching_features(_DENIALS)
    return "only one is negated" if new != known else ""


def _other_modality(pair: StatementPair) -> str:
    new, known = ([f for f, _ in side.statement.features if f not in _DENIALS | _QUANTIFIERS] for side in pair)
    if new == known:
        return ""
    return f"other modality: {_format_words(new) or 'is'} against {_format_words(known) or 'is'}"


def _other_amount(pair: StatementPair) -> str:
    return _contrast_reason("other amount", *pair.matching_features(_QUANTIFIERS))


def _other_person(pair: StatementPair) -> str:
    return _contrast_reason("other person", pair.new.statement.persons, pair.known.statement.persons)


def _other_name(pair: StatementPair) -> str:
    new, known = pair.unmatched_words()
    return _contrast_reason("other name", filter(pair.new.is_name, new), filter(pair.known.is_name, known))


def _other_tense(pair: StatementPair) -> str:
    new, known = (_tenses_by_lemma(side.statement.items) for side in pair)
    differ = any(new[lemma].isdisjoint(known[lemma]) for lemma in new.keys() & known.keys())
    one, other = ({i.past for i in side.statement.items if i.finite and i.past is not None} for side in pair)
    return "other tense" if differ or (one and other and one.isdisjoint(other)) else ""


def _tenses_by_lemma(items: Iterable[ParsedWord]) -> dict[str, set[bool]]:
    """Return for each lemma whether its forms are past tense. Ambiguous forms are skipped."""
    found: dict[str, set[bool]] = {}
    for item in items:
        if item.past is not None:
            found.setdefault(item.lemma, set()).add(item.past)
    return found


def _opposite_words(pair: StatementPair) -> str:
    new, known = pair.unmatched_words()
    for one, other in product(new[:20], known[:20]):
        negated = any(prefix + one == other or prefix + other == one for prefix in _NEGATING_PREFIXES)
        if negated or other in OPPOSITES.get(one, ()):
            return f"opposite: {one} against {other}"
    return ""


def _swapped_names(pair: StatementPair) -> str:
    names = [key for key in _moved_words(pair) if pair.new.is_name(key)]
    new, known = pair.new.roles_by_word(), pair.known.roles_by_word()
    if len(names) > 1 and Counter(r for n in names for r in new[n]) == Counter(r for n in names for r in known[n]):
        return f"swapped: {_format_words(sorted(names))}"
    return "swapped names" if _order_differs(pair, names_only=True) else ""


def _moved_words(pair: StatementPair) -> list[str]:
    """Return the words that occur equally often in both statements, but in another grammatical role."""
    new, known = pair.new.roles_by_word(), pair.known.roles_by_word()
    return [key for key, roles in new.items() if len(known.get(key, ())) == len(roles) and known[key] != roles]


def _order_differs(pair: StatementPair, *, names_only: bool = False) -> bool:
    """Return whether words with the same grammatical role have another order. "A is B" equals "B is A"."""
    moved = set(_moved_words(pair))
    new, known = (_words_by_role(side, moved, names_only=names_only) for side in pair)
    return any(_role_order_differs(pair, new[role], known[role]) for role in new.keys() & known.keys())


def _role_order_differs(pair: StatementPair, new: list[str], known: list[str]) -> bool:
    shared = {*new} & {*known}
    one, other = ([word for word in words if word == _IS or word in shared] for words in (new, known))
    return set(_equivalent_orders(pair.new, one)).isdisjoint(_equivalent_orders(pair.known, other))


def _equivalent_orders(side: AlignedStatement, words: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield the words in order, and with the two sides of "is" swapped if one side has only names or numbers."""
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


def _other_role(pair: StatementPair) -> str:
    """Return a reason if words have another grammatical role, otherwise "". "Budget of Lumen" equals "Lumen budget"."""
    moved = _moved_words(pair)
    new, known = pair.new.roles_by_word(), pair.known.roles_by_word()
    ways = {("".join(new[key]), "".join(known[key])) for key in moved}
    compound = ways <= {("of", "")} or ways <= {("", "of")} or (len(moved) == 1 and _is_compound_noun(pair, moved[0]))
    if compound and all(_moved_as_group(side, moved) for side in pair):
        return ""
    return f"in another role: {_format_words(moved)}"


def _moved_as_group(side: AlignedStatement, moved: list[str]) -> bool:
    """Return whether the words of each prepositional phrase moved together or not at all.

    "A red door of the house" is not "a door of the red house".
    """
    runs = groupby(zip(side.keys, side.items, strict=True), key=lambda pair: side.comparison_role(pair[1]))
    groups = [{key in moved for key, _ in run} for role, run in runs if role]
    return all(len(group) == 1 for group in groups)


def _is_compound_noun(pair: StatementPair, key: str) -> bool:
    """Return whether a phrase of one statement is a compound in the other: "allergy to nuts" and "nut allergy"."""
    for one, other in (pair, pair[::-1]):
        if one.keys.count(key) == 1 and other.keys.count(key) == 1:
            governed, before = one.keys.index(key), other.keys.index(key)
            heads = one.items[max(governed - 1, 0) : governed], other.items[before + 1 : before + 2]
            nouns = all(head and not head[0].finite and not head[0].capital for head in heads)
            same_head = nouns and one.comparison_key(heads[0][0]) == other.comparison_key(heads[1][0])
            if same_head and not other.items[before].role:
                return True
    return False


def _other_order(pair: StatementPair) -> str:
    return "in another order" if _order_differs(pair) else ""


def _other_time_order(pair: StatementPair) -> str:
    """Return a reason if times are in another order and so may belong to other words, otherwise ""."""
    new, known = pair.new.list_times(), pair.known.list_times()
    return "times in another order" if new != known and any(_has_scattered_times(side) for side in pair) else ""


def _has_scattered_times(side: AlignedStatement) -> bool:
    places = [n for n, item in enumerate(side.items) if item.is_time]
    kinds = Counter("day" if t[1:] in SHORT_DAYS else t[1:].rstrip("0123456789:") for t in side.list_times())
    return bool(places) and (places[-1] - places[0] >= len(places) or max(kinds.values()) > 1)


def _several_clauses(pair: StatementPair) -> str:
    """Return a reason if there are several clauses and the words have another order, otherwise ""."""
    new, known = pair
    differ = (new.keys, new.statement.features) != (known.keys, known.statement.features)
    compound = new.statement.has_several_clauses or known.statement.has_several_clauses
    return "several clauses in another order" if differ and compound else ""


def _other_owner(pair: StatementPair) -> str:
    """Return a reason if the owners differ, otherwise "".

    A missing "her", "his" or "their" is no difference; "my" and "your" are different.
    """
    new, known = pair.new.statement.persons, pair.known.statement.persons
    missing = {*new} ^ {*known}
    mixed = new != known and len({*new, *known}) > 1
    return "other owner" if mixed or missing - {"he", "she", "they"} else ""


def _other_modality_target(pair: StatementPair) -> str:
    """Return a reason if a modal word applies to another word, otherwise "".

    "Can swim and runs" is not "swims and can run".
    """
    for one, other in zip(_modality_anchors(pair.new), _modality_anchors(pair.known), strict=False):
        if one != other and all(anchor and not anchor.startswith(("#", "@")) for anchor in (one, other)):
            return f"a modality applies to another word: {_format_words((one, other))}"
    return ""


def _modality_anchors(side: AlignedStatement) -> list[str]:
    return [anchor for feature, anchor in side.statement.features if feature not in _DENIALS | _QUANTIFIERS]


def _other_quantifier_target(pair: StatementPair) -> str:
    new, known = (Counter(f for f in side.statement.features if f[0] in _QUANTIFIERS) for side in pair)
    return "" if new == known else "a quantifier applies to another word"


def _other_negation_target(pair: StatementPair) -> str:
    """Return a reason if a negation applies to another word, otherwise "".

    "Does not eat meat" equals "eats no meat".
    """
    new, known = (sorted(f for f in side.statement.features if f[0] in _DENIALS) for side in pair)
    anchors = {anchor for _, anchor in (*new, *known)}
    equal = new == known or (len(new) == len(known) == 1 and all(_is_verb_with_object(side, anchors) for side in pair))
    return "" if equal else "a negation applies to another word"


def _is_verb_with_object(side: AlignedStatement, words: set[str]) -> bool:
    items = [item for item in side.items if item.lemma in words]
    if len(items) != 2 or len(words) != 2 or side.items.index(items[1]) != side.items.index(items[0]) + 1:
        return False
    verb, thing = items
    return verb.lemma in VERB_LEMMAS and thing.lemma not in VERB_LEMMAS and verb.role == thing.role


def _other_voice(pair: StatementPair) -> str:
    new, known = ({i.lemma: i.passive for i in side.items if i.passive is not None} for side in pair)
    lemmas = [lemma for lemma in new.keys() & known.keys() if new[lemma] != known[lemma]]
    return f"one is active, the other passive: {_format_words(lemmas)}" if lemmas else ""


def _is_or_has(pair: StatementPair) -> str:
    """Return why the statements differ if one says "is" and the other "has", otherwise ""."""
    for one, other in (pair, pair[::-1]):
        has = one.statement.expresses_ownership and not other.statement.expresses_ownership
        equates = any(item.lemma == _IS for item in other.statement.items)
        if has and equates and not any("of" in item.role for item in other.items):
            return "one says `is`, the other `has`"
    return ""


def _other_grammatical_number(pair: StatementPair) -> str:
    for one, other in (pair, pair[::-1]):
        single = {item.lemma for item in one.items if item.single}
        many = {i.lemma for i in other.items if i.surface.endswith("s") and i.surface != i.lemma and not i.capital}
        if lemmas := single & (many - {i.lemma for i in one.items if i.surface.endswith("s")}):
            return f"singular against plural: {_format_words(sorted(lemmas))}"
    return ""


# Each check returns a short reason why two statements differ, or "". The first group is certain, the second heuristic.
_DIFFERENCE_CHECKS: tuple[Callable[[StatementPair], str], ...] = (
    _other_number,
    _negated_by_one,
    _other_modality,
    _other_tense,
    _other_person,
    _other_amount,
    _other_name,
    _opposite_words,
    _swapped_names,
)
_SEPARATION_CHECKS: tuple[Callable[[StatementPair], str], ...] = (
    _says_more,
    _other_role,
    _other_order,
    _other_time_order,
    _several_clauses,
    _other_owner,
    _other_quantifier_target,
    _other_modality_target,
    _other_negation_target,
    _other_voice,
    _is_or_has,
    _other_grammatical_number,
)
