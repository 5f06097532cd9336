"""The correction of the probability of an answer by what replies used."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from newton.cognition.corrections.answer_correction import (
    MIN_CONTEXTS,
    NO_CORRECTION,
    AnswerCorrection,
    JudgedContext,
    compute_probabilities,
    fit_correction,
)

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


def test_a_correction_in_use_is_the_one_to_beat() -> None:
    truth = AnswerCorrection(0.5, -1.5)
    use = simulate_use(truth, contexts=200)
    first = fit_correction(use, NO_CORRECTION)
    again = fit_correction(use, first.correction)
    assert again.verdict == "no better"
    assert again.loss_before == pytest.approx(first.loss_after, abs=0.01)


def test_few_items_correct_little_or_nothing() -> None:
    # a shrunken fit: with few items the correction lies between none and the one that many items show
    truth = AnswerCorrection(0.5, -2.5)
    assert fit_correction(simulate_use(truth, contexts=MIN_CONTEXTS - 1), NO_CORRECTION).verdict == "too few"
    assert fit_correction(simulate_use(truth, contexts=200, items=1), NO_CORRECTION).verdict == "too few"
    few = [fit_correction(simulate_use(truth, contexts=45, items=5, seed=seed), NO_CORRECTION) for seed in range(20)]
    intercepts = [fit.correction.intercept for fit in few if fit.verdict != "too few"]
    assert not intercepts or -2.5 < np.mean(intercepts) < 0


def test_a_correction_is_undone_by_its_inverse_and_keeps_the_order() -> None:
    correction = AnswerCorrection(0.7, -1.2)
    stated = [0.0015, 0.02, 0.3, 0.9]
    corrected = [correction.apply(one) for one in stated]
    assert corrected == sorted(corrected)
    assert [correction.invert(one) for one in corrected] == pytest.approx(stated)
