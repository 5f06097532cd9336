"""What a new connection asks the server about types."""

import asyncpg
import pytest

from newton.db.type_codecs import ARRAYS, register_types
from newton.errors import SchemaVersionError


async def test_arrays_are_read_without_a_question_about_their_types(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await register_types(connection)
    asked: list[str] = []
    connection.add_query_logger(lambda record: asked.append(record.query))
    for name, (oid, _) in ARRAYS.items():
        query = f"select array[null, $1]::{name}[], $2::{name}[], '{name}[]'::regtype::oid"
        assert await connection.fetchrow(query, None, [None]) == ([None, None], [None], oid)
    await connection.close()
    assert len(asked) == len(ARRAYS)


@pytest.mark.one_server("every database of a cluster has the extension")
async def test_a_database_without_pgvector_is_refused_with_the_statement_that_adds_it(server: str) -> None:
    connection = await asyncpg.connect(server)
    with pytest.raises(SchemaVersionError, match="pgvector") as refused:
        await register_types(connection)
    await connection.close()
    assert "create extension vector" in str(refused.value.hint)
