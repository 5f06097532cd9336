"""The endpoint of embeddings in OpenAI's format. It uses the agent's embedding model."""

import asyncio
import base64
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from newton.errors import InputError, ModelNotFoundError
from newton.providers.embedding import Embedder, Vector
from newton.runtime.api import problems
from newton.runtime.api.auth import AuthenticatedCaller, ReadAccess
from newton.runtime.api.chat_completions.request_models import OWN_MODEL, OpenAIRequestModel
from newton.runtime.api.chat_completions.response_writer import CLIENT_CLOSED_REQUEST
from newton.runtime.api.chat_completions.turn_request import choose_agent

MAX_TEXTS = 2_048
MAX_TEXT_CHARACTERS = 200_000
MAX_TOKENS = 300_000  # of all texts of a request
BATCH_TEXTS = 128

router = APIRouter(
    prefix="/v1/embeddings",
    tags=["openai"],
    responses=problems.OPENAI_ERRORS,
)


def _reject_tokens(value: object) -> object:
    """Return the value unchanged. Raises PydanticCustomError, which states the remedy, for arrays of tokens."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    if items and isinstance(items[0], int | list):
        raise PydanticCustomError(
            "token_array",
            "Token arrays are not supported, because their meaning depends on the tokenizer; send texts"
            " (LangChain: check_embedding_ctx_length=False)",
        )
    return cast("object", value)


EmbeddingText = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARACTERS)]


class EmbeddingRequest(OpenAIRequestModel):
    """Texts to embed. A text that is longer than the model's maximum input is truncated."""

    input: Annotated[
        Annotated[EmbeddingText, Tag("str")]
        | Annotated[tuple[EmbeddingText, ...], Field(min_length=1, max_length=MAX_TEXTS), Tag("list")],
        Discriminator(lambda value: "str" if isinstance(value, str) else "list"),
        BeforeValidator(_reject_tokens),
    ]
    model: str = Field(
        OWN_MODEL,
        min_length=1,
        max_length=400,
        description="The name of an embedding model. The name of an agent stands for its embedding model, and `newton`"
        " for that of the caller's agent.",
    )
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = Field(
        None, description="The number of dimensions of the model; no other number is possible. Default: that number."
    )

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.input,) if isinstance(self.input, str) else self.input


@router.post("", response_model=None)
async def create_embeddings(body: EmbeddingRequest, request: Request, caller: ReadAccess) -> Response:
    """Embed texts. Nothing is stored."""
    caller = caller.for_agent(caller.token_agent)  # a user's texts are not remembered
    embedder = await _choose_embedder(body.model, caller, request)
    if body.dimensions not in (None, embedder.dimensions):
        what = f"The model {embedder.name} has {embedder.dimensions} dimensions."
        raise InputError(what, hint="Omit `dimensions`.", param="dimensions")
    texts, count_tokens = body.texts, caller.newton.scope.count_tokens
    tokens = await asyncio.to_thread(lambda: sum(map(count_tokens, texts)))
    if tokens > MAX_TOKENS:
        what = f"The texts have {tokens:,} tokens; the maximum of a request is {MAX_TOKENS:,}."
        raise InputError(what, hint="Send the texts in several requests.", param="input")
    encode = _encode_base64 if body.encoding_format == "base64" else _encode_floats
    vectors: list[Vector] = []
    for start in range(0, len(texts), BATCH_TEXTS):
        if await request.is_disconnected():  # the local model may take minutes
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        vectors += await embedder.embed(texts[start : start + BATCH_TEXTS])
    data = [
        {"object": "embedding", "index": index, "embedding": encode(vector)} for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": data, "model": embedder.name, "usage": usage})


async def _choose_embedder(name: str, caller: AuthenticatedCaller, request: Request) -> Embedder:
    """Return the embedding model that the field `model` of a request names.

    Raises ModelNotFoundError for an unknown name and for an agent without an embedding model.
    """
    own = caller.newton.scope.embedder
    if own and name == own.name:
        return own
    newton, model_name = await choose_agent(name, caller, request.app.state.agents)
    embedder = newton.scope.embedder
    if embedder is None:
        hint = "Set NEWTON_EMBEDDING_PROVIDER to `local`, `multilingual` or `openai`."
        raise ModelNotFoundError("This agent has no embedding model.", hint=hint, param="model")
    if model_name not in (None, embedder.name):
        hint = f"The agent's embedding model is {embedder.name}."
        raise ModelNotFoundError(f"There is no embedding model {name!r}.", hint=hint, param="model")
    return embedder


def _encode_floats(vector: Vector) -> Any:
    return vector.tolist()


def _encode_base64(vector: Vector) -> str:
    """Return the vector as little-endian 32-bit floats in base64."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
