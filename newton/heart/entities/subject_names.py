"""Subjects of facts that are other names (aliases) of an entity, so that all facts about one entity have one key."""

from collections.abc import Iterable
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import Record
from newton.heart.entities import entity_lookup
from newton.heart.facts.attributes import normalize_subject
from newton.text.names import list_spellings, normalize_name


async def resolve_subjects(tx: Tx, subjects: Iterable[str], *, agent_id: UUID) -> dict[str, str]:
    """Return the key of the entity for each subject that is an alias of exactly one. Names of entities are left out."""
    given = sorted(set(subjects))
    if not given:
        return {}
    rows = await _find_entities(tx, given, agent_id=agent_id)
    names = {normalize_name(row["name"]) for row in rows}
    keys: dict[str, str] = {}
    for subject in given:
        name = normalize_name(subject)
        owners = [row["name"] for row in rows if name in map(normalize_name, row["aliases"])]
        if name not in names and len(owners) == 1:
            keys[subject] = normalize_subject(owners[0])
    return keys


async def list_subject_keys(tx: Tx, subject: str, *, agent_id: UUID) -> list[str]:
    """Return the keys under which facts about a person or thing may be stored: those of all its names."""
    name = normalize_name(subject)
    rows = await _find_entities(tx, [subject], agent_id=agent_id)
    groups = [(row["name"], *row["aliases"]) for row in rows]
    groups = [names for names in groups if name == normalize_name(names[0])] or groups
    known = [one for names in groups if name in map(normalize_name, names) for one in names]
    return sorted({normalize_subject(one) for one in (subject, *known)})


async def _find_entities(tx: Tx, names: Iterable[str], *, agent_id: UUID) -> list[Record]:
    """Return the entities that one of the names may refer to."""
    spellings = sorted({spelling for name in names for spelling in list_spellings(name, ())})
    return await entity_lookup.SQL["find_by_name"].fetch_all(tx, agent_id=agent_id, spellings=spellings)
