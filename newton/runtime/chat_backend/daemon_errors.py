"""Conversion of the HTTP client's errors to the errors of this process."""

from collections.abc import Generator
from contextlib import contextmanager

from newton.client import ApiError
from newton.errors import DatabaseError, NewtonError, OverloadedError, error_from_code

CLIENT_CODES = {
    "daemon_unreachable": DatabaseError.code,
    "connection_lost": DatabaseError.code,
    "unexpected_response": OverloadedError.code,
}


def to_newton_error(error: ApiError) -> NewtonError:
    """Return the NewtonError with the error code that the daemon reports.

    A daemon that cannot be reached becomes a DatabaseError.
    """
    return error_from_code(CLIENT_CODES.get(error.code, error.code), error.detail, hint=error.hint)


@contextmanager
def convert_api_errors() -> Generator[None]:
    """Convert an ApiError that is raised in the block to a NewtonError."""
    try:
        yield
    except ApiError as error:
        raise to_newton_error(error) from error
