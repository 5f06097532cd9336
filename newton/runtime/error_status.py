"""The HTTP status, the exit code of the CLI and the title of each error code."""

from typing import NamedTuple

EXIT_OK, EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 2, 130


class ErrorStatus(NamedTuple):
    """The HTTP status, exit code and title of an error code.

    `http` is the HTTP status. `exit_code` is 1 if a server or another process caused the failure, and 2 if Newton
    refused the request. `retryable` is True if the same request may succeed later.
    """

    http: int
    exit_code: int
    title: str
    retryable: bool = False


ERROR_STATUSES: dict[str, ErrorStatus] = {
    "newton_error": ErrorStatus(500, EXIT_REFUSED, "Internal error"),
    "config_error": ErrorStatus(500, EXIT_REFUSED, "Invalid configuration"),
    "invalid_input": ErrorStatus(422, EXIT_REFUSED, "Invalid input"),
    "unauthorized": ErrorStatus(401, EXIT_REFUSED, "Invalid or missing token"),
    "forbidden": ErrorStatus(403, EXIT_REFUSED, "Forbidden"),
    "origin_not_allowed": ErrorStatus(403, EXIT_REFUSED, "Origin not allowed"),
    "not_found": ErrorStatus(404, EXIT_REFUSED, "Not found"),
    "conflict": ErrorStatus(409, EXIT_REFUSED, "Conflict with stored data"),
    "in_progress": ErrorStatus(409, EXIT_FAILED, "Request in progress", retryable=True),
    "censor_blocked": ErrorStatus(403, EXIT_REFUSED, "Blocked by a censor"),
    "guardrail_blocked": ErrorStatus(403, EXIT_REFUSED, "Blocked by a guardrail"),
    "too_large": ErrorStatus(413, EXIT_REFUSED, "Content too large"),
    "overloaded": ErrorStatus(429, EXIT_FAILED, "Too many requests", retryable=True),
    "timeout": ErrorStatus(503, EXIT_FAILED, "Timeout", retryable=True),
    "database_unavailable": ErrorStatus(503, EXIT_FAILED, "Database unavailable", retryable=True),
    "disk_full": ErrorStatus(507, EXIT_FAILED, "Disk full", retryable=True),
    "storage_quota_exceeded": ErrorStatus(507, EXIT_REFUSED, "Storage quota exceeded"),
    "daemon_stopped": ErrorStatus(503, EXIT_FAILED, "The daemon stopped", retryable=True),
    "schema_mismatch": ErrorStatus(500, EXIT_REFUSED, "Database schema of another version"),
    "provider_error": ErrorStatus(503, EXIT_FAILED, "The model does not answer", retryable=True),
    "request_refused": ErrorStatus(400, EXIT_FAILED, "Refused by the model's server"),
    "model_not_found": ErrorStatus(404, EXIT_FAILED, "No such model"),
    "rate_limited": ErrorStatus(429, EXIT_FAILED, "The model's server is busy", retryable=True),
    "token_limit_reached": ErrorStatus(429, EXIT_FAILED, "Daily token limit reached"),
    "context_window_exceeded": ErrorStatus(400, EXIT_FAILED, "Context window exceeded"),
}


def get_error_status(code: str) -> ErrorStatus:
    """Return the HTTP status, exit code and title of an error code. Raises KeyError for an unknown code."""
    return ERROR_STATUSES[code]
