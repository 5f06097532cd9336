"""Import lines through their stores: an invalid line is rejected with a remedy, and no line is dropped."""

import json
from uuid import UUID

import pytest

from newton.db.pool import Database
from newton.errors import ConflictError, InputError
from newton.runtime.transfer.ndjson import parse_line
from newton.runtime.transfer.writers import write_items
from tests.support import NOON, ground, teller

AT = NOON.isoformat()


async def taken(db: Database, agent: UUID, *lines: object) -> int:
    items = [parse_line(json.dumps(line).encode()) for line in lines]
    async with db.transaction(agent) as tx:
        return await write_items(tx, items, ctx=ground(teller(agent)))


@pytest.mark.parametrize(
    "line",
    [
        {"type": "fact", "content": "Ana sails", "subject": "Ana", "attribute": "--", "at": AT},
        {"type": "entity", "name": "!!!"},
        {"type": "entity", "name": "Ana", "properties": {"height": float("nan")}},
        {"type": "entity", "name": "Ana", "properties": {"height": float("inf")}},
        {"type": "relation", "source": "Ana", "relation_type": "-", "target": "Oslo"},
        {"type": "relation", "source": "...", "relation_type": "likes", "target": "Oslo"},
    ],
    ids=json.dumps,
)
async def test_what_the_database_would_not_take_is_refused_before(
    db: Database, agent: UUID, line: "dict[str, object]"
) -> None:
    with pytest.raises(InputError) as refused:
        await taken(db, agent, line)
    assert refused.value.hint


EVENT = {"type": "event", "ref": "r", "event_type": "file_read", "payload": {"path": "a"}, "at": AT}
CENSOR = {"type": "censor", "ref": "r", "trigger": "push to main", "reason": "review"}
BOND = {"type": "relation", "ref": "r", "source": "Ana", "relation_type": "knows", "target": "Eva"}


@pytest.mark.parametrize(
    ("line", "other"),
    [
        (EVENT, EVENT | {"payload": {"path": "b"}}),
        (CENSOR, CENSOR | {"trigger": "push to production"}),
        (BOND, BOND | {"target": "Ben"}),
    ],
)
async def test_a_ref_with_other_words_is_refused_and_not_dropped(
    db: Database, agent: UUID, line: "dict[str, object]", other: "dict[str, object]"
) -> None:
    with pytest.raises(ConflictError, match="'r' exists with other content"):
        await taken(db, agent, line, other)
    assert await taken(db, agent, line) == 1
    assert await taken(db, agent, line, line) == 0, "the same again is not refused"
    with pytest.raises(ConflictError, match="'r' exists with other content"):
        await taken(db, agent, other)


async def test_who_is_introduced_is_not_taken_for_another_who_has_that_name_as_a_part(
    db: Database, agent: UUID
) -> None:
    hilton = {"type": "entity", "name": "Paris Hilton", "entity_type": "person", "aliases": ["PH"]}
    paris = {"type": "entity", "name": "Paris", "entity_type": "city", "properties": {"country": "France"}}
    assert await taken(db, agent, hilton) == 1
    assert await taken(db, agent, paris) == 1
    assert await taken(db, agent, hilton, paris, {"type": "entity", "name": "PH"}) == 0, "an alias is a name of it"
    async with db.transaction(agent) as tx:
        rows = await tx.fetch("select name, type, properties from heart.entities order by name")
    assert [tuple(row) for row in rows] == [
        ("Paris", "city", '{"country": "France"}'),
        ("Paris Hilton", "person", "{}"),
    ]
