"""Names in what is written: found by their capitals, compared by their keys, and known again. Pure, no model."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

HALF_LIFE_DAYS = 90.0
ENOUGH = 5.0  # so many mentions make an entity half as salient as it can be
LONGEST = 5  # words of a name

# A name is a run of words with capitals; small joiners may stand inside one ("Bank of Norway").
_TOKEN = re.compile(r"[^\W_][\w'’&.+-]*|[.!?…:;,()\[\]\"“”\n]")
_INNER = frozenset(("of", "de", "da", "del", "di", "van", "von", "der", "den", "la", "le"))
_ENDS = frozenset('.!?…:\n"“')
_POSSESSIVE = re.compile(r"['’]s?$")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_EDGES = " \t\n.,;:!?…()[]{}\"'“”‘’*_-"

# Words that begin with a capital where a sentence begins, or always do, and name nobody.
_COMMON_TEXT = """
a about absolutely actually after again ah all almost already alright also although always am amazing an and another
any anyway anything are as at aw away awesome awww back be because been before being believe best both but bye by call
can check cheers come congrats congratulations cool could course definitely did do does doing done don down each
either else enjoy especially even ever every everyone everything exactly excellent excited few finally fine first for
found from fun get getting give glad go going gonna good goodbye got great guess ha had haha happy has have having he
hello help her here hey hi him his hmm hope how however i if image in indeed instead interesting into is it its just
keep kind know last lately later least less let life like listen little look looking looks lot lots love lovely made
make many may maybe me might mine more morning most much must my myself need never new next nice no nobody none nope
nor not nothing now of off oh ok okay on once one only oops or other our out over perfect perhaps photo picture please
pretty probably put quite rather really recently remember right said same say see seems sending sharing she should
since so some somebody someone something sometimes soon sorry sounds still such super sure take talk tell than thank
thanks that the their them then there therefore these they thing things think this those though three through thx till
time to today together tomorrow tonight too totally true try two under until up upon us use used usually very wait
want was way we welcome well went were what whatever when where whether which while who whoa whom whose why will wish
with without wonderful would wow yay yeah year yep yes yesterday yet you your yours yourself monday tuesday wednesday
thursday friday saturday sunday mon tue wed thu fri sat sun january february march april may june july august
september october november december jan feb mar apr jun jul aug sep sept oct nov dec user assistant system tool am pm
ok lol omg fyi btw asap faq tbd todo note ps eta
"""
_COMMON = frozenset(_COMMON_TEXT.split())
_CONTRACTED = re.compile(r"['’](?:s|m|re|ve|ll|d|t)$", re.IGNORECASE)


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
    text: str
    start: int
    begins: bool  # a sentence


def names_in(text: str) -> list[Name]:
    """The names of a text in their order, repeats included: runs of capitalised words, and words such as PostgreSQL.

    A common word is no name, though it begins a sentence. Lines all in capitals hold no names.
    """
    found: list[Name] = []
    run: list[_Word] = []
    for word in _words(text):
        if word is not None and (_is_name(word) or (run and word.text in _INNER)):
            run.append(word)
            continue
        found += _closed(run, text)
        run = []
    return found + _closed(run, text)


def key(name: str) -> str:
    """The form in which names are the same.

    >>> key(" The  Bank of Norway's ")
    'bank of norway'
    """
    plain = _ARTICLE.sub("", " ".join(name.split()).strip(_EDGES))
    return _POSSESSIVE.sub("", plain).strip(_EDGES).casefold()


def salience(mentions: int, days: float) -> float:
    """How much an entity matters, from 0 to 1: grows with its mentions and halves in 90 days without one.

    >>> salience(5, 0), salience(5, 90), salience(0, 0)
    (0.5, 0.25, 0.0)
    """
    return mentions / (mentions + ENOUGH) * 0.5 ** (max(days, 0.0) / HALF_LIFE_DAYS)


class Index:
    """The entities there are, to be found by name. Built once for many texts."""

    def __init__(self, known: Iterable[Known]) -> None:
        self._by_key: dict[str, Known] = {}
        self._by_part: dict[str, Known | None] = {}
        self._by_id: dict[UUID, Known] = {}
        for entity in known:
            self.add(entity)

    def add(self, entity: Known) -> None:
        self._by_id[entity.entity_id] = entity
        for name in (entity.name, *entity.aliases):
            self._by_key.setdefault(key(name), entity)
            parts = key(name).split()
            if len(parts) > 1:
                for part in {parts[0], parts[-1]}:
                    other = self._by_part.get(part, entity)
                    self._by_part[part] = entity if other is entity else None  # of several nobody is meant

    def resolve(self, name: str) -> Known | None:
        """The entity of that name or alias; a first or last name alone when it is of only one."""
        wanted = key(name)
        return self._by_key.get(wanted) or self._by_part.get(wanted)

    def name_of(self, entity_id: UUID) -> str:
        return self._by_id[entity_id].name

    def mentioned(self, text: str) -> list[UUID]:
        """The entities that a text names, in whole words and any case, each once; of names that overlap the longest."""
        words = [word for word in _words(text) if word is not None]
        found: dict[UUID, None] = {}
        place = 0
        while place < len(words):
            entity, length = self._longest(words, place)
            if entity is not None:
                found[entity.entity_id] = None
            place += length
        return list(found)

    def _longest(self, words: list[_Word], place: int) -> tuple[Known | None, int]:
        for length in range(min(LONGEST, len(words) - place), 0, -1):
            run = words[place : place + length]
            name = key(" ".join(word.text for word in run))
            whole = name in self._by_key and (" " in name or name not in _COMMON)
            # a common word, or a part of a name, is only a name where it looks like one
            if (entity := self.resolve(name)) is not None and (whole or _is_name(run[-1])):
                return entity, length
        return None, 1


def _words(text: str) -> Iterator[_Word | None]:
    """The words, and None for what parts them."""
    begins = True
    for line_start, line in _lines(text):
        shouted = line.isupper() and len(line.split()) > 1
        begins = True
        for match in _TOKEN.finditer(line):
            token = match.group().rstrip(".-'’&")
            if not token or not (token[0].isalnum()):
                begins = begins or match.group() in _ENDS
                yield None
                continue
            yield _Word(token.lower() if shouted else token, line_start + match.start(), begins)
            begins = match.group().endswith(".") and len(token) > 2
            if begins:
                yield None
        yield None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, line
        start += len(line)


def _is_name(word: _Word) -> bool:
    bare = _POSSESSIVE.sub("", word.text)
    if not any(map(str.isupper, bare)):
        return False
    if bare.lower() in _COMMON or len(bare) < 2:
        return False
    if _CONTRACTED.search(word.text) and not word.text.lower().endswith(("'s", "’s")):
        return False
    return bare[0].isupper() or any(map(str.isupper, bare[1:]))


def _closed(run: list[_Word], text: str) -> list[Name]:
    """The run as a name, without joiners at its end."""
    while run and run[-1].text in _INNER:
        run.pop()
    if not run:
        return []
    start, end = run[0].start, run[-1].start + len(run[-1].text)
    alone = len(run) == 1 and run[0].begins and run[0].text[1:].islower()
    return [Name(_POSSESSIVE.sub("", text[start:end]), start, sure=not alone)]
