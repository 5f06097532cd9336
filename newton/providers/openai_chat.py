"""A chat model at an OpenAI-compatible endpoint; each call has one deadline and at most one retry."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TypeAlias, TypeVar, cast

import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.chat.completion_create_params import ResponseFormat
from openai.types.shared_params import FunctionDefinition
from pydantic import BaseModel

from newton.errors import ContextWindowError, ProviderError
from newton.providers import structured_output
from newton.providers.chat import ChatMessage, ChatReply, RequestOptions, to_openai_message
from newton.providers.circuit_breaker import CircuitBreaker, get_breaker
from newton.providers.stream_accumulator import StreamAccumulator
from newton.providers.structured_output import EndpointKey
from newton.settings import Settings
from newton.telemetry import detached_span

DEFAULT_BASE_URL = "https://api.openai.com/v1"
CONNECT_SECONDS = 5.0
NO_KEY = "none"  # for a server that needs no key
DEFAULT_RETRY_SECONDS = 0.5  # delay of a retry when the endpoint sends no Retry-After
MAX_MESSAGE_CHARS = 200

T = TypeVar("T")
CompletionStream: TypeAlias = openai.AsyncStream[ChatCompletionChunk]

_RETRYABLE = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)
FAILURES = (openai.OpenAIError, TimeoutError, ValueError)  # ValueError: the response violates the protocol
_AUTH_ERRORS = (openai.AuthenticationError, openai.PermissionDeniedError)
_TIMEOUTS = (openai.APITimeoutError, TimeoutError)
_NO_TOOLS_PATTERN = re.compile(r"\btools?\b|tool_choice|jinja|function", re.IGNORECASE)  # no tool support
_OVERFLOW_PATTERN = re.compile(r"context (?:length|size|window)|too (?:long|many tokens)|exceeds? the", re.IGNORECASE)
_KEY_PATTERN = re.compile(r"(?i:\bbearer\s+\S+)|\bsk-\S+|(?<=://)[^\s/@]+(?=@)|([\w+=~*-]{20,})")
_NO_OPTIONS = RequestOptions()

_without_tools: set[EndpointKey] = set()  # models without tool support, as learned by this process


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """One model at one address. `setting` is the name of the model's setting; `seconds` limits a whole call."""

    client: openai.AsyncOpenAI
    model: str
    setting: str
    seconds: float

    @property
    def address(self) -> str:
        return str(self.client.base_url).rstrip("/")

    @property
    def key(self) -> EndpointKey:
        return self.address, self.model

    @property
    def breaker(self) -> CircuitBreaker:
        return get_breaker(*self.key)

    def deadline(self) -> float:
        """Return the deadline in event loop time. Raises ProviderError while the circuit breaker is open."""
        now = asyncio.get_running_loop().time()
        if not self.breaker.allow_call(now):
            raise ProviderError(
                f"{self.address} has failed several times; calls are paused for some seconds.",
                hint="Newton retries automatically. Check that the endpoint runs.",
            )
        return now + self.seconds

    def record_result(self, error: Exception | None) -> None:
        """Tell the circuit breaker of this endpoint whether an attempt failed; `error` is None for a success."""
        self.breaker.record_result(asyncio.get_running_loop().time(), failed=_is_outage(error))

    async def call(self, send: Callable[[], Awaitable[T]], *, deadline: float, allow_retry: bool = True) -> T:
        """Return the result of `send`, retried once after an outage or a rate limit. Raises TimeoutError.

        A retry needs retry budget and time before the deadline.
        """
        async with asyncio.timeout_at(deadline):
            try:
                return await send()
            except _RETRYABLE as error:
                wait = _retry_delay(error)
                in_time = asyncio.get_running_loop().time() + wait < deadline
                if not (in_time and allow_retry and self.breaker.allow_retry()):
                    raise
                self.record_result(error)
                await asyncio.sleep(wait)
            return await send()

    def to_provider_error(self, error: Exception) -> ProviderError:
        """Return the failure with a remedy and the first line of the endpoint's message, without API keys."""
        if _is_window_overflow(error):
            hint = "Set NEWTON_WINDOW_TOKENS to the size of that window."
            return ContextWindowError(f"The prompt exceeds the context window of {self.model}.", hint=hint)
        status = str(error.status_code) if isinstance(error, openai.APIStatusError) else ""
        fields = {"address": self.address, "model": self.model, "setting": self.setting, "status": status}
        if _is_untrusted_certificate(error):
            what = f"The TLS certificate of {self.address} is not trusted."
            hint = "Set SSL_CERT_FILE to a PEM file with the certificate of the authority that issued it."
            return ProviderError(what, hint=hint)
        for kinds, what, hint in _EXPLANATIONS:
            if isinstance(error, kinds):
                message = _server_message(error, key=self.client.api_key)
                message += "." if message and message[-1] not in ".!?…" else ""
                return ProviderError(what.format(**fields) + message, hint=hint.format(**fields))
        return ProviderError(f"{self.address} sent an invalid reply.", hint="Check OPENAI_BASE_URL.")


def make_client(settings: Settings) -> openai.AsyncOpenAI:
    """Return the client. The OpenAI library requires a key, even for a local server that needs none."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else NO_KEY
    timeout = openai.Timeout(settings.llm_timeout, connect=min(CONNECT_SECONDS, settings.llm_timeout))
    base_url = settings.openai_base_url or DEFAULT_BASE_URL
    return openai.AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0, timeout=timeout)


def _is_untrusted_certificate(error: BaseException | None) -> bool:
    """Return whether an error in the chain of causes is a failed verification of a certificate."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_outage(error: Exception | None) -> bool:
    """Return True when the error means that the endpoint is down. A rejected request is not an outage."""
    if isinstance(error, openai.APIStatusError):
        return isinstance(error, _RETRYABLE)
    return isinstance(error, openai.APIError | TimeoutError | ValueError)


def _retry_delay(error: openai.OpenAIError) -> float:
    """Return the seconds before a retry: the endpoint's Retry-After (a number or a date), or a default."""
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
    """Return the difference of two HTTP dates; -1 when one is invalid."""
    try:
        return (parsedate_to_datetime(end) - parsedate_to_datetime(start)).total_seconds()
    except (ValueError, TypeError):
        return -1


def _is_window_overflow(error: Exception) -> bool:
    """Return True when the endpoint rejects the prompt as too long for the context window; wordings vary by server."""
    return isinstance(error, openai.BadRequestError) and (
        error.code == "context_length_exceeded" or _OVERFLOW_PATTERN.search(error.message) is not None
    )


def _server_message(error: Exception, *, key: str) -> str:
    """Return the first line of the endpoint's error message, without API keys.

    The line is cut before a brace, because servers quote the request there. It is empty for an invalid key or model.
    """
    if not isinstance(error, openai.APIStatusError) or isinstance(error, (*_AUTH_ERRORS, openai.NotFoundError)):
        return ""
    body = cast("object", error.body)
    message = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else body
    if not isinstance(message, str) or message.lstrip().startswith("<"):
        return ""
    message = message if key == NO_KEY else message.replace(key, "[key]")
    line = next((line for line in message.splitlines() if line.strip()), "").partition("{")[0]
    plain = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    safe = _KEY_PATTERN.sub(_redact, plain)
    if len(safe) > MAX_MESSAGE_CHARS:
        safe = safe[: MAX_MESSAGE_CHARS - 2] + " …"
    return f" It says: {safe}" if safe else ""


def _redact(match: re.Match[str]) -> str:
    """Return a placeholder for a word that may be an API key. A long word without a digit is returned unchanged."""
    return "[key]" if match[1] is None or any(map(str.isdigit, match[1])) else match[0]


def make_endpoint(settings: Settings, model: str, setting: str) -> ModelEndpoint:
    """Return the endpoint of a model that is configured by the setting of that name."""
    return ModelEndpoint(client=make_client(settings), model=model, setting=setting, seconds=settings.llm_timeout)


class OpenAIChat:
    """A ChatModel. A call is retried only before its reply begins."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.openai_model
        self._endpoint = make_endpoint(settings, self.name, "OPENAI_MODEL")

    def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: type[BaseModel] | None = None
    ) -> AsyncGenerator[str | ChatReply]:
        """See `StructuredModel.stream`. The setting `llm_timeout` limits the whole reply."""
        start = partial(self._start_structured, schema=schema) if schema else self._start_with_options
        return self._stream_reply(StreamAccumulator(messages, max_tokens), start)

    def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, options: RequestOptions
    ) -> AsyncGenerator[str | ChatReply]:
        """See `ToolModel.answer`."""
        start = partial(self._start_with_options, options=options)
        return self._stream_reply(StreamAccumulator(messages, max_tokens), start)

    async def _stream_reply(
        self,
        accumulator: StreamAccumulator,
        start: Callable[[StreamAccumulator, float], Coroutine[None, None, CompletionStream]],
    ) -> AsyncGenerator[str | ChatReply]:
        deadline, failure = self._endpoint.deadline(), None
        with detached_span("chat", model=self.name) as span:
            try:
                async with aclosing(_iter_chunks(start(accumulator, deadline), deadline)) as chunks:
                    async for chunk in chunks:
                        if piece := accumulator.add_chunk(chunk):
                            yield piece
            except FAILURES as error:
                failure = error
            reply = accumulator.to_reply(model=self.name)
            is_broken = accumulator.is_empty or reply.finish == "interrupted"
            self._endpoint.record_result(failure or (ValueError() if is_broken else None))
            if not accumulator.is_empty or not reply.estimated:
                span.set_attributes(finish=reply.finish)
                span.set_attributes(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
                yield reply
            if is_broken:
                raise self._endpoint.to_provider_error(failure) if failure else self._incomplete_reply_error(reply)

    async def _start_with_options(
        self, accumulator: StreamAccumulator, deadline: float, options: RequestOptions = _NO_OPTIONS
    ) -> CompletionStream:
        """Start a request with tools, or without them if the model does not support tools."""
        key = self._endpoint.key
        body = {name: value for name, value in options.extra_body.items() if not name.startswith("tool_")}
        without_tools = partial(self._start_completion, accumulator, options=RequestOptions(extra_body=body))
        if not options.tools or key in _without_tools:
            return await self._endpoint.call(without_tools, deadline=deadline)
        try:
            with_tools = partial(self._start_completion, accumulator, options=options)
            return await self._endpoint.call(with_tools, deadline=deadline)
        except openai.APIStatusError as error:
            if not _is_refused_mode(error) or not _NO_TOOLS_PATTERN.search(error.message):
                raise
        stream = await self._endpoint.call(without_tools, deadline=deadline)
        _without_tools.add(key)
        return stream

    async def _start_structured(
        self, accumulator: StreamAccumulator, deadline: float, schema: type[BaseModel]
    ) -> CompletionStream:
        """Start a request for structured output, with a looser format after each rejected one.

        If the endpoint rejects all formats, raise the first error. The next call tries only one: this may be an outage.
        """
        key, messages = self._endpoint.key, accumulator.messages
        refusal: openai.APIStatusError | None = None
        for mode in structured_output.modes_to_try(key):
            accumulator.messages = structured_output.add_schema_to_prompt(messages, schema, mode)
            send = partial(self._start_completion, accumulator, structured_output.build_response_format(schema, mode))
            try:
                stream = await self._endpoint.call(send, deadline=deadline, allow_retry=refusal is None)
            except openai.APIStatusError as error:
                if not _is_refused_mode(error):
                    raise
                refusal = refusal or error
            else:
                structured_output.record_success(key, mode)
                return stream
        assert refusal, "no response format to try"
        structured_output.record_outage(key)
        raise refusal

    async def _start_completion(
        self,
        accumulator: StreamAccumulator,
        response_format: ResponseFormat | None = None,
        *,
        options: RequestOptions = _NO_OPTIONS,
    ) -> CompletionStream:
        messages = [to_openai_message(message) for message in accumulator.messages]
        tools = [cast("FunctionDefinition", tool.function) for tool in options.tools]
        return await self._endpoint.client.chat.completions.create(
            model=self.name,
            messages=cast("list[ChatCompletionMessageParam]", messages),
            max_tokens=accumulator.max_tokens,
            stream=True,
            stream_options={"include_usage": True},
            response_format=response_format or openai.omit,
            tools=[{"type": "function", "function": tool} for tool in tools] or openai.omit,
            extra_body=dict(options.extra_body) or None,
        )

    def _incomplete_reply_error(self, reply: ChatReply) -> ProviderError:
        """Return the error for a reply that is empty or incomplete although the endpoint reported no error."""
        if reply.text:
            return ProviderError(f"{self._endpoint.address} ended its reply early.", hint="Ask again.")
        hint = "Raise NEWTON_MAX_OUTPUT_TOKENS." if reply.finish == "length" else "Ask again, or set OPENAI_MODEL."
        return ProviderError(f"The model {self.name} sent an empty reply.", hint=hint)


def _is_refused_mode(error: openai.APIStatusError) -> bool:
    return error.status_code in structured_output.REFUSAL_STATUSES and not _is_window_overflow(error)


async def _iter_chunks(start: Awaitable[CompletionStream], deadline: float) -> AsyncGenerator[ChatCompletionChunk]:
    """Yield chunks. Each wait has a timeout of its own, so that the deadline never cancels the consumer."""
    async with await start as stream:
        while True:
            async with asyncio.timeout_at(deadline):
                chunk = await anext(stream, None)
            if chunk is None:
                return
            yield chunk


# The first match applies.
_EXPLANATIONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (_AUTH_ERRORS, "{address} rejected the API key.", "Check OPENAI_API_KEY."),
    (openai.NotFoundError, "{address} has no model {model!r}.", "Set {setting} to a model that it offers."),
    (openai.RateLimitError, "{address} is busy, or the quota is used up.", "Wait, or check the account."),
    (_TIMEOUTS, "{address} did not answer in time.", "Try again, or raise NEWTON_LLM_TIMEOUT."),
    (openai.APIConnectionError, "{address} cannot be reached.", "Check OPENAI_BASE_URL and that it runs."),
    (openai.APIStatusError, "{address} answered {status}.", "See the log of that server."),
    (openai.APIError, "{address} failed during the reply.", "Try again, or see the log of that server."),
)
