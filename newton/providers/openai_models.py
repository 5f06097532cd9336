"""Any OpenAI-compatible endpoint: one deadline and one retry layer for each call, and errors that say what to do."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TypeVar, cast

import numpy as np
import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.chat.completion_create_params import ResponseFormat
from pydantic import BaseModel, ConfigDict

from newton.errors import ProviderError, WindowError
from newton.providers import forming, tokens
from newton.providers.chat import ChatMessage, Finish, Reply, wire
from newton.providers.embedding import Vector, unit
from newton.settings import Settings

OPENAI = "https://api.openai.com/v1"
CONNECT_SECONDS = 5.0
NO_KEY = "none"  # for a server that needs none
SHORT_WAIT = 0.5  # seconds before the second try when the endpoint does not say how long

# What OpenAI takes at most is 2,048 texts, 8,191 tokens a text and 300,000 tokens a request.
EMBED_TEXTS = 256
EMBED_TEXT_TOKENS = 8_000
EMBED_REQUEST_TOKENS = 250_000

T = TypeVar("T")

_PASSING = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)
_FAILURES = (openai.OpenAIError, TimeoutError, ValueError)  # ValueError: what came is not what the protocol says
_FINISHES: dict[str, Finish] = {"length": "length", "content_filter": "interrupted"}


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

    def deadline(self) -> float:
        """By the event loop's clock."""
        return asyncio.get_running_loop().time() + self.seconds

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
                return ProviderError(what.format(**words, status=status) + said, hint=hint.format(**words))
        return ProviderError(f"{self.address} answered what is no valid reply.", hint="Check OPENAI_BASE_URL.")


def client(settings: Settings) -> openai.AsyncOpenAI:
    """The connection. The protocol wants a key, though a local server needs none."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else NO_KEY
    timeout = openai.Timeout(settings.llm_timeout, connect=min(CONNECT_SECONDS, settings.llm_timeout))
    return openai.AsyncOpenAI(api_key=key, base_url=settings.openai_base_url or OPENAI, max_retries=0, timeout=timeout)


async def tried(ask: Callable[[], Awaitable[T]], *, deadline: float, again: bool = True) -> T:
    """The answer; asked once more when the endpoint was away or busy and the wait it wants ends before the deadline,
    unless `again` is false.

    Raises TimeoutError at the deadline.
    """
    async with asyncio.timeout_at(deadline):
        try:
            return await ask()
        except _PASSING as error:
            wait = wait_asked(error)
            if not again or asyncio.get_running_loop().time() + wait >= deadline:
                raise
            await asyncio.sleep(wait)
        return await ask()


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
        heard, failure = _Heard(messages), None
        try:
            async with aclosing(self._chunks(heard, max_tokens, form)) as chunks:
                async for chunk in chunks:
                    if piece := heard.take(chunk):
                        yield piece
        except _FAILURES as error:
            failure = self._endpoint.explained(error)
        reply = heard.reply(model=self._endpoint.model)
        if heard.pieces or not reply.estimated:
            yield reply
        if not heard.pieces or reply.finish == "interrupted":
            raise failure or self._unsaid(reply)

    async def _chunks(
        self, heard: "_Heard", max_tokens: int, form: type[BaseModel] | None
    ) -> AsyncGenerator[ChatCompletionChunk]:
        """The deadline is set anew for each wait: one that stood while a chunk is away would cancel its reader."""
        deadline = self._endpoint.deadline()
        if form is None:
            begun = await tried(lambda: self._begun(heard.asked, max_tokens), deadline=deadline)
        else:
            begun = await self._formed(heard, max_tokens, form, deadline)
        async with begun as stream:
            while True:
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(stream, None)
                if chunk is None:
                    return
                yield chunk

    async def _formed(
        self, heard: "_Heard", max_tokens: int, form: type[BaseModel], deadline: float
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        """The reply to a request for a form, made plainer as long as the endpoint refuses it. When it refuses all of
        them, the first refusal counts, and the next request is a plain one alone: an outage is not asked thrice."""
        place, messages = (self._endpoint.address, self._endpoint.model), heard.asked
        refused: openai.APIStatusError | None = None
        for way in forming.ways(place):
            heard.asked = forming.worded(messages, form, way)
            ask = partial(self._begun, heard.asked, max_tokens, forming.response_format(form, way))
            try:
                begun = await tried(ask, deadline=deadline, again=refused is None)
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
        self, messages: Sequence[ChatMessage], max_tokens: int, response_format: ResponseFormat | None = None
    ) -> openai.AsyncStream[ChatCompletionChunk]:
        return await self._endpoint.client.chat.completions.create(
            model=self._endpoint.model,
            messages=cast("list[ChatCompletionMessageParam]", [wire(message) for message in messages]),
            max_tokens=max_tokens,
            stream=True,
            stream_options={"include_usage": True},
            response_format=response_format or openai.omit,
        )

    def _unsaid(self, reply: Reply) -> ProviderError:
        """Why a reply that came without an error cannot stand."""
        if reply.text:
            return ProviderError(f"{self._endpoint.address} broke its reply off.", hint="Ask again.")
        hint = "Raise NEWTON_REPLY_TOKENS." if reply.finish == "length" else "Ask again, or set OPENAI_MODEL."
        return ProviderError(f"The model {self._endpoint.model} answered nothing.", hint=hint)


class _Received(BaseModel):
    """What is used of an answer; servers leave out or add the rest as they like."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class _Delta(_Received):
    content: str | None = None


class _Choice(_Received):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(_Received):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(_Received):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


@dataclass(slots=True)
class _Heard:
    """A reply as far as it has come, and what it was asked with."""

    asked: Sequence[ChatMessage]
    pieces: list[str] = field(default_factory=list[str])
    usage: tuple[int, int] | None = None
    finish: Finish | None = None

    def take(self, received: object) -> str | None:
        """The words of the chunk. Raises ValueError for what is no chunk."""
        chunk = _Chunk.model_validate(received)
        if (usage := chunk.usage) and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            self.usage = usage.prompt_tokens, usage.completion_tokens
        if not chunk.choices:
            # Usage without words is the last chunk, so the reply is whole even if no reason was given.
            self.finish = self.finish or ("stop" if chunk.usage else None)
            return None
        return self._choice(chunk.choices[0])

    def _choice(self, choice: _Choice) -> str | None:
        if choice.finish_reason:
            self.finish = _FINISHES.get(choice.finish_reason, "stop")
        piece = choice.delta.content if choice.delta else None
        if piece:
            self.pieces.append(piece)
        return piece

    def reply(self, *, model: str) -> Reply:
        text = "".join(self.pieces)
        spent = self.usage or (sum(tokens.count_many(m.text for m in self.asked)), tokens.count(text))
        return Reply(
            text=text,
            model=model,
            input_tokens=spent[0],
            output_tokens=spent[1],
            estimated=self.usage is None,
            finish=self.finish or "interrupted",
        )


class _Row(_Received):
    index: int
    embedding: list[float]


class _Rows(_Received):
    data: list[_Row]


class OpenAIEmbedder:
    """An Embedder. Of a text of more than 8,000 tokens it sees the beginning."""

    def __init__(self, settings: Settings) -> None:
        self._endpoint = Endpoint(
            client=client(settings),
            model=settings.embedding_model,
            setting="NEWTON_EMBEDDING_MODEL",
            seconds=settings.llm_timeout,
        )
        self.dimensions = settings.embedding_dimensions
        self.identity = f"{settings.embedding_model}/{self.dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As Embedder says, in requests of at most 256 texts, each with the whole deadline."""
        requests = await asyncio.to_thread(lambda: list(_requests(texts)))
        return [vector for request in requests for vector in await self._embedded(request)]

    async def _embedded(self, texts: list[str]) -> list[Vector]:
        try:
            answer = await tried(lambda: self._asked(texts), deadline=self._endpoint.deadline())
            rows = sorted(_Rows.model_validate(answer).data, key=lambda row: row.index)
        except _FAILURES as error:
            raise self._endpoint.explained(error) from None
        self._check([len(row.embedding) for row in rows], texts=len(texts))
        vectors = np.array([row.embedding for row in rows], dtype=np.float64)
        if not np.isfinite(vectors).all():
            raise self._endpoint.explained(ValueError())
        return unit(vectors)

    async def _asked(self, texts: list[str]) -> object:
        return await self._endpoint.client.embeddings.create(
            model=self._endpoint.model, input=texts, dimensions=self.dimensions, encoding_format="float"
        )

    def _check(self, lengths: Sequence[int], *, texts: int) -> None:
        if len(lengths) != texts:
            what = f"The embedding model {self._endpoint.model} gave {len(lengths)} vectors for {texts} texts."
            raise ProviderError(what, hint="Ask again, or set NEWTON_EMBEDDING_MODEL to another.")
        if wrong := set(lengths) - {self.dimensions}:
            what = f"The embedding model {self._endpoint.model} gave vectors of {wrong.pop()} numbers."
            hint = f"Set NEWTON_EMBEDDING_DIMENSIONS to that; {self.dimensions} was asked."
            raise ProviderError(what, hint=hint)


def _requests(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, in portions that the endpoint takes. It refuses an empty text, so that becomes a space."""
    request: list[str] = []
    used = 0
    for text in texts:
        readable = tokens.clip(text, most=EMBED_TEXT_TOKENS) or " "
        cost = tokens.count(readable)
        if request and (len(request) == EMBED_TEXTS or used + cost > EMBED_REQUEST_TOKENS):
            yield request
            request, used = [], 0
        request.append(readable)
        used += cost
    if request:
        yield request


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
