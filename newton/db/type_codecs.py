"""The types of a connection: pgvector's, and the arrays that asyncpg would look up again on each connection."""

from typing import TYPE_CHECKING

from pgvector import HalfVector

from newton.errors import SchemaVersionError

if TYPE_CHECKING:
    import asyncpg

# The arrays in statements: (oid, oid of an element), which are the same on every server. asyncpg asks each connection
# for each of them with a recursive query, which takes the server four times as long as to open the connection.
ARRAYS = {
    "bool": (1000, 16),
    "bytea": (1001, 17),
    "int8": (1016, 20),
    "int2": (1005, 21),
    "int4": (1007, 23),
    "float4": (1021, 700),
    "float8": (1022, 701),
    "timestamptz": (1185, 1184),
    "uuid": (2951, 2950),
    "jsonb": (3807, 3802),
}
_FIELDS = {"ns": "pg_catalog", "kind": b"b", "elemdelim": b",", "basetype": None, "range_subtype": None}
_ROWS = [
    {**_FIELDS, "oid": oid, "name": f"_{name}", "elemtype": element, "attrtypoids": None, "attrnames": None}
    for name, (oid, element) in ARRAYS.items()
]


async def register_types(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Prepare a new connection. Raises SchemaVersionError if the database lacks pgvector."""
    try:
        await connection.set_type_codec(
            "halfvec",
            schema="public",
            encoder=lambda value: (value if isinstance(value, HalfVector) else HalfVector(value)).to_binary(),
            decoder=HalfVector.from_binary,
            format="binary",
        )
    except ValueError as error:
        raise SchemaVersionError(
            "The database lacks the extension pgvector in the schema public.",
            hint="Run `create extension vector`, or `alter extension vector set schema public`.",
        ) from error
    # after `set_type_codec`, which forgets them
    connection._protocol.get_settings().register_data_types(_ROWS)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType]  # asyncpg has no public way
