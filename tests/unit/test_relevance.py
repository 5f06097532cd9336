"""The probability of being relevant: an absolute bar, unlike the relevance that is relative to the best candidate."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from newton.cognition.scoring.relevance import create_estimator
from newton.content.frames import load_frames
from newton.content.relevance_model import load_relevance_model
from newton.ids import derive_model_id
from newton.memory.query_vectors import NO_EMBEDDER
from newton.memory.search_types import RecallQuery, RecallResult, RetrievedMemory
from tests.support import NOON

MODEL = load_relevance_model()
FLOOR = load_frames()["question"].relevance_floor


def found(number: int, cosine: float, lexical: float, relevance: float = 1.0) -> RetrievedMemory:
    plain = ("said", "said", 3, 3, 12, None, None, None, 0, NOON, NOON, None, None, "user", False, None, None, None)
    return RetrievedMemory(UUID(int=number), "fact", "ACTIVE", *plain, cosine, lexical, relevance)


def probabilities(
    memories: Sequence[RetrievedMemory], *, known: float, model: str | None, texts: int = 5_000
) -> list[float]:
    query = RecallQuery(text="?", model_id=derive_model_id(model) if model else None)
    missing = {} if model else {"embeddings": NO_EMBEDDER}
    result = RecallResult(query=query, memories=memories, missing=missing, known_share=known, text_count=texts)
    return [create_estimator(MODEL, result)(one) for one in memories]


CLEAR = [found(1, 0.65, 0.45), found(2, 0.5, 0.3, 0.75)]
UNRELATED = [found(1, 0.3, 0.4), found(2, 0.28, 0.0, 0.4)]  # the input has one common word with them


@pytest.mark.parametrize("model", [MODEL.embedding_model, None])
def test_an_answer_is_above_the_floor_and_the_best_of_noise_below(model: str | None) -> None:
    # S002-3: an item needs its own reason, however it compares with the others
    cosine = 1.0 if model else 0.0
    clear, unrelated = (
        [one._replace(similarity=one.similarity * cosine) for one in some] for some in (CLEAR, UNRELATED)
    )
    assert min(probabilities(clear, known=1.0, model=model)) > 0.6
    assert max(probabilities(unrelated, known=0.2, model=model)) < FLOOR


def test_relevance_holds_for_small_and_odd_memories() -> None:
    # S002-3
    known, unknown = (probabilities(CLEAR, known=share, model=MODEL.embedding_model)[0] for share in (1.0, 0.1))
    assert known > unknown
    # its cosines have another range, so that an absolute bar would mean nothing
    assert probabilities(UNRELATED, known=0.2, model="another/model")[0] > FLOOR
    assert probabilities([], known=0.0, model=None) == []
    # a question asked before is no evidence for itself
    # a question on nothing known stays one when it is asked again
    asked = found(3, 1.0, 1.0)._replace(
        kind="exchange", summary="[2026-03-01] User: Which bus goes there?", micro="[2026-03-01] User: Which bus"
    )
    # now memory has all words, so that the score of a text is relative to all of them
    others = [one._replace(lexical=one.lexical * 0.2) for one in UNRELATED]
    assert max(probabilities([asked, *others], known=1.0, model=MODEL.embedding_model)[1:]) < FLOOR
    # a small memory lacks common words too
    # what a new user told is found in other words, as in a large memory in which every common word stands
    near = [found(1, 0.36, 0.0), found(2, 0.1, 0.0, 0.3)]
    small, large = (
        probabilities(near, known=0.0, model=MODEL.embedding_model, texts=texts)[0] for texts in (12, 5_000)
    )
    assert small > FLOOR > large
