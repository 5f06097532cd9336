"""The encoder of questions: its vectors are nearer to the texts that answer than those of the embedding model."""

from collections.abc import Sequence

import numpy as np
import pytest

from newton.ids import derive_model_id
from newton.memory.query_vectors import MAX_QUESTION_CHARS, embed_text, encode_question
from newton.providers.embedding import Vector
from newton.providers.fakes import BrokenEmbedder, HashEmbedder
from newton.providers.minilm import MiniLM
from tests.fitting.reader.questions import StoreQuestion, load_questions

QUESTION = "who looks after the cat while we are away?"


def find_right_shares(questions: Sequence[StoreQuestion], vectors: Sequence[Vector], minilm: MiniLM) -> float:
    """Return the mean share of right items among as many nearest ones as a question has right items."""
    stores = {id(one.items): one.items for one in questions}
    texts = [text for items in stores.values() for text in items.values()]
    known = dict(zip(texts, minilm.embed_now(texts), strict=True))
    shares = list[float]()
    for one, vector in zip(questions, vectors, strict=True):
        nearest = sorted(one.items, key=lambda key: -float(known[one.items[key]] @ vector))
        shares.append(len(one.right & set(nearest[: len(one.right)])) / len(one.right))
    return sum(shares) / len(shares)


@pytest.mark.slow
@pytest.mark.parametrize("number", [48, pytest.param(240, marks=pytest.mark.slow)])
def test_questions_are_nearer_to_their_answers_than_by_the_embedding_model(minilm: MiniLM, number: int) -> None:
    # S002-25: relevance; 40 small memories by an author who knew nothing of the code, on which nothing was trained
    questions = [one for one in load_questions(["heldout"]) if one.right][:number]
    texts = [one.text for one in questions]
    plain = find_right_shares(questions, minilm.embed_now(texts), minilm)
    encoded = find_right_shares(questions, minilm.embed_questions_now(texts), minilm)
    assert len(questions) == number
    assert encoded > plain + 0.07


async def test_a_question_is_searched_for_with_its_own_vector(minilm: MiniLM) -> None:
    questions = ["Where?", QUESTION, "and what did the man from the insurance say about the roof, was it yes?"]
    together = minilm.embed_questions_now(questions)
    for question, vector in zip(questions, together, strict=True):
        assert np.array_equal(vector, minilm.embed_questions_now([question])[0])
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    # a question is searched for with its own vector
    encoded = await encode_question(QUESTION, minilm)
    assert encoded is not None
    query, missing = encoded
    assert query.vector is None  # it is computed while the search runs
    assert query.search_vector is not None
    assert float(query.search_vector @ minilm.embed_questions_now([QUESTION])[0]) > 0.99
    assert not np.array_equal(query.search_vector, minilm.embed_now([QUESTION])[0])
    assert (query.model_id, missing) == (derive_model_id(minilm.identity), {})


@pytest.mark.parametrize(
    "text",
    ["Wer kümmert sich um die Katze, wenn wir verreist sind?", QUESTION + " and then" * (MAX_QUESTION_CHARS // 9)],
    ids=["German", "long"],
)
async def test_texts_without_an_encoder_are_searched_for_with_their_plain_vector(minilm: MiniLM, text: str) -> None:
    assert await encode_question(text, minilm) is None
    query, _ = await embed_text(text, minilm)
    assert query.vector is not None
    assert query.vector is query.search_vector


async def test_an_embedder_without_an_encoder_gives_its_plain_vectors_and_reports_its_failure() -> None:
    embedder = HashEmbedder()
    assert await encode_question(QUESTION, embedder) is None
    query, _ = await embed_text(QUESTION, embedder)
    assert query.vector is not None
    assert query.vector is query.search_vector
    query, missing = await embed_text(QUESTION, BrokenEmbedder())
    assert (query.vector, query.search_vector) == (None, None)
    assert missing == {"embeddings": "The embedding endpoint does not answer."}
