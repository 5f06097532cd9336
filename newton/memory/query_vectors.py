"""Computation of the vectors of a query: by the embedding model, or by an encoder trained for questions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from newton.errors import ProviderError
from newton.ids import derive_model_id
from newton.memory.search_types import RecallQuery
from newton.text.languages import ENGLISH, detect_language

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder, Vector

NO_EMBEDDER = "no embedding model is set"
MAX_QUESTION_CHARS = 600


@runtime_checkable
class QuestionEmbedder(Protocol):
    """Interface of an embedder that also has an encoder trained for questions."""

    async def embed_questions(self, texts: Sequence[str]) -> "list[Vector]":
        """Return for each question a unit vector close to the vectors, computed by `embed`, of texts that answer it.

        Raises ProviderError if the encoder fails.
        """
        ...


async def embed_text(text: str, embedder: "Embedder | None") -> tuple[RecallQuery, dict[str, str]]:
    """Return the query with the vector of its text, and an empty dict.

    If the embedder fails or is None, return the query without a vector, and the reason under the key `embeddings`.
    """
    if embedder is None:
        return RecallQuery(text=text), {"embeddings": NO_EMBEDDER}
    try:
        vector = (await embedder.embed([text]))[0]
    except ProviderError as error:
        return RecallQuery(text=text), {"embeddings": error.what}
    model_id = derive_model_id(embedder.identity)
    return RecallQuery(text=text, vector=vector, search_vector=vector, model_id=model_id), {}


async def encode_question(text: str, embedder: "Embedder | None") -> tuple[RecallQuery, dict[str, str]] | None:
    """Return the query with `search_vector` from the encoder of questions and without `vector`, and an empty dict.

    If the encoder fails, return the query without a vector, and the reason under the key `question encoder`. Return
    None if `embedder` has no such encoder, and for long texts and languages other than English, for which it was not
    trained.
    """
    if not isinstance(embedder, QuestionEmbedder) or len(text) > MAX_QUESTION_CHARS or detect_language(text) != ENGLISH:
        return None
    try:
        search_vector = (await embedder.embed_questions([text]))[0]
    except ProviderError as error:
        return RecallQuery(text=text), {"question encoder": error.what}
    return RecallQuery(text=text, search_vector=search_vector, model_id=derive_model_id(embedder.identity)), {}
