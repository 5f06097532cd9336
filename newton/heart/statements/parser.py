"""Parser of statements. It finds lemmas with grammatical roles, negations, quantifiers and modal words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from newton.heart.statements.tokenizer import BREAK, QUESTION, START, STOP, tokenize
from newton.text import english
from newton.text.english import VERB_LEMMAS, lemmatize
from newton.text.numerals import NUMBER_PREFIX, TIME_PREFIX, WordToken

ATTRIBUTIVE_ROLE = "which"  # the role of a time that modifies a noun
PLAIN_VERB_ROLE = "="  # the role of be, have and do

_NAMING_VERBS = frozenset({"named", "called", "titled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedWord:
    """A content word; or `=be`, `=have` or `=do` where the sentence has no other verb.

    `capital` marks a name, unless the word is the `first` of its sentence. `role` holds the prepositions and
    conjunctions that govern the word. `past` and `passive` are None if the form is ambiguous. `finite` marks a finite
    verb, `single` a singular noun.
    """

    surface: str
    lemma: str
    capital: bool = False
    first: bool = False
    role: str = ""
    past: bool | None = None
    passive: bool | None = None
    finite: bool = False
    single: bool = False

    @property
    def is_time(self) -> bool:
        return self.surface.startswith(TIME_PREFIX)

    @property
    def is_number_or_time(self) -> bool:
        return self.surface.startswith((TIME_PREFIX, NUMBER_PREFIX))

    @property
    def is_plain_verb(self) -> bool:
        return self.role == PLAIN_VERB_ROLE


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedStatement:
    """A parsed statement.

    `features` are negations, quantifiers and modal words, each with the word that it precedes. `persons` are the
    persons that possessives and later clauses refer to. Word order matters if there are several clauses.
    """

    items: tuple[ParsedWord, ...]
    features: tuple[tuple[str, str], ...]
    markers: tuple[str, ...]
    persons: tuple[str, ...]
    has_several_clauses: bool
    expresses_ownership: bool


@lru_cache(maxsize=1_024)
def parse_statement(text: str) -> ParsedStatement:
    """Parse an English text. Of a text that is not in Latin script, only the words are used."""
    return _normalize_use_as(_normalize_preference(_to_active_voice(_StatementParser(tokenize(text)).parse())))


class _StatementParser:
    """A parser that collects the content words and features of a statement in a single pass over its words."""

    def __init__(self, words: Sequence[WordToken]) -> None:
        self._words = words
        self._texts = [word.text for word in words]
        self._continuing = _is_continuing(self._texts)
        self._items: list[ParsedWord] = []
        self._features: list[tuple[str, int]] = []
        self._markers: list[str] = []
        self._persons: list[str] = []
        self._owning = self._ended = False
        self._clause = self._role = ""
        self._opened = 0  # number of items when the role began
        self._owned = False  # whether the last word owns the next
        self._nouns = 0  # number of words that may still be the noun of the last article

    def _add_token(self, position: int) -> None:
        text, capital, _ = self._words[position]
        if text == QUESTION or (text.startswith("~") and len(text) > 1):
            self._features.append((text.removeprefix("~"), len(self._items)))
        elif text in english.PERSONS:
            self._add_person(position)
        elif text in english.DETERMINERS:
            self._add_determiner(text)
        elif text in english.AUXILIARIES or text in english.OWNERSHIP_VERBS:
            self._add_auxiliary(position)
        elif text in english.MARKERS and not capital:
            self._add_marker(position)
        elif not self._is_title(position):
            self._add_content_word(position)

    def parse(self) -> ParsedStatement:
        for place, text in enumerate(self._texts):
            if text in (BREAK, STOP, START):
                self._ended |= text == STOP and place + 1 < len(self._texts)
                self._start_role("", clause="")
            else:
                self._add_token(place)
        lemmas = [item.lemma for item in self._items if not item.is_plain_verb]
        before = [sum(not item.is_plain_verb for item in self._items[:place]) for _, place in self._features]
        anchors = [(lemmas[n] if n < len(lemmas) else "") for n in before]
        return ParsedStatement(
            items=tuple(self._items),
            features=tuple((name, anchor) for (name, _), anchor in zip(self._features, anchors, strict=True)),
            markers=tuple(sorted(self._markers)),
            persons=tuple(self._persons),
            expresses_ownership=self._owning,
            has_several_clauses=self._has_several_clauses(),
        )

    def _start_role(self, role: str, *, clause: str | None = None) -> None:
        self._clause = self._clause if clause is None else clause
        self._role = role
        self._opened = len(self._items)
        self._nouns = 0

    def _full_role(self, role: str) -> str:
        return f"{self._clause} {role}".strip()

    def _add_determiner(self, text: str) -> None:
        if text != "'s":
            self._nouns = 2 if text in english.INDEFINITE_ARTICLES else 1
        elif self._items:
            self._owned = True
            self._nouns = 1
            self._items[-1] = replace(self._items[-1], role=self._full_role("of"))

    def _add_person(self, position: int) -> None:
        """Add a personal pronoun as a word; add a possessive, or a pronoun in a later clause, to the persons."""
        text = self._texts[position]
        person = english.PERSONS[text]
        if text in english.POSSESSIVES or self._clause or (text == "her" and self._is_content(position + 1)):
            self._persons += [person] * (person != "it")
            self._nouns = 1
        else:
            role = self._full_role(self._role)
            self._items.append(ParsedWord(surface=person, lemma=person, role=role))

    def _is_content(self, position: int) -> bool:
        text = self._texts[position] if position < len(self._texts) else BREAK
        tables = (english.PERSONS, english.DETERMINERS, english.AUXILIARIES, english.MARKERS)
        is_feature = text.startswith("~") and len(text) > 1
        return not (text in (BREAK, STOP, QUESTION) or is_feature or any(text in table for table in tables))

    def _has_several_clauses(self) -> bool:
        verbs = Counter(item.role for item in self._items if item.finite and item.past is not None)
        return self._ended or any(verbs[role] > 1 for role in ("", *english.CLAUSE_MARKERS))

    def _add_auxiliary(self, position: int) -> None:
        """Add a form of be, have or do, unless another verb follows."""
        text = self._texts[position]
        self._start_role("")
        if text not in english.OWNERSHIP_VERBS and _is_helper(self._texts, position):
            return
        self._owning |= text in english.HAVE or text in english.OWNERSHIP_VERBS
        surface = "=be" if text in english.BE else "=do" if text in english.DO else "=have"
        past = text in english.PAST_AUXILIARIES
        if text in english.BE_BARE:
            first = next(iter(_find_helpers(self._texts, position)), text)
            past = _helper_tense(first, continuing=self._continuing)
        self._items.append(ParsedWord(surface=surface, lemma=surface, role=PLAIN_VERB_ROLE, past=past, finite=True))

    def _add_marker(self, position: int) -> None:
        text = self._texts[position]
        role = english.MARKERS[text]
        following = self._words[position + 1] if position + 1 < len(self._words) else WordToken(STOP)
        if following.text in (BREAK, STOP, QUESTION) or following.text in english.MARKERS:
            # a particle of its verb: give in
            self._items.append(ParsedWord(surface=text, lemma=text, role=self._full_role("")))
            return
        is_strong = role in english.STRONG_ROLES
        clause = text in english.CLAUSE_MARKERS or (is_strong and following.text in english.PERSONS)
        if self._items and self._is_employer(text, following):
            role = "at"
        if role in english.STRONG_ROLES:
            self._markers.append(role)
        self._start_role("" if clause else role, clause=role if clause else None)

    def _is_employer(self, marker: str, following: WordToken) -> bool:
        """Return whether the preposition introduces an employer, as in "works for Acme" and "is employed by Acme"."""
        if marker == "by":
            return any(item.surface == "employed" for item in self._items)
        return marker == "for" and following.is_capitalized and self._items[-1].lemma == "work"

    def _is_title(self, position: int) -> bool:
        if self._texts[position] not in english.TYPE_NOUNS:
            return False
        rest = self._words[position + 1 : position + 3]
        name = rest[1:] if rest and rest[0].text == "of" else rest[:1]
        prefix = {"year": "@year", "version": NUMBER_PREFIX}.get(self._texts[position], "@@")
        return bool(name) and (name[0].is_capitalized or name[0].text.startswith(prefix))

    def _add_content_word(self, position: int) -> None:
        text = self._texts[position]
        item = _make_word(self._words, position, continuing=self._continuing)
        if self._closes_role(item) and not self._owned:
            self._role, self._opened = "", len(self._items)
        self._owned = False
        single = self._nouns > 0 and not item.finite and not text.endswith(("s", "ing", "ed"))
        if single and len(self._items) > self._opened and self._items[-1].single:
            self._items[-1] = replace(self._items[-1], single=False)
        self._nouns = max(self._nouns - 1, 0)
        alias = english.ALIASES.get(text, item.surface)
        role = ATTRIBUTIVE_ROLE if item.is_time and not self._role and self._is_time_modifier(position) else self._role
        self._items.append(replace(item, surface=alias, role=self._full_role(role), single=single))

    def _is_time_modifier(self, position: int) -> bool:
        """Return whether a time modifies the next word, as in "Monday meetings" and "night mode"."""
        following = self._words[position + 1] if position + 1 < len(self._words) else WordToken(STOP)
        if not self._is_content(position + 1) or following.text.startswith((TIME_PREFIX, NUMBER_PREFIX)):
            return False
        return not following.is_capitalized or (position > 0 and self._texts[position - 1] in english.DETERMINERS)

    def _closes_role(self, item: ParsedWord) -> bool:
        """Return whether this word no longer belongs to the phrase that the last preposition began."""
        if self._opened == len(self._items) or not self._role:
            return False
        last = self._items[-1]
        if item.is_time or last.is_time:
            return item.is_time != last.is_time
        if last.capital:
            return not (item.capital or item.is_number_or_time)
        return item.capital or (item.finite and item.past is not None)


def _is_helper(texts: Sequence[str], position: int) -> bool:
    """Return whether the word is an auxiliary of a verb that follows, as in "is living" and "has got"."""
    for text in texts[position + 1 : position + 4]:
        if texts[position] in english.DO:
            return text == "~not" or text in english.VERBS
        if text in english.AUXILIARIES or _is_participle(text) or _is_ing(text):
            return True
        if not _is_transparent(text):
            return False
    return False


def _is_transparent(text: str) -> bool:
    return text.startswith("~") or text.endswith("ly")


def _find_helpers(texts: Sequence[str], position: int) -> list[str]:
    found: list[str] = []
    for text in reversed(texts[max(position - 5, 0) : position]):
        if text in english.AUXILIARIES:
            found.insert(0, text)
        elif not _is_transparent(text):
            break
    return found


def _is_past(text: str) -> bool:
    return text in english.PAST_FORMS or (text.endswith("ed") and len(text) > 4 and not text.endswith("eed"))


def _is_participle(text: str) -> bool:
    return _is_past(text) or text in english.PARTICIPLES


def _is_ing(text: str) -> bool:
    return text.endswith("ing") and len(text) > 5


def _make_word(words: Sequence[WordToken], position: int, *, continuing: bool) -> ParsedWord:
    text, capital, _ = words[position]
    if text.startswith((TIME_PREFIX, NUMBER_PREFIX)):
        return ParsedWord(surface=text, lemma=text)
    if capital:
        return ParsedWord(surface=text, lemma=lemmatize(text), capital=True, first=words[position].starts_sentence)
    texts = [word.text for word in words[max(position - 6, 0) : position + 2]]
    past, passive, finite = _verb_form(texts, min(position, 6), continuing=continuing)
    if _gives_name(texts, min(position, 6)):
        helped = bool(_find_helpers(texts, min(position, 6)))
        return ParsedWord(surface="named", lemma="name", past=past if helped else None, finite=helped)
    passive = None if text == "employed" else passive
    return ParsedWord(surface=text, lemma=lemmatize(text), past=past, passive=passive, finite=finite)


def _is_continuing(texts: Sequence[str]) -> bool:
    """Return whether the statement describes a continuing state, by words such as "since May" or "for three years"."""
    return any(one == "since" or (one == "for" and other.startswith(NUMBER_PREFIX)) for one, other in pairwise(texts))


def _gives_name(texts: Sequence[str], position: int) -> bool:
    """Return whether a word such as "named" or "called" only introduces a name, as in "has a dog called Rex"."""
    forms = english.AUXILIARIES | english.OWNERSHIP_VERBS
    is_naming = texts[position] in _NAMING_VERBS
    return is_naming and any(text in forms or lemmatize(text) in VERB_LEMMAS for text in texts[:position])


def _verb_form(texts: Sequence[str], position: int, *, continuing: bool) -> tuple[bool | None, bool | None, bool]:
    """Return the fields `past`, `passive` and `finite` of ParsedWord for the word at `position`."""
    text, helpers = texts[position], _find_helpers(texts, position)
    if not helpers:
        return _form_without_helper(texts, position)
    first, last = helpers[0], helpers[-1]
    if first in english.DO:
        return first == "did", False, True
    past = _helper_tense(first, continuing=continuing)
    if _is_participle(text) and last in english.AUXILIARIES:
        return past, last in english.BE, True
    return (past, None, True) if _is_ing(text) and last in english.BE else (None, None, False)


def _helper_tense(first: str, *, continuing: bool) -> bool | None:
    """Return whether the first auxiliary is past tense; None if it has no tense.

    "Has been" is past, but in a `continuing` statement, such as "has been for three years", present.
    """
    if first in english.BE_BARE:
        return None
    return not continuing if first in ("has", "have") else first in english.PAST_AUXILIARIES


def _form_without_helper(texts: Sequence[str], position: int) -> tuple[bool | None, bool | None, bool]:
    text, last = texts[position], texts[position - 1] if position else ""
    if _is_ing(text):
        return (False, None, True) if last == "'s" else (None, None, False)
    if _is_past(text):
        return True, False, True
    if last in english.DETERMINERS or texts[position + 1 : position + 2] == ["of"]:
        return None, None, False
    if last == "to" or last.startswith("~"):
        return False, False, False
    return False, False, lemmatize(text) in VERB_LEMMAS


def _to_active_voice(reading: ParsedStatement) -> ParsedStatement:
    """Convert passive to active voice: "it is written by Ana" becomes "Ana writes it"."""
    items = list(reading.items)
    for verb in [item for item in items if item.passive]:
        items = _move_agent_first(items, items.index(verb))
    return replace(reading, items=tuple(items))


def _move_agent_first(items: list[ParsedWord], verb: int) -> list[ParsedWord]:
    role = items[verb].role
    agent = [n for n in range(verb + 1, len(items)) if items[n].role == f"{role} by".strip() and not items[n].is_time]
    if all(items[n].is_number_or_time for n in agent):
        return items
    patient = [n for n in range(verb) if items[n].role == role]
    rest = [item for n, item in enumerate(items) if n not in {verb, *agent, *patient}]
    done = [replace(items[n], role=role) for n in agent] + [replace(items[verb], passive=False)]
    return [*done, *(items[n] for n in patient), *rest]


def _normalize_preference(reading: ParsedStatement) -> ParsedStatement:
    """Give preferences one form, whether they are written with prefer to, prefer over, or like more than."""
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


def _normalize_use_as(reading: ParsedStatement) -> ParsedStatement:
    """Convert "use as" to "be": "Ana uses the attic as a study" becomes "the attic is her study"."""
    items = list(reading.items)
    use = next((n for n, item in enumerate(items) if item.lemma == "use" and not item.passive), 0)
    first = next((n for n, item in enumerate(items) if n > use and item.role == "as"), 0)
    if not (use and first) or any(item.capital for item in items if item.role == "as"):
        return reading
    user = replace(items[use - 1], role="of")
    plain = ParsedWord(surface="=be", lemma="=be", role=PLAIN_VERB_ROLE, past=items[use].past, finite=items[use].finite)
    rest = [replace(item, role="" if item.role == "as" else item.role) for item in items[first:]]
    return replace(reading, items=(*items[: use - 1], user, *items[use + 1 : first], plain, *rest))
