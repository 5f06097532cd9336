"""Slots that have one value at a time, such as where one lives or who one's dentist is, and events that end them. Pure.

`slots.yaml` has the role words, sentences and events of each language.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.heart.statements.change_cues import load_cues
from newton.text.english import VERB_LEMMAS, lemmatize
from newton.text.languages import ENGLISH, detect_language, load_language
from newton.text.numerals import CARDINALS
from newton.text.patterns import compile_any, has_ended
from newton.text.stems import stem_word
from newton.text.words import list_terms, split_words

SPEAKER, ANYONE = "speaker", "anyone"
PASSING = ""  # the value of a slot of whose holder a statement says a passing state, as "my dentist is ill" does
PLACE = "place"  # the slot of what somebody does in a place, which only what is said to be so now fills anew
MAX_VALUE = 40  # characters
MAX_OBJECT = 2  # words of content behind "sold" that may be what is sold
_SPEAKERS = split_words("i we my our ich wir yo nosotros je nous on io noi eu nós ik we wij я мы 我 我们 私 僕")
_UNKNOWN = split_words("he she it they you er sie es du él ella il elle lui lei ele ela hij ze он она 他 她 and")
_OWNER = re.compile(r"\w+['’]s\b")  # "my brother's wife" is not about the brother
_ACTING_NAME = re.compile(r"(?P<name>[A-Z]\w+) (?:no longer|never|now|\w+(?:s|ed|n't)(?<!\bis)(?<!\bwas))(?!\w)")
# Two persons may share a surname: "Anna Smith", "Carla Smith".
_FULL_NAME = re.compile(r"(?P<first>[A-Z]\w+)(?: [A-Z]\w+)*? (?P<last>[A-Z]\w+)(?! [A-Z])")
_CLAUSE_END = re.compile(r"[,;:!?\n，。；：！？]|\.(?=\s|$)(?<!\b[DM]r\.)(?<!\bMrs\.)")
_BE = re.compile(r"(?:\b(?:is|are|was|were|has|have|been|got)|['’]s) $", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVES = split_words("my our mein meine unser unsere mi mon ma mio mia meu minha mijn ons onze мой моя")


class Slot(NamedTuple):
    """The value that a statement gives a slot of its owner, `speaker` for the person, `anyone` if it is not said."""

    owner: str
    name: str
    value: str


def find_slots(text: str, code: str) -> list[Slot]:
    """Return the slots that a statement in the language `code` fills.

    >>> find_slots("My new dentist is Dr. Peeters.", "en"), find_slots("I moved to Linz.", "en")
    ([Slot(owner='speaker', name='dentist', value='Dr. Peeters')], [Slot(owner='speaker', name='lives', value='Linz')])
    """
    return list(dict.fromkeys(slot for slot, is_denied in _iter_slots(text, code) if not is_denied))


def explain_slot_change(older: str, newer: str, code: str) -> str:
    """Return why the newer of two statements gives a slot of the older one another value, or ends it; "" if not.

    >>> explain_slot_change("My dentist is Dr. Claes.", "My new dentist is Dr. Peeters.", "en")
    "both name the one 'dentist'"
    >>> explain_slot_change("My dentist is Dr. Claes.", "My daughter's dentist is Dr. Peeters.", "en")
    ''
    """
    cues, patterns = load_cues().cues, _load_patterns(code)
    if cues["addition"].search(newer) or cues["past"].search(older):
        return ""
    is_now = patterns.present.search(newer) is not None
    is_limited = cues["scope"].search(newer) or has_ended(newer, code)
    for old in () if is_limited else find_slots(older, code):
        for new in find_slots(newer, code):
            is_owned = new.name == old.name and new.owner in (old.owner, ANYONE)
            is_other = PASSING not in (old.value, new.value) and not _list_stems(old.value, code) & _list_stems(
                new.value, code
            )
            if is_owned and is_other and (is_now or old.name != PLACE):
                return f"both name the one {old.name!r}"
    return _explain_event(older, newer, code) or _explain_ended_name(older, newer, code)


def denies_another_value(older: str, newer: str, code: str) -> bool:
    """Return whether the newer statement denies another value than the one which the older one states.

    >>> older, denied = "My boss is Mr. Wood.", ("not Mr. Hill", "not Mr. Wood", "no longer Mr. Wood")
    >>> [denies_another_value(older, f"My boss is {one}.", "en") for one in denied]
    [True, False, False]
    """
    if _negation(code).search(older):
        return False
    held = find_slots(older, code)
    for new in (slot for slot, is_denied in _iter_slots(newer, code) if is_denied):
        if any(old.name == new.name and not _is_named(old.value, newer, code) for old in held):
            return True
    clauses = (one for one in _CLAUSE_END.split(newer) if _negation(code).search(one))
    others = {before for one in clauses for before, name in _list_named(one) if name not in older}
    return any(before in others and name not in newer for before, name in _list_named(older))


def says_present(text: str, code: str) -> bool:
    """Return whether a statement in the language `code` says that something is so now, and not in addition."""
    return _load_patterns(code).present.search(text) is not None and not load_cues().cues["addition"].search(text)


def names_kin(older: str, newer: str, code: str) -> bool:
    """Return whether the older statement says who a relative is, and the newer one says something of that person.

    >>> [names_kin("My sister is Mara.", newer, "en") for newer in ("Mara is back from Lisbon.", "It is Ana.")]
    [True, False]
    """
    if not (kin := _load_patterns(code).kin) or not (found := kin.match(older)):
        return False
    return re.search(rf"(?<!\w){re.escape(found['name'])}(?!\w)", newer, re.IGNORECASE) is not None


def says_passing_state(older: str, newer: str, code: str) -> bool:
    """Return whether the newer statement says a passing state of somebody whom the older one names.

    >>> says_passing_state("My dentist is Dr. Claes.", "My dentist is on holiday.", "en")
    True
    """
    held = {one.name for one in find_slots(older, code) if one.value}
    return any(one.name in held and one.value == PASSING for one in find_slots(newer, code))


def concerns_another(older: str, newer: str, code: str) -> bool:
    """Return whether two statements are about different persons, of whom the newer one does not name the older one's.

    >>> older = "I take Eliquis twice a day."
    >>> [concerns_another(older, f"{who} no longer takes it.", "en") for who in ("My neighbour", "Tom", "She")]
    [True, True, False]
    >>> concerns_another("Anna Smith lives in Oslo.", "Carla Smith lives in Bergen.", "en")
    True
    """
    patterns = _load_patterns(code)
    if (one := _FULL_NAME.match(older)) and (other := _FULL_NAME.match(newer)) and one["last"] == other["last"]:
        return one["first"] != other["first"]
    old, new = patterns.person.match(older), patterns.person.match(newer)
    is_speaker = patterns.first.match(older) is not None
    if not new:
        acts = is_speaker and code == ENGLISH and not patterns.me.search(newer) and _ACTING_NAME.match(newer)
        common = load_language(code).words | _UNKNOWN
        return bool(acts) and acts["name"] not in older and acts["name"].casefold() not in common
    owns = newer[new.end() :].startswith(("'s", "’s"))
    is_known = old or is_speaker or ((owns or new["thing"]) and patterns.own.match(older))
    if not is_known or (not owns and patterns.me.search(newer, new.end())):
        return False
    own = next(one for one in patterns.persons if one.search(new["person"]))
    name = re.match(r"\W+(\w+)", newer[new.end() :])
    return not own.search(older) and not (name and name[1][:1].isupper() and name[1] in older)


def list_holders(text: str, code: str) -> list[str]:
    """Return the persons of whom a statement is: "son" of "my son has a car", "cousin" of "the car of my cousin".

    >>> list_holders("The dentist of my cousin Ana is ill.", "en"), list_holders("My son and I live here.", "en")
    (['cousin'], [])
    """
    patterns = _load_patterns(code)
    any_person = "|".join(one.pattern for one in patterns.persons)
    owned = rf"(?:{_read_data()[code]['own']}|the|an?|his|her|their)\s+(?:\w+\s+)?(?P<person>{any_person}|people)"
    found = re.finditer(rf"\bof\s+(?:{owned}|(?:the\s+)?(?P<name>(?-i:[A-Z])\w+))", text, re.IGNORECASE)
    subject = patterns.person.match(text)
    is_other = subject and not patterns.me.search(text, subject.end())
    return [*([subject["person"]] if subject and is_other else []), *(one["person"] or one["name"] for one in found)]


def _explain_ended_name(older: str, newer: str, code: str) -> str:
    """Return that the newer statement says of something which the older one names that it is over; "" if not."""
    patterns = _load_patterns(code)
    for term in () if _negation(code).search(older) else _list_terms(older):  # "my knee does not like stairs"
        for match in re.finditer(rf"(?<!\w){re.escape(term)}\w{{0,2}}(?!\w)", newer, re.IGNORECASE):
            if lemmatize(term) in VERB_LEMMAS or (code != ENGLISH and match[0].islower()):
                continue
            before, after = newer[: match.start()], newer[match.end() :]
            ended = patterns.ended_after.match(after)
            # "Ana no longer smokes" ends one thing about Ana
            is_of_subject = ended and older.startswith(match[0]) and after[ended.end() :].strip(" .!")
            if patterns.ended_before.search(before) or (ended and not is_of_subject):
                return f"the newer one says that {match[0]!r} is over"
    return ""


def _explain_event(older: str, newer: str, code: str) -> str:
    """Return the event of the newer statement that ends what the older one says, as a reason; "" if there is none."""
    shared, patterns = _list_stems(older, code) & _list_stems(newer, code), _load_patterns(code)
    for name, pattern in patterns.events.items():
        event = pattern.search(newer)
        if event is None or pattern.search(older):
            continue
        relation = patterns.relations.get(name)
        if relation:
            is_same = bool(shared) or _owner_of(older) == _owner_of(newer) == SPEAKER
            ends = is_same and relation.search(older) is not None
        elif name == "given_up":
            given_up = _list_terms(newer[event.end() :])[:MAX_OBJECT]
            ends = _is_subject(newer[: event.start()], older) and bool(shared & {*map(stem_word, given_up)})
        else:
            ends = bool(_list_stems(_said_of(newer, event), code) & _list_stems(_OWNER.sub(" ", older), code))
        if ends:
            return f"{event[0]!r} ends what the older one says"
    return ""


def _said_of(newer: str, event: re.Match[str]) -> str:
    """Return the part of a newer statement that names what is gone: "Rex" of "Rex is dead on the road", else all."""
    before = _CLAUSE_END.split(newer[: event.start()])[-1]
    return before if _BE.search(before) and _list_terms(before) else newer


def _is_subject(subject: str, older: str) -> bool:
    """Return whether who does something in a newer statement is the person, or is named in the older one."""
    terms = list_terms(subject)
    if not terms or (_SPEAKERS & {*terms}) - _POSSESSIVES:
        return True
    is_of_another = re.search(r"\w['’]s\b", subject) is not None
    return not is_of_another and bool(({*terms} - _POSSESSIVES) & {*list_terms(older)})


def _owner_of(text: str) -> str:
    """Return whom a statement is about: the person, or the first word behind a possessive."""
    terms = list_terms(text)[:2]
    return (
        next((term for term in terms if term not in _POSSESSIVES), SPEAKER)
        if not _SPEAKERS & {*terms[:1]} - _POSSESSIVES
        else SPEAKER
    )


class _Patterns(NamedTuple):
    roles: Mapping[str, str]
    role: tuple[re.Pattern[str], ...]
    values: Mapping[str, re.Pattern[str]]
    events: Mapping[str, re.Pattern[str]]
    relations: Mapping[str, re.Pattern[str]]
    ended_before: re.Pattern[str]
    ended_after: re.Pattern[str]
    present: re.Pattern[str]
    kin: re.Pattern[str] | None
    passing: re.Pattern[str]
    person: re.Pattern[str]
    persons: tuple[re.Pattern[str], ...]
    first: re.Pattern[str]
    own: re.Pattern[str]
    me: re.Pattern[str]


def _iter_slots(text: str, code: str) -> Iterator[tuple[Slot, bool]]:
    """Yield the slots that a statement names, each with whether it denies the value."""
    patterns, text = _load_patterns(code), text.replace("’", "'")
    for pattern in patterns.role:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            owner = _to_owner(groups.get("owner") or "", groups.get("own"))
            value = match["value"].strip()
            is_state = patterns.passing.fullmatch(value) is not None
            slot = Slot(owner, patterns.roles[match["role"].casefold()], PASSING if is_state else value)
            yield slot, not is_state and _is_denied(match, code)
    for name, pattern in patterns.values.items():
        if match := pattern.search(text):
            who = (match["who"] or "").casefold()
            if who not in _UNKNOWN:
                slot = Slot(SPEAKER if not who or who in _SPEAKERS else who, name, match["value"])
                yield slot, _is_denied(match, code)


def _is_denied(match: re.Match[str], code: str) -> bool:
    """Return whether a negation stands before the value, or anywhere in the clause in a language without spaces."""
    text, start = match.string, match.start("value")
    if load_language(code).is_spaced:
        found = _negation(code).search(text, match.start(), match.end())
        return found is not None and not any(one[0].isupper() for one in text[start : found.start()].split())
    clause = _CLAUSE_END.split(text[:start])[-1] + _CLAUSE_END.split(text[start:])[0]
    return _negation(code).search(clause) is not None


@cache
def _negation(code: str) -> re.Pattern[str]:
    return load_cues().cues["negation"] if code == ENGLISH else compile_any([load_language(code).negated])


def _list_named(text: str) -> list[tuple[str, str]]:
    """Return the capitalized words of a text, each behind the word before it."""
    return [(before.casefold(), word) for before, word in pairwise(_WORD.findall(text)) if word[:1].isupper()]


def _is_named(value: str, text: str, code: str) -> bool:
    return value.casefold() in text.casefold() or bool(_list_stems(value, code) & _list_stems(text, code))


def _to_owner(name: str, own: str | None) -> str:
    return name.casefold() if name else SPEAKER if own else ANYONE


@cache
def _load_patterns(code: str) -> _Patterns:
    data, is_spaced = _read_data()[code], load_language(code).is_spaced
    groups: list[list[str]] = [group.split("=") for group in str(data["roles"]).split("; ")]
    roles = {word.casefold(): group[0] for group in groups for word in group}
    words = "|".join(re.escape(role) for role in sorted(roles, key=len, reverse=True))
    gap, start, end = (r"\s+", r"(?<!\w)", r"(?!\w)") if is_spaced else ("", "", "")
    new, now, is_ = (f"(?:{data[name]})" for name in ("new", "now", "is"))
    value = rf"(?P<value>[^,.;:!?\n]{{2,{MAX_VALUE}}}(?:(?<=\b[DM]r)\.[^,.;:!?\n]{{2,{MAX_VALUE}}})?)"
    owner = rf"(?:(?P<own>{data['own']})|(?P<owner>[^\W\d_]\w+)['’]s)"
    role, copula = rf"(?P<role>{words})", rf"(?:{gap}{now})?\s*{is_}(?:\s+{now})?\s*"
    patterns = (
        rf"{start}{owner}{gap}(?:{new}{gap})?{role}{copula}{value}",
        rf"^{value}\s+{is_}{gap}(?:{now}{gap})?{owner}{gap}(?:{new}{gap})?{role}{end}",
        rf"{start}{data['have']}{gap}(?:\w+{gap})?{new}{gap}{role}[,:]?\s+{value}",
        rf"{start}(?:the|d(?:er|ie|as)|el|la|le|il|o|de|het){gap}{new}{gap}{role}{copula}{value}",
    )
    compiled = tuple(re.compile(one, re.IGNORECASE) for one in patterns)
    wrap = r"(?<!\w)(?:{})(?!\w)" if is_spaced else "{}"
    ended = (rf"{start}(?:{data['ended_before']})\W+(?:\w+\W+)?$", rf"\W+(?:{data['ended_after']}){end}")
    before, after, present = (re.compile(one, re.IGNORECASE) for one in (*ended, wrap.format(data["present"])))
    tables = [_compile_table(data.get(name, {}), wrap) for name in ("values", "events", "relations")]
    kin = rf"{owner}{gap}(?:\w+{gap})?(?:{data['kin']}){copula}(?P<name>\w+)\W*$" if "kin" in data else None
    kin_pattern = re.compile(kin, re.IGNORECASE) if kin else None
    persons = str(data["persons"]).split("; ")
    any_person = "|".join(one.replace("=", "|") for one in persons)
    adjective = rf"(?:\w+{gap})?" if is_spaced else ""
    thing, ending = (f"(?P<thing>{data['of']})?", r"\w{0,2}") if "of" in data else ("(?P<thing>(?!))?", "")
    subject = rf"{thing}(?:{data['own']}){gap}{adjective}(?P<person>{any_person}){ending}{end}"
    return _Patterns(
        roles,
        compiled,
        tables[0],
        tables[1],
        tables[2],
        before,
        after,
        present,
        kin_pattern,
        re.compile(data["passing"], re.IGNORECASE),
        re.compile(subject, re.IGNORECASE),
        tuple(re.compile(wrap.format(one.replace("=", "|")), re.IGNORECASE) for one in persons),
        *(re.compile(wrap.format(data[name]), re.IGNORECASE) for name in ("first", "own", "me")),
    )


def _compile_table(table: Mapping[str, str], wrap: str) -> dict[str, re.Pattern[str]]:
    return {key: re.compile(wrap.format(one), re.IGNORECASE) for key, one in table.items()}


@cache
def _read_data() -> Mapping[str, Any]:
    return parse_trusted(files("newton.heart.statements").joinpath("slots.yaml").read_text(encoding="utf-8"))


def _list_stems(text: str, code: str) -> frozenset[str]:
    """Return the stems of the words of content of a text."""
    common = load_language(code).words
    return frozenset(stem_word(term) for term in _list_terms(text) if term not in common)


def _list_terms(text: str) -> list[str]:
    """Return the words of content of a text in lower case, without numbers."""
    common = load_language(ENGLISH).words | load_language(detect_language(text)).words
    return [term for term in list_terms(text) if len(term) > 2 and term not in common and not _is_number(term)]


def _is_number(term: str) -> bool:
    return term.isdigit() or term in CARDINALS


def count_edits(first: str, second: str) -> int:
    """Return how many letters must be changed, added or removed between two short texts."""
    row = list(range(len(second) + 1))
    for n, letter in enumerate(first, 1):
        diagonal, row[0] = row[0], n
        for m, (other, (left, above)) in enumerate(zip(second, list(pairwise(row)), strict=True), 1):
            change = min(above + 1, row[m - 1] + 1, diagonal + (letter != other))
            diagonal, row[m] = above, change
            del left
    return row[-1]
