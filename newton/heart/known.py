"""Who and what an input names, and what belongs to them: in two waves, first the entities, then their relations."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.entities import DEEPEST, TOGETHER
from newton.heart.matching import LONGEST, share, stems
from newton.heart.naming import ENOUGH, HALF_LIFE_DAYS, Index, salience, spelt_in
from newton.heart.naming import Known as Called
from newton.memory.recall import Found, details
from newton.memory.transitions import END_OF_TIME

SQL = load("newton.heart", "known.sql")

MOST_FOLLOWED = 200  # relations of one step: a hub may have thousands
MOST_BOUND = 8  # relations that become candidates for each step of depth


@dataclass(frozen=True, slots=True, kw_only=True)
class Enquiry:
    """What is looked for: the input, at which moment, so many salient entities unasked, so many steps along relations.

    What is `hidden` is passed over. Without a `moment` it is as it is `now`.
    """

    agent_id: UUID
    text: str
    now: datetime
    salient: int
    depth: int
    moment: datetime | None = None
    hidden: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What was found. `unasked` are the most salient entities that the input does not name, the most salient first;
    `steps` is how far a relation is from what it names; `types` are those of the named entities.

    Of an entity of which only the name is known nothing is found: it only leads to its relations. Neither is of two
    that were once named together.
    """

    found: Sequence[Found] = ()
    mentioned: frozenset[UUID] = frozenset()
    unasked: Sequence[UUID] = ()
    types: frozenset[str] = frozenset()
    salience: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    steps: Mapping[UUID, int] = field(default_factory=dict[UUID, int])


class Entity(NamedTuple):
    """An entity with what its salience depends on; `told` is whether more than its name is known."""

    memory_id: UUID
    name: str
    aliases: Sequence[str]
    type: str
    mentions: int
    mentioned_at: datetime
    told: bool


class Bond(NamedTuple):
    """A relation as it is followed."""

    memory_id: UUID
    source_id: UUID
    type: str
    target_id: UUID
    weight: float


async def known(tx: Tx, enquiry: Enquiry) -> Known:
    """Names and aliases count as whole words. A relation weighs as much as its evidence."""
    about = {one.memory_id: one for one in await named(tx, enquiry)}
    mentioned = list(about)
    about |= {one.memory_id: one for one in await _salient(tx, enquiry) if one.memory_id not in about}
    bonds, steps = await _followed(tx, mentioned, enquiry)
    told = [one.memory_id for one in about.values() if one.told and one.memory_id not in set(enquiry.hidden)]
    found = list[Found]()
    if told or bonds:
        found = await details(tx, [*told, *bonds], agent_id=enquiry.agent_id, moment=enquiry.moment)
    wanted = stems(enquiry.text)
    scored = [one._replace(relevance=share(wanted, one.summary)) for one in found]
    matters = {i: salience(one.mentions, _days(enquiry.now, one.mentioned_at)) for i, one in about.items()}
    return Known(
        found=_kept(scored, bonds, steps),
        mentioned=frozenset(mentioned),
        unasked=[one for one in about if one not in set(mentioned)],
        types=frozenset(about[one].type for one in mentioned) - {"thing"},
        salience=matters | {bond.memory_id: bond.weight for bond in bonds.values()},
        steps=steps,
    )


async def named(tx: Tx, enquiry: Enquiry) -> list[Entity]:
    """The entities that the beginning of the input names."""
    text = enquiry.text[:LONGEST]
    if not (spellings := spelt_in(text)):
        return []
    rows = [Entity(*row) for row in await SQL["find_by_name"].all(tx, agent_id=enquiry.agent_id, spellings=spellings)]
    by_id = {one.memory_id: one for one in rows}
    called = Index(Called(one.memory_id, one.name, tuple(one.aliases)) for one in rows)
    return [by_id[memory_id] for memory_id in called.mentioned(text)] if rows else []


async def _salient(tx: Tx, enquiry: Enquiry) -> list[Entity]:
    if enquiry.salient < 1:
        return []
    rows = await SQL["list_most_salient"].all(
        tx,
        agent_id=enquiry.agent_id,
        now=enquiry.now,
        enough=ENOUGH,
        half_life=HALF_LIFE_DAYS,
        excluded_ids=enquiry.hidden,
        max_rows=enquiry.salient,
    )
    return [Entity(*row) for row in rows]


async def _followed(tx: Tx, start: Collection[UUID], enquiry: Enquiry) -> tuple[dict[UUID, Bond], dict[UUID, int]]:
    """The relations that say something, breadth first, and how many steps away each is. None is gone from twice."""
    bonds, steps = dict[UUID, Bond](), dict[UUID, int]()
    front, visited = set(start), set(start)
    for step in range(1, min(enquiry.depth, DEEPEST) + 1):
        if not front:
            break
        rows = await SQL["list_relations_at"].all(
            tx,
            agent_id=enquiry.agent_id,
            entity_ids=list(front),
            moment=enquiry.moment or END_OF_TIME,
            excluded_ids=enquiry.hidden,
            max_rows=MOST_FOLLOWED,
        )
        reached = [Bond(*row) for row in rows]
        for bond in reached:
            if bond.type != TOGETHER and bond.memory_id not in steps:
                bonds[bond.memory_id], steps[bond.memory_id] = bond, step
        front = {end for bond in reached for end in (bond.source_id, bond.target_id)} - visited
        visited |= front
    return bonds, steps


def _kept(found: Sequence[Found], bonds: Mapping[UUID, Bond], steps: Mapping[UUID, int]) -> list[Found]:
    """All entities, and of the relations of each step those that fit the input best, the weightiest of equals."""
    entities = [one for one in found if one.memory_id not in bonds]
    ranked = sorted(
        (one for one in found if one.memory_id in bonds),
        key=lambda one: (steps[one.memory_id], -one.relevance, -bonds[one.memory_id].weight, one.memory_id),
    )
    places: dict[int, int] = {}
    for one in ranked:
        step = steps[one.memory_id]
        places[step] = places.get(step, 0) + 1
        if places[step] <= MOST_BOUND:
            entities.append(one)
    return entities


def _days(now: datetime, then: datetime) -> float:
    return (now - then).total_seconds() / 86_400
