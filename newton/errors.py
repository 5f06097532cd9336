"""Errors of Newton. Each states the problem and the remedy.

NewtonError
├── ConfigError             a setting, frame, profile or migration file must be changed
├── InputError              the input is invalid
├── UnauthorizedError       the request has no valid token
├── ForbiddenError          the token's scope does not permit the request
├── OriginNotAllowedError   the Origin or Host header is not permitted
├── TooLargeError           the request body is too large
├── OverloadedError         too many concurrent requests
├── TimeoutExceededError    the operation exceeds its time limit
├── NotFoundError           the named resource does not exist
├── ConflictError           the request conflicts with stored data
│   └── InProgressError     the same request is in progress
├── CensorError             a censor forbids the text
├── GuardrailError          a guardrail forbids the decision
├── StorageQuotaError       the agent may store no more
├── DatabaseError           the database cannot be reached or started
│   └── DiskFullError       the disk of the database is full
├── DaemonStoppedError      the daemon stopped during a command that it ran
├── SchemaVersionError      the database schema has another version
└── ProviderError           an external model failed
    ├── RefusedRequestError the model's server refuses the request
    ├── ModelNotFoundError  the model's server has no such model
    ├── RateLimitError      the model's server is busy, or its quota is used up
    ├── TokenQuotaError     the daily token limit is reached
    └── ContextWindowError  the prompt exceeds the context window
"""

from typing import ClassVar, NamedTuple, Self


class NewtonError(Exception):
    """Base class of all errors: `what` states the problem, `hint` the remedy.

    `code` identifies the class of the error in every interface and does not change. `param` is the request field that
    caused the error, if known.
    """

    code: ClassVar[str] = "newton_error"

    def __init__(self, what: str, *, hint: str, param: str | None = None) -> None:
        super().__init__(f"{what} {hint}")
        self.what, self.hint, self.param = what, hint, param


class ConfigError(NewtonError):
    code = "config_error"


class InputError(NewtonError):
    code = "invalid_input"


class UnauthorizedError(NewtonError):
    code = "unauthorized"


class ForbiddenError(NewtonError):
    code = "forbidden"


class OriginNotAllowedError(NewtonError):
    code = "origin_not_allowed"


class TooLargeError(NewtonError):
    code = "too_large"


class OverloadedError(NewtonError):
    code = "overloaded"


class TimeoutExceededError(NewtonError):
    code = "timeout"


class NotFoundError(NewtonError):
    code = "not_found"


class ConflictError(NewtonError):
    code = "conflict"


class InProgressError(ConflictError):
    code = "in_progress"


class CensorError(NewtonError):
    code = "censor_blocked"


class GuardrailError(NewtonError):
    code = "guardrail_blocked"


class DatabaseError(NewtonError):
    code = "database_unavailable"


class DiskFullError(DatabaseError):
    code = "disk_full"


class StorageQuotaError(NewtonError):
    code = "storage_quota_exceeded"


class DaemonStoppedError(NewtonError):
    code = "daemon_stopped"


class SchemaVersionError(NewtonError):
    code = "schema_mismatch"


class ProviderError(NewtonError):
    """A model or its server fails. `summary` is the message without the words of the server, which may quote texts."""

    code = "provider_error"
    _summary: str | None = None

    @property
    def summary(self) -> str:
        return self._summary or self.what

    def with_summary(self, summary: str) -> Self:
        """Set the summary, and return this error."""
        self._summary = summary
        return self


class RefusedRequestError(ProviderError):
    """The model's server refuses the request. `server_code` is the error code in its response; None without one."""

    code = "request_refused"

    def __init__(self, what: str, *, hint: str, param: str | None = None, server_code: str | None = None) -> None:
        super().__init__(what, hint=hint, param=param)
        self.server_code = server_code


class ModelNotFoundError(ProviderError):
    code = "model_not_found"


class RateLimitError(ProviderError):
    code = "rate_limited"


class TokenQuotaError(ProviderError):
    code = "token_limit_reached"


class RefusedSize(NamedTuple):
    """The tokens that a server names when it refuses a prompt as too long; None where it names none.

    `window` is the model's context window, `prompt` what the server counted, and `excess` by how much that is too long.
    """

    window: int | None = None
    prompt: int | None = None
    excess: int | None = None


class ContextWindowError(ProviderError):
    """The prompt exceeds the context window. `size` has the numbers of tokens that the server names."""

    code = "context_window_exceeded"

    def __init__(self, what: str, *, hint: str, param: str | None = None, size: RefusedSize | None = None) -> None:
        super().__init__(what, hint=hint, param=param)
        self.size = size or RefusedSize()


def error_from_code(code: str, what: str, *, hint: str) -> NewtonError:
    """Create the error whose class has this code; a NewtonError if no class has it."""
    return _error_types(NewtonError).get(code, NewtonError)(what, hint=hint)


def _error_types(base: type[NewtonError]) -> dict[str, type[NewtonError]]:
    types = {base.code: base}
    for subclass in base.__subclasses__():
        types = _error_types(subclass) | types
    return types
