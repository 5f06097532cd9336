"""What each named failure is for those who speak HTTP, and for a shell. Nothing else knows statuses."""

from typing import NamedTuple

OK, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130


class Status(NamedTuple):
    """`exit` is 1 when something outside failed and 2 when it was refused; with `later` the same may work soon."""

    http: int
    exit: int
    title: str
    later: bool = False


STATUSES: dict[str, Status] = {
    "newton_error": Status(500, REFUSED, "Newton cannot do it"),
    "config_error": Status(500, REFUSED, "A setting must be changed"),
    "invalid_input": Status(422, REFUSED, "The request cannot be taken"),
    "unauthorized": Status(401, REFUSED, "No valid token"),
    "forbidden": Status(403, REFUSED, "The token may not do that"),
    "elsewhere": Status(403, REFUSED, "The request comes from elsewhere"),
    "not_found": Status(404, REFUSED, "There is no such thing"),
    "conflict": Status(409, REFUSED, "It contradicts what is stored"),
    "at_work": Status(409, FAILED, "It is being done", later=True),
    "censored": Status(403, REFUSED, "A censor forbids it"),
    "guarded": Status(403, REFUSED, "A guardrail forbids it"),
    "too_large": Status(413, REFUSED, "The request is too large"),
    "busy": Status(429, FAILED, "Too much at once", later=True),
    "deadline": Status(503, FAILED, "It took too long", later=True),
    "database_unavailable": Status(503, FAILED, "The database is away", later=True),
    "schema_mismatch": Status(500, REFUSED, "The database is not at this version"),
    "provider_error": Status(502, FAILED, "A model failed", later=True),
    "spend_ceiling": Status(429, FAILED, "The model's tokens of today are spent"),
    "window_exceeded": Status(502, FAILED, "The model cannot read so much"),
}


def status_of(code: str) -> Status:
    """What a failure of that code is."""
    return STATUSES[code]
