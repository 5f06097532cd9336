"""Recognition of names in text by capitalization, and their comparison with known entities, without a model. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from datetime import timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from newton.text.words import (
    AMBIGUOUS_NAMES,
    COMMON_WORDS,
    NEVER_NAMES,
    SENTENCE_STARTERS,
    SHARED_NAME_PARTS,
    TITLES,
    split_words,
)

HALF_LIFE_DAYS = 90.0
SALIENCE_PRIOR = 5.0  # mentions at which an entity has half of the maximum salience
MAX_NAME_WORDS = 5
MAX_SPELLING_TOKENS = 2 * MAX_NAME_WORDS  # words and dots of a name that is searched for in a text
MIN_HEADLINE_CAPITALS = 4  # capitalized words of a line that may be a headline
MAX_WORD_LETTERS = 30
MAX_ACRONYM_LETTERS = 5  # a longer word in capitals may be emphasis

_PLACE_PREFIXES = split_words("new great little")  # begin names of places as well as sentences
_NAME_PARTICLES = split_words("of de da del di du van von der den la le el al bin ibn dos")
_ARTICLES = split_words("the la der den")  # follow a joiner: "of the", "van der"
# Lower case in headlines.
_LOWERCASE_IN_TITLES = _NAME_PARTICLES | split_words(
    "a an and as at by for from in into is nor on or over the to up via vs with"
)
_CAPITALIZED_COMMON_WORDS = frozenset(word.title() for word in NEVER_NAMES) - split_words("I")

_CAPITALS = "".join(c for c in map(chr, (*range(0x590), *range(0x1E00, 0x2000))) if c.isupper())
# A word from its first capital; a dot joins Node.js and U.S., but not two sentences.
_CAPITALISED = re.compile(rf"[{_CAPITALS}]\w*(?:(?:['’&-]|\.(?=[a-z\d]|[{_CAPITALS}](?![a-z])))\w+)*[+#]*")
_ADDRESS = re.compile(r"```.*?(?:```|\Z)|\b\w+://\S+|\bwww\.\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.\S+", re.DOTALL)
_WORD = re.compile(r"[^\W_]\w*(?:['’.&-][^\W_]\w*)*[+#]*|[.!?,;:\n]")
_ENDING = re.compile(r"['’](?:s|m|re|ve|ll|d)$", re.IGNORECASE)
_INITIALS = re.compile(rf"[{_CAPITALS}](?:\.[{_CAPITALS}])*\.?")
_STRETCHED = re.compile(r"([a-z])\1\1")
_SHAPELESS = re.compile(
    rf"^\d|^[a-z]{{3,}}[A-Z][a-z]|_|^\w-[^\W\dA-Z]+$|n['’]t$|.{{{MAX_WORD_LETTERS + 1}}}|{_STRETCHED.pattern}"
)
_SHOUTED = re.compile(rf"(?<![\w'’])[{_CAPITALS}'’]+(?: [{_CAPITALS}'’]+){{2,}}(?!\w)")
_OPENING_MARKS = " \t\"“”'‘’([{*_#>-"  # allowed between the beginning of a sentence and its first word
_CONTINUATION_MARKS = frozenset(",;&+/%@)]}")  # a capital after it does not begin a sentence
_POSSESSIVE = ("'s", "’s")
_EDGE_CHARACTERS = " \t\n.,;:!?…()[]{}\"'“”‘’*_-"
_ARTICLE = re.compile(rf"^(?:(?:the|a|an) [{re.escape(_EDGE_CHARACTERS)}]*)+")
_STOPS = frozenset(".!?,;:\n")
_NAMES_IN_CAPITALS = split_words("US")  # capitals that are not emphasis


class NameMention(NamedTuple):
    """A name with its offset in a text.

    `is_certain` is False if the name may be capitalized only because it begins a sentence.
    """

    text: str
    start: int
    is_certain: bool = True


class NamedEntity(NamedTuple):
    """An entity with its name and aliases."""

    entity_id: UUID
    name: str
    aliases: tuple[str, ...]


class _Word(NamedTuple):
    """A word that may belong to a name, without a possessive ending, and its position in the line."""

    text: str
    lower: str
    start: int
    end: int
    starts_sentence: bool


class _Line(NamedTuple):
    text: str
    start: int
    words: list[_Word]
    is_headline: bool


def find_names(text: str) -> list[NameMention]:
    """Return the names in a text in order, with repeats, in linear time.

    Names are capitalized words in a row, and words such as PostgreSQL. A common word that begins a sentence counts only
    if the text also capitalizes it within a sentence. Emphasis, headlines, addresses and code blocks are skipped.
    """
    lines = list(_split_lines(_mask_addresses(text)))
    evidence = {word.lower for line in lines if not line.is_headline for word in line.words if _is_name_evidence(word)}
    return [name for line in lines for run in _group_words(line, evidence) if (name := _to_name(run, line, evidence))]


def normalize_name(name: str) -> str:
    """Return a name in lower case, without article, possessive ending and extra spaces, to compare it with others.

    >>> normalize_name(" The  Bank of Norway's ")
    'bank of norway'
    """
    plain = _ARTICLE.sub("", " ".join(name.casefold().split()).strip(_EDGE_CHARACTERS))
    while plain.endswith(_POSSESSIVE):
        plain = plain[:-2].rstrip(_EDGE_CHARACTERS)
    return plain


def compute_salience(mentions: int, age: timedelta) -> float:
    """Return how salient an entity is, in [0, 1], by the number of its mentions and the age of the last one.

        mentions / (mentions + 5) * 0.5 ** (days / 90)

    >>> [compute_salience(mentions, timedelta(days)) for mentions, days in ((5, 0), (5, 90), (0, 0))]
    [0.5, 0.25, 0.0]
    """
    return mentions / (mentions + SALIENCE_PRIOR) * 0.5 ** (max(age / timedelta(days=1), 0.0) / HALF_LIFE_DAYS)


def list_spellings(name: str, aliases: Iterable[str]) -> set[str]:
    """Return the normalized spellings of an entity: its name and aliases, and the first and the last word of each."""
    keys = {normalize_name(one) for one in (name, *aliases)}
    parts = {part for one in keys for part in _name_parts(one)}
    return ({_to_spelling(one) for one in keys | parts} | parts) - {""}


def list_candidate_spellings(text: str) -> list[str]:
    """Return every distinct sequence of up to 10 words of a text, each of which may be the spelling of a name."""
    tokens = [token for token, _ in _tokenize(text)]
    starts = [n for n, token in enumerate(tokens) if token not in _STOPS]
    runs = (tokens[n:end] for n in starts for end in range(n + 1, min(n + MAX_SPELLING_TOKENS, len(tokens)) + 1))
    return list(dict.fromkeys(map(" ".join, runs)))


class NameIndex:
    """An index that finds entities by name, alias, and first or last name. It is built once for many texts."""

    def __init__(self, known: Iterable[NamedEntity]) -> None:
        self._by_name: dict[str, NamedEntity] = {}
        self._by_alias: dict[str, NamedEntity | None] = {}
        self._by_part: dict[str, NamedEntity | None] = {}
        self._by_words: dict[str, str] = {}  # the normalized name of these words
        self._max_words: dict[str, int] = {}  # length of the longest name that begins with this word
        self._by_id: dict[UUID, NamedEntity] = {}
        for entity in known:
            self.add(entity)

    def add(self, entity: NamedEntity) -> None:
        """Add an entity under its names.

        A name that several entities have as an alias or as a part names none of them.
        """
        self._by_id[entity.entity_id] = entity
        self._by_name.setdefault(normalize_name(entity.name), entity)
        for alias in map(normalize_name, entity.aliases):
            _add_unambiguous(self._by_alias, alias, entity)
        for name in map(normalize_name, (entity.name, *entity.aliases)):
            for part in _name_parts(name):
                _add_unambiguous(self._by_part, part, entity)
            self._add_spelling(name)

    def resolve(self, name: str) -> NamedEntity | None:
        """Return the entity with this name or alias, else the only one with this first or last name, else None."""
        return self.find_exact(name) or self._by_part.get(normalize_name(name))

    def find_exact(self, name: str) -> NamedEntity | None:
        """Return the entity with this full name or alias; None if there is none."""
        key = normalize_name(name)
        return self._by_name.get(key) or self._by_alias.get(key)

    def name_of(self, entity_id: UUID) -> str:
        """Return the name of an entity in the index."""
        return self._by_id[entity_id].name

    def find_mentions(self, text: str) -> list[UUID]:
        """Return the ids of the entities that a text names as whole words in any case, without repeats.

        Of overlapping names, the longest counts. A first or last name alone, or a name that is also a common word,
        counts only where the text capitalizes it like a name.
        """
        words = _tokenize(text)
        tokens = [token for token, _ in words]
        mentions: dict[UUID, None] = {}
        position = 0
        while position < len(words):
            entity, length = self._match_longest(tokens, position)
            if length == 1:
                entity = self._match_single(words[position], tokens[position - 1] if position else ".")
            if entity is not None:
                mentions[entity.entity_id] = None
            position += length
        return list(mentions)

    def _add_spelling(self, name: str) -> None:
        if words := [token for token, _ in _tokenize(name)]:
            self._by_words[" ".join(words)] = name
            self._max_words[words[0]] = max(self._max_words.get(words[0], 0), min(len(words), MAX_SPELLING_TOKENS))

    def _find_spelling(self, spelling: str) -> NamedEntity | None:
        name = self._by_words.get(spelling)
        return self.resolve(name) if name is not None else None

    def _match_longest(self, tokens: Sequence[str], position: int) -> tuple[NamedEntity | None, int]:
        for length in range(min(self._max_words.get(tokens[position], 1), len(tokens) - position), 1, -1):
            if entity := self._find_spelling(" ".join(tokens[position : position + length])):
                return entity, length
        return None, 1

    def _match_single(self, word: tuple[str, str], before: str) -> NamedEntity | None:
        token, original = word
        entity = self._find_spelling(token)
        if entity is not None and token not in AMBIGUOUS_NAMES:
            return entity
        if original[0].islower() or (token in COMMON_WORDS and before in ".!?:\n"):
            return None
        return entity or self._by_part.get(token)


def _add_unambiguous(entities: dict[str, NamedEntity | None], name: str, entity: NamedEntity) -> None:
    """Add a name to the map, or map it to None if it belongs to several entities."""
    other = entities.get(name, entity)
    entities[name] = entity if other is not None and other.entity_id == entity.entity_id else None


def _name_parts(name: str) -> set[str]:
    """Return the first and last word of a name, if they can identify it alone; nothing for a name with "of"."""
    words = name.split()
    if len(words) < 2 or "of" in words:
        return set()
    ends = words[-1:] if words[0].endswith("ing") else (words[0], words[-1])
    return {word for word in ends if len(word) > 1 and word.strip(".") not in SHARED_NAME_PARTS}


@lru_cache(maxsize=64)  # of an input, the spellings and then the names are looked for
def _tokenize(text: str) -> tuple[tuple[str, str], ...]:
    """Return each word and punctuation mark of a text, as a pair of its normalized and its original form."""
    tokens = [(original.casefold(), original) for original in _WORD.findall(text)]
    return tuple((token[:-2] if token.endswith(_POSSESSIVE) else token, original) for token, original in tokens)


def _to_spelling(name: str) -> str:
    return " ".join(token for token, _ in _tokenize(name))


def _mask_addresses(text: str) -> str:
    if "://" in text or "```" in text or "@" in text or "www." in text:
        return _ADDRESS.sub(_mask_match, text)
    return text


def _mask_match(match: re.Match[str]) -> str:
    return "," * len(match.group())


def _split_lines(text: str) -> Iterator[_Line]:
    """Yield each line that contains words that may belong to names."""
    start = 0
    for written in text.split("\n"):
        line = "" if written.isupper() and " " in written.strip() else _SHOUTED.sub(_mask_match, written)
        found = list(_CAPITALISED.finditer(line))
        if words := _find_name_words(line, found):
            yield _Line(line, start, words, len(found) >= MIN_HEADLINE_CAPITALS and _is_headline(line))
        start += len(written) + 1


def _find_name_words(line: str, matches: Iterable[re.Match[str]]) -> list[_Word]:
    """Return the words of a line that are written like names. `matches` are words that have a capital letter."""
    words: list[_Word] = []
    last = 0
    for match in matches:
        begin, end = match.span()
        while begin > last and line[begin - 1].isalnum():  # iPhone, vLLM
            begin -= 1
        last = end
        written = line[begin:end]
        bare = _ENDING.sub("", written) if "'" in written or "’" in written else written.rstrip("_")
        low = bare.lower()
        if low not in NEVER_NAMES or bare in _NAMES_IN_CAPITALS:
            begins = _starts_sentence(line[max(0, begin - 8) : begin])
            word = _Word(bare, low, begin, begin + len(bare), begins)
            if _has_name_shape(word):
                words.append(word)
    return words


def _starts_sentence(before: str) -> bool:
    """Return whether a word begins a sentence. `before` is the text before the word."""
    last = before.rstrip(_OPENING_MARKS)[-1:]
    return not last.isalnum() and last not in _CONTINUATION_MARKS


def _has_name_shape(word: _Word) -> bool:
    """Return whether a word is written like a name. The words getName, t-shirt, waaay, 10AM and GREAT are not."""
    text = word.text
    if text[0].isupper() and text.isalpha() and not text.isupper() and len(text) <= MAX_WORD_LETTERS:
        return not _STRETCHED.search(text)
    return not (_SHAPELESS.search(text) or (text.isupper() and word.lower in SENTENCE_STARTERS))


def _is_headline(line: str) -> bool:
    """Return whether nearly every word of the line is capitalized, more than names alone would explain."""
    words = line.split()
    if any(word.islower() and word not in _LOWERCASE_IN_TITLES for word in words):
        return False
    within = any(word in _CAPITALIZED_COMMON_WORDS and before[-1] not in ".!?:,…" for before, word in pairwise(words))
    return within or line.startswith("#") or (len(words) >= MAX_NAME_WORDS and all(map(str.istitle, words)))


def _is_name_evidence(word: _Word) -> bool:
    """Return whether the word is capitalized for no other reason than being part of a name."""
    return not word.starts_sentence and len(word.text) > 1 and not _is_all_capitals(word)


def _is_all_capitals(word: _Word) -> bool:
    return len(word.text) > MAX_ACRONYM_LETTERS and word.text.isupper() and word.text.isalpha()


def _has_inner_capital(word: _Word) -> bool:
    """Return whether the word has a capital or a digit after its first letter, such as GPT-4 and OpenAI."""
    return not word.text[1:].islower()


def _group_words(line: _Line, evidence: Set[str]) -> list[list[_Word]]:
    """Return the words of a line in groups of adjacent words, each of which may form a name.

    `evidence` has the words that are names elsewhere in the text, in lower case. Of a headline, only those and words
    with inner capitals are used.
    """
    runs: list[list[_Word]] = []
    for word in line.words:
        is_name = word.lower in evidence or (_has_inner_capital(word) and _is_name_evidence(word))
        if line.is_headline and not is_name:
            continue
        if runs and _belong_together(runs[-1][-1], word, line.text):
            runs[-1].append(word)
        else:
            runs.append([word])
    return runs


def _belong_together(left: _Word, right: _Word, line: str) -> bool:
    between = line[left.end : right.start]
    if between == " ":
        return True
    if between.rstrip(" ") == ".":
        return left.lower in TITLES or _INITIALS.fullmatch(left.text) is not None
    first, *rest = between.lower().split() or [""]
    return first in _NAME_PARTICLES and (not rest or (len(rest) == 1 and rest[0] in _ARTICLES))


def _to_name(run: list[_Word], line: _Line, evidence: Set[str]) -> NameMention | None:
    """Return a group of words as one name, without a common word that begins the sentence; None if no name remains."""
    if _starts_with_common_word(run, evidence):
        run = run[1:]
    if not run or len(run) > MAX_NAME_WORDS or (len(run) == 1 and (len(run[0].text) < 2 or run[0].lower in TITLES)):
        return None
    first, start = run[0], run[0].start
    if len(run) > 1:
        sure = not (first.starts_sentence and first.lower in _PLACE_PREFIXES)
    else:
        sure = not _is_all_capitals(first) and (not first.starts_sentence or _has_inner_capital(first))
    return NameMention(line.text[start : run[-1].end], line.start + start, sure or first.lower in evidence)


def _starts_with_common_word(run: Sequence[_Word], evidence: Set[str]) -> bool:
    """Return whether the first word is no part of the name: a common word, or a verb as in "Seeing Ana"."""
    first, alone = run[0], len(run) == 1
    if not first.starts_sentence or first.lower in evidence:
        return False
    if first.lower in SENTENCE_STARTERS:
        return alone or first.lower not in _PLACE_PREFIXES
    return not alone and len(first.lower) > 5 and first.lower.endswith("ing")
