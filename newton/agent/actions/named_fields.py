"""Whom and what the person names: in the words of a turn, and what a tool returned, as "the registration fee". Pure.

Once text of others is in the prompt, memory alone names nobody: its names are those that such a text can use.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from newton.agent.actions.act_lexicon import load_lexicon
from newton.agent.actions.act_requests import find_tool_kinds, names_act, split_name
from newton.agent.actions.outbound_rules import CHANNEL, EMAIL, HANDLE, NUMBER, PromptTexts, split_tokens, stands_in
from newton.agent.actions.person_names import ACCOUNT, NUMERAL, RECIPIENTS, list_numbers
from newton.text.letters import fold
from newton.text.sentences import STOP_WORDS
from newton.text.stems import stem_word
from newton.text.words import COMMON_WORDS

MAX_LABEL_WORDS = 3
MAX_NAME_WORDS = 6  # of an argument that names an object
SAME_DIGITS = 8  # at the end of a telephone number with another prefix
MIN_INFLECTED = 4  # characters of a word that may have another ending, in a script with such
LABELS = frozenset(("title", "name"))  # in an argument of what exists already, they name it
_OF_EXISTING = frozenset(("delete", "pay", "run", "share", "switch"))
_PARTS = re.compile(r"[;\n]|,(?!\d)|\s(?:and|und|y|et|e|en|и)\s")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_THE = r"(?:the|its|their|his|her|der|die|das|den|le|la|les|el|los|las|il|lo|gli|o|a|os|as|het|de)"
_ID = re.compile(r"(?<![\w.@/-])(?=[\w-]*\d)[A-Za-z][\w-]{1,30}(?![\w@])")
_BETWEEN = r"\W[^\d.!?;\n]{0,30}?"
_TO = re.compile(r"\b(?:to|an|aan|naar)\b")  # a message with it says itself to whom


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
        if ACCOUNT.fullmatch(value):
            return {value} == set(ACCOUNT.findall(self._page))
        if NUMERAL.fullmatch(value):
            return list_numbers([value]) == self._amounts
        if self._page and stands_in(value, fold(self._page)):
            return True
        return _ID.fullmatch(value) is not None and self._items == {value}

    @cached_property
    def _amounts(self) -> frozenset[str]:
        """Return the numbers behind the fields that the person names."""
        text = fold("\n".join(self.foreign))
        fields = (rf"(?<!\w){re.escape(label)}{_BETWEEN}(?P<number>\d[\d.,]*\d|\d)" for label in self._labels)
        return list_numbers([found["number"] for field in fields for found in re.finditer(field, text)])

    @cached_property
    def _page(self) -> str:
        """Return the text with the amount of the field if the message says so: "the fee on that page"."""
        asked = fold(self.requests[0]) if self.requests else ""
        labels = "|".join(map(re.escape, sorted(self._labels, key=len, reverse=True)))
        read = "|".join(map(re.escape, load_lexicon().read))
        place = rf"^(?:\W*\w+){{1,2}}\W+{_THE}\s(?:{labels})\b[^.!?]*\b(?:{read})\b"
        is_there = labels and not _TO.search(asked) and re.search(place, asked)
        pages = [one for one in self.foreign if any(list_numbers([one]) & {number} for number in self._amounts)]
        return pages[0] if is_there and len(pages) == 1 == len(self._amounts) else ""

    @cached_property
    def _labels(self) -> frozenset[str]:
        """Return the words behind "the" in the requests: the first word, the first two, and so on."""
        text = fold("\n".join(self.requests))
        found = re.finditer(rf"\b{_THE}\s+((?:[^\W\d_]+\s*){{1,{MAX_LABEL_WORDS}}})", text)
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


@dataclass(frozen=True)
class TurnNames:
    """The names of a turn. `trusted` are all texts of the person; `others` is all text of others, folded."""

    texts: PromptTexts
    trusted: Sequence[str]
    others: str

    def find_unnamed(self, tool: str, description: str, named: Iterable[tuple[str, str]]) -> str | None:
        """Return whom or what a call is for, by its arguments, if the person names it neither now nor by a memory.

        Of several objects, one is enough.
        """
        is_existing = not _OF_EXISTING.isdisjoint(find_tool_kinds(tool, description))
        extra, objects = frozenset(map(stem_word, split_name(tool))), list[str]()
        for name, part in ((name, part.strip()) for name, value in named for part in _PARTS.split(value)):
            if RECIPIENTS.search(name) or _list_addresses(part):
                if part and not NUMERAL.fullmatch(part) and not self.names(part):
                    return part
            elif (name not in LABELS or is_existing) and self._is_object(part):
                objects.append(part)
        is_named = any(self.names(one, besides=extra) for one in objects)
        return objects[0] if objects and not is_named else None

    def find_invented(self, tool: str, description: str, named: Sequence[tuple[str, str]]) -> str | None:
        """Return a recipient of a call that no text of the person names.

        A name is one only if the tool sends, pays or shares; a text has one if no other argument does.
        """
        kinds = find_tool_kinds(tool, description)
        sends = not kinds.isdisjoint(("send", "pay", "share"))
        to = [value for name, value in named if RECIPIENTS.search(name)]
        for value in to or [value for _, value in named if sends and "write" not in kinds]:
            addresses = _list_addresses(value)
            parts = map(str.strip, _PARTS.split(value)) if to and sends and not addresses else ()
            unknown = [one for one in addresses if not any(_has_address(text, one) for text in self.trusted)]
            unknown += [one for one in parts if not self.names(one)]
            if unknown:
                return unknown[0]
        return None

    def names(self, part: str, *, besides: frozenset[str] = frozenset()) -> bool:
        """Return whether the turn has a word of a name, or a memory of the person ties the name to the turn.

        Words `besides` say nothing, if the name has others.
        """
        if _UNSPACED.search(part):
            return fold(part) in self._turn or not _UNSPACED.search(self._turn)
        words = [one for one in map(stem_word, split_tokens(fold(part))) if len(one) > 1 and one not in STOP_WORDS]
        words = [one for one in words if one not in besides] or words
        if not words or any(_is_same(one, other) for one in words for other in self._turn_words):
            return True
        wanted = _list_addresses(part) or [part]
        lines = (fold(line) for text in self.trusted for line in text.splitlines())
        tied = (set(_list_topics(line)) for line in lines if any(stands_in(one, line) for one in wanted))
        return any(_is_same(one, other) for found in tied for one in found for other in self._topics)

    def _is_object(self, part: str) -> bool:
        """Return whether a value names an object that a text has: a model's own words are not of others."""
        is_name = 0 < len(part.split()) <= MAX_NAME_WORDS and not NUMERAL.fullmatch(part)
        return is_name and (stands_in(part, self.others) or any(stands_in(part, fold(one)) for one in self.trusted))

    @cached_property
    def _turn(self) -> str:
        return fold("\n".join(self.texts.turn))

    @cached_property
    def _turn_words(self) -> frozenset[str]:
        return frozenset(map(stem_word, split_tokens(self._turn))) - STOP_WORDS

    @cached_property
    def _topics(self) -> frozenset[str]:
        return frozenset(_list_topics(self._turn))


def _list_topics(text: str) -> Iterator[str]:
    """Yield the stems of words that tie two texts."""
    found = (one for one in split_tokens(text) if len(one) > 2 and one not in STOP_WORDS and one not in COMMON_WORDS)
    return (stem_word(one) for one in found if not names_act(one))


def _is_same(one: str, other: str) -> bool:
    """Return whether two stems are of one word, which in another script may have other endings."""
    length = max(len(one), len(other)) - 1
    return one == other or (not one.isascii() and length >= MIN_INFLECTED - 1 and one[:length] == other[:length])


def _has_address(text: str, address: str) -> bool:
    """Return whether a text has an address, or a number however it is written."""
    digits = re.sub(r"\W", "", address)[-SAME_DIGITS:]
    return stands_in(address, text) or (digits.isdigit() and digits in re.sub(r"[ ()/-]", "", text))


def _list_addresses(text: str) -> list[str]:
    return [one for form in (EMAIL, HANDLE, NUMBER, CHANNEL) for one in form.findall(text)]
