"""Whether a reply used what it was given: it cites it, or says in one sentence what stands in it and hardly elsewhere.

Pure.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple
from uuid import UUID

from newton.dialogue.gist import COMMON
from newton.memory.lookup import short
from newton.memory.representations import one_line

_WORD = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+(?:['’][^\W\d_]+)?")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_HEAD = re.compile(r"^\[[^\]]*\] (?:(?:User|Assistant|System|Tool): )?")  # date, speaker, outcome: not what it says
_FEWEST_LETTERS = 3
# Words that no memory is told apart by, beside those that no conversation is about.
_OFTEN = """
above again against always another anything because before being below between both called came come does done down
during each even ever every everything few first found gave give given goes gone however into keep kept last least less
let lot made many may maybe might most must need needs never nothing often once only other others over own part per put
rather said same say says see seen several shall since still such sure take taken tell thing things though through told
too two under until upon use used using via well went whether while whole whose why within without yet you'd your yours
"""
_PLAIN = frozenset(_OFTEN.split())

QUOTED = 3  # so many words repeated as they stand are a quotation
# What a specific word weighs: a number, or a name, which has a capital within a sentence. One that begins the sentence
# may be a name; it is one if the reply writes it with a capital too.
NAMED, PERHAPS, OTHER = 2.0, 1.5, 1.0
WINDOW = 30  # words of one sentence that stand close together
ENOUGH, ENOUGH_OF_MUCH, MUCH = 3.0, 4.0, 6.0  # what has to be shared of an item; of one that weighs MUCH it is more
COVERED = 0.6  # a sentence that has so much of all that an item says tells it again
BRIEF, MOSTLY = 6, 0.5  # so few new words are about an item when so much of them is the item's own


class _Place(NamedTuple):
    """A word of a sentence: which one, and whether it has a capital."""

    at: int
    stem: str
    capital: bool


@dataclass(frozen=True, slots=True)
class _Reply:
    """A reply, read once: the telling words of each sentence, those that the input had, and those that are new."""

    text: str
    sentences: Sequence[Sequence[_Place]]
    given: frozenset[str]
    new: frozenset[str]


def keywords(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, and its numbers, in lower case."""
    return frozenset(_plain(word) for word in _WORD.findall(text) if _tells(word))


def used(reply: str, item: str, others: Sequence[str], *, given: str = "", memory_id: UUID | None = None) -> bool:
    """Whether the reply used this item of its context; `given` is the input, `others` are the other items.

    It did when it names the item's id or quotes it. Else by what is specific to the item, which stands neither in the
    input nor in most of the others: the reply has enough of it in one sentence, a name or a number counting twice; or
    some of it in a sentence that tells most of the item; or it is brief and mostly consists of it. So a long text about
    something else uses nothing, whatever words it shares.
    """
    common = _common(Counter(chain.from_iterable(_stems(_said(other)) for other in others)), len(others))
    return _cites(reply, memory_id) or _uses(_read(reply, given), item, common)


def used_of(
    reply: str, items: Mapping[UUID, str], *, given: str, refs: Mapping[UUID, str | None] | None = None
) -> set[UUID]:
    """The items of one context that its reply used. `refs` are the caller's own ids of them."""
    said, named = _read(reply, given), refs or {}
    everywhere = Counter(chain.from_iterable(_stems(_said(item)) for item in items.values()))
    common = _common(everywhere, len(items) - 1, own=1)
    return {
        memory_id
        for memory_id, item in items.items()
        if _cites(reply, memory_id, named.get(memory_id)) or _uses(said, item, common)
    }


def _common(everywhere: Mapping[str, int], others: int, own: int = 0) -> frozenset[str]:
    """What stands in most of the others. `own` is how often an item itself was counted."""
    most = max(others / 2, 1)
    return frozenset(stem for stem, times in everywhere.items() if times - own > most)


def _read(reply: str, given: str) -> _Reply:
    sentences = [_places(sentence) for sentence in _SENTENCE.split(reply)]
    said, known = {place.stem for sentence in sentences for place in sentence}, _stems(given)
    return _Reply(_quotable(reply), sentences, known, frozenset(said - known))


def _places(sentence: str) -> list[_Place]:
    words = _WORD.findall(sentence)
    return [_Place(n, _stem(word), word[0].isupper()) for n, word in enumerate(words) if _tells(word)]


def _uses(reply: _Reply, item: str, common: Set[str]) -> bool:
    said = _said(item)
    if _quoted(_quotable(said), reply.text):
        return True
    specific = {stem: weight for stem, weight in _weights(said).items() if stem not in common | reply.given}
    shared = specific.keys() & reply.new
    return bool(shared) and (
        _close_together(reply, specific) or _told_again(reply, _stems(said), shared) or _brief(reply, specific, shared)
    )


def _close_together(reply: _Reply, specific: Mapping[str, float]) -> bool:
    """Whether enough of it, and more than one word, stands within a window of a sentence."""
    needed = ENOUGH_OF_MUCH if sum(specific.values()) >= MUCH else ENOUGH
    for sentence in reply.sentences:
        hits = [place for place in sentence if place.stem in specific]
        for n, first in enumerate(hits):
            near = [place for place in hits[n:] if place.at < first.at + WINDOW]
            weights = {place.stem: _weight(specific[place.stem], capital=place.capital) for place in near}
            if len(weights) > 1 and sum(weights.values()) >= needed:
                return True
    return False


def _told_again(reply: _Reply, whole: Set[str], shared: Set[str]) -> bool:
    sentences = ({place.stem for place in sentence} for sentence in reply.sentences)
    return len(whole) > 1 and any(s & shared and len(s & whole) >= COVERED * len(whole) for s in sentences)


def _brief(reply: _Reply, specific: Mapping[str, float], shared: Set[str]) -> bool:
    capitals = {place.stem for sentence in reply.sentences for place in sentence if place.capital}
    named = any(_weight(specific[stem], capital=stem in capitals) >= NAMED for stem in shared)
    mostly = len(reply.new) <= BRIEF and len(shared) >= MOSTLY * len(reply.new)
    return mostly and (named or len(shared) == len(specific))


def _weights(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for sentence in _SENTENCE.split(text):
        for n, word in enumerate(_WORD.findall(sentence)):
            if _tells(word):
                capital = word[0].isupper()
                weight = NAMED if word[0].isdigit() or (capital and n) else (PERHAPS if capital else OTHER)
                weights[_stem(word)] = max(weight, weights.get(_stem(word), 0.0))
    return weights


def _weight(weight: float, *, capital: bool) -> float:
    """What the word weighs as the reply writes it."""
    if weight == PERHAPS:
        return NAMED if capital else OTHER
    return weight


def _cites(reply: str, memory_id: UUID | None, ref: str | None = None) -> bool:
    """A ref that could be a word counts in brackets only."""
    names = [] if memory_id is None else [str(memory_id), short(memory_id)]
    if ref is not None:
        names.append(ref if len(ref) >= len("D12:34") and re.search(r"\d", ref) else f"[{ref}]")
    return any(_quoted(name.casefold(), reply.casefold()) for name in names)


def _quoted(words: str, text: str) -> bool:
    return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def _quotable(text: str) -> str:
    """Its words in a row, if they are enough to be recognised."""
    words = _WORD.findall(one_line(text).casefold())
    return " ".join(words) if len(words) >= QUOTED else ""


def _said(item: str) -> str:
    return _HEAD.sub("", item)


def _stems(text: str) -> frozenset[str]:
    return frozenset(_stem(word) for word in _WORD.findall(text) if _tells(word))


def _stem(word: str) -> str:
    """Without the endings that a paraphrase changes: "restarts", "restarted" and "restarting" are one."""
    bare = _plain(word).removesuffix("'s")
    for ending in ("ing", "ed", "es", "s"):
        if bare.endswith(ending) and len(bare) - len(ending) >= _FEWEST_LETTERS and not bare.endswith("ss"):
            bare = bare[: -len(ending)]
            break
    bare = bare.removesuffix("e") if len(bare) > _FEWEST_LETTERS else bare
    return bare[:-1] if len(bare) > _FEWEST_LETTERS and bare[-1] == bare[-2] else bare


def _tells(word: str) -> bool:
    plain = _plain(word)
    return len(word) >= (2 if word[0].isdigit() else _FEWEST_LETTERS) and plain not in COMMON and plain not in _PLAIN


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'")
