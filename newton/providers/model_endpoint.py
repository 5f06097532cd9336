"""A model at an upstream (a server of models): HTTP client, retries, circuit breaker and errors.

The library `openai` is the HTTP client for every protocol, because it has timeouts, event streams and errors by status
code.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TypeVar, cast

import httpx2
import openai

from newton.errors import (
    ContextWindowError,
    ModelNotFoundError,
    ProviderError,
    RateLimitError,
    RefusedRequestError,
)
from newton.providers.context_windows import parse_refused_size, read_refusal
from newton.providers.structured_output import EndpointKey
from newton.providers.upstreams import CircuitBreaker, ModelUpstream, build_provider_upstream, get_breaker
from newton.settings import Settings

T = TypeVar("T")

ANSWERS = "answers"  # the purpose of calls for which somebody waits
CONNECT_SECONDS = 5.0
NO_KEY = "none"  # for a server that needs no key
DEFAULT_RETRY_SECONDS = 0.5  # delay of a retry when the endpoint sends no Retry-After
MAX_MESSAGE_CHARS, MAX_REFUSAL_CHARS = 200, 600  # of an endpoint's message; a refusal names the field and its values
REFUSED_REQUEST_STATUSES = frozenset({400, 409, 413, 415, 422})  # the request is at fault, not the endpoint
ANTHROPIC_VERSION = "2023-06-01"  # of the Messages API
OVERLOADED_STATUS, OVERLOADED_TYPE = 529, "overloaded_error"  # at Anthropic, before and within a reply

_RETRYABLE = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)
FAILURES = (openai.OpenAIError, TimeoutError, ValueError)  # ValueError: the response violates the protocol
_OPENAI_HEADERS = ("Authorization", "OpenAI-Organization", "OpenAI-Project")
_AUTH_ERRORS = (openai.AuthenticationError, openai.PermissionDeniedError)
_REFUSALS = (openai.BadRequestError, openai.ConflictError, openai.UnprocessableEntityError)
_TIMEOUTS = (openai.APITimeoutError, TimeoutError)
_OVERFLOW_PATTERN = re.compile(
    r"\bcontext (?:length|limit|size|window)\b|context_(?:length|window)_exceeded|exceed_context_size|\bn_ctx\b|"
    r"prompt (?:is )?too long|maximum (?:prompt|allowed) length|number of tokens allowed|range of input length|"
    r"model token limit|tokens per minute \(TPM\)",
    re.IGNORECASE,
)
_PROMPT_FIELDS = ("messages", "prompt", "input")
# These mean the prompt only if the server names no other field.
_WEAK_OVERFLOW_PATTERN = re.compile(r"too (?:long|many tokens)|exceeds? the", re.IGNORECASE)
_OVERFLOW_STATUSES = frozenset({400, 413, 422, 500})  # 500 of older servers of llama.cpp
# The field at fault, in the messages of servers that name it only there: Gemini's and Anthropic's.
_FIELD_PATTERN = re.compile(r'Unknown name "(\w+)"|^`?([a-z_]+)(?:\.[\w.]+)*`?(?:: | is | may )')
_OPENAI_FIELDS = {"stop_sequences": "stop", "output_config": "response_format", "thinking": "reasoning_effort"}
_KEY_PATTERN = re.compile(r"(?i:\bbearer\s+\S+)|\bsk-\S+|(?<=://)[^\s/@]+(?=@)|([\w+=~*-]{20,})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """A model at an upstream (model server). Calls for each purpose have a circuit breaker of their own."""

    client: openai.AsyncOpenAI
    model: str
    upstream: ModelUpstream
    purpose: str = ANSWERS

    @property
    def address(self) -> str:
        return self.upstream.address

    @property
    def key(self) -> EndpointKey:
        return EndpointKey(self.upstream.name, self.address, self.model)

    @property
    def breaker(self) -> CircuitBreaker:
        return get_breaker(self.key, self.purpose)

    def deadline(self) -> float:
        """Return the time, of the event loop's clock, at which a call that begins now must end.

        Raises ProviderError while the circuit breaker pauses calls.
        """
        now = asyncio.get_running_loop().time()
        if not self.breaker.allow_call(now):
            pause = f"calls are paused for up to {self.breaker.cooldown_seconds:.0f} seconds"
            raise ProviderError(
                f"{self.address} has failed several times; {pause}. {self.breaker.last_failure}".strip(),
                hint="Newton tries again automatically. Check that the server runs.",
            )
        return now + self.upstream.seconds

    def record_result(self, error: Exception | None) -> None:
        """Record for the circuit breaker whether an attempt failed; `error` is None for a success."""
        failure = self._describe_failure(error) if error else ""
        self.breaker.record_result(asyncio.get_running_loop().time(), failed=_is_outage(error), failure=failure)

    def _describe_failure(self, error: Exception) -> str:
        """Return a sentence about the latest failure, without the server's message.

        The message may quote a request, and all agents of the process share the circuit breaker.
        """
        status = error.status_code if isinstance(error, openai.APIStatusError) else ""
        matches = (what for kinds, what, _ in _EXPLANATIONS if isinstance(error, kinds))
        what = next(matches, "{address} sent an invalid reply.")
        return f"The last failure: {what.format(address=self.address, model=self.model, status=status)}"

    async def call(self, send: Callable[[], Awaitable[T]], *, deadline: float, allow_retry: bool = True) -> T:
        """Await `send` and return its result; after an outage or a rate limit, await it once more.

        The repetition needs retry budget and time before the deadline. Raises TimeoutError at the deadline.
        """
        async with asyncio.timeout_at(deadline):
            try:
                return await send()
            except _RETRYABLE as error:
                if is_window_overflow(error):
                    raise
                wait = _retry_delay(error)
                in_time = asyncio.get_running_loop().time() + wait < deadline
                if not (in_time and allow_retry and self.breaker.allow_retry()):
                    raise
                self.record_result(error)
                await asyncio.sleep(wait)
            return await send()

    def to_provider_error(self, error: Exception) -> ProviderError:
        """Convert an error of the HTTP client to a ProviderError with a remedy.

        The message contains the first line of the server's message, without API keys.
        """
        if isinstance(error, openai.APIError) and is_window_overflow(error):
            hint = "Shorten the input, or use a model with a larger context window."
            size = parse_refused_size(read_refusal(_error_body(error) or error.message))
            return ContextWindowError(f"The prompt exceeds the context window of {self.model}.", hint=hint, size=size)
        status = str(error.status_code) if isinstance(error, openai.APIStatusError) else ""
        upstream = self.upstream
        fields = {"address": self.address, "model": self.model, "setting": upstream.model_setting, "status": status}
        fields |= {"key_setting": upstream.key_setting, "address_setting": upstream.address_setting}
        if _is_untrusted_certificate(error):
            what = f"The TLS certificate of {self.address} is not trusted."
            hint = "Set SSL_CERT_FILE to a PEM file with the certificate of the authority that issued it."
            return ProviderError(what, hint=hint)
        for kinds, what, hint in _EXPLANATIONS:
            if isinstance(error, kinds) or (kinds is openai.RateLimitError and _is_overloaded(error)):
                message = _server_message(error, key=self.client.api_key)
                message += "." if message and message[-1] not in ".!?…" else ""
                summary = what.format(**fields)
                return _make_error(error, summary + message, hint=hint.format(**fields)).with_summary(summary)
        return ProviderError(f"{self.address} sent an invalid reply.", hint=f"Check {upstream.address_setting}.")


def make_client(upstream: ModelUpstream) -> openai.AsyncOpenAI:
    """Create the HTTP client of an upstream. The library requires a key, even for a local server that needs none."""
    timeout = openai.Timeout(upstream.seconds, connect=min(CONNECT_SECONDS, upstream.seconds))
    return openai.AsyncOpenAI(
        api_key=upstream.key or NO_KEY,
        base_url=upstream.address,
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultAsyncHttpxClient(verify=load_certificates()),
    )


@cache  # loading takes 20 ms, and every agent has clients of its own
def load_certificates() -> ssl.SSLContext:
    """Return a TLS context that trusts the usual certificate authorities, or those that environment variables name."""
    return httpx2.create_ssl_context()


def build_request_headers(upstream: ModelUpstream) -> dict[str, str]:
    """Return the headers to add to each request.

    For Anthropic's protocol these are its key and version, and the library's own headers are omitted.
    """
    if upstream.provider != "anthropic":
        return {}
    omitted = dict.fromkeys(_OPENAI_HEADERS, cast("str", openai.Omit()))
    return {**omitted, "x-api-key": upstream.key or NO_KEY, "anthropic-version": ANTHROPIC_VERSION}


def _is_untrusted_certificate(error: BaseException | None) -> bool:
    """Return True if the error, or one of its causes, is that a TLS certificate could not be verified."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_outage(error: Exception | None) -> bool:
    """Return True if the error means that the server is down. A rejected request is not an outage."""
    if error is not None and is_window_overflow(error):
        return False
    if isinstance(error, openai.APIStatusError):
        return isinstance(error, _RETRYABLE)
    return isinstance(error, openai.APIError | TimeoutError | ValueError)


def _retry_delay(error: openai.OpenAIError) -> float:
    """Return the seconds to wait before a retry: those of the header Retry-After (number or date), or a default."""
    if not isinstance(error, openai.APIStatusError):
        return DEFAULT_RETRY_SECONDS
    headers = error.response.headers
    retry_after = headers.get("retry-after", "")
    try:
        wait = float(retry_after)
    except ValueError:
        wait = _seconds_between(headers.get("date", ""), retry_after)
    return wait if wait >= 0 else DEFAULT_RETRY_SECONDS


def _seconds_between(start: str, end: str) -> float:
    """Return the seconds between two HTTP dates; -1 when one is invalid."""
    try:
        return (parsedate_to_datetime(end) - parsedate_to_datetime(start)).total_seconds()
    except (ValueError, TypeError):
        return -1


def is_window_overflow(error: Exception) -> bool:
    """Return True if the server rejects the prompt as too long for the context window. Wordings vary by server.

    The error may come as a status or as an event of a stream that has begun. A rejection of another field, such as a
    stop sequence that is too long, does not count.
    """
    if not isinstance(error, openai.APIError) or isinstance(error, openai.APIConnectionError):
        return False
    if isinstance(error, openai.APIStatusError) and error.status_code not in _OVERFLOW_STATUSES:
        return False
    text, param = read_refusal(_error_body(error) or error.message), str(error.param or "messages")
    if error.code == "context_length_exceeded":
        return True
    if _OVERFLOW_PATTERN.search(text):
        return param.startswith((*_PROMPT_FIELDS, "max_"))
    is_refusal = isinstance(error, openai.BadRequestError) and param.startswith(_PROMPT_FIELDS)
    return is_refusal and _WEAK_OVERFLOW_PATTERN.search(text) is not None


def _server_message(error: Exception, *, key: str) -> str:
    """Return the first line of the server's error message, without API keys; empty for an invalid key or model.

    The line is cut before a brace, because servers quote the request there.
    """
    if not isinstance(error, openai.APIStatusError) or isinstance(error, (*_AUTH_ERRORS, openai.NotFoundError)):
        return ""
    body = _error_body(error)
    message = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else body
    if not isinstance(message, str) or message.lstrip().startswith("<"):
        return ""
    message = message if key == NO_KEY else message.replace(key, "[key]")
    line = next((line for line in message.splitlines() if line.strip()), "").partition("{")[0]
    plain = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    safe = _KEY_PATTERN.sub(_redact, plain)
    limit = MAX_REFUSAL_CHARS if error.status_code in REFUSED_REQUEST_STATUSES else MAX_MESSAGE_CHARS
    if len(safe) > limit:
        safe = safe[: limit - 2] + " …"
    return f" It says: {safe}" if safe else ""


def _error_body(error: openai.APIError) -> object:
    """Return the error in the server's response. Gemini sends it in a list."""
    body = cast("object", error.body)
    listed = cast("list[object]", body) if isinstance(body, list) else [body]
    first = listed[0] if listed else None
    if not isinstance(first, dict):
        return first
    fields = cast("dict[str, object]", first)
    return fields.get("error", fields)


def _find_refused_param(error: openai.APIStatusError) -> str | None:
    """Return the request field that an error message names, by its name in OpenAI's format; None if it names none."""
    body = _error_body(error)
    message = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else None
    if isinstance(error.param, str) or not isinstance(message, str):
        return error.param if isinstance(error.param, str) else None
    named = _FIELD_PATTERN.search(message)
    field = named and (named[1] or named[2])
    return field and _OPENAI_FIELDS.get(field, field)


def _is_overloaded(error: Exception) -> bool:
    if isinstance(error, openai.APIStatusError) and error.status_code == OVERLOADED_STATUS:
        return True
    return isinstance(error, openai.APIError) and error.type == OVERLOADED_TYPE


def _redact(match: re.Match[str]) -> str:
    """Return a placeholder if the match may be an API key. A long word without digits is returned unchanged."""
    return "[key]" if match[1] is None or any(map(str.isdigit, match[1])) else match[0]


def make_endpoint(settings: Settings, model: str, setting: str) -> ModelEndpoint:
    """Return the endpoint of `model` at the server of OpenAI's settings. `setting` is the setting that errors name."""
    upstream = replace(build_provider_upstream("openai", settings), model_setting=setting)
    return ModelEndpoint(client=make_client(upstream), model=model, upstream=upstream)


def _make_error(error: Exception, what: str, *, hint: str) -> ProviderError:
    """Create the error of the class for a fault of the request, of the model or of the server."""
    if isinstance(error, openai.NotFoundError):
        return ModelNotFoundError(what, hint=hint)
    if isinstance(error, openai.RateLimitError) or _is_overloaded(error):
        return RateLimitError(what, hint=hint)
    if isinstance(error, openai.APIStatusError) and error.status_code in REFUSED_REQUEST_STATUSES:
        code = error.code if isinstance(error.code, str) else None
        return RefusedRequestError(what, hint=hint, param=_find_refused_param(error), server_code=code)
    return ProviderError(what, hint=hint)


# The first match applies.
_EXPLANATIONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (_AUTH_ERRORS, "{address} rejected the API key.", "Check {key_setting}."),
    (openai.NotFoundError, "{address} has no model {model!r}.", "Set {setting} to a model that the server offers."),
    (openai.RateLimitError, "{address} is busy, or the quota is used up.", "Wait, or check the account's quota."),
    (_TIMEOUTS, "{address} did not answer in time.", "Try again, or raise NEWTON_LLM_TIMEOUT."),
    (openai.APIConnectionError, "{address} cannot be reached.", "Check {address_setting}, and that the server runs."),
    (
        _REFUSALS,
        "{address} answered with the HTTP status {status}.",
        "Change the request, or see the log of the model server.",
    ),
    (openai.APIStatusError, "{address} answered with the HTTP status {status}.", "See the log of the model server."),
    (openai.APIError, "{address} failed during the reply.", "Try again, or see the log of the model server."),
)
