"""HTTP statuses and exit codes of errors, defined only here."""

from typing import NamedTuple

EXIT_OK, EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 2, 130


class ErrorStatus(NamedTuple):
    """`exit_code` is 1 for an external failure and 2 for a refusal; `retryable` means that a retry may succeed."""

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
    "origin_not_allowed": ErrorStatus(403, EXIT_REFUSED, "The request comes from elsewhere"),
    "not_found": ErrorStatus(404, EXIT_REFUSED, "There is no such thing"),
    "conflict": ErrorStatus(409, EXIT_REFUSED, "It contradicts what is stored"),
    "in_progress": ErrorStatus(409, EXIT_FAILED, "It is being done", retryable=True),
    "censor_blocked": ErrorStatus(403, EXIT_REFUSED, "A censor forbids it"),
    "guardrail_blocked": ErrorStatus(403, EXIT_REFUSED, "A guardrail forbids it"),
    "too_large": ErrorStatus(413, EXIT_REFUSED, "The request is too large"),
    "overloaded": ErrorStatus(429, EXIT_FAILED, "Too much at once", retryable=True),
    "timeout": ErrorStatus(503, EXIT_FAILED, "It took too long", retryable=True),
    "database_unavailable": ErrorStatus(503, EXIT_FAILED, "The database is away", retryable=True),
    "schema_mismatch": ErrorStatus(500, EXIT_REFUSED, "The database is not at this version"),
    "provider_error": ErrorStatus(502, EXIT_FAILED, "A model failed", retryable=True),
    "token_limit_reached": ErrorStatus(429, EXIT_FAILED, "The model's tokens of today are spent"),
    "context_window_exceeded": ErrorStatus(502, EXIT_FAILED, "The model cannot read so much"),
}


def get_error_status(code: str) -> ErrorStatus:
    """Return the status of the error code."""
    return ERROR_STATUSES[code]
