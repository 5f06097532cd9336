"""Whether a reply used what it was given: it cites it, or says what stands in it and hardly elsewhere. Pure."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.dialogue.gist import COMMON
from newton.memory.lookup import short

_WORD = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+(?:['’][^\W\d_]+)?")
_DATED = re.compile(r"^\[\d{4}-\d\d-\d\d\] ")  # a line's date is not what it says
_FEWEST_LETTERS = 3
# Words that no memory is told apart by, beside those that no conversation is about.
_OFTEN = """
above again against always another anything because before being below between both called came come does done
down during each even ever every everything few first found gave give given goes gone however into keep kept last
least less let lot made many may maybe might most must need needs never nothing often once only other others over
own part per put rather said same say says see seen several shall since still such sure take taken tell thing
things though through told too two under until upon use used using via well went whether while whole whose why
within without yet you'd your yours
"""
_PLAIN = frozenset(_OFTEN.split())
_RARE = 4  # what stands in more than every fourth of the others tells none of them apart


class _Needed(NamedTuple):
    """How many specific words must be shared with a text that has so many."""

    of: int
    shared: int


_NEEDED = (_Needed(5, 3), _Needed(2, 2))


def keywords(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, and its numbers, in lower case."""
    words = {word.casefold().replace("’", "'") for word in _WORD.findall(text)}
    return frozenset(word for word in words if word not in COMMON and word not in _PLAIN and _tells(word))


def used(reply: str, item: str, others: Sequence[str], *, given: str = "", memory_id: UUID | None = None) -> bool:
    """Whether the reply used this item of its context.

    It did when it names its id, or shares with it at least three specific words or numbers, two where the item has
    fewer than five. Specific is what stands neither in the input (`given`) nor in more than a quarter of the others.
    """
    everywhere = Counter(term for other in others for term in _terms(other))
    return _cites(reply, memory_id) or _shares(_terms(reply), _specific(item, everywhere, len(others), given))


def used_of(reply: str, items: Mapping[UUID, str], *, given: str) -> set[UUID]:
    """The items of one context that its reply used."""
    terms = {memory_id: _terms(item) for memory_id, item in items.items()}
    everywhere = Counter(term for one in terms.values() for term in one)
    said = _terms(reply)
    found: set[UUID] = set()
    for memory_id, own in terms.items():
        specific = _specific(items[memory_id], everywhere - Counter(own), len(items) - 1, given)
        if _cites(reply, memory_id) or _shares(said, specific):
            found.add(memory_id)
    return found


def _specific(item: str, everywhere: Mapping[str, int], others: int, given: str) -> frozenset[str]:
    most = max(others // _RARE, 1)
    return frozenset(term for term in _terms(item) - _terms(given) if everywhere.get(term, 0) <= most)


def _shares(said: frozenset[str], specific: frozenset[str]) -> bool:
    needed = next((n.shared for n in _NEEDED if len(specific) >= n.of), None)
    return needed is not None and len(said & specific) >= needed


def _cites(reply: str, memory_id: UUID | None) -> bool:
    if memory_id is None:
        return False
    return re.search(rf"(?<!\w)(?:{memory_id}|{short(memory_id)})(?!\w)", reply.lower()) is not None


def _terms(text: str) -> frozenset[str]:
    """Keywords without the endings of a plural and of what belongs to somebody."""
    return frozenset(map(_bare, keywords(_DATED.sub("", text))))


def _bare(word: str) -> str:
    word = word.removesuffix("'s")
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word


def _tells(word: str) -> bool:
    return len(word) >= (2 if word[0].isdigit() else _FEWEST_LETTERS)
