"""Clauses and appositions of a statement, and which clauses stay true when a newer text changes another one. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from newton.heart.statements.change_cues import load_cues
from newton.heart.statements.change_features import StatementOutline, outline
from newton.heart.statements.parser import parse_statement
from newton.text import english
from newton.text.english import AUXILIARIES, MARKERS, VERB_LEMMAS, lemmatize
from newton.text.languages import ENGLISH, detect_language
from newton.text.numerals import DAYS, MONTHS

# Adjectives that may stand between an owner and a name that is itself the noun: "our old Toyota".
_ADJECTIVE_LIST = """
    beloved big black blue brand current dear dirty entire external famous favourite favorite few first former green
    grey gray internal large last late latest little local main many modern new next nice old only other own poor
    previous primary red same second secondary shiny single small third two usual used white whole yellow young
"""
_ADJECTIVES = frozenset(_ADJECTIVE_LIST.split())
# Words besides verbs that may follow a name. Before a noun the name only describes it: "the internal Kafka cluster".
_FOLLOWER_LIST = """
    also always already and but can cannot could just may might must never no not now often only or really shall should
    still that usually who whose will would
"""
_FOLLOWERS = frozenset(_FOLLOWER_LIST.split())

_TITLE = r"(?:(?:Mr|Mrs|Ms|Dr|St|Prof)\.? )?"
_PARTICLES = r"(?:(?:al|bin|da|de|del|den|der|di|du|el|la|le|ter|van|von) )*"
_NAME = rf"(?!I\b){_TITLE}{_PARTICLES}[A-Z][\w-]*(?: {_PARTICLES}[A-Z][\w-]*){{0,2}}"
_OWNER = r"(?:[Mm]y|[Oo]ur|[Tt]he|[A-Z][\w-]*['’]s)"
_ROLE = rf"(?P<role>{_OWNER} (?:[a-z][\w-]*\.? ){{0,3}}[a-z][\w-]*)"
_FORMS = (
    re.compile(rf"(?<![\w'’-]){_ROLE} (?P<name>{_NAME}(?: and {_NAME})?)(?![\w-])"),
    re.compile(rf"(?<![\w'’-]){_ROLE}, (?P<name>{_NAME}),"),
    re.compile(rf"(?<![\w'’-])(?P<name>{_NAME}), {_ROLE},"),
)
_NEXT_WORD = re.compile(r" ([a-z][\w-]*)")


class NameApposition(NamedTuple):
    """A name, and as `role` the phrase that describes it, such as "our plumber"."""

    name: str
    role: str

    @property
    def noun(self) -> str:
        """The last word of the role, such as "plumber"."""
        return self.role.split()[-1]

    @property
    def statement(self) -> str:
        """The apposition as a sentence, such as "Theo is our plumber."."""
        owner, rest = self.role.split(maxsplit=1)
        owner = owner if owner.endswith(("'s", "’s")) else owner.lower()
        return f"{self.name} {'are' if ' and ' in self.name else 'is'} {owner} {rest}."


def find_appositions(text: str) -> list[NameApposition]:
    """Return the names in a text that a phrase beside them describes, each with this phrase.

    >>> [one.statement for one in find_appositions("Our plumber Theo charges 70 euros an hour.")]
    ['Theo is our plumber.']
    >>> find_appositions("She saw the stair I fell on.")
    []
    """
    matches = [match for form in _FORMS for match in form.finditer(text) if _may_end(text[match.end() :])]
    found = [_to_apposition(match) for match in matches]
    return list(dict.fromkeys(one for one in found if one and _is_noun_phrase(one.role)))


def _may_end(rest: str) -> bool:
    """Return whether a name may end before `rest`, the text after it. In "the internal Kafka cluster" it may not."""
    found = _NEXT_WORD.match(rest)
    if not found:
        return True
    word = found[1]
    is_verb = lemmatize(word) in VERB_LEMMAS or word.endswith(("s", "ed"))
    return is_verb or word in AUXILIARIES or word in MARKERS or word in _FOLLOWERS


def _to_apposition(match: re.Match[str]) -> NameApposition | None:
    """Return the apposition of a match; None if it is a date, or if a plural describes a single name.

    A singular describes only the first of two names: of "my brother Tom and Eva" only Tom is the brother.
    """
    name, role = match["name"], match["role"]
    if _is_date(name):
        return None
    is_plural = role.endswith("s") and not role.endswith("ss")
    names = name.split(" and ")
    if is_plural != (len(names) > 1):
        if is_plural:
            return None
        name = names[0]
    return NameApposition(name, role)


def _is_date(name: str) -> bool:
    return name.split(maxsplit=1)[0].lower() in DAYS.keys() | MONTHS.keys()


def _is_noun_phrase(role: str) -> bool:
    """Return whether the words after the owner are one noun phrase. The first may look like a verb ("my coach")."""
    words = [word.lower() for word in role.split()[1:]]
    if words[-1] in _ADJECTIVES or any(word in MARKERS or word in AUXILIARIES for word in words):
        return False
    return not any(lemmatize(word) in VERB_LEMMAS or word.endswith("ed") for word in words[1:])


MAX_SUBJECT_WORDS = 6

_NO_TITLE = r"(?<!\b[Mm]r)(?<!\bMs)(?<!\b[Dd]r)(?<!\bSt)(?<!\b[Mm]rs)(?<!\bProf)"
_BOUNDARY = re.compile(
    rf"{_NO_TITLE}[.!?]\s+|\s*;\s*|\s+[–—]\s+|,?\s+(?:and|but|so|while)\s+|,\s+",
    re.IGNORECASE,
)
_JOINT = re.compile(r"\s*;\s+|,?\s+(?:and|but)\s+|,\s+")
_JOINED = re.compile(r",? (?:and|but|so|while)$", re.IGNORECASE)
_SENTENCE_END = re.compile(rf"{_NO_TITLE}[.!?]\s+[A-Z]")
_PART = re.compile(rf"{_NO_TITLE}[.;!?](?:\s+|$)|,?\s+(?:and|but|so|while)\s+", re.IGNORECASE)
_WORD = re.compile(r"[\w'’.&/-]*\w")
_CONTRACTED = re.compile(r"(?:i|we|you|he|she|it|they)(?=['’](?:s|m|re|ve|d|ll)\b)", re.IGNORECASE)
_PLACED = re.compile(r"[:,] (?=[A-Z][\w-]+ (?:in|at|near|from) )")
_PLACED_ITEM = re.compile(r"([A-Z][\w-]+) (?:in|at|near|from) [\w' -]+")
# A noun phrase that is true without what follows it: "a nurse with a caseload out of Govanhill".
_KIND = re.compile(r"(?:is|are|am) an? (?:[a-z-]+ ){0,2}?[a-z-]+(?= (?:with|who|which) )")
_OTHER_KIND = re.compile(
    r"\b(?:is|are|am|was|as|becomes?|became) (?:now )?(?:an?|the|my|our)\b|'(?:s|m|re) (?:now )?an?\b", re.IGNORECASE
)
# The form of each auxiliary, of which the last fit any subject.
_AUXILIARIES = {
    "third": "is was has does isn't wasn't hasn't doesn't",
    "bare": "am are were have do aren't weren't haven't don't",
    "any": "had did hadn't didn't can can't cannot will won't must should would could may might",
}
_HELPERS = {word: form for form, words in _AUXILIARIES.items() for word in words.split()}
_CLEAR_VERBS = "belong bring come eat get go grow keep know live meet pay sing sleep speak teach wear weigh"
_NEVER_NOUNS = frozenset(_CLEAR_VERBS.split())
_ADVERBS = re.compile(
    r"(?:also|now|still|usually|often|never|always|currently|only|just|mostly|normally) ", re.IGNORECASE
)
_PRONOUNS = frozenset({"he", "she", "it", "they", "we"})
# The verb after one of these may belong to another clause than that of the subject.
_DEPENDENT = re.compile(
    r"\b(?:that|who|whom|whose|which|what|where|when|whenever|while|if|unless|until|till|because|although|though|whether"
    r"|as|than|so|then|therefore|instead|both|either|neither|says?|said|thinks?|hopes?|wants?|wishes|plans?|like)\b"
    r"|\bto (?!the|a|an|my|his|her|our|their|\d|[A-Z])\w",
    re.IGNORECASE,
)
_REPORTED = re.compile(r"\b(?:that|if|because|when|while|unless|says?|said|thinks?)\b", re.IGNORECASE)
# A clause with one of these is not understood alone.
_REFERENCE = re.compile(
    r"\b(?:he|she|it|they|him|her|his|hers|them|their|its|there|this|that|these|those|other|same|latter|so|then|when"
    r"|while|if)\b",
    re.IGNORECASE,
)
_DEFINITE = re.compile(r"the\b", re.IGNORECASE)
_PLURAL = re.compile(
    r"^(?:I|we|they|you)$|\band\b|^(?:(?:my|our|the|his|her|their|these|those|\w+['’]s) )?(?:[\w-]+ )*[a-z]?\w+s$",
    re.IGNORECASE,
)
# What ends in other words than these may be what all clauses are about: "Luna died."
_ENDS_IN_PART = re.compile(
    r"\b(?:no (?:longer|more)|any ?(?:longer|more)|back (?:from|to normal)|repaired|fixed|recovered|lifted)\b",
    re.IGNORECASE,
)
_LEAVES = re.compile(r"\b(?:dead|gives notice|gave notice|laid down|leaves|leaving|resign(?:s|ed))\b", re.IGNORECASE)


class _Clause(NamedTuple):
    """A clause with its subject, the form of its verb ("third", "bare", "past" or "any") and its predicate."""

    subject: str
    form: str
    predicate: str

    @property
    def text(self) -> str:
        return f"{self.subject} {self.predicate}"


class _Part(NamedTuple):
    """A part of a statement. `is_whole` is False if it is no sentence; `about` is text that adds to its topic."""

    text: str
    is_whole: bool = True
    about: str = ""


def split_clauses(text: str) -> list[str]:
    """Return the clauses of a text. A part without a verb is joined to the clause before or after it.

    >>> split_clauses("The plumber is Mr. Tanner, he charges 60 an hour.")
    ['The plumber is Mr. Tanner', 'he charges 60 an hour.']
    >>> split_clauses("In May, Ana got a dog and a cat.")
    ['In May, Ana got a dog and a cat.']
    """
    clauses, start, end = list[str](), 0, 0
    for boundary in [*_BOUNDARY.finditer(text), None]:
        part_end = boundary.start() if boundary else len(text)
        if _has_verb(text[start:end]) and _has_verb(text[end:part_end]):
            clauses.append(text[start:end])
            start = end
        end = boundary.end() if boundary else end
    return [clause.rstrip(" ,;–—") for clause in (*clauses, text[start:])]


def split_alone(text: str) -> list[str]:
    """Return the clauses of an English text if each is a sentence of its own, else only the text.

    >>> split_alone("I'm Graham and I drive the 42 taxi."), split_alone("I live in Leeds and work as a joiner.")
    (["I'm Graham", 'I drive the 42 taxi.'], ['I live in Leeds and work as a joiner.'])
    """
    clauses = split_clauses(text) if detect_language(text) == ENGLISH else [text]
    return [_JOINED.sub("", one) for one in clauses] if all(map(_has_subject, clauses)) else [text]


def find_subject(clause: str) -> str:
    """Return the subject of a clause; "" if it is not clear.

    >>> find_subject("My son Ben is a cook."), find_subject("we're in Oslo"), find_subject("lives in Oslo")
    ('My son Ben', 'we', '')
    """
    contracted, read = _CONTRACTED.match(clause), _read_clause(clause)
    return contracted[0] if contracted else read.subject if read else ""


def begins_with_verb(clause: str) -> bool:
    """Return whether a clause has no subject of its own: "lives in Oslo"."""
    words = _WORD.findall(clause)
    return len(words) > 1 and bool(_find_form(words[0]))


def refers_to_other(clause: str) -> bool:
    """Return whether a clause may not be understood without another one."""
    return _REFERENCE.search(clause) is not None


def _has_subject(clause: str) -> bool:
    first, *others = _WORD.findall(clause) or [""]
    is_verb = bool(_find_form(first)) or _ADVERBS.match(clause) or _DEPENDENT.match(clause)
    return bool(others) and not is_verb and _has_verb(clause)


def list_untouched(older: str, newer: str, besides: Sequence[str] = ()) -> list[str]:
    """Return the clauses of an older English statement that a newer text leaves true, as sentences of their own.

    A clause is left if neither the newer text nor the texts `besides` share a word with it that no other clause has.
    Nothing is returned in doubt: if a part of the newer text is about no clause, or if it says that something ended.

    >>> list_untouched("Luna is a beagle, weighs 12 kg and gets Apoquel.", "Luna no longer gets Apoquel.")
    ['Luna is a beagle.', 'Luna weighs 12 kg.']
    >>> list_untouched("Kim lives in Leeds and works as a joiner.", "Kim moved from Leeds to York.")
    ['Kim works as a joiner.']
    >>> list_untouched("Kim lives in Leeds and works as a joiner.", "Kim starts in York.")
    []
    """
    has_ended = load_cues().cues["cessation"].search(_ENDS_IN_PART.sub("", newer)) or _LEAVES.search(newer)
    if has_ended or _SENTENCE_END.search(older) or detect_language(older) != ENGLISH:
        return []
    parts = list(_list_parts(older, newer))
    outlines = [outline(f"{part.text} {part.about}") for part in parts]
    counts = Counter(topic for one in outlines for topic in _list_topics(one))
    topics = [{topic for topic in _list_topics(one) if counts[topic] == 1} for one in outlines]
    newer_topics = [_list_topics(outline(text)) for text in _PART.split(newer) if text.strip()]
    # numbers, days and relations alone do not show what a text is about
    main = [own & one.stems - one.numbers - one.scopes for own, one in zip(topics, outlines, strict=True)]
    if not all(any(text & own for own in main) for text in newer_topics):
        return []
    said = frozenset[str]().union(*newer_topics, *(_list_topics(outline(text)) for text in besides))
    return [
        f"{part.text[:1].upper()}{part.text[1:]}."
        for part, own in zip(parts, topics, strict=True)
        if part.is_whole and own and not own & said and not _REFERENCE.search(part.text)
    ]


def _list_topics(one: StatementOutline) -> frozenset[str]:
    """Return the word stems of a statement, and the names of its single-valued relations, marked by `=`."""
    return one.stems | {f"={name}" for name in one.single}


def _has_verb(text: str) -> bool:
    return any(item.finite or item.is_plain_verb for item in parse_statement(text).items)


def _list_parts(older: str, newer: str) -> Iterator[_Part]:
    """Yield the parts of a statement that can change independently; none if the division is uncertain."""
    clauses = _split_predicates(older.strip().rstrip("."))
    for n, clause in enumerate(clauses):
        kind = None if _OTHER_KIND.search(newer) else _KIND.match(clause.predicate)
        if kind:
            yield _Part(f"{clause.subject} {kind[0]}")
            yield _Part(f"{clause.subject}{clause.predicate[kind.end() :]}", is_whole=False)
        elif placed := list(_list_placed(clause)):
            yield from placed
        else:
            is_other = n > 0 and (_DEFINITE.match(clause.subject) or _REFERENCE.search(clause.text))
            yield _Part(clause.text, about=clauses[0].subject if is_other else "")


def _list_placed(clause: _Clause) -> Iterator[_Part]:
    """Yield the parts of a clause such as "I have two sisters, Ana in Porto and Rita in Leeds"."""
    head, *rest = _PLACED.split(clause.text, maxsplit=1)
    items = [_PLACED_ITEM.fullmatch(one) for one in re.split(r", (?:and )?| and ", rest[0])] if rest else []
    if len(items) > 1 and all(items):
        yield _Part(head)
        yield from (_Part(one[0].replace(f"{one[1]} ", f"{one[1]} is ", 1)) for one in items if one)


def _split_predicates(text: str) -> list[_Clause]:
    """Return the clauses of a text, each with its subject, also if it is shared; none if the division is uncertain."""
    found, start, subject, is_listed = list[_Clause](), 0, "", False
    for joint in _JOINT.finditer(text):
        left, right = _read_clause(f"{subject} {text[start : joint.start()]}"), text[joint.end() :]
        if not left:
            continue
        mark = joint[0].strip()
        if mark != ";" and _continues(left, right):
            subject, is_listed = left.subject, mark == ","
        elif not is_listed and _begins(left, right, mark):
            subject = ""
        else:
            continue
        found.append(left)
        start = joint.end()
    last = _read_clause(f"{subject} {text[start:]}")
    return [*found, last] if last and not is_listed else []  # a list has "and" before its last part


def _read_clause(text: str) -> _Clause | None:
    """Return a text as a clause; None if its subject or its verb are not clear, or if it has only a verb."""
    text = text.strip()
    words = list(_WORD.finditer(text))
    for before, word in pairwise(words[: MAX_SUBJECT_WORDS + 1]):
        subject, last = text[: word.start()].strip(), before[0].lower().replace("’", "'")
        form = _find_form(word[0]) or ("bare" if subject.lower() in ("i", "we", "they") else "")
        if not form or last.endswith("'s") or last in english.DETERMINERS | english.POSSESSIVES:
            continue
        if last in english.MARKERS or (form == "bare" and not _PLURAL.search(subject)):
            continue
        is_clear = word is not words[-1] and not _JOINT.search(subject) and not _DEPENDENT.search(subject)
        return _Clause(subject, form, text[word.start() :]) if is_clear else None
    return None


def _find_form(word: str) -> str:
    """Return the form of a finite verb: "third", "bare", "past" or "any"; "" for a word that is no verb."""
    plain = word.replace("’", "'").lower()
    if plain in _HELPERS or plain != word:
        return _HELPERS.get(plain, "")
    if plain in english.PAST_FORMS or (plain.endswith("ed") and len(plain) > 4 and not plain.endswith("eed")):
        return "past"
    if not _is_never_noun(plain) and lemmatize(plain) not in VERB_LEMMAS:
        return ""
    if plain in english.VERBS or plain in _NEVER_NOUNS:
        return "bare"
    return "third" if plain.endswith("s") and not plain.endswith("ss") else ""


def _is_never_noun(verb: str) -> bool:
    return bool({verb, verb.removesuffix("s"), verb.removesuffix("es")} & _NEVER_NOUNS)


def _begins(left: _Clause, right: str, mark: str) -> bool:
    """Return whether a text begins with a clause that has a subject of its own."""
    clause = _read_clause(_JOINT.split(right, maxsplit=1)[0])
    if clause is None or len(clause.subject.split()) > MAX_SUBJECT_WORDS:
        return False
    first = clause.subject.split()[0]
    known = english.DETERMINERS | english.POSSESSIVES | _PRONOUNS
    if not first[0].isupper() and first.lower() not in known:
        return False
    return mark == ";" or (mark != "," and not _REPORTED.search(left.text))


def _continues(left: _Clause, right: str) -> bool:
    """Return whether the text after a mark begins with another predicate of the same subject, in the same verb form."""
    words = _WORD.findall(_ADVERBS.sub("", right, count=1) if _ADVERBS.match(right) else right)
    form = _find_form(words[0]) if len(words) > 1 else ""
    if not form or _DEPENDENT.search(left.predicate):
        return False
    if form == "any" or form != left.form or form == "past" or words[0] in _HELPERS or _is_never_noun(words[0]):
        return form in ("any", left.form)
    # the word may be a noun: "grows roses and plants in the garden"
    following, last = words[1], _WORD.findall(left.predicate)[-1]
    if following.lower() in english.DETERMINERS | english.POSSESSIVES or not following.islower():
        return True
    return following.endswith("ly") or (following in english.MARKERS and not (last.islower() and last.endswith("s")))
