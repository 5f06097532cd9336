"""A chat model at any OpenAI-compatible endpoint, with one deadline and one retry layer per call."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TypeVar, cast

import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.chat.completion_create_params import ResponseFormat
from openai.types.shared_params import FunctionDefinition
from pydantic import BaseModel

from newton.errors import ContextWindowError, ProviderError
from newton.providers import response_formats
from newton.providers.chat import ChatMessage, ChatReply, RequestOptions, to_openai_message
from newton.providers.circuit_breaker import CircuitBreaker, get_breaker
from newton.providers.stream_accumulator import StreamAccumulator
from newton.settings import Settings
from newton.telemetry import detached_span

DEFAULT_BASE_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 5.0
NO_KEY = "none"  # for a server that needs none
DEFAULT_RETRY_SECONDS = 0.5  # seconds before a retry when the endpoint sends no Retry-After

T = TypeVar("T")

_RETRYABLE = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)
FAILURES = (openai.OpenAIError, TimeoutError, ValueError)  # ValueError: the response violates the protocol
_OUTAGES = (*_RETRYABLE, TimeoutError, ValueError)  # errors that count as an outage; a refusal does not
# Errors of servers without tool support.
_NO_TOOLS_PATTERN = re.compile(r"\btools?\b|tool_choice|jinja|function", re.IGNORECASE)
_NO_OPTIONS = RequestOptions()

_without_tools: set[tuple[str, str]] = set()  # (address, model) pairs seen by this process


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """One model at one address. `setting` is the setting that names the model; `seconds` limits a whole call."""

    client: openai.AsyncOpenAI
    model: str
    setting: str
    seconds: float

    @property
    def address(self) -> str:
        return str(self.client.base_url).rstrip("/")

    @property
    def breaker(self) -> CircuitBreaker:
        return get_breaker(self.address, self.model)

    def deadline(self) -> float:
        """Return the deadline in event loop time. Raises ProviderError while the circuit breaker is open."""
        now = asyncio.get_running_loop().time()
        if not self.breaker.allow_call(now):
            raise ProviderError(
                f"{self.address} has failed several times; calls are paused for some seconds.",
                hint="Newton retries automatically; check that the endpoint runs.",
            )
        return now + self.seconds

    def record_result(self, error: Exception | None) -> None:
        """Record the result of an attempt in the circuit breaker."""
        self.breaker.record_result(asyncio.get_running_loop().time(), failed=_is_outage(error))

    async def call(self, send: Callable[[], Awaitable[T]], *, deadline: float, allow_retry: bool = True) -> T:
        """Call with a retry as `call_with_retry`, within the retry budget."""

        def may() -> bool:
            return allow_retry and self.breaker.allow_retry()

        return await call_with_retry(send, deadline=deadline, allow_retry=may, on_retry=self.record_result)

    def to_provider_error(self, error: Exception) -> ProviderError:
        """Return the failure with a remedy, and the first line of the endpoint's message without keys."""
        if _is_window_overflow(error):
            return ContextWindowError(
                f"The prompt exceeds the context window of {self.model}.",
                hint="Set NEWTON_WINDOW_TOKENS to that window.",
            )
        words = {"where": self.address, "model": self.model, "setting": self.setting}
        for kinds, what, hint in _EXPLANATIONS:
            if isinstance(error, kinds):
                status = str(error.status_code) if isinstance(error, openai.APIStatusError) else ""
                said = _server_message(error, key=self.client.api_key)
                said += "." if said and said[-1] not in ".!?…" else ""
                return ProviderError(what.format(**words, status=status) + said, hint=hint.format(**words))
        return ProviderError(f"{self.address} sent an invalid reply.", hint="Check OPENAI_BASE_URL.")


def make_client(settings: Settings) -> openai.AsyncOpenAI:
    """Return the client. The client requires a key, even for a local server that needs none."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else NO_KEY
    timeout = openai.Timeout(settings.llm_timeout, connect=min(CONNECT_SECONDS, settings.llm_timeout))
    return openai.AsyncOpenAI(
        api_key=key, base_url=settings.openai_base_url or DEFAULT_BASE_URL, max_retries=0, timeout=timeout
    )


async def call_with_retry(
    send: Callable[[], Awaitable[T]],
    *,
    deadline: float,
    allow_retry: Callable[[], bool] = lambda: True,
    on_retry: Callable[[Exception], None] = lambda error: None,
) -> T:
    """Return the result of `send`; retry once after an outage or overload if the delay ends before the deadline and
    `allow_retry` permits. `on_retry` gets the first error.

    Raises TimeoutError at the deadline.
    """
    async with asyncio.timeout_at(deadline):
        try:
            return await send()
        except _RETRYABLE as error:
            wait = retry_delay(error)
            if asyncio.get_running_loop().time() + wait >= deadline or not allow_retry():
                raise
            on_retry(error)
            await asyncio.sleep(wait)
        return await send()


def _is_outage(error: Exception | None) -> bool:
    """Return True when the error means an outage; a refusal does not."""
    refused = isinstance(error, openai.APIStatusError) and not isinstance(error, _RETRYABLE)
    return error is not None and not refused and isinstance(error, (openai.APIError, *_OUTAGES))


def retry_delay(error: openai.OpenAIError) -> float:
    """Return the seconds before a retry: the endpoint's Retry-After, a number or a date, or a default."""
    if not isinstance(error, openai.APIStatusError):
        return DEFAULT_RETRY_SECONDS
    headers = error.response.headers
    asked = headers.get("retry-after", "")
    try:
        wait = float(asked)
    except ValueError:
        wait = _seconds_between(headers.get("date", ""), asked)
    return wait if wait >= 0 else DEFAULT_RETRY_SECONDS


def _seconds_between(said: str, asked: str) -> float:
    """Return the difference of two dates by the endpoint's clock; -1 when one is invalid."""
    try:
        return (parsedate_to_datetime(asked) - parsedate_to_datetime(said)).total_seconds()
    except (ValueError, TypeError):
        return -1


def _is_window_overflow(error: Exception) -> bool:
    """Return True when the error says that the prompt exceeds the context window; wordings vary by server."""
    if not isinstance(error, openai.BadRequestError):
        return False
    if error.code == "context_length_exceeded":
        return True
    return _OVERFLOW_PATTERN.search(error.message) is not None


_OVERFLOW_PATTERN = re.compile(r"context (?:length|size|window)|too (?:long|many tokens)|exceeds? the", re.IGNORECASE)


def _server_message(error: Exception, *, key: str) -> str:
    """Return the endpoint's error message as a sentence. It is empty for an invalid key or model, and ends before any
    brace: there servers quote the request."""
    if not isinstance(error, openai.APIStatusError) or isinstance(error, _QUOTING_ERRORS):
        return ""
    body = cast("object", error.body)
    told = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else body
    if not isinstance(told, str) or told.lstrip().startswith("<"):
        return ""
    told = told if key == NO_KEY else told.replace(key, "[key]")
    line = next((one for one in told.splitlines() if one.strip()), "").partition("{")[0]
    plain = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    safe = _KEY_PATTERN.sub(_redact, plain)
    return (
        f" It says: {safe if len(safe) <= MAX_MESSAGE_CHARS else safe[: MAX_MESSAGE_CHARS - 2] + ' …'}" if safe else ""
    )


def _redact(found: re.Match[str]) -> str:
    """Redact a word that may be a key or a part of one; long words without a digit stay."""
    return "[key]" if found[1] is None or any(map(str.isdigit, found[1])) else found[0]


MAX_MESSAGE_CHARS = 200  # characters
_QUOTING_ERRORS = (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError)
_KEY_PATTERN = re.compile(r"(?i:\bbearer\s+\S+)|\bsk-\S+|(?<=://)[^\s/@]+(?=@)|([\w+=~*-]{20,})")


class OpenAIChat:
    """A ChatModel. A call is retried only before its reply begins."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.openai_model
        self._endpoint = ModelEndpoint(
            client=make_client(settings),
            model=settings.openai_model,
            setting="OPENAI_MODEL",
            seconds=settings.llm_timeout,
        )

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: type[BaseModel] | None = None
    ) -> AsyncIterator[str | ChatReply]:
        """Stream as ChatModel and StructuredModel define. `llm_timeout` limits the whole reply."""
        deadline, heard = self._endpoint.deadline(), StreamAccumulator(messages, max_tokens)
        if schema is None:
            begin = self._endpoint.call(lambda: self._start_completion(messages, max_tokens), deadline=deadline)
        else:
            begin = self._start_structured(heard, max_tokens, schema, deadline)
        async with aclosing(self._stream_reply(heard, begin, deadline)) as pieces:
            async for piece in pieces:
                yield piece

    async def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, options: RequestOptions
    ) -> AsyncIterator[str | ChatReply]:
        """See `ToolModel.answer`."""
        deadline, heard = self._endpoint.deadline(), StreamAccumulator(messages, max_tokens)
        begin = self._start_with_options(heard, max_tokens, options, deadline)
        async with aclosing(self._stream_reply(heard, begin, deadline)) as pieces:
            async for piece in pieces:
                yield piece

    async def _stream_reply(
        self, accumulator: StreamAccumulator, begin: Awaitable[openai.AsyncStream[ChatCompletionChunk]], deadline: float
    ) -> AsyncGenerator[str | ChatReply]:
        with detached_span("chat", model=self._endpoint.model) as noting:
            async with aclosing(self._stream_pieces(accumulator, begin, deadline)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ChatReply):
                        noting.set_attributes(
                            finish=piece.finish, input_tokens=piece.input_tokens, output_tokens=piece.output_tokens
                        )
                    yield piece

    async def _stream_pieces(
        self, accumulator: StreamAccumulator, begin: Awaitable[openai.AsyncStream[ChatCompletionChunk]], deadline: float
    ) -> AsyncGenerator[str | ChatReply]:
        failure: Exception | None = None
        try:
            async with aclosing(_chunks(begin, deadline)) as chunks:
                async for chunk in chunks:
                    if piece := accumulator.add_chunk(chunk):
                        yield piece
        except FAILURES as error:
            failure = error
        reply = accumulator.to_reply(model=self._endpoint.model)
        broken = accumulator.is_empty or reply.finish == "interrupted"
        self._endpoint.record_result(failure or (ValueError() if broken else None))
        if not accumulator.is_empty or not reply.estimated:
            yield reply
        if broken:
            raise self._endpoint.to_provider_error(failure) if failure else self._incomplete_reply_error(reply)

    async def _start_with_options(
        self, accumulator: StreamAccumulator, max_tokens: int, options: RequestOptions, deadline: float
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        """Start a request with tools, or without them if the model does not support tools."""
        place = self._endpoint.address, self._endpoint.model

        def asking(given: RequestOptions) -> Callable[[], Awaitable[openai.AsyncStream[ChatCompletionChunk]]]:
            return lambda: self._start_completion(accumulator.messages, max_tokens, options=given)

        plain = RequestOptions(
            extra_body={name: one for name, one in options.extra_body.items() if not name.startswith("tool_")}
        )
        if not options.tools or place in _without_tools:
            return await self._endpoint.call(asking(plain), deadline=deadline)
        try:
            return await self._endpoint.call(asking(options), deadline=deadline)
        except openai.APIStatusError as error:
            if (
                error.status_code not in response_formats.REFUSAL_STATUSES
                or _is_window_overflow(error)
                or not _NO_TOOLS_PATTERN.search(error.message)
            ):
                raise
        begun = await self._endpoint.call(asking(plain), deadline=deadline)
        _without_tools.add(place)
        return begun

    async def _start_structured(
        self, accumulator: StreamAccumulator, max_tokens: int, schema: type[BaseModel], deadline: float
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        """Start a request for structured output, falling back to looser formats while the endpoint refuses. If it
        refuses all, raise the first refusal and try a single format next time: an outage must not cost three
        requests."""
        place, messages = (self._endpoint.address, self._endpoint.model), accumulator.messages
        refused: openai.APIStatusError | None = None
        for way in response_formats.modes_to_try(place):
            accumulator.messages = response_formats.add_schema_to_prompt(messages, schema, way)
            ask = partial(
                self._start_completion,
                accumulator.messages,
                max_tokens,
                response_formats.build_response_format(schema, way),
            )
            try:
                begun = await self._endpoint.call(ask, deadline=deadline, allow_retry=refused is None)
            except openai.APIStatusError as error:
                if error.status_code not in response_formats.REFUSAL_STATUSES or _is_window_overflow(error):
                    raise
                refused = refused or error
            else:
                response_formats.record_success(place, way)
                return begun
        assert refused, "no response format to try"
        response_formats.record_outage(place)
        raise refused

    async def _start_completion(
        self,
        messages: Sequence[ChatMessage],
        max_tokens: int,
        response_format: ResponseFormat | None = None,
        *,
        options: RequestOptions = _NO_OPTIONS,
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        return await self._endpoint.client.chat.completions.create(
            model=self._endpoint.model,
            messages=cast("list[ChatCompletionMessageParam]", [to_openai_message(message) for message in messages]),
            max_tokens=max_tokens,
            stream=True,
            stream_options={"include_usage": True},
            response_format=response_format or openai.omit,
            tools=[{"type": "function", "function": cast("FunctionDefinition", one.function)} for one in options.tools]
            or openai.omit,
            extra_body=dict(options.extra_body) or None,
        )

    def _incomplete_reply_error(self, reply: ChatReply) -> ProviderError:
        """Return the error for a reply that ended without one but is empty or broken off."""
        if reply.text:
            return ProviderError(f"{self._endpoint.address} ended its reply early.", hint="Ask again.")
        hint = "Raise NEWTON_MAX_OUTPUT_TOKENS." if reply.finish == "length" else "Ask again, or set OPENAI_MODEL."
        return ProviderError(f"The model {self._endpoint.model} sent an empty reply.", hint=hint)


async def _chunks(
    begin: Awaitable[openai.AsyncStream[ChatCompletionChunk]], deadline: float
) -> AsyncGenerator[ChatCompletionChunk]:
    """Yield chunks. The deadline is set anew for each wait, so that it never cancels the consumer."""
    async with await begin as stream:
        while True:
            async with asyncio.timeout_at(deadline):
                chunk = await anext(stream, None)
            if chunk is None:
                return
            yield chunk


# The first match applies.
_EXPLANATIONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (
        (openai.AuthenticationError, openai.PermissionDeniedError),
        "{where} rejected the API key.",
        "Check OPENAI_API_KEY.",
    ),
    (openai.NotFoundError, "{where} has no model {model!r}.", "Set {setting} to a model that it offers."),
    (openai.RateLimitError, "{where} is busy or the quota is used up.", "Wait, or check the account."),
    (
        (openai.APITimeoutError, TimeoutError),
        "{where} did not answer in time.",
        "Try again, or raise NEWTON_LLM_TIMEOUT.",
    ),
    (openai.APIConnectionError, "{where} cannot be reached.", "Check OPENAI_BASE_URL and that it runs."),
    (openai.APIStatusError, "{where} answered {status}.", "See the log of that server."),
    (openai.APIError, "{where} failed during the reply.", "Try again, or see the log of that server."),
)
