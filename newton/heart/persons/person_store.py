"""Reading of what is known of a person: facts by section, and the names of the user."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.identity.user_names import MAX_NAMES, find_address, find_known_names, find_names, introduces
from newton.heart.persons.person_questions import build_name_pattern
from newton.heart.persons.profile_sections import (
    ENDED,
    PEOPLE,
    PersonFact,
    classify_text,
    find_related_names,
    find_relations,
    group_facts,
    group_user_facts,
    settle_facts,
)
from newton.heart.statements.commitment import find_reading, is_in_role, list_unasserted
from newton.heart.statements.statement_candidates import mask_material
from newton.text.time_expressions import TimeRange
from newton.text.words import extract_content_words

SQL = load("newton.heart.persons", "person_facts.sql")

MAX_FACTS = 10_000  # that are read for a profile, the latest
MAX_ENDED = 100  # facts that hold no longer, the latest
MIN_AGE = timedelta(hours=1)  # of such a fact when another one replaced it; before, it is corrected
MIN_LOST_WORDS = 2  # of such a fact, that those in its place have not
MAX_SUBJECTS = 10  # of facts, that may be the user's name
MAX_CANDIDATES = 200  # texts of each kind that are searched for names


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRecord:
    """The profile of a person: names, and facts by section. `total` counts all facts, also those that were not read.

    `telling` are the memories from which the names of the user are.
    """

    names: Sequence[str] = ()
    telling: Sequence[UUID] = ()
    sections: Mapping[str, Sequence[PersonFact]] = field(default_factory=dict[str, Sequence[PersonFact]])
    total: int = 0


class PersonReader:
    """Reads the facts of an agent as of now, or as of a past `moment`."""

    def __init__(self, tx: Tx, agent_id: UUID, *, now: datetime, moment: datetime | None = None) -> None:
        self._tx, self._now = tx, now
        self._key = {"agent_id": agent_id, "now": now, "moment": moment}

    async def read_user(self) -> PersonRecord:
        """Return all that is known of the user."""
        facts = await self._list_facts()
        names, telling = await read_user_names(self._tx, agent_id=self._key["agent_id"])
        total, sections = facts[0].total if facts else 0, group_user_facts(facts)
        if ended := await self._list_ended():
            sections[ENDED] = [*sections.get(ENDED, ()), *ended]
        return PersonRecord(names=names, telling=telling, sections=sections, total=total)

    async def read_sections(self, sections: Sequence[str]) -> PersonRecord:
        """Return the latest facts on the user and theirs in these sections, without the others.

        What people said of themselves comes too if it is of these sections: who cooks must know the allergy of a guest.
        """
        facts = [one for one in await self._list_facts() if classify_text(one.text, one.language) in sections]
        groups = group_user_facts(facts)
        return PersonRecord(sections={name: groups[name] for name in (*sections, PEOPLE) if name in groups})

    async def read_other(self, who: str) -> PersonRecord:
        """Return all that is known of somebody with a name, a role such as "my girlfriend", or both."""
        terms = {who}
        facts = await self._list_facts(build_name_pattern(sorted(terms)))
        if not facts and " " in who:  # a role with a name, of which most facts have one
            terms = {who.rpartition(" ")[2], who.rpartition(" ")[0]}
            facts = await self._list_facts(build_name_pattern(sorted(terms)))
        found = {one for term in terms for one in (*find_relations(facts, term), *find_related_names(facts, term))}
        if added := found - {term.casefold() for term in terms} - terms:
            facts = await self._list_facts(build_name_pattern(sorted(terms | added)))
            shared = {one for one in added if find_related_names(facts, one) - terms}  # roles that others have too
            terms |= added - shared
            pattern = re.compile(build_name_pattern(sorted(terms)), re.IGNORECASE)
            facts = [one for one in facts if pattern.search(f"{one.subject} {one.text}")]
        ordered = sorted(terms, key=lambda one: (one.islower(), len(one)))
        return PersonRecord(names=ordered if facts else (), sections=group_facts(facts), total=len(facts))

    async def list_changes(self, span: TimeRange) -> dict[UUID, str]:
        """Return the facts that are new in a time, that newer ones replaced, or that ended, each with its section."""
        rows = await SQL["list_changes"].fetch_all(
            self._tx, **self._key, starts_at=span.start, ends_at=span.end, max_rows=MAX_FACTS
        )
        return {row["memory_id"]: row["section"] for row in rows}

    async def _list_ended(self) -> list[PersonFact]:
        """Return what holds no longer and says more than what is in its place, such as where a field lay."""
        if self._key["moment"]:
            return []
        key = {name: self._key[name] for name in ("agent_id", "now")}
        rows = await SQL["list_ended"].fetch_all(self._tx, **key, max_rows=MAX_ENDED, min_age=MIN_AGE)
        return [
            PersonFact(**dict(row) | {"before": "", "is_over": True})
            for row in rows
            if len(extract_content_words(row["text"]) - extract_content_words(row["before"])) >= MIN_LOST_WORDS
        ]

    async def _list_facts(self, names: str | None = None) -> list[PersonFact]:
        rows = await SQL["list_facts"].fetch_all(self._tx, **self._key, names=names, max_rows=MAX_FACTS)
        facts = settle_facts([PersonFact(*row) for row in rows], now=self._now)
        return [one._replace(total=one.total - len(rows) + len(facts)) for one in facts]


async def read_user_names(tx: Tx, *, agent_id: UUID) -> tuple[list[str], Sequence[UUID]]:
    """Return the names by which the user introduced themselves, and the memories from which they are."""
    rows = await SQL["list_introductions"].fetch_all(
        tx,
        agent_id=agent_id,
        max_subjects=MAX_SUBJECTS,
        max_candidates=MAX_CANDIDATES,
        speaker=r"^\[[\d-]{10}\] [^:]*: ",
        unnamed=r"^\[[\d-]{10}\] User: ",
    )
    subjects: list[str] = (rows[0]["subjects"] if rows else None) or []
    texts: dict[UUID, str] = {row["memory_id"]: row["text"] for row in rows if not row["is_wish"]}
    wished = find_names(row["text"] for row in rows if row["is_wish"])
    ways = (partial(find_known_names, subjects=subjects), find_names, find_address)
    owned = ([one for one in way(texts.values()) if _find_own(rows, one)] for way in ways)
    names = list(dict.fromkeys([*wished, *next(filter(None, owned), ())]))[:MAX_NAMES]
    return names, [*dict.fromkeys(first for name in names if (first := _find_own(rows, name)))]


def _find_own(rows: Sequence[Record], name: str) -> UUID | None:
    """Return the memory in which the user tells a name of theirs; None if it is that of a role or of a text.

    Facts come first, since a message may be in the context as one of the conversation.
    """
    telling = (row for row in rows if not row["is_wish"] and introduces(row["text"], name))
    for row in sorted(telling, key=lambda one: one["is_said"]):
        thread = [one for one in rows if row["thread_id"] and one["thread_id"] == row["thread_id"]]
        earlier = sorted((one for one in thread if one["position"] < row["position"]), key=lambda one: one["position"])
        if not is_in_role([one["text"] for one in earlier]) and not _is_foreign(row["text"], name):
            return row["memory_id"]
    return None


def _is_foreign(text: str, name: str) -> bool:
    """Return whether a text says a name in a sentence that is imagined or reported, or of a text to work on."""
    if name in find_address([text]):
        return False
    masked, start = mask_material(text), text.find(name)
    is_hidden = masked[start] != text[start]
    return is_hidden or find_reading(list_unasserted(masked), start, start + len(name)) is not None
