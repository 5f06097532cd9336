"""Any OpenAI-compatible endpoint: one deadline and one retry layer for each call, and errors that say what to do."""

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

from newton.errors import ProviderError, WindowError
from newton.providers import forming
from newton.providers.breaker import Breaker, breaker_of
from newton.providers.chat import ChatMessage, Manner, Reply, wire
from newton.providers.hearing import Heard
from newton.settings import Settings
from newton.spans import leaf

OPENAI = "https://api.openai.com/v1"
CONNECT_SECONDS = 5.0
NO_KEY = "none"  # for a server that needs none
SHORT_WAIT = 0.5  # seconds before the second try when the endpoint does not say how long

T = TypeVar("T")

_PASSING = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)
FAILURES = (openai.OpenAIError, TimeoutError, ValueError)  # ValueError: what came is not what the protocol says
_AWAY = (*_PASSING, TimeoutError, ValueError)  # what speaks for an outage; a refusal is an answer
# What servers say that cannot be given tools.
_TOOLLESS = re.compile(r"\btools?\b|tool_choice|jinja|function", re.IGNORECASE)
_PLAIN = Manner()

_without_tools: set[tuple[str, str]] = set()  # addresses with models, as far as this process has learnt


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One model behind one address. `setting` names the model's setting; `seconds` are for a whole call."""

    client: openai.AsyncOpenAI
    model: str
    setting: str
    seconds: float

    @property
    def address(self) -> str:
        return str(self.client.base_url).rstrip("/")

    @property
    def breaker(self) -> Breaker:
        return breaker_of(self.address, self.model)

    def deadline(self) -> float:
        """By the event loop's clock. Raises ProviderError for an endpoint that is left alone."""
        now = asyncio.get_running_loop().time()
        if not self.breaker.admits(now):
            raise ProviderError(
                f"{self.address} has failed several times, and is left alone for some seconds.",
                hint="It is tried again by itself; see that it runs.",
            )
        return now + self.seconds

    def note(self, error: Exception | None) -> None:
        """What came of a try."""
        self.breaker.note(asyncio.get_running_loop().time(), failed=_away(error))

    async def tried(self, ask: Callable[[], Awaitable[T]], *, deadline: float, again: bool = True) -> T:
        """As `tried`, within the budget of second tries."""

        def may() -> bool:
            return again and self.breaker.again()

        return await tried(ask, deadline=deadline, again=may, failed=self.note)

    def explained(self, error: Exception) -> ProviderError:
        """The failure in words that help, with the first line of what a busy or broken endpoint says, without keys."""
        if _overflows(error):
            return WindowError(
                f"The prompt is longer than {self.model} reads.", hint="Set NEWTON_WINDOW_TOKENS to its window."
            )
        words = {"where": self.address, "model": self.model, "setting": self.setting}
        for kinds, what, hint in _EXPLANATIONS:
            if isinstance(error, kinds):
                status = str(error.status_code) if isinstance(error, openai.APIStatusError) else ""
                said = _said(error, key=self.client.api_key)
                said += "." if said and said[-1] not in ".!?…" else ""
                return ProviderError(what.format(**words, status=status) + said, hint=hint.format(**words))
        return ProviderError(f"{self.address} answered what is no valid reply.", hint="Check OPENAI_BASE_URL.")


def client(settings: Settings) -> openai.AsyncOpenAI:
    """The connection. The protocol wants a key, though a local server needs none."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else NO_KEY
    timeout = openai.Timeout(settings.llm_timeout, connect=min(CONNECT_SECONDS, settings.llm_timeout))
    return openai.AsyncOpenAI(api_key=key, base_url=settings.openai_base_url or OPENAI, max_retries=0, timeout=timeout)


async def tried(
    ask: Callable[[], Awaitable[T]],
    *,
    deadline: float,
    again: Callable[[], bool] = lambda: True,
    failed: Callable[[Exception], None] = lambda error: None,
) -> T:
    """The answer; asked once more when the endpoint was away or busy and the wait it wants ends before the deadline,
    if it may be asked `again`; then `failed` is told of the first try.

    Raises TimeoutError at the deadline.
    """
    async with asyncio.timeout_at(deadline):
        try:
            return await ask()
        except _PASSING as error:
            wait = wait_asked(error)
            if asyncio.get_running_loop().time() + wait >= deadline or not again():
                raise
            failed(error)
            await asyncio.sleep(wait)
        return await ask()


def _away(error: Exception | None) -> bool:
    """Whether an outage is behind it; an endpoint that refuses is there."""
    refused = isinstance(error, openai.APIStatusError) and not isinstance(error, _PASSING)
    return error is not None and not refused and isinstance(error, (openai.APIError, *_AWAY))


def wait_asked(error: openai.OpenAIError) -> float:
    """Seconds to wait before the next try: what the endpoint asked for, as a number or a date, or a short while."""
    if not isinstance(error, openai.APIStatusError):
        return SHORT_WAIT
    headers = error.response.headers
    asked = headers.get("retry-after", "")
    try:
        wait = float(asked)
    except ValueError:
        wait = _seconds_between(headers.get("date", ""), asked)
    return wait if wait >= 0 else SHORT_WAIT


def _seconds_between(said: str, asked: str) -> float:
    """By the endpoint's own clock; -1 when one of the two is no date."""
    try:
        return (parsedate_to_datetime(asked) - parsedate_to_datetime(said)).total_seconds()
    except (ValueError, TypeError):
        return -1


def _overflows(error: Exception) -> bool:
    """Whether the endpoint says that the prompt does not fit the model's window; servers say it in their own ways."""
    if not isinstance(error, openai.BadRequestError):
        return False
    if error.code == "context_length_exceeded":
        return True
    return _TOO_LONG.search(error.message) is not None


_TOO_LONG = re.compile(r"context (?:length|size|window)|too (?:long|many tokens)|exceeds? the", re.IGNORECASE)


def _said(error: Exception, *, key: str) -> str:
    """What the endpoint says of its failure, as a sentence to follow ours; nothing where a key or a model was wrong,
    for it quotes them then, and nothing from a brace on, where it quotes what was sent."""
    if not isinstance(error, openai.APIStatusError) or isinstance(error, _QUOTING):
        return ""
    body = cast("object", error.body)
    told = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else body
    if not isinstance(told, str) or told.lstrip().startswith("<"):
        return ""
    told = told if key == NO_KEY else told.replace(key, "[key]")
    line = next((one for one in told.splitlines() if one.strip()), "").partition("{")[0]
    plain = " ".join("".join(c if c.isprintable() else " " for c in line).split())
    safe = _KEYS.sub(_hidden, plain)
    return f" It says: {safe if len(safe) <= MOST_SAID else safe[: MOST_SAID - 2] + ' …'}" if safe else ""


def _hidden(found: re.Match[str]) -> str:
    """A word that may be a key, or a part of one; a long word without a digit is none."""
    return "[key]" if found[1] is None or any(map(str.isdigit, found[1])) else found[0]


MOST_SAID = 200  # characters
_QUOTING = (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError)
_KEYS = re.compile(r"(?i:\bbearer\s+\S+)|\bsk-\S+|(?<=://)[^\s/@]+(?=@)|([\w+=~*-]{20,})")


class OpenAIChat:
    """A ChatModel. Asking twice is for a reply that has not begun; one that breaks off is not begun again."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.openai_model
        self._endpoint = Endpoint(
            client=client(settings),
            model=settings.openai_model,
            setting="OPENAI_MODEL",
            seconds=settings.llm_timeout,
        )

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, form: type[BaseModel] | None = None
    ) -> AsyncIterator[str | Reply]:
        """As ChatModel and FormModel say. The deadline of `llm_timeout` seconds is for the whole reply."""
        deadline, heard = self._endpoint.deadline(), Heard(messages, max_tokens)
        if form is None:
            begin = self._endpoint.tried(lambda: self._begun(messages, max_tokens), deadline=deadline)
        else:
            begin = self._formed(heard, max_tokens, form, deadline)
        async with aclosing(self._replied(heard, begin, deadline)) as pieces:
            async for piece in pieces:
                yield piece

    async def answer(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, manner: Manner
    ) -> AsyncIterator[str | Reply]:
        """As ToolModel says."""
        deadline, heard = self._endpoint.deadline(), Heard(messages, max_tokens)
        begin = self._mannered(heard, max_tokens, manner, deadline)
        async with aclosing(self._replied(heard, begin, deadline)) as pieces:
            async for piece in pieces:
                yield piece

    async def _replied(
        self, heard: Heard, begin: Awaitable[openai.AsyncStream[ChatCompletionChunk]], deadline: float
    ) -> AsyncGenerator[str | Reply]:
        with leaf("chat", model=self._endpoint.model) as noting:
            async with aclosing(self._pieces(heard, begin, deadline)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Reply):
                        noting.note(
                            finish=piece.finish, input_tokens=piece.input_tokens, output_tokens=piece.output_tokens
                        )
                    yield piece

    async def _pieces(
        self, heard: Heard, begin: Awaitable[openai.AsyncStream[ChatCompletionChunk]], deadline: float
    ) -> AsyncGenerator[str | Reply]:
        failure: Exception | None = None
        try:
            async with aclosing(_chunks(begin, deadline)) as chunks:
                async for chunk in chunks:
                    if piece := heard.take(chunk):
                        yield piece
        except FAILURES as error:
            failure = error
        reply = heard.reply(model=self._endpoint.model)
        broken = heard.nothing or reply.finish == "interrupted"
        self._endpoint.note(failure or (ValueError() if broken else None))
        if not heard.nothing or not reply.estimated:
            yield reply
        if broken:
            raise self._endpoint.explained(failure) if failure else self._unsaid(reply)

    async def _mannered(
        self, heard: Heard, max_tokens: int, manner: Manner, deadline: float
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        """The reply to a request with tools, or without them where the model cannot be given any."""
        place = self._endpoint.address, self._endpoint.model

        def asking(given: Manner) -> Callable[[], Awaitable[openai.AsyncStream[ChatCompletionChunk]]]:
            return lambda: self._begun(heard.asked, max_tokens, manner=given)

        plain = Manner(wishes={name: one for name, one in manner.wishes.items() if not name.startswith("tool_")})
        if not manner.tools or place in _without_tools:
            return await self._endpoint.tried(asking(plain), deadline=deadline)
        try:
            return await self._endpoint.tried(asking(manner), deadline=deadline)
        except openai.APIStatusError as error:
            if error.status_code not in forming.REFUSALS or _overflows(error) or not _TOOLLESS.search(error.message):
                raise
        begun = await self._endpoint.tried(asking(plain), deadline=deadline)
        _without_tools.add(place)
        return begun

    async def _formed(
        self, heard: Heard, max_tokens: int, form: type[BaseModel], deadline: float
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        """The reply to a request for a form, made plainer as long as the endpoint refuses it. When it refuses all of
        them, the first refusal counts, and the next request is a plain one alone: an outage is not asked thrice."""
        place, messages = (self._endpoint.address, self._endpoint.model), heard.asked
        refused: openai.APIStatusError | None = None
        for way in forming.ways(place):
            heard.asked = forming.worded(messages, form, way)
            ask = partial(self._begun, heard.asked, max_tokens, forming.response_format(form, way))
            try:
                begun = await self._endpoint.tried(ask, deadline=deadline, again=refused is None)
            except openai.APIStatusError as error:
                if error.status_code not in forming.REFUSALS or _overflows(error):
                    raise
                refused = refused or error
            else:
                forming.understood(place, way)
                return begun
        assert refused, "there is a way at least"
        forming.unanswered(place)
        raise refused

    async def _begun(
        self,
        messages: Sequence[ChatMessage],
        max_tokens: int,
        response_format: ResponseFormat | None = None,
        *,
        manner: Manner = _PLAIN,
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        return await self._endpoint.client.chat.completions.create(
            model=self._endpoint.model,
            messages=cast("list[ChatCompletionMessageParam]", [wire(message) for message in messages]),
            max_tokens=max_tokens,
            stream=True,
            stream_options={"include_usage": True},
            response_format=response_format or openai.omit,
            tools=[{"type": "function", "function": cast("FunctionDefinition", one.function)} for one in manner.tools]
            or openai.omit,
            extra_body=dict(manner.wishes) or None,
        )

    def _unsaid(self, reply: Reply) -> ProviderError:
        """Why a reply that came without an error cannot stand."""
        if reply.text:
            return ProviderError(f"{self._endpoint.address} broke its reply off.", hint="Ask again.")
        hint = "Raise NEWTON_REPLY_TOKENS." if reply.finish == "length" else "Ask again, or set OPENAI_MODEL."
        return ProviderError(f"The model {self._endpoint.model} answered nothing.", hint=hint)


async def _chunks(
    begin: Awaitable[openai.AsyncStream[ChatCompletionChunk]], deadline: float
) -> AsyncGenerator[ChatCompletionChunk]:
    """The deadline is set anew for each wait: one that stood while a chunk is away would cancel its reader."""
    async with await begin as stream:
        while True:
            async with asyncio.timeout_at(deadline):
                chunk = await anext(stream, None)
            if chunk is None:
                return
            yield chunk


# The first that fits speaks.
_EXPLANATIONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (
        (openai.AuthenticationError, openai.PermissionDeniedError),
        "{where} refuses the key.",
        "Check OPENAI_API_KEY.",
    ),
    (openai.NotFoundError, "{where} has no model {model!r}.", "Set {setting} to one that it has."),
    (openai.RateLimitError, "{where} is busy or the quota is used up.", "Wait, or look at the account."),
    (
        (openai.APITimeoutError, TimeoutError),
        "{where} did not answer in time.",
        "Ask again, or raise NEWTON_LLM_TIMEOUT.",
    ),
    (openai.APIConnectionError, "{where} cannot be reached.", "Check OPENAI_BASE_URL and that it runs."),
    (openai.APIStatusError, "{where} answered {status}.", "See that server's own log."),
    (openai.APIError, "{where} failed while it answered.", "Ask again, or see that server's own log."),
)
