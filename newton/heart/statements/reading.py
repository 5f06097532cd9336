"""A statement as it is compared: its words without endings, each with its part in it, and what it denies or limits."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from newton.heart import vocabulary as known
from newton.heart.numerals import CARDINALS, MONTHS, NTH, NUMBER, TIME, counted

LONGEST = 1_000  # characters; a statement that is longer is compared word for word only
LONGEST_PHRASE = max(len(words) for words in known.PHRASES)

_TOKEN = re.compile(r"(?:(?<!\w)[-−.](?=\d))?\w*\d\w*(?:[.,:/-]\d\w*)*|[^\W_](?:\w|'(?=\w))*|[^\w\s]|_+")
_CURRENCY = re.compile(r"([$€£¥]) ?(\d(?:[\d.,]*\d)?)")
_APOSTROPHES = str.maketrans("’‘ʼ`´", "'''''")
_BREAKS, _KEPT = frozenset(",;:().!–—"), frozenset("%#@&")
_SYMBOLS = {"$": "dollar", "€": "euro", "£": "pound", "%": "percent"}
_WITHOUT_APOSTROPHE = ("dont", "doesnt", "didnt", "isnt", "wasnt", "arent", "cant", "wont", "wouldnt", "havent", "hasnt")
_CONTRACTED = {"can't": ("can", "not"), "won't": ("will", "not"), "shan't": ("will", "not"), "cannot": ("can", "not")}
_ENDINGS = {"n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'s": "'s"}
_IS_AFTER = frozenset("it he she that there what who here where this".split())
_IS_BEFORE = frozenset("a an the not been got going".split())
_NAMING = frozenset({"named", "called", "titled"})

QUESTION, BREAK, START = "?", ",", "^"
PLAIN = "="  # the role of be, have and do


class Word(NamedTuple):
    """A word in small letters, and whether it looks like a name."""

    text: str
    capital: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A word that counts, or `=be`, `=have`, `=do` where that is all that the sentence says.

    `role` says by which markers it belongs to the rest. `past` and `passive` are None when the form does not tell;
    `finite` means that it is a verb for certain, `single` that it is a noun for one thing.
    """

    surface: str
    lemma: str
    capital: bool = False
    role: str = ""
    past: bool | None = None
    passive: bool | None = None
    finite: bool = False
    single: bool = False

    @property
    def is_time(self) -> bool:
        return self.surface.startswith(TIME)

    @property
    def is_counted(self) -> bool:
        return self.surface.startswith((TIME, NUMBER))

    @property
    def is_plain_verb(self) -> bool:
        return self.role == PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a statement says. `features` are negations, quantifiers and modalities, each with the word it stands before.

    `owning` means that it says somebody has something, `identity` that it says something is a certain thing.
    """

    items: tuple[Item, ...]
    features: tuple[tuple[str, str], ...]
    markers: tuple[str, ...]
    persons: frozenset[str]
    owning: bool
    identity: bool


def folded(text: str) -> tuple[str, ...]:
    """The words and signs of a text of any language, without case and punctuation. Linear in its length."""
    return tuple(word.text for word in _words(text) if word.text not in (BREAK, START))


def in_english_letters(text: str) -> bool:
    """Whether the rules here may be tried on it: a script that they do not know would lose what they cannot see."""
    return all(not c.isalpha() or "LATIN" in unicodedata.name(c, "") for c in text[:LONGEST])


@lru_cache(maxsize=4_096)
def read(text: str) -> Reading:
    """The reading of at most the first LONGEST characters; of any text there is one."""
    words = _phrased(_possessives(_named_together(list(_expanded(_words(text[:LONGEST]))))))
    pairs = counted([word.text for word in words], [word.capital for word in words])
    words = _ceased([Word(*pair) for pair in pairs])
    reader = _Reader(words)
    for place in range(len(words)):
        reader.take(place)
    return _serving(_preferring(_active(reader.reading())))


def _words(text: str) -> Iterator[Word]:
    plain = _CURRENCY.sub(r"\2 \1", unicodedata.normalize("NFKC", text).translate(_APOSTROPHES))
    shouted = plain.upper() == plain
    yield Word(START)
    fresh, last = True, ""
    for match in _TOKEN.finditer(plain):
        sign = _sign(match[0], last=last)
        if sign:
            capital = match[0][0].isupper() and not shouted and not (fresh and _ordinary(sign))
            yield Word(sign, capital)
            fresh = sign == BREAK and match[0] in ".!;:"
        last = match[0]


def _sign(token: str, *, last: str) -> str:
    """What the token is read as; nothing for a mark that says nothing. A full stop after St or Dr ends no sentence."""
    if token[0].isalnum() or len(token) > 1:
        return token.casefold()
    if token in _BREAKS:
        return "" if token == "." and len(last) <= 3 else BREAK
    kept = token in _KEPT or token == QUESTION or not unicodedata.category(token).startswith("P")
    return _SYMBOLS.get(token, token) if kept else ""


def _ordinary(word: str) -> bool:
    """Whether a capital at the beginning of a sentence is only that."""
    return (
        (word,) in known.PHRASES
        or (START, word) in known.PHRASES
        or word in known.MARKERS
        or word in known.PERSONS
        or word in known.DETERMINERS
        or word in known.AUXILIARIES
        or word in CARDINALS
        or word in NTH
        or known.lemma(word) in known.VERB_LEMMAS
        or word in ("there", "keep", "you", "just", "right", "prior", "up", "going", "most")
    )


def _expanded(words: Iterator[Word]) -> Iterator[Word]:
    for word in words:
        text = word.text
        if text in _WITHOUT_APOSTROPHE:
            text = f"{text[:-1]}'t"
        if text in _CONTRACTED:
            yield from map(Word, _CONTRACTED[text])
            continue
        ending = next((e for e in _ENDINGS if len(text) > len(e) and text.endswith(e)), "")
        yield Word(text.removesuffix(ending), word.capital)
        if ending:
            yield Word(_ENDINGS[ending])


def _possessives(words: list[Word]) -> list[Word]:
    """'s is `is` where it can be nothing else."""
    read_as = list(words)
    for place, word in enumerate(words):
        if word.text == "'s" and place + 1 < len(words):
            following = words[place + 1].text
            participle = following in known.PARTICIPLES and following not in known.PAST and following not in known.VERBS
            if words[place - 1].text in _IS_AFTER or following in _IS_BEFORE or participle:
                read_as[place] = Word("has" if following in ("been", "got") else "is")
    return read_as


def _named_together(words: list[Word]) -> list[Word]:
    """Ben and Ana are Ana and Ben."""
    sorted_ = list(words)
    for place in range(1, len(words) - 1):
        one, joint, other = words[place - 1 : place + 2]
        around = [words[n] for n in (place - 2, place + 2) if 0 <= n < len(words)]
        alone = not any(word.capital or word.text == "'s" for word in around)
        if joint.text in ("and", "&") and one.capital and other.capital and alone and other.text < one.text:
            sorted_[place - 1], sorted_[place + 1] = other, one
    return sorted_


def _phrased(words: list[Word]) -> list[Word]:
    """The longest phrases first, from left to right. A capitalised month or name is never part of one."""
    found: list[Word] = []
    place = 0
    while place < len(words):
        length = next((n for n in range(LONGEST_PHRASE, 0, -1) if _is_phrase(words, place, n)), 0)
        if length:
            found += map(Word, known.PHRASES[tuple(word.text for word in words[place : place + length])])
        else:
            found.append(words[place])
        place += max(length, 1)
    return found


def _is_phrase(words: list[Word], place: int, length: int) -> bool:
    part = words[place : place + length]
    if len(part) < length or tuple(word.text for word in part) not in known.PHRASES:
        return False
    if any(word.text in MONTHS for word in part):
        return not _beside_a_date(words, place)
    return not any(word.capital for word in part)


def _beside_a_date(words: list[Word], place: int) -> bool:
    """May as a month: it is capitalised within a sentence, or stands beside a figure."""
    sides = [words[n].text for n in (place - 1, place + 1) if 0 <= n < len(words)]
    return words[place].capital or any(side[:1].isdigit() for side in sides)


def _ceased(words: list[Word]) -> list[Word]:
    """What stopped, and what is not any more, is no longer; what is `any` of something denied is that."""
    texts = [word.text for word in words]
    denied = "~not" in texts
    read_as: list[Word] = []
    for place, word in enumerate(words):
        following = texts[place + 1] if place + 1 < len(texts) else ""
        if word.text in ("stopped", "quit", "ceased", "quits", "stops") and following.endswith("ing"):
            read_as.append(Word("~ceased"))
        elif word.text == "~not" and "~anymore" in texts:
            read_as.append(Word("~ceased"))
        elif not (word.text == "~anymore" or (denied and word.text == "~any")):
            read_as.append(word)
    return read_as


class _Reader:
    """Goes once over the words of one statement and gathers what counts."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = words
        self._texts = [word.text for word in words]
        self._items: list[Item] = []
        self._features: list[tuple[str, int]] = []
        self._markers: list[str] = []
        self._persons: set[str] = set()
        self._owning = self._identity = False
        self._clause = self._role = ""
        self._opened = 0  # how many items there were when the role began
        self._owned = False  # whether the last word is the owner of the next
        self._nouns = 0  # how many words may still be the noun of the last article

    def take(self, place: int) -> None:
        text, capital = self._words[place]
        if text in (BREAK, START):
            self._open("", clause="")
        elif text == QUESTION:
            self._features.append(("asks", len(self._items)))
        elif text.startswith("~") and len(text) > 1:
            self._features.append((text[1:], len(self._items)))
        elif text in known.PERSONS:
            self._persons |= {known.PERSONS[text]} - {""}
        elif text in known.DETERMINERS:
            self._determiner(text)
        elif text in known.AUXILIARIES or text in known.OWNING:
            self._auxiliary(place)
        elif text in known.MARKERS and not capital:
            self._marker(place)
        elif not self._is_title(place):
            self._content(place)

    def reading(self) -> Reading:
        lemmas = [item.lemma for item in self._items if not item.is_plain_verb]
        before = [sum(not item.is_plain_verb for item in self._items[:place]) for _, place in self._features]
        anchors = [(lemmas[n] if n < len(lemmas) else "") for n in before]
        return Reading(
            items=tuple(self._items),
            features=tuple((name, anchor) for (name, _), anchor in zip(self._features, anchors, strict=True)),
            markers=tuple(sorted(self._markers)),
            persons=frozenset(self._persons),
            owning=self._owning,
            identity=self._identity,
        )

    def _open(self, role: str, *, clause: str | None = None) -> None:
        self._clause = self._clause if clause is None else clause
        self._role = role
        self._opened = len(self._items)
        self._nouns = 0

    def _within(self, role: str) -> str:
        return f"{self._clause} {role}".strip()

    def _determiner(self, text: str) -> None:
        if text != "'s":
            self._nouns = 2 if text in known.ONE else 1
        elif self._items:
            self._owned = True
            self._items[-1] = replace(self._items[-1], role=self._within("of"))

    def _auxiliary(self, place: int) -> None:
        """Forms of be, have and do: they count where no verb follows."""
        text = self._texts[place]
        self._open("")
        if text not in known.OWNING and _helps(self._texts, place):
            return
        self._owning |= text in known.HAVE or text in known.OWNING
        if text in known.BE:
            following = self._texts[place + 1 : place + 2]
            self._identity |= bool(following) and (following[0] in known.DETERMINERS or following[0] in known.PERSONS)
        surface = "=be" if text in known.BE else "=do" if text in known.DO else "=have"
        past = None if text in known.BE_BARE else text in known.THEN
        self._items.append(Item(surface=surface, lemma=surface, role=PLAIN, past=past, finite=True))

    def _marker(self, place: int) -> None:
        text = self._texts[place]
        role = known.MARKERS[text]
        following = self._words[place + 1] if place + 1 < len(self._words) else Word("")
        clause = text in known.CLAUSES or (role in known.STRONG and following.text in known.PERSONS)
        if self._items and self._is_employer(text, following):
            role = "at"
        if role in known.STRONG:
            self._markers.append(role)
        self._open("" if clause else role, clause=role if clause else None)

    def _is_employer(self, marker: str, following: Word) -> bool:
        """Who works for Acme, or is employed by it, works at it."""
        if marker == "by":
            return any(item.surface == "employed" for item in self._items)
        return marker == "for" and following.capital and self._items[-1].lemma == "work"

    def _is_title(self, place: int) -> bool:
        """Whether it stands before the name or number that it is the kind of."""
        if self._texts[place] not in known.TITLES:
            return False
        rest = self._words[place + 1 : place + 3]
        named = rest[1:] if rest and rest[0].text == "of" else rest[:1]
        beginnings = {"year": "@year", "version": NUMBER}
        return bool(named) and (named[0].capital or named[0].text.startswith(beginnings.get(self._texts[place], "@@")))

    def _content(self, place: int) -> None:
        text = self._texts[place]
        item = _item(self._words, place)
        if self._closes(item) and not self._owned:
            self._open("")
        self._owned = False
        single = self._nouns > 0 and not item.finite and not text.endswith(("s", "ing", "ed"))
        if single and len(self._items) > self._opened and self._items[-1].single:
            self._items[-1] = replace(self._items[-1], single=False)
        self._nouns = max(self._nouns - 1, 0)
        alias = known.ALIASES.get(text, item.surface)
        self._items.append(replace(item, surface=alias, role=self._within(self._role), single=single))

    def _closes(self, item: Item) -> bool:
        """Whether the words that the last marker governs ended before this one."""
        if self._opened == len(self._items) or not self._role:
            return False
        last = self._items[-1]
        if item.is_time and not last.is_time:
            return True
        if last.is_time or last.capital:
            return not (item.is_time or item.capital)
        return item.capital or (item.finite and item.past is not None)


def _helps(texts: Sequence[str], place: int) -> bool:
    """Whether a verb follows that it only helps: is living, has got, does not know."""
    for text in texts[place + 1 : place + 4]:
        if texts[place] in known.DO:
            return text == "~not" or text in known.VERBS
        if text in known.AUXILIARIES or _is_participle(text) or _is_ing(text):
            return True
        if not _may_stand_between(text):
            return False
    return False


def _may_stand_between(text: str) -> bool:
    return text.startswith("~") or text.endswith("ly")


def _helpers(texts: Sequence[str], place: int) -> list[str]:
    """The forms of be, have and do that help the word at `place`."""
    found: list[str] = []
    for text in reversed(texts[max(place - 5, 0) : place]):
        if text in known.AUXILIARIES:
            found.insert(0, text)
        elif not _may_stand_between(text):
            break
    return found


def _is_past(text: str) -> bool:
    """Whether the form, standing alone, is of the past."""
    return text in known.PAST or (text.endswith("ed") and len(text) > 4 and not text.endswith("eed"))


def _is_participle(text: str) -> bool:
    return _is_past(text) or text in known.PARTICIPLES


def _is_ing(text: str) -> bool:
    return text.endswith("ing") and len(text) > 5


def _item(words: Sequence[Word], place: int) -> Item:
    text, capital = words[place]
    if text.startswith((TIME, NUMBER)):
        return Item(surface=text, lemma=text)
    if capital:
        return Item(surface=text, lemma=known.lemma(text), capital=True)
    texts = [word.text for word in words[max(place - 6, 0) : place + 2]]
    past, passive, finite = _form(texts, min(place, 6), continuing=any(word.text in ("since", "for") for word in words))
    if _names(texts, min(place, 6)):
        helped = bool(_helpers(texts, min(place, 6)))
        return Item(surface="named", lemma="name", past=past if helped else None, finite=helped)
    passive = None if text == "employed" else passive
    return Item(surface=text, lemma=known.lemma(text), past=past, passive=passive, finite=finite)


def _names(texts: Sequence[str], place: int) -> bool:
    """Whether `named` and its like give a name to what some other verb is about: has a dog called Rex, is named Rex."""
    earlier = texts[:place]
    return texts[place] in _NAMING and any(
        text in known.AUXILIARIES or text in known.OWNING or known.lemma(text) in known.VERB_LEMMAS for text in earlier
    )


def _form(texts: Sequence[str], place: int, *, continuing: bool) -> tuple[bool | None, bool | None, bool]:
    """Past, passive and finite of the word at `place`, as Item says."""
    text, helpers = texts[place], _helpers(texts, place)
    if not helpers:
        return _alone(texts, place)
    first, last = helpers[0], helpers[-1]
    if first in known.DO:
        return first == "did", False, True
    past = None if first in known.BE_BARE or (first in ("has", "have") and continuing) else first in known.THEN
    if first in ("has", "have") and not continuing:
        past = True
    if _is_participle(text) and last in known.AUXILIARIES:
        return past, last in known.BE, True
    return (past, None, True) if _is_ing(text) and last in known.BE else (None, None, False)


def _alone(texts: Sequence[str], place: int) -> tuple[bool | None, bool | None, bool]:
    text, last = texts[place], texts[place - 1] if place else ""
    if _is_ing(text):
        return None, None, False
    if _is_past(text):
        return True, False, True
    if last in known.DETERMINERS or texts[place + 1 : place + 2] == ["of"]:
        return None, None, False
    if last == "to" or last.startswith("~"):
        return None, False, False
    return False, False, known.lemma(text) in known.VERB_LEMMAS


def _active(reading: Reading) -> Reading:
    """Who does it stands first: `it is written by Ana` becomes `Ana writes it`."""
    items = list(reading.items)
    for verb in [item for item in items if item.passive]:
        items = _turned(items, items.index(verb))
    return replace(reading, items=tuple(items))


def _turned(items: list[Item], verb: int) -> list[Item]:
    role = items[verb].role
    agent = [n for n in range(verb + 1, len(items)) if items[n].role == f"{role} by".strip() and not items[n].is_time]
    if all(items[n].is_counted for n in agent):
        return items
    patient = [n for n in range(verb) if items[n].role == role]
    rest = [item for n, item in enumerate(items) if n not in {verb, *agent, *patient}]
    done = [replace(items[n], role=role) for n in agent] + [replace(items[verb], passive=False)]
    return [*done, *(items[n] for n in patient), *rest]


def _preferring(reading: Reading) -> Reading:
    """To prefer one thing to, than or over another is the same, and so is to like it more than the other."""
    lemmas = [item.lemma for item in reading.items]
    features = [feature for feature in reading.features if feature[0] != "more"]
    liking = "enjoy" in lemmas and "than" in reading.markers and len(features) < len(reading.features)
    if not (liking or "prefer" in lemmas) or "over" in reading.markers:
        return reading
    items = tuple(
        replace(item, lemma="prefer", surface="prefer")
        if item.lemma == "enjoy"
        else replace(item, role="over" if item.role in ("to", "than") else item.role)
        for item in reading.items
    )
    markers = [marker for marker in reading.markers if marker != "than"]
    markers += ["over"] * any(item.role == "over" for item in items)
    return replace(reading, items=items, markers=tuple(sorted(markers)), features=tuple(features))


def _serving(reading: Reading) -> Reading:
    """Who uses one thing as another says that the one is the other: Ana uses the attic as a study, the attic is hers."""
    items = list(reading.items)
    use = next((n for n, item in enumerate(items) if item.lemma == "use" and not item.passive), 0)
    first = next((n for n, item in enumerate(items) if n > use and item.role == "as"), 0)
    if not (use and first):
        return reading
    user = replace(items[use - 1], role="of")
    plain = Item(surface="=be", lemma="=be", role=PLAIN, past=items[use].past, finite=items[use].finite)
    rest = [replace(item, role="" if item.role == "as" else item.role) for item in items[first:]]
    return replace(reading, items=(*items[: use - 1], user, *items[use + 1 : first], plain, *rest))
