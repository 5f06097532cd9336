"""The facts on a person by section, such as health or plans, without a model. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import NamedTuple
from uuid import UUID

from newton.heart.identity import user_names
from newton.heart.persons.person_words import load_words
from newton.memory.memory import PERSON_TIERS, Trust
from newton.text import names as proper_names
from newton.text.chat_lines import is_quoted_line
from newton.text.time_expressions import find_last_end, remove_resolved_dates

NAME, PEOPLE, PLANS, OTHER, ENDED = "name", "people", "plans", "other", "ended"
TITLES: Mapping[str, str] = {
    NAME: "Name",
    "home": "Home",
    "work": "Work",
    PEOPLE: "People",
    "pets": "Pets",
    "health": "Health and limits",
    "tastes": "Tastes",
    "habits": "Habits",
    PLANS: "Plans",
    "manner": "Ways of working",
    OTHER: "Other",
    "added": "New",
    "replaced": "Changed",
    ENDED: "Ended",
}  # in the order in which they are shown
FIRST_FACTS = 3  # of a section, which come before more of the next sections
USER = "user"  # the subject of facts on the user


class PersonFact(NamedTuple):
    """A fact as it may be shown in a profile. `total` is the number of all facts that were asked for; of one that holds
    no longer, 0.

    `rivals` are the facts that contradict it, of a settled fact those in whose place it stands; `before` is the text of
    the latest of these.
    `is_over` means that the days of a plan, or those until which something holds, are past.
    """

    memory_id: UUID
    text: str
    language: str
    subject: str | None
    state: str
    trust: Trust
    valid_to: datetime | None
    told_at: datetime
    total: int
    rivals: Collection[UUID] = ()
    before: str = ""
    is_over: bool = False


def settle_facts(facts: Sequence[PersonFact], *, now: datetime) -> list[PersonFact]:
    """Return the facts with the latest of those that contradict each other, and whether each is over by its words.

    Only what a person states stands in the place of others, and in that of none that is core. Nothing stored changes:
    the others stay unsettled until a person decides.
    """
    latest_first = sorted(facts, key=lambda one: (one.told_at, one.memory_id), reverse=True)
    known, settled = {one.memory_id: one for one in facts}, dict[UUID, PersonFact]()
    dropped = set[UUID]()
    for one in latest_first:
        if one.memory_id not in dropped:
            may_replace = one.trust in PERSON_TIERS and not is_quoted_line(one.text)
            older = [known[rival] for rival in one.rivals if may_replace and rival in known and rival not in settled]
            older = [other for other in older if other.state != "CORE"]
            before = max(older, key=lambda other: other.told_at).text if older else ""
            rivals = tuple(other.memory_id for other in older)
            dropped |= {*rivals}
            settled[one.memory_id] = one._replace(rivals=rivals, before=before, is_over=_is_over(one, now))
    return [settled[one.memory_id] for one in facts if one.memory_id in settled]


def _is_over(fact: PersonFact, now: datetime) -> bool:
    is_plan = classify_text(fact.text, fact.language) == PLANS
    end = find_last_end(fact.text, moment=fact.told_at, only_limits=not is_plan)
    return end is not None and fact.told_at < end <= now


@lru_cache(maxsize=32_768)
def classify_text(text: str, language: str) -> str:
    """Return the section to which a statement belongs, by its words.

    >>> [classify_text(one, "en") for one in ("I can't eat nuts.", "My sister is Mara.", "Hiya, Moira here.")]
    ['health', 'people', 'name']
    """
    text = remove_resolved_dates(text)
    found = (name for name, pattern in load_words(language).sections.items() if pattern.search(text))
    return next(found, None) or (NAME if user_names.find_names([text]) else OTHER)


@lru_cache(maxsize=32_768)
def _is_own(text: str, language: str) -> bool:
    """Return whether a person speaks of themselves or of what is theirs."""
    return load_words(language).own.search(text) is not None


def group_user_facts(facts: Sequence[PersonFact]) -> dict[str, list[PersonFact]]:
    """Return the facts on the user by section, each the most certain first, then the latest; all others at the end.

    A fact on somebody whom the user calls theirs ("our dog Bruno") stands with the one that says so, and what somebody
    else said of themselves with the people.
    """
    spoken = {one.memory_id for one in facts if is_quoted_line(one.text)}
    own = [
        one for one in facts if one.memory_id not in spoken and (one.subject == USER or _is_own(one.text, one.language))
    ]
    placed = {one.memory_id: classify_text(one.text, one.language) for one in own} | dict.fromkeys(spoken, PEOPLE)
    known = dict[str, str]()
    for one in own:
        if (section := placed[one.memory_id]) in (PEOPLE, "pets", "health"):
            known |= dict.fromkeys(_list_names(one.text), section)
    for one in facts:
        if one.memory_id not in placed:
            owner = next((section for name, section in known.items() if one.text.startswith(name)), None)
            section = classify_text(one.text, one.language)
            placed[one.memory_id] = section if owner is None or section == "health" else owner
    _place_beside(facts, placed)
    is_other = {one.memory_id for one in facts} - {one.memory_id for one in own}
    return _group(facts, placed, last=is_other)


def _place_beside(facts: Sequence[PersonFact], placed: dict[UUID, str]) -> None:
    """Place facts of no section with those that were told in the same message, which say what they are about."""
    ordered = sorted(facts, key=lambda one: (one.told_at, one.memory_id))
    for line in (ordered, ordered[::-1]):
        for before, one in pairwise(line):
            if placed[one.memory_id] == OTHER and before.told_at == one.told_at:
                placed[one.memory_id] = placed[before.memory_id]


def group_facts(facts: Sequence[PersonFact]) -> dict[str, list[PersonFact]]:
    """Return the facts on somebody else than the user by section."""
    return _group(facts, {one.memory_id: classify_text(one.text, one.language) for one in facts})


def rank_facts(sections: Mapping[str, Sequence[PersonFact]]) -> list[PersonFact]:
    """Return the facts in the order in which they get room: the first ones of each section, then the next ones.

    What holds no longer comes last.
    """
    groups = [
        [facts[start : start + FIRST_FACTS] for start in range(0, len(facts), FIRST_FACTS)]
        for facts in sections.values()
    ]
    ranked = [one for turn in zip_longest(*groups, fillvalue=()) for part in turn for one in part]
    return sorted(ranked, key=lambda one: one.total == 0)


def find_relations(facts: Iterable[PersonFact], name: str) -> set[str]:
    """Return the words by which the user calls somebody theirs, such as "my girlfriend", in facts that name them so."""
    found = set[str]()
    for one in facts:
        for match in load_words(one.language).relation.finditer(one.text):
            rest = one.text[match.end() :].lstrip(" ,")
            names = _list_names(one.text)
            if rest.startswith(name) or (names == [name] and one.text.startswith((name, match[0]))):
                found.add(match[0].casefold())
    return found


def find_related_names(facts: Iterable[PersonFact], role: str) -> set[str]:
    """Return the names of somebody whom the user calls by a role, such as "my girlfriend"."""
    found = set[str]()
    for one in facts:
        start = one.text.casefold().find(role.casefold())
        rest = one.text[start + len(role) :].lstrip(" ,") if start >= 0 else ""
        names = _list_names(rest)[:1]
        found |= {name for name in names if rest.startswith(name) or len(_list_names(one.text)) == 1}
    return found


@lru_cache(maxsize=32_768)
def _list_names(text: str) -> list[str]:
    return [mention.text for mention in proper_names.find_names(text)]


def _group(
    facts: Sequence[PersonFact], placed: Mapping[UUID, str], *, last: Iterable[UUID] = ()
) -> dict[str, list[PersonFact]]:
    behind = set(last)
    ordered = sorted(facts, key=lambda one: (one.memory_id in behind, one.state == "NEW", -one.told_at.timestamp()))
    sections = {one.memory_id: ENDED if one.is_over else placed[one.memory_id] for one in facts}
    groups = {section: [one for one in ordered if sections[one.memory_id] == section] for section in TITLES}
    return {section: found for section, found in groups.items() if found}
