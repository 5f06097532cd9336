"""What each named failure is for those who speak HTTP, and for a shell. Nothing else knows statuses."""

from typing import NamedTuple

EXIT_OK, EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 2, 130


class ErrorStatus(NamedTuple):
    """`exit` is 1 when something outside failed and 2 when it was refused; with `later` the same may work soon."""

    http: int
    exit_code: int
    title: str
    retryable: bool = False


ERROR_STATUSES: dict[str, ErrorStatus] = {
    "newton_error": ErrorStatus(500, EXIT_REFUSED, "Newton cannot do it"),
    "config_error": ErrorStatus(500, EXIT_REFUSED, "A setting must be changed"),
    "invalid_input": ErrorStatus(422, EXIT_REFUSED, "The request cannot be taken"),
    "unauthorized": ErrorStatus(401, EXIT_REFUSED, "No valid token"),
    "forbidden": ErrorStatus(403, EXIT_REFUSED, "The token may not do that"),
    "elsewhere": ErrorStatus(403, EXIT_REFUSED, "The request comes from elsewhere"),
    "not_found": ErrorStatus(404, EXIT_REFUSED, "There is no such thing"),
    "conflict": ErrorStatus(409, EXIT_REFUSED, "It contradicts what is stored"),
    "at_work": ErrorStatus(409, EXIT_FAILED, "It is being done", retryable=True),
    "censored": ErrorStatus(403, EXIT_REFUSED, "A censor forbids it"),
    "guarded": ErrorStatus(403, EXIT_REFUSED, "A guardrail forbids it"),
    "too_large": ErrorStatus(413, EXIT_REFUSED, "The request is too large"),
    "busy": ErrorStatus(429, EXIT_FAILED, "Too much at once", retryable=True),
    "deadline": ErrorStatus(503, EXIT_FAILED, "It took too long", retryable=True),
    "database_unavailable": ErrorStatus(503, EXIT_FAILED, "The database is away", retryable=True),
    "schema_mismatch": ErrorStatus(500, EXIT_REFUSED, "The database is not at this version"),
    "provider_error": ErrorStatus(502, EXIT_FAILED, "A model failed", retryable=True),
    "spend_ceiling": ErrorStatus(429, EXIT_FAILED, "The model's tokens of today are spent"),
    "window_exceeded": ErrorStatus(502, EXIT_FAILED, "The model cannot read so much"),
}


def get_error_status(code: str) -> ErrorStatus:
    """What a failure of that code is."""
    return ERROR_STATUSES[code]
