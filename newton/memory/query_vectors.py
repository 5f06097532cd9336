"""The vectors with which a text is searched for."""

import asyncio
from typing import TYPE_CHECKING

from newton.errors import ProviderError
from newton.ids import derive_model_id
from newton.languages.detection import detect_language
from newton.languages.language_data import ENGLISH
from newton.memory.search_types import RecallQuery

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

NO_EMBEDDER = "no embedding model is set"
MAX_QUESTION_CHARS = 600


async def embed_query(
    text: str, embedder: "Embedder | None", *, is_question: bool = True
) -> tuple[RecallQuery, dict[str, str]]:
    """Return the query with its vectors. Without vectors, also return the reason under the key `embeddings`.

    What is no question is compared with texts that say the same. So are long texts and texts of other languages than
    English, for which no encoder of questions was trained.
    """
    if embedder is None:
        return RecallQuery(text=text), {"embeddings": NO_EMBEDDER}
    as_question = is_question and len(text) <= MAX_QUESTION_CHARS and detect_language(text) == ENGLISH
    try:
        if as_question:
            (vector,), (search_vector,) = await asyncio.gather(embedder.embed([text]), embedder.embed_questions([text]))
        else:
            vector = search_vector = (await embedder.embed([text]))[0]
    except ProviderError as error:
        return RecallQuery(text=text), {"embeddings": error.what}
    model_id = derive_model_id(embedder.identity)
    return RecallQuery(text=text, vector=vector, search_vector=search_vector, model_id=model_id), {}
