"""Profiles of persons: the facts of an agent on them, by section."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.heart.persons.person_store import PersonReader, PersonRecord
from newton.heart.persons.profile_sections import TITLES, rank_facts
from newton.memory.source_marks import describe_source

USER_NAMES = ("", "me", "myself", "user", "the user")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFact:
    """A fact on a person: when it was stated last, and whose word it is, empty for the user's own.

    `before` is what held before, as far as nobody has settled which of both holds.
    """

    memory_id: UUID
    text: str
    state: str
    told_at: datetime
    source: str
    valid_to: datetime | None
    before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSection:
    """A section of a profile, such as health, with its facts, the most certain first, then the latest."""

    title: str
    facts: Sequence[ProfileFact]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonProfile:
    """The profile of a person: the names, and `shown` of `count` facts by section."""

    is_user: bool
    names: Sequence[str]
    count: int
    shown: int
    sections: Sequence[ProfileSection]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonService:
    """The persons that the memory of one agent is about."""

    scope: AgentScope

    async def describe(self, name: str | None, *, limit: int) -> PersonProfile:
        """Return up to `limit` facts on the person with a name or role, without one on the user.

        Of a project, what is known above it comes too.
        """
        who = None if (name or "").casefold() in USER_NAMES else name
        records = list[PersonRecord]()
        async with self.scope.transaction() as tx:
            async for agent_id in self.scope.visit_levels(tx):
                reader = PersonReader(tx, agent_id, now=self.scope.now())
                records.append(await (reader.read_other(who) if who else reader.read_user()))
        sections = {
            section: [one for record in records for one in record.sections.get(section, ())] for section in TITLES
        }
        ranked = rank_facts(sections)[:limit]
        shown = {one.memory_id for one in ranked}
        found = [
            ProfileSection(
                title=TITLES[section],
                facts=[
                    ProfileFact(
                        memory_id=one.memory_id,
                        text=one.text,
                        state=one.state,
                        told_at=one.told_at,
                        source=describe_source(one.trust),
                        valid_to=one.valid_to,
                        before=one.before,
                    )
                    for one in facts
                    if one.memory_id in shown
                ],
            )
            for section, facts in sections.items()
        ]
        return PersonProfile(
            is_user=who is None,
            names=list(dict.fromkeys(name for record in records for name in record.names)) or ([who] if who else []),
            count=sum(record.total for record in records),
            shown=sum(one.total > 0 for one in ranked),
            sections=[one for one in found if one.facts],
        )
