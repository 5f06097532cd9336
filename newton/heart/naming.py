"""Names in what is written: found by their capitals, compared by their keys, and known again. Pure, no model."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from newton.heart.plainwords import NEVER, ORDINARY, PLAIN, SHARED, STARTERS, TITLES, listed

HALF_LIFE_DAYS = 90.0
ENOUGH = 5.0  # so many mentions make an entity half as salient as it can be
LONGEST = 5  # words of a name
MOST_SPELT = 2 * LONGEST  # words and dots of a name that is looked for in a text
HEADLINE = 4  # so many words with capitals may be a headline
LONGEST_WORD = 30  # letters
LONGEST_ACRONYM = 5  # letters; a longer word in capitals may only be loud

_PLACED = listed("new great little")  # begin names of places as well as sentences
_JOINERS = listed("of de da del di du van von der den la le el al bin ibn dos")
_ARTICLES = listed("the la der den")  # stand after a joiner: "of the", "van der"
# What a headline writes small.
_SMALL = _JOINERS | listed("a an and as at by for from in into is nor on or over the to up via vs with")
_SMALL_RAISED = frozenset(word.title() for word in NEVER) - listed("I")

_CAPITALS = "".join(c for c in map(chr, (*range(0x590), *range(0x1E00, 0x2000))) if c.isupper())
# A word from its first capital on; a dot joins Node.js and U.S., not the end of one sentence and the next.
_CAPITALISED = re.compile(rf"[{_CAPITALS}]\w*(?:(?:['’&-]|\.(?=[a-z\d]|[{_CAPITALS}](?![a-z])))\w+)*[+#]*")
_ADDRESS = re.compile(r"```.*?(?:```|\Z)|\b\w+://\S+|\bwww\.\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.\S+", re.DOTALL)
_WORD = re.compile(r"[^\W_]\w*(?:['’.&-][^\W_]\w*)*[+#]*|[.!?,;:\n]")
_ENDING = re.compile(r"['’](?:s|m|re|ve|ll|d)$", re.IGNORECASE)
_INITIALS = re.compile(rf"[{_CAPITALS}](?:\.[{_CAPITALS}])*\.?")
_STRETCHED = re.compile(r"([a-z])\1\1")
_SHAPELESS = re.compile(
    rf"^\d|^[a-z]{{3,}}[A-Z][a-z]|_|^\w-[^\W\dA-Z]+$|n['’]t$|.{{{LONGEST_WORD + 1}}}|{_STRETCHED.pattern}"
)
_LOUD = re.compile(rf"(?<![\w'’])[{_CAPITALS}'’]+(?: [{_CAPITALS}'’]+){{2,}}(?!\w)")
_FRAMING = " \t\"“”'‘’([{*_#>-"  # may stand between the beginning of a sentence and its first word
_GOING_ON = frozenset(",;&+/%@)]}")  # a capital behind it begins no sentence
_POSSESSIVE = ("'s", "’s")
_EDGES = " \t\n.,;:!?…()[]{}\"'“”‘’*_-"
_ARTICLE = re.compile(rf"^(?:(?:the|a|an) [{re.escape(_EDGES)}]*)+")
_STOPS = frozenset(".!?,;:\n")
_MEANT = listed("US")  # these capitals are no loud word


class Name(NamedTuple):
    """A name as it stands in a text, and where. One that only begins a sentence may be any word: it is not `sure`."""

    text: str
    start: int
    sure: bool = True


class Known(NamedTuple):
    """An entity by its name and the other names that it goes by."""

    entity_id: UUID
    name: str
    aliases: tuple[str, ...]


class _Word(NamedTuple):
    """A word of a name, without its possessive, and where it stands in its line."""

    text: str
    low: str
    start: int
    end: int
    begins: bool  # a sentence


class _Line(NamedTuple):
    text: str
    start: int
    words: list[_Word]
    headline: bool


def names_in(text: str) -> list[Name]:
    """The names of a text in their order, repeats included: runs of capitalised words, and words such as PostgreSQL.

    A common word that begins a sentence is a name only if it has its capital within one too. Loud words, headlines,
    addresses and fenced code hold no names. Linear in the length of the text.
    """
    lines = list(_lines(_without_addresses(text)))
    heard = {word.low for line in lines if not line.headline for word in line.words if _is_heard(word)}
    return [name for line in lines for run in _runs(line, heard) if (name := _named(run, line, heard))]


def key(name: str) -> str:
    """The form in which names are the same.

    >>> key(" The  Bank of Norway's ")
    'bank of norway'
    """
    plain = _ARTICLE.sub("", " ".join(name.casefold().split()).strip(_EDGES))
    while plain.endswith(_POSSESSIVE):
        plain = plain[:-2].rstrip(_EDGES)
    return plain


def salience(mentions: int, days: float) -> float:
    """How much an entity matters, from 0 to 1: grows with its mentions and halves in 90 days without one.

    mentions / (mentions + 5) * 0.5 ** (days / 90)

    >>> salience(5, 0), salience(5, 90), salience(0, 0)
    (0.5, 0.25, 0.0)
    """
    return mentions / (mentions + ENOUGH) * 0.5 ** (max(days, 0.0) / HALF_LIFE_DAYS)


def spellings(name: str, aliases: Iterable[str]) -> set[str]:
    """The words by which an entity may be meant in a text: its names, and its first and last name alone."""
    keys = {key(one) for one in (name, *aliases)}
    parts = {part for one in keys for part in _parts(one)}
    return ({_words_of(one) for one in keys | parts} | parts) - {""}


def spelt_in(text: str) -> list[str]:
    """Every run of words of a text that could be the spelling of a name, each once."""
    lows = [low for low, _ in _spelt(text)]
    runs: dict[str, None] = {}
    for place, first in enumerate(lows):
        if first not in _STOPS:
            for end in range(place + 1, min(place + MOST_SPELT, len(lows)) + 1):
                runs[" ".join(lows[place:end])] = None
    return list(runs)


class Index:
    """The entities there are, to be found by name. Built once for many texts."""

    def __init__(self, known: Iterable[Known]) -> None:
        self._by_name: dict[str, Known] = {}
        self._by_alias: dict[str, Known | None] = {}
        self._by_part: dict[str, Known | None] = {}
        self._by_words: dict[str, str] = {}  # the key of the name that these words spell
        self._most: dict[str, int] = {}  # words of the longest name that begins with this one
        self._by_id: dict[UUID, Known] = {}
        for entity in known:
            self.add(entity)

    def add(self, entity: Known) -> None:
        self._by_id[entity.entity_id] = entity
        self._by_name.setdefault(key(entity.name), entity)
        for alias in map(key, entity.aliases):
            _put(self._by_alias, alias, entity)
        for name in map(key, (entity.name, *entity.aliases)):
            for part in _parts(name):
                _put(self._by_part, part, entity)
            self._spell(name)

    def resolve(self, name: str) -> Known | None:
        """The entity of that name or alias; a first or last name alone when it is of only one."""
        return self.called(name) or self._by_part.get(key(name))

    def called(self, name: str) -> Known | None:
        """The entity of that very name or alias."""
        wanted = key(name)
        return self._by_name.get(wanted) or self._by_alias.get(wanted)

    def name_of(self, entity_id: UUID) -> str:
        return self._by_id[entity_id].name

    def mentioned(self, text: str) -> list[UUID]:
        """The entities that a text names, in whole words and any case, each once; of names that overlap the longest.

        A name that is a common word, and a part of a name, count only where they look like a name.
        """
        words = list(_spelt(text))
        lows = [low for low, _ in words]
        found: dict[UUID, None] = {}
        place = 0
        while place < len(words):
            entity, length = self._longest(lows, place) if lows[place] in self._most else (None, 1)
            if length == 1:
                entity = self._alone(words[place], words[place - 1][0] if place else ".")
            if entity is not None:
                found[entity.entity_id] = None
            place += length
        return list(found)

    def _spell(self, name: str) -> None:
        if words := [low for low, _ in _spelt(name)]:
            self._by_words[" ".join(words)] = name
            self._most[words[0]] = max(self._most.get(words[0], 0), min(len(words), MOST_SPELT))

    def _spelt(self, words: str) -> Known | None:
        name = self._by_words.get(words)
        return self.resolve(name) if name is not None else None

    def _longest(self, lows: Sequence[str], place: int) -> tuple[Known | None, int]:
        for length in range(min(self._most[lows[place]], len(lows) - place), 1, -1):
            if entity := self._spelt(" ".join(lows[place : place + length])):
                return entity, length
        return None, 1

    def _alone(self, word: tuple[str, str], before: str) -> Known | None:
        low, written = word
        entity = self._spelt(low)
        if entity is not None and low not in ORDINARY:
            return entity
        if written[0].islower() or (low in PLAIN and before in ".!?:\n"):
            return None
        return entity or self._by_part.get(low)


def _put(entities: dict[str, Known | None], name: str, entity: Known) -> None:
    """Of a name that several go by nobody is meant."""
    other = entities.get(name, entity)
    entities[name] = entity if other is not None and other.entity_id == entity.entity_id else None


def _parts(name: str) -> set[str]:
    """The first and the last name; what is `of` something is not called by what it is of."""
    words = name.split()
    if len(words) < 2 or "of" in words:
        return set()
    ends = words[-1:] if words[0].endswith("ing") else (words[0], words[-1])
    return {word for word in ends if len(word) > 1 and word.strip(".") not in SHARED}


def _spelt(text: str) -> Iterator[tuple[str, str]]:
    """The words of a text as they are compared, and as they are written; stops are words too."""
    for written in _WORD.findall(text):
        low = written.casefold()
        yield low[:-2] if low.endswith(_POSSESSIVE) else low, written


def _words_of(name: str) -> str:
    return " ".join(low for low, _ in _spelt(name))


def _without_addresses(text: str) -> str:
    if "://" in text or "```" in text or "@" in text or "www." in text:
        return _ADDRESS.sub(_commas, text)
    return text


def _commas(match: re.Match[str]) -> str:
    return "," * len(match.group())


def _lines(text: str) -> Iterator[_Line]:
    """The lines with words that may be of names."""
    start = 0
    for written in text.split("\n"):
        line = "" if written.isupper() and " " in written.strip() else _LOUD.sub(_commas, written)
        found = list(_CAPITALISED.finditer(line))
        if words := _name_words(line, found):
            yield _Line(line, start, words, len(found) >= HEADLINE and _is_headline(line))
        start += len(written) + 1


def _name_words(line: str, found: Iterable[re.Match[str]]) -> list[_Word]:
    words: list[_Word] = []
    last = 0
    for match in found:
        begin, end = match.span()
        while begin > last and line[begin - 1].isalnum():  # iPhone, vLLM
            begin -= 1
        last = end
        written = line[begin:end]
        bare = _ENDING.sub("", written) if "'" in written or "’" in written else written.rstrip("_")
        low = bare.lower()
        if low not in NEVER or bare in _MEANT:
            begins = _begins(line[max(0, begin - 8) : begin])
            word = _Word(bare, low, begin, begin + len(bare), begins)
            if _is_shaped(word):
                words.append(word)
    return words


def _begins(before: str) -> bool:
    """Whether what stands before a word lets it begin a sentence."""
    last = before.rstrip(_FRAMING)[-1:]
    return not last.isalnum() and last not in _GOING_ON


def _is_shaped(word: _Word) -> bool:
    """Whether a word looks like one of a name: not as getName, t-shirt, waaay, 10AM or GREAT."""
    text = word.text
    if text[0].isupper() and text.isalpha() and not text.isupper() and len(text) <= LONGEST_WORD:
        return not _STRETCHED.search(text)
    return not (_SHAPELESS.search(text) or (text.isupper() and word.low in STARTERS))


def _is_headline(line: str) -> bool:
    """Whether every word that could have one has a capital, and more of them than names would give it."""
    words = line.split()
    if any(word.islower() and word not in _SMALL for word in words):
        return False
    within = any(word in _SMALL_RAISED and before[-1] not in ".!?:,…" for before, word in pairwise(words))
    return within or line.startswith("#") or (len(words) >= LONGEST and all(map(str.istitle, words)))


def _is_heard(word: _Word) -> bool:
    """Whether its capital says that it is of a name."""
    return not word.begins and len(word.text) > 1 and not _is_loud(word)


def _is_loud(word: _Word) -> bool:
    return len(word.text) > LONGEST_ACRONYM and word.text.isupper() and word.text.isalpha()


def _is_written_apart(word: _Word) -> bool:
    """Whether it has capitals or digits within: GPT-4, OpenAI."""
    return not word.text[1:].islower()


def _runs(line: _Line, heard: Set[str]) -> list[list[_Word]]:
    """The words that stand together. Of a headline only those that are names elsewhere, or could be nothing else."""
    runs: list[list[_Word]] = []
    for word in line.words:
        if line.headline and word.low not in heard and not (_is_written_apart(word) and _is_heard(word)):
            continue
        if runs and _joined(runs[-1][-1], word, line.text):
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def _joined(one: _Word, other: _Word, line: str) -> bool:
    between = line[one.end : other.start]
    if between == " ":
        return True
    if between.rstrip(" ") == ".":
        return one.low in TITLES or _INITIALS.fullmatch(one.text) is not None
    first, *rest = between.lower().split() or [""]
    return first in _JOINERS and (not rest or (len(rest) == 1 and rest[0] in _ARTICLES))


def _named(run: list[_Word], line: _Line, heard: Set[str]) -> Name | None:
    """The run as a name, if it is one: without a word before it that only begins the sentence."""
    if _leads(run, heard):
        run = run[1:]
    if not run or len(run) > LONGEST or (len(run) == 1 and (len(run[0].text) < 2 or run[0].low in TITLES)):
        return None
    first, start = run[0], run[0].start
    if len(run) > 1:
        sure = not (first.begins and first.low in _PLACED)
    else:
        sure = not _is_loud(first) and (not first.begins or _is_written_apart(first))
    return Name(line.text[start : run[-1].end], line.start + start, sure or first.low in heard)


def _leads(run: Sequence[_Word], heard: Set[str]) -> bool:
    """Whether the run begins with a common word of a sentence, or likely with a verb: Seeing Ana."""
    first, alone = run[0], len(run) == 1
    if not first.begins or first.low in heard:
        return False
    if first.low in STARTERS:
        return alone or first.low not in _PLACED
    return not alone and len(first.low) > 5 and first.low.endswith("ing")
