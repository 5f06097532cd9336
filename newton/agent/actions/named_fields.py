"""Values of what a tool returned that a person names by words: "the registration fee", "the school's mail". Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from newton.agent.actions.act_requests import names_act
from newton.agent.actions.outbound_rules import EMAIL, HANDLE, split_tokens
from newton.agent.actions.person_names import NUMERAL, list_numbers
from newton.text.letters import fold
from newton.text.sentences import STOP_WORDS
from newton.text.stems import stem_word

MAX_LABEL_WORDS = 3
_THE = r"(?:the|its|their|his|her|der|die|das|den|le|la|les|el|los|las|il|lo|gli|o|a|os|as|het|de)"
_ID = re.compile(r"(?<![\w.@/-])(?=[\w-]*\d)[A-Za-z][\w-]{1,30}(?![\w@])")
_BETWEEN = r"\W{1,3}(?:(?:is|of|ist|betragt|est|es|e|sono)\W+)?[€$£]?\s?"


@dataclass(frozen=True)
class NamedFields:
    """The values that `requests` of a person name by words beside them in `foreign`, the texts of others."""

    requests: Sequence[str]
    foreign: Sequence[str]

    def describes(self, value: str) -> bool:
        """Return whether the person names a value: the number of a field, or the item with an id.

        Of several numbers of one field none is named, nor of several items with the same words.

        >>> asked = ["Pay the registration fee. Forward the mail of the school."]
        >>> fields = NamedFields(asked, ["Registration fee: 35 euros. Donation: 500.", "m3 school: dates"])
        >>> [fields.describes(one) for one in ("35", "500", "m3", "zed@x.example")]
        [True, False, True, False]
        """
        if not self.requests or EMAIL.search(value) or HANDLE.search(value):
            return False
        if NUMERAL.fullmatch(value):
            return list_numbers([value]) == self._amounts
        return _ID.fullmatch(value) is not None and self._items == {value}

    @cached_property
    def _amounts(self) -> frozenset[str]:
        """Return the numbers behind the fields that the person names."""
        text = fold("\n".join(self.foreign))
        fields = (rf"(?<!\w){re.escape(label)}{_BETWEEN}(?P<number>\d[\d.,]*\d|\d)" for label in self._labels)
        return list_numbers([found["number"] for field in fields for found in re.finditer(field, text)])

    @cached_property
    def _labels(self) -> frozenset[str]:
        """Return the words behind "the" in the requests: the first word, the first two, and so on."""
        found = re.finditer(rf"\b{_THE}\s+((?:[^\W\d_]+\s*){{1,{MAX_LABEL_WORDS}}})", fold(self.requests[0]))
        phrases = [match[1].split() for match in found]
        return frozenset(" ".join(one[:n]) for one in phrases for n in range(1, len(one) + 1) if not names_act(one[0]))

    @cached_property
    def _items(self) -> frozenset[str]:
        """Return the ids of the items that have most words of the requests."""
        counts = dict[str, int]()
        for item, count in self._list_items():
            counts[item] = max(count, counts.get(item, 0))
        best = max(counts.values(), default=0)
        return frozenset(item for item, count in counts.items() if count == best and best)

    def _list_items(self) -> Iterator[tuple[str, int]]:
        """Yield the ids at the beginning of lines, each with the number of words that its line shares with requests."""
        asked = {stem_word(one) for one in split_tokens(self.requests[0]) if len(one) > 2 and not names_act(one)}
        asked -= STOP_WORDS
        for line in (line for text in self.foreign for line in text.splitlines()):
            if found := _ID.match(line.lstrip("-*• ")):
                words = set(map(stem_word, split_tokens(line)))
                yield found[0], len(words & asked)
