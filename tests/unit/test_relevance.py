"""The relevance of what was found, and its correction by what replies used."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from newton.cognition.relevance_model import (
    MIN_CONTEXTS,
    NO_CORRECTION,
    AnswerCorrection,
    JudgedContext,
    compute_probabilities,
    fit_correction,
    load_relevance_model,
)
from newton.cognition.scoring.relevance import create_estimator
from newton.content.frames import load_frames
from newton.ids import derive_model_id
from newton.memory.query_vectors import NO_EMBEDDER
from newton.memory.search_types import RecallQuery, RecallResult, RetrievedMemory
from tests.unit.assembling import found

MODEL = load_relevance_model()
FLOOR = load_frames()["question"].relevance_floor


def find(number: int, cosine: float, lexical: float, relevance: float = 1.0) -> RetrievedMemory:
    return found(number, word_count=12, similarity=cosine, lexical=lexical, relevance=relevance)


def probabilities(
    memories: Sequence[RetrievedMemory], *, known: float, model: str | None, texts: int = 5_000
) -> list[float]:
    query = RecallQuery(text="?", model_id=derive_model_id(model) if model else None)
    missing = {} if model else {"embeddings": NO_EMBEDDER}
    result = RecallResult(query=query, memories=memories, missing=missing, known_share=known, text_count=texts)
    return [create_estimator(MODEL, result)(one) for one in memories]


CLEAR = [find(1, 0.65, 0.45), find(2, 0.5, 0.3, 0.75)]
UNRELATED = [find(1, 0.3, 0.4), find(2, 0.28, 0.0, 0.4)]  # the input has one common word with them


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
    asked = find(3, 1.0, 1.0)._replace(
        kind="exchange", summary="[2026-03-01] User: Which bus goes there?", micro="[2026-03-01] User: Which bus"
    )
    # now memory has all words, so that the score of a text is relative to all of them
    others = [one._replace(lexical=one.lexical * 0.2) for one in UNRELATED]
    assert max(probabilities([asked, *others], known=1.0, model=MODEL.embedding_model)[1:]) < FLOOR
    # a small memory lacks common words too
    # what a new user told is found in other words, as in a large memory in which every common word stands
    near = [find(1, 0.36, 0.0), find(2, 0.1, 0.0, 0.3)]
    small, large = (
        probabilities(near, known=0.0, model=MODEL.embedding_model, texts=texts)[0] for texts in (12, 5_000)
    )
    assert small > FLOOR > large


NOW = datetime(2026, 11, 1, tzinfo=UTC)


def simulate_use(truth: AnswerCorrection, *, contexts: int, items: int = 8, seed: int = 1) -> list[JudgedContext]:
    """Contexts whose items are used with the odds of `truth`, where the shipped model states others."""
    dice = np.random.default_rng(seed)
    made = list[JudgedContext]()
    for n in range(contexts):
        stated = 1 / (1 + np.exp(-dice.normal(-2, 2, items)))
        used = dice.random(items) < compute_probabilities(stated, truth)
        made.append(
            JudgedContext(
                created_at=NOW + timedelta(minutes=n),
                session_id=UUID(int=n // 3),
                probabilities=stated,
                is_used=used,
            )
        )
    return made


@pytest.mark.parametrize("truth", [AnswerCorrection(0.5, -1.5), AnswerCorrection(1.6, 1.0)])
def test_use_with_another_relation_corrects_the_probability(truth: AnswerCorrection) -> None:
    fit = fit_correction(simulate_use(truth, contexts=200), NO_CORRECTION)
    assert fit.verdict == "better"
    assert fit.loss_after < fit.loss_before
    assert fit.correction.slope == pytest.approx(truth.slope, abs=0.2)
    assert fit.correction.intercept == pytest.approx(truth.intercept, abs=0.35)


def test_use_as_the_model_states_it_corrects_nothing() -> None:
    # the interval of 95 % promises 2.5 % of false improvements
    fits = [fit_correction(simulate_use(NO_CORRECTION, contexts=90, seed=seed), NO_CORRECTION) for seed in range(60)]
    assert sum(fit.verdict == "better" for fit in fits) <= 4
    assert {fit.verdict for fit in fits} <= {"better", "no better"}


def test_a_correction_in_use_is_the_one_to_beat_and_keeps_the_order() -> None:
    truth = AnswerCorrection(0.5, -1.5)
    use = simulate_use(truth, contexts=200)
    first = fit_correction(use, NO_CORRECTION)
    again = fit_correction(use, first.correction)
    assert again.verdict == "no better"
    assert again.loss_before == pytest.approx(first.loss_after, abs=0.01)
    # a correction is undone by its inverse and keeps the order
    correction = AnswerCorrection(0.7, -1.2)
    stated = [0.0015, 0.02, 0.3, 0.9]
    corrected = [correction.apply(one) for one in stated]
    assert corrected == sorted(corrected)
    assert [correction.invert(one) for one in corrected] == pytest.approx(stated)


def test_few_items_correct_little_or_nothing() -> None:
    # a shrunken fit: with few items the correction lies between none and the one that many items show
    truth = AnswerCorrection(0.5, -2.5)
    assert fit_correction(simulate_use(truth, contexts=MIN_CONTEXTS - 1), NO_CORRECTION).verdict == "too few"
    assert fit_correction(simulate_use(truth, contexts=200, items=1), NO_CORRECTION).verdict == "too few"
    few = [fit_correction(simulate_use(truth, contexts=45, items=5, seed=seed), NO_CORRECTION) for seed in range(20)]
    intercepts = [fit.correction.intercept for fit in few if fit.verdict != "too few"]
    assert not intercepts or -2.5 < np.mean(intercepts) < 0
