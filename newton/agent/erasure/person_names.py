"""The spellings under which texts name one person, and similar names that may be others. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from newton.agent.erasure.alias_cues import find_aliases
from newton.agent.erasure.name_spellings import (
    HONORIFICS,
    MARKS,
    PARTICLES,
    are_close,
    build_name_pattern,
    fold_name,
    fold_sound,
    initials_of,
    is_common_word,
    split_name,
)
from newton.heart.stopwords import AMBIGUOUS_NAMES, split_words

MAX_ROUNDS = 5  # an alias may lead to further aliases
MAX_NAME_WORDS = 4
MIN_DISTINCT_LETTERS = 4  # of a name that identifies a person within a handle or an address
MAX_LOWER_LETTERS = 3  # a name that is not longer may be an ordinary word in lower case

_WORD = re.compile(rf"[\w{MARKS}]+")
_GAP = re.compile(r"['’ \t\n-]")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_DOTTED = re.compile(r"(?<![\w.])(?:[^\W\d_]\.){2,5}(?!\w)")
_CALLING = split_words(
    "call calls called nennt nennen ruft rufen appelle appellent llaman chiamano noemt noemen kallar"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_JAPANESE_TITLE = "(?:さん|様|先生|くん|ちゃん|氏|老师|女士)"
_ARTICLE = split_words("the a an der die das ein eine einen le la les un une el los las il lo uma o os")
_NOUN = re.compile(rf"\b(?i:{'|'.join(sorted(_ARTICLE))})\s(\w+)")
_IMPERATIVES = split_words(
    "email mail remind invite phone text message thank pay wish congratulate greet join inform contact ping tag cc kiss"
    " forward write from via says said per by with without against beside near unlike frag ruf grüß schreib sag wenn"
    " als"
)


@dataclass(frozen=True, slots=True)
class NameNearMiss:
    """A name that is not erased, because it may be another person or thing. `count` is its number of occurrences."""

    name: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonNames:
    """The spellings of a person's names, a regular expression that finds them, and names that are not erased."""

    spellings: tuple[str, ...]
    pattern: str
    near_misses: tuple[NameNearMiss, ...]


class _Occurrence(NamedTuple):
    """A word or run of words in a text, with the words directly before and after it ("" at a punctuation mark)."""

    raw: str
    key: str
    before: str
    after: str


@dataclass(slots=True)
class _KnownNames:
    """The names found so far: whole names and aliases, and the words of which they consist."""

    full: dict[str, str] = field(default_factory=dict[str, str])  # raw spelling by key
    parts: dict[str, str] = field(default_factory=dict[str, str])
    initials: set[str] = field(default_factory=set[str])
    given: set[str] = field(default_factory=set[str])  # exactly as the caller gave them
    refused: set[str] = field(default_factory=set[str])  # keys that other people or things share

    def add(self, name: str) -> None:
        self.full.setdefault(fold_name(name), name)
        words = split_name(name)
        if len(words) > 1:
            for word in words:
                if not is_common_word(word):
                    self.parts.setdefault(fold_name(word), word)
            particles = " ".join(name.split()[-2:])
            if particles.split()[0].casefold() in PARTICLES:
                self.parts.setdefault(fold_name(particles), particles)
            self.initials |= {initials_of(name), initials_of(f"{words[0]} {words[-1]}")}

    def keys(self) -> set[str]:
        return {key for key in (*self.full, *self.parts) if key not in self.refused}

    def surnames(self) -> set[str]:
        return {fold_name("".join(name.split()[1:])) for name in self.full.values() if " " in name} | {
            fold_name(split_name(name)[-1]) for name in self.full.values() if len(split_name(name)) > 1
        }


def find_person_names(
    subject: str, aliases: Iterable[str], texts: Sequence[str], *, others: Iterable[str] = (), also: Iterable[str] = ()
) -> PersonNames:
    """Return the spellings under which the texts name a person.

    `aliases` are recorded ones, `others` the recorded names of other people, and `also` names that the caller adds.
    """
    known = _KnownNames()
    for name in (subject, *aliases, *also):
        known.add(name)
    known.given = {subject, *also}
    search = _NameSearch(known, texts, {fold_name(name) for name in others} - set(known.full))
    search.run()
    return search.result()


class _NameSearch:
    """One search for the names of a person in the texts of a memory."""

    def __init__(self, known: _KnownNames, texts: Sequence[str], others: set[str]) -> None:
        self._known, self._texts, self._others = known, texts, others
        self._spellings: set[str] = set(known.given)
        self._collocations: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self._near: Counter[tuple[str, str]] = Counter()
        self._nouns = {word for text in texts for word in _NOUN.findall(text)}
        self._words = Counter(word for text in texts for word in _WORD.findall(text))

    def run(self) -> None:
        """Find spellings and aliases until no more are found."""
        for _ in range(MAX_ROUNDS):
            self._find_spellings()
            self._find_addresses()
            if not self._find_aliases():
                break
        self._find_near_misses()

    def result(self) -> PersonNames:
        near = sorted(
            (
                NameNearMiss(name, reason, count)
                for (name, reason), count in self._near.items()
                if name not in self._spellings
            ),
            key=lambda one: (-one.count, one.name),
        )
        pattern = build_name_pattern(self._spellings, self._collocations)
        return PersonNames(spellings=tuple(sorted(self._spellings)), pattern=pattern, near_misses=tuple(near))

    def _find_spellings(self) -> None:
        self._near.clear()
        occurrences = [one for text in self._texts for one in _find_occurrences(text, self._known)]
        self._known.refused |= {one.key for one in occurrences if self._is_shared(one)}
        for one in occurrences:
            if others := self._other_names(one):
                self._collocations[one.raw] |= others
                for first, last in others:
                    self._near[f"{first}{one.raw}{last}".strip(), "another person with this name"] += 1
            elif one.key in self._known.refused and one.raw not in self._known.given:
                self._near[one.raw, "shared with another person"] += 1
            elif self._is_ordinary_word(one):
                self._near[one.raw, "an ordinary word"] += 1
            else:
                self._spellings.add(one.raw)
        self._spellings |= {name for key, name in self._known.parts.items() if key not in self._known.refused}
        self._spellings -= {name for name, reason in self._near if reason != "another person with this name"}

    def _is_shared(self, one: _Occurrence) -> bool:
        """Return whether a first or last name also occurs in the full name of another person."""
        return one.key in self._known.parts and one.key not in self._known.full and bool(self._other_names(one))

    def _other_names(self, one: _Occurrence) -> set[tuple[str, str]]:
        """Return the words that make another person's full name of the occurrence, with the space between."""
        if " " in one.raw or one.key not in self._known.parts.keys() | self._known.full.keys():
            return set()
        first, last = one.before, "" if one.before.casefold() in _CALLING else one.after
        is_first = self._is_other_name(first) and not is_common_word(one.raw)
        if is_first and self._is_misspelling(first):
            self._spellings.add(first)
            return set()
        found = {(f"{first} ", "")} if is_first else set[tuple[str, str]]()
        return found | ({("", f" {last}")} if self._is_other_name(last) else set())

    def _is_other_name(self, word: str) -> bool:
        if not word[:1].isupper() or len(word) < 2:
            return False
        lower, keys = word.casefold(), (*self._known.full, *self._known.parts)
        if is_common_word(word) or lower in HONORIFICS | PARTICLES | _IMPERATIVES or word in self._spellings:
            return False
        is_own = fold_name(word) in keys or any(fold_sound(word) == fold_sound(one) != "" for one in keys)
        return not is_own and not self._words[lower]

    def _is_misspelling(self, word: str) -> bool:
        """Return whether a first name differs from the known one by a letter that does not end it."""
        return any(
            are_close(word, name) and fold_name(word)[-2:] == key[-2:] and abs(len(fold_name(word)) - len(key)) <= 1
            for key, name in self._known.parts.items()
        )

    def _is_ordinary_word(self, one: _Occurrence) -> bool:
        """Return whether a spelling in lower case may be a common noun, as "cat" is beside a person called Cat."""
        if not one.raw.islower() or one.raw in self._known.given or " " in one.raw or not one.raw.isascii():
            return False
        if one.raw in AMBIGUOUS_NAMES or len(one.raw) <= MAX_LOWER_LETTERS:
            return True
        return one.raw in self._nouns

    def _find_addresses(self) -> None:
        """Find e-mail addresses, handles and dotted initials that are built from the known names."""
        rate_handle = cache(partial(_rate_handle, known=self._known))  # most words come again and again
        for text in self._texts:
            for address in _EMAIL.findall(text):
                verdict = rate_handle(re.split(r"[@]", address)[0]) or _rate_domain(address, self._known)
                self._note(address, verdict=verdict)
            for word in _WORD.findall(_EMAIL.sub(" ", text)):
                if word[:1].islower():
                    is_known = word in self._spellings
                    self._note(word, verdict=None if is_known else rate_handle(word))
            for letters in _DOTTED.findall(text):
                if letters.replace(".", "").casefold() in self._known.initials:
                    self._spellings.add(letters)

    def _note(self, name: str, *, verdict: bool | None) -> None:
        if verdict:
            self._spellings.add(name)
        elif verdict is False:
            self._near[name, "built from a part of the name"] += 1

    def _find_aliases(self) -> bool:
        """Add the aliases that sentences state; return whether one was new."""
        pattern = re.compile(build_name_pattern(self._spellings, self._collocations))
        before = len(self._known.full) + len(self._spellings)
        for text in self._texts:
            if not pattern.search(text):
                continue
            initials, folded = frozenset(self._known.initials), frozenset(self._known.keys())
            for alias in find_aliases(text, pattern, initials=initials, folded=folded):
                if fold_name(alias.name) in self._known.full or is_common_word(alias.name):
                    continue
                if not alias.is_stated or fold_name(alias.name) in self._others:
                    self._near[alias.name, "named beside this person"] += 1
                    continue
                self._known.add(alias.name)
                self._spellings |= {alias.name, *self._address_parts(alias.name)}
        return len(self._known.full) + len(self._spellings) > before

    def _address_parts(self, name: str) -> set[str]:
        """Return the beginnings of a name in a script without spaces that texts use with a title, as in 田辺さん."""
        beginnings = {name[:size] for size in range(1, len(name))} if _HAN.match(name) else set[str]()
        return {one for one in beginnings if any(re.search(f"{one}{_JAPANESE_TITLE}", text) for text in self._texts)}

    def _find_near_misses(self) -> None:
        names = [*self._known.full.values(), *self._known.parts.values()]
        for word, count in self._words.items():
            if word[:1].isupper() and word not in self._spellings and not is_common_word(word):
                if any(are_close(word, name) for name in names if " " not in name):
                    self._near[word, "a similar name"] = count
                elif any(_may_shorten(word, name) for name in names if " " not in name):
                    self._near[word, "may be a short form"] = count


def _find_occurrences(text: str, known: _KnownNames) -> Iterator[_Occurrence]:
    """Yield the longest runs of words of a text that spell a known name, outside of e-mail addresses."""
    plain = _EMAIL.sub(lambda match: " " * len(match[0]), text)
    words = list(_WORD.finditer(plain))
    keys = {**known.full, **known.parts}
    sounds = {fold_sound(name): key for key, name in keys.items() if fold_sound(name)}
    starts = {key[:size] for key in keys for size in range(1, len(key) + 1)}
    position = 0
    while position < len(words):
        size, key = 0, ""
        if fold_name(words[position][0]) in starts:
            size, key = _find_longest(plain, words, position, keys)
        if not size and (key := sounds.get(fold_sound(words[position][0]), "")):
            size = 1
        if size:
            last = position + size - 1
            raw = " ".join(plain[words[position].start() : words[last].end()].split())
            yield _Occurrence(raw, key, _neighbor(plain, words, position, -1), _neighbor(plain, words, last, 1))
        position += size or 1


def _find_longest(text: str, words: Sequence[re.Match[str]], position: int, keys: Mapping[str, str]) -> tuple[int, str]:
    """Return the number of words of the longest run from a position that spells a key, and the key; 0 for none."""
    found = 0, ""
    for last in range(position, min(position + MAX_NAME_WORDS, len(words))):
        if last > position and not _GAP.fullmatch(text[words[last - 1].end() : words[last].start()]):
            break
        key = fold_name(text[words[position].start() : words[last].end()])
        if key in keys:
            found = last - position + 1, key
    return found


def _neighbor(text: str, words: Sequence[re.Match[str]], position: int, step: int) -> str:
    other = position + step
    if not 0 <= other < len(words):
        return ""
    left, right = sorted((position, other))
    return words[other][0] if text[words[left].end() : words[right].start()] == " " else ""


def _rate_handle(handle: str, known: _KnownNames) -> bool | None:
    """Return whether a handle is surely, perhaps (False) or not (None) built from the known names."""
    segments = [fold_name(part) for part in re.split(r"[._+\d-]", handle) if part]
    if len(segments) > 1:
        return _rate_segments(segments, known, is_handle="_" in handle)
    return _rate_word(fold_name(handle), known) if segments else None


def _rate_segments(segments: list[str], known: _KnownNames, *, is_handle: bool) -> bool | None:
    """Rate a handle of several parts, such as ola.wisniewska or chidi_runs."""
    if any(sorted(segments) == sorted(map(fold_name, split_name(name))) for name in known.full.values()):
        return True
    keys = known.keys()
    found = [part for part in segments if part in keys]
    if len(found) > 1:
        return True
    others = [part for part in segments if part not in keys]
    is_distinct = any(len(part) >= MIN_DISTINCT_LETTERS for part in found)
    is_sure = is_distinct and (is_handle or all(_begins(part, keys) for part in others))
    return is_sure if found else None


def _rate_word(word: str, known: _KnownNames) -> bool | None:
    """Rate a handle of one part, such as gthornbury, vraghu or rozfern."""
    keys, surnames = known.keys(), known.surnames() - known.refused
    firsts = keys - surnames
    for first in firsts:
        rest = word.removeprefix(first)
        if rest != word and len(rest) >= MAX_LOWER_LETTERS and any(name.startswith(rest) for name in surnames):
            return True
    rest = word[1:]
    if len(rest) < MIN_DISTINCT_LETTERS or not _begins(word[0], firsts):
        return None
    return any(name.startswith(rest) for name in surnames if len(name) >= MIN_DISTINCT_LETTERS) or None


def _rate_domain(address: str, known: _KnownNames) -> bool | None:
    """Return whether an address such as lamar@whitfield.example has one name before and one after the sign @."""
    local, _, domain = address.partition("@")
    keys = known.keys()
    hosts = [fold_name(part) for part in re.split(r"[.-]", domain)]
    if any(host in keys for host in hosts):
        return fold_name(local) in keys or None
    return False if fold_name(local) in keys else None


def _may_shorten(word: str, name: str) -> bool:
    """Return whether the word is three letters or more with which a longer name begins.

    >>> _may_shorten("Bea", "Beatriz"), _may_shorten("Be", "Beatriz")
    (True, False)
    """
    folded, whole = fold_name(word), fold_name(name)
    return MAX_LOWER_LETTERS <= len(folded) < len(whole) and whole.startswith(folded)


def _begins(part: str, keys: Iterable[str]) -> bool:
    return any(key.startswith(part) for key in keys)
