"""Adaptation of the driver asyncpg: the types of a connection, and its failures as errors of Newton."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import asyncpg
from pgvector import HalfVector

from newton.errors import DatabaseError, DiskFullError, InputError, SchemaVersionError

if TYPE_CHECKING:
    from newton.db.pool import Tx

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
    """Set up the types of a new connection, such as vectors.

    Raises SchemaVersionError if the database lacks pgvector.
    """
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


CONNECT_SECONDS, STATEMENT_SECONDS = 10, 60  # after which a connection attempt or a statement has failed

# A node of a distributed database failed during a transaction.
NODE_FAILURE_PATTERN = re.compile(r"closed the connection|connection (marked as essential|to the remote node|not open)")
ERROR_NUMBER_PATTERN = re.compile(r"\[Errno -?\d+\] ")  # in the text of an OSError
SERVER_ERRORS = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # the server was shut down, crashed, or cancelled the statement
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresIOError,  # also of a node of a distributed database that rows were sent to
    asyncpg.ReadOnlySQLTransactionError,  # after a failover
)
# Errors of a statement, after which its transaction can store nothing.
STATEMENT_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError, OSError)


class TransactionConflictError(DatabaseError):
    """A deadlock or serialization failure. The transaction was rolled back and can be run again."""


@contextmanager
def translate_connect_errors() -> Generator[None]:
    """Convert connection failures in the block to DatabaseError, without the connection string and its password."""
    try:
        yield
    except (ValueError, OverflowError):  # asyncpg accepts any number as a port
        raise DatabaseError(
            "DATABASE_URL, or a PG… environment variable, is invalid.",
            hint="Write postgresql://user:password@host:5432/name; in a password @ is %40, : %3A, / %2F, # %23, ? %3F.",
        ) from None
    except TimeoutError as error:
        raise _unreachable_error(f"no answer within {CONNECT_SECONDS} seconds") from error
    except asyncpg.InvalidCatalogNameError as error:
        hint = "`newton db requirements --database NAME --owner USER` prints the SQL that creates it."
        raise DatabaseError(f"The {error} on the server of DATABASE_URL.", hint=hint) from error
    except asyncpg.InvalidAuthorizationSpecificationError as error:  # also of a wrong password
        what = f"The server of DATABASE_URL refuses the connection: {error}."
        raise DatabaseError(what, hint="Correct the user or the password in DATABASE_URL.") from error
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise _unreachable_error(ERROR_NUMBER_PATTERN.sub("", str(error))) from error


@contextmanager
def translate_errors(tx: "Tx") -> Generator[None]:
    """Convert failures of the server and the connection in the block to DatabaseError.

    Errors of a statement itself, such as a violated constraint, are not changed.
    """
    try:
        yield
    except TimeoutError as error:
        raise DatabaseError(
            f"The database did not finish a statement within {STATEMENT_SECONDS} seconds.",
            hint="The server is overloaded, or another session has a lock (see pg_stat_activity). Try again later.",
        ) from error
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError) as error:
        what = "The transaction conflicted with another writer and was rolled back."
        raise TransactionConflictError(what, hint="Try again.") from error
    except asyncpg.DiskFullError as error:
        raise DiskFullError(
            f"The disk of the database is full: {error}.",
            hint="Free disk space on the server of the database; nothing was stored.",
        ) from error
    except (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError) as error:
        what = "A connection pooler in transaction mode is between Newton and PostgreSQL."
        hint = "Set DATABASE_URL to the server itself, or to a pooler in session mode."
        raise DatabaseError(what, hint=hint) from error
    except (OSError, *SERVER_ERRORS, asyncpg.InternalServerError) as error:
        if isinstance(error, asyncpg.InternalServerError) and not NODE_FAILURE_PATTERN.search(str(error)):
            raise
        raise _failure_error(str(error)) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        _check_connection(tx, error)
        raise


@contextmanager
def reject_invalid_rows(label: str) -> Generator[None]:
    """Convert constraint violations of rows that the block imports to InputError, whose message begins with `label`."""
    try:
        yield
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, asyncpg.UndefinedTableError) as error:
        hint = "Nothing was stored. Check that both databases have the same version of Newton."
        raise InputError(f"{label}: {error}.", hint=hint) from error


def _check_connection(tx: "Tx", error: Exception) -> None:
    """Raise DatabaseError if an error of the client is due to a closed connection."""
    try:
        is_closed = tx.is_closed()
    except asyncpg.InterfaceError:  # the pool has already released it
        is_closed = True
    if is_closed:
        raise _failure_error("the server closed the connection") from error


def _failure_error(reason: str) -> DatabaseError:
    hint = "Check that PostgreSQL runs and has free disk space, then try again."
    return DatabaseError(f"The database failed: {reason}.", hint=hint)


def _unreachable_error(reason: str) -> DatabaseError:
    return DatabaseError(
        f"The database cannot be reached: {reason.strip() or 'the server closed the connection'}.",
        hint="Check that DATABASE_URL is right and PostgreSQL runs there, or unset it to use the embedded server.",
    )
