"""Facts on the person whom an input is about, by section, and the names of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from newton.cognition.request import NO_FILTERS, ContextBuildRequest
from newton.db.pool import Tx
from newton.heart.persons.change_questions import read_change_question
from newton.heart.persons.person_questions import NO_QUESTION, PersonQuestion, read_person_question
from newton.heart.persons.person_store import PersonReader, PersonRecord, read_user_names
from newton.heart.persons.profile_sections import TITLES, rank_facts
from newton.memory.memory_reader import fetch_memories
from newton.memory.search_types import RetrievedMemory

MAX_ASKED, MAX_FOUND = 300, 40  # facts that may be shown if the input asks for them, and if it only concerns them
ABOUT_LAYER = "about"  # of a context, whatever the kind of the memories
REASON = "part of what is known of the person whom the input concerns"
CHANGED = "the input asks what changed"
NAME = "name"  # the section of the memories that tell the name of the user


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPerson:
    """The memories on a person in the order in which they get room, each with its section.

    `total` is the number of all facts on the person whom the `question` asks about.
    """

    question: PersonQuestion = NO_QUESTION
    memories: Sequence[RetrievedMemory] = ()
    sections: Mapping[UUID, str] = field(default_factory=dict[UUID, str])
    total: int = 0

    @property
    def reasons(self) -> Mapping[UUID, str]:
        """Return why each memory is in a context."""
        reason = CHANGED if self.question.changes else REASON
        return {one: f"{reason}: {TITLES[section].casefold()}" for one, section in self.sections.items()}


async def read_person(tx: Tx, request: ContextBuildRequest, *, now: datetime) -> FoundPerson:
    """Return what is known of the person whom the input is about.

    The names of the user are read for each input, the other facts only for one that concerns them. For an input that
    asks what changed in a time, they are the facts that did.
    """
    if request.filters != NO_FILTERS or request.fill:
        return FoundPerson()
    question, agent_id = read_person_question(request.input), request.agent_id
    reader = PersonReader(tx, agent_id, now=now, moment=request.as_of)
    if span := read_change_question(request.input, now=now):
        changes = await reader.list_changes(span)
        memories = await fetch_memories(tx, [*changes][:MAX_ASKED], agent_id=agent_id, moment=request.as_of)
        asked = PersonQuestion(is_complete=True, changes=span)
        return FoundPerson(question=asked, memories=memories, sections=changes, total=len(changes))
    record, telling = PersonRecord(), ()
    if question.name:
        record = await reader.read_other(question.name)
    else:
        _, telling = await read_user_names(tx, agent_id=agent_id)
        if question.is_complete:
            record = await reader.read_user()
        elif question.sections:
            record = await reader.read_sections(question.sections)
    sections = dict.fromkeys(telling, NAME)
    # a fact is one item with those that it contradicts
    items = {one.memory_id: (one.memory_id, *one.rivals) for one in rank_facts(record.sections)}
    placed = {one.memory_id: name for name, facts in record.sections.items() for one in facts}
    sections |= {member: placed[memory_id] for memory_id, members in items.items() for member in members}
    ranked = [*dict.fromkeys((*telling, *(member for members in items.values() for member in members)))]
    if not ranked:
        return FoundPerson(question=question)
    ranked = ranked[: MAX_ASKED if question.is_asked else MAX_FOUND]
    memories = await fetch_memories(tx, ranked, agent_id=agent_id, moment=request.as_of)
    return FoundPerson(question=question, memories=memories, sections=sections, total=record.total)


def merge_persons(own: FoundPerson, above: FoundPerson) -> FoundPerson:
    """Return what is known of a person in a project and above it."""
    inherited = (one._replace(is_inherited=True) for one in above.memories)
    sections, total = {**own.sections, **above.sections}, own.total + above.total
    return replace(own, memories=[*own.memories, *inherited], sections=sections, total=total)
