"""Errors of a daemon as the errors of this process."""

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
    """Return the error with the code that the daemon reports, or with that of a daemon that cannot be reached."""
    return error_from_code(CLIENT_CODES.get(error.code, error.code), error.detail, hint=error.hint)


@contextmanager
def convert_api_errors() -> Generator[None]:
    """Raise the errors of the client within the block as errors of this process."""
    try:
        yield
    except ApiError as error:
        raise to_newton_error(error) from error
