"""Alignment of two statements: the words that both have, and the grammatical role of each word in each statement."""

from bisect import insort
from collections import Counter
from typing import NamedTuple

from newton.heart.statements.parser import ParsedStatement, ParsedWord, parse_statement

_TIME_PREPOSITIONS = frozenset({"in", "on", "at"})


class AlignedStatement:
    """One of two aligned statements, with its words. A word that is a name in one counts as a name in both."""

    def __init__(self, own: ParsedStatement, other: ParsedStatement) -> None:
        self.statement = own
        self.items = [item for item in own.items if not item.is_plain_verb]
        both = (*own.items, *other.items)
        lower_case = {item.surface for item in both if not item.capital}
        self._names = {i.surface for i in both if i.capital and not (i.first and i.surface in lower_case)}
        self.keys = [self.comparison_key(item) for item in self.items]
        self.feature_names = {feature for feature, _ in own.features}

    def comparison_key(self, item: ParsedWord) -> str:
        return item.surface if item.is_number_or_time or item.surface in self._names else item.lemma

    def is_name(self, key: str) -> bool:
        return key in self._names

    def comparison_role(self, item: ParsedWord) -> str:
        """Return the role by which the word is compared.

        Prepositions with the same meaning are equal: "on", "at" and "in" before a time, "at" and "in" before a name.
        """
        clause, _, last = item.role.rpartition(" ")
        if last in _TIME_PREPOSITIONS and item.is_time:
            last = ""
        elif last == "in" and self.is_name(item.surface):
            last = "at"
        return f"{clause} {last}".strip()

    def roles_by_word(self) -> dict[str, list[str]]:
        """Return the sorted grammatical roles of each word."""
        roles: dict[str, list[str]] = {}
        for key, item in zip(self.keys, self.items, strict=True):
            insort(roles.setdefault(key, []), self.comparison_role(item))
        return roles

    def list_times(self) -> list[str]:
        return [item.surface for item in self.items if item.is_time]


class StatementPair(NamedTuple):
    """A new statement and a known one, aligned with each other."""

    new: AlignedStatement
    known: AlignedStatement

    def unmatched_words(self) -> tuple[list[str], list[str]]:
        """Return the words and prepositions that only the new and that only the known statement has."""
        new, known = (Counter([*side.keys, *side.statement.markers]) for side in self)
        return list((new - known).elements()), list((known - new).elements())

    def overlap(self) -> float:
        """Return the share of the words that both statements have, in [0, 1]."""
        words = len(self.new.keys) + len(self.known.keys)
        common = Counter(self.new.keys) & Counter(self.known.keys)
        return 2 * common.total() / words if words else 1.0

    def matching_features(self, names: frozenset[str]) -> tuple[set[str], set[str]]:
        return self.new.feature_names & names, self.known.feature_names & names


def align_statements(new: str, known: str) -> StatementPair:
    one, other = parse_statement(new), parse_statement(known)
    return StatementPair(AlignedStatement(one, other), AlignedStatement(other, one))
