"""Any OpenAI-compatible endpoint: one deadline and one retry layer for each call, and errors that say what to do."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import numpy as np
import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from newton.errors import ProviderError
from newton.providers import tokens
from newton.providers.chat import ChatMessage, Reply
from newton.providers.embedding import Vector, unit
from newton.settings import Settings

ATTEMPTS = 2
LONGEST_WAIT = 10.0  # seconds that a busy endpoint may ask us to wait before the second try
EMBED_BATCH = 256

_PASSING = (openai.APIConnectionError, openai.RateLimitError, openai.InternalServerError)


def client(settings: Settings) -> openai.AsyncOpenAI:
    """The connection. A local server needs no key, but the protocol wants one."""
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else "none"
    return openai.AsyncOpenAI(
        api_key=key, base_url=settings.openai_base_url, max_retries=0, timeout=settings.llm_timeout
    )


class OpenAIChat:
    def __init__(self, settings: Settings) -> None:
        self._client = client(settings)
        self._model, self._seconds = settings.openai_model, settings.llm_timeout

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str | Reply]:
        pieces: list[str] = []
        usage: tuple[int, int] | None = None
        try:
            async with asyncio.timeout(self._seconds):
                async for chunk in await self._begun(messages, max_tokens):
                    if chunk.usage:
                        usage = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
                    if chunk.choices and (piece := chunk.choices[0].delta.content):
                        pieces.append(piece)
                        yield piece
        except (openai.OpenAIError, TimeoutError, ValueError) as error:
            raise explained(error, self._client, self._model) from error
        if not pieces:
            raise ProviderError(f"The model {self._model} answered nothing.", hint="Ask again or set OPENAI_MODEL.")
        yield self._reply("".join(pieces), messages, usage)

    async def _begun(self, messages: Sequence[ChatMessage], max_tokens: int) -> openai.AsyncStream[ChatCompletionChunk]:
        """The open stream; tried once more when the endpoint was busy or away."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._client.chat.completions.create(
                    model=self._model,
                    messages=[_wire(message) for message in messages],
                    max_tokens=max_tokens,
                    stream=True,
                    stream_options={"include_usage": True},
                )
            except _PASSING as error:
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(wait_asked(error))
        raise AssertionError("the last attempt returns or raises")

    def _reply(self, text: str, messages: Sequence[ChatMessage], usage: tuple[int, int] | None) -> Reply:
        counted = usage or (sum(tokens.count(m.text) for m in messages), tokens.count(text))
        return Reply(
            text=text,
            model=self._model,
            input_tokens=counted[0],
            output_tokens=counted[1],
            estimated=usage is None,
        )


def _wire(message: ChatMessage) -> ChatCompletionMessageParam:
    match message.role:
        case "system":
            return {"role": "system", "content": message.text}
        case "user":
            return {"role": "user", "content": message.text}
        case "assistant":
            return {"role": "assistant", "content": message.text}


class OpenAIEmbedder:
    def __init__(self, settings: Settings) -> None:
        self._client = client(settings)
        self._model, self._seconds = settings.embedding_model, settings.llm_timeout
        self.dimensions = settings.embedding_dimensions
        self.identity = f"{self._model}/{self.dimensions}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), EMBED_BATCH):
            vectors += await self._batch(texts[start : start + EMBED_BATCH])
        return vectors

    async def _batch(self, texts: Sequence[str]) -> list[Vector]:
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._client.embeddings.create(
                    model=self._model, input=list(texts), dimensions=self.dimensions, encoding_format="float"
                )
            rows = np.array([item.embedding for item in answer.data], dtype=np.float32)
        except (openai.OpenAIError, TimeoutError, ValueError) as error:
            raise explained(error, self._client, self._model) from error
        if rows.shape != (len(texts), self.dimensions) or not np.isfinite(rows).all():
            raise ProviderError(
                f"The embedding model {self._model} answered {rows.shape} for {len(texts)} texts.",
                hint=f"Set NEWTON_EMBEDDING_DIMENSIONS to what the model gives; {self.dimensions} was asked.",
            )
        return unit(rows)


def wait_asked(error: openai.OpenAIError) -> float:
    """Seconds to wait before the next try: what the endpoint asked for, or half a second."""
    asked = error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
    try:
        return min(max(float(asked), 0.0), LONGEST_WAIT)
    except ValueError:
        return 0.5


def explained(error: Exception, client: openai.AsyncOpenAI, model: str) -> ProviderError:
    """The failure in words that help. Neither key nor prompt is in them."""
    where = str(client.base_url).rstrip("/")
    for kinds, what, hint in _EXPLANATIONS:
        if isinstance(error, kinds):
            status = error.status_code if isinstance(error, openai.APIStatusError) else ""
            return ProviderError(what.format(where=where, model=model, status=status), hint=hint)
    return ProviderError(f"{where} answered what is no valid reply.", hint="Check OPENAI_BASE_URL.")


# The first that fits speaks.
_EXPLANATIONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (
        (openai.AuthenticationError, openai.PermissionDeniedError),
        "{where} refuses the key.",
        "Check OPENAI_API_KEY.",
    ),
    (openai.NotFoundError, "{where} has no model {model!r}.", "Set OPENAI_MODEL to one that it has."),
    (openai.RateLimitError, "{where} is busy or the quota is used up.", "Wait, or look at the account."),
    (
        (openai.APITimeoutError, TimeoutError),
        "{where} did not answer in time.",
        "Ask again, or raise NEWTON_LLM_TIMEOUT.",
    ),
    (openai.APIConnectionError, "{where} cannot be reached.", "Check OPENAI_BASE_URL and that it runs."),
    (openai.APIStatusError, "{where} answered {status}.", "See that server's own log."),
)
