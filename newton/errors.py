"""Every failure Newton names. Each says what happened and what to do next.

NewtonError
├── ConfigError         a setting, frame, profile or migration file must be changed
├── InputError          the caller's words cannot be taken
├── UnauthorizedError   the caller shows no token that is valid
├── ForbiddenError      the caller's token may not do that
├── ElsewhereError      the request comes from another's page, or under a name that is not ours
├── TooLargeError       the caller sends more than is read
├── BusyError           too much is asked at once
├── DeadlineError       it takes longer than anything may
├── NotFoundError       the caller named a thing that does not exist
├── ConflictError       the request contradicts what is stored
│   └── AtWorkError     ... or is being done at this moment
├── CensoredError       a censor forbids it
├── GuardedError        a guardrail forbids the decision
├── DatabaseError       the database cannot be reached or started
├── SchemaError         the database is not at the version this code needs
└── ProviderError       an outside model failed
    ├── SpendError      ... or may not be asked again today
    └── WindowError     ... or cannot read so much at once
"""

from typing import ClassVar


class NewtonError(Exception):
    """A failure with a remedy. `code` is stable: every door prints it."""

    code: ClassVar[str] = "newton_error"

    def __init__(self, what: str, *, hint: str) -> None:
        super().__init__(f"{what} {hint}")
        self.what, self.hint = what, hint


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


class SchemaVersionError(NewtonError):
    code = "schema_mismatch"


class ProviderError(NewtonError):
    code = "provider_error"


class TokenQuotaError(ProviderError):
    code = "token_limit_reached"


class ContextWindowError(ProviderError):
    code = "context_window_exceeded"
