"""Weights from use, on made data whose truth is known: what is there is found, and what is not is not."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest

from newton.cognition.bundles.training_data import weight_by_outcome
from newton.cognition.scoring.weight_fit import TRAINING_SHARE, Floats, TrainingCase, fit_weights, optimize_weights
from tests.support import NOON

EVEN = np.array([0.25, 0.25, 0.25, 0.25])
TRUTH = np.array([0.7, 0.0, 0.3, 0.0])


def life(weights: Sequence[float] | Floats, *, contexts: int, seed: int, sure: float = 12.0) -> list[TrainingCase]:
    """Contexts of twelve items each, used the likelier the higher these weights score them."""
    dice = np.random.default_rng(seed)
    made: list[TrainingCase] = []
    while len(made) < contexts:
        features = dice.random((12, 4))
        score = features @ np.asarray(weights)
        used = dice.random(12) < 1 / (1 + np.exp(-sure * (score - np.quantile(score, 0.8))))
        session = UUID(int=len(made) // 7)
        case = TrainingCase(
            created_at=NOON + timedelta(hours=len(made)), session_id=session, features=features, is_used=used
        )
        made += [case] if case.is_informative else []
    return made


def alike(one: Floats, other: Floats) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_known_weights_are_found_in_their_direction() -> None:
    made = fit_weights(life(TRUTH, contexts=200, seed=1), EVEN)
    assert alike(made.weights, TRUTH) > 0.98
    assert made.is_better and made.gain > 0.05
    assert made.after.log_loss < made.before.log_loss
    assert made.weights.sum() == pytest.approx(1) and (made.weights >= 0).all()
    assert (made.training_count, made.validation_count) == (140, 60)


@pytest.mark.slow
def test_noise_is_not_called_an_improvement() -> None:
    claims = [fit_weights(life(TRUTH, contexts=60, seed=seed, sure=0.0), EVEN).is_better for seed in range(20)]
    assert sum(claims) <= 2, "two and a half in a hundred are expected"


def test_the_right_weights_are_not_improved_upon() -> None:
    claims = [fit_weights(life(TRUTH, contexts=60, seed=seed), TRUTH).is_better for seed in range(10)]
    assert sum(claims) <= 1


def test_a_feature_that_hurts_gets_no_weight_below_nothing() -> None:
    weights = optimize_weights(life([0.6, -0.6, 0.3, 0.0], contexts=150, seed=3), EVEN)
    assert weights[1] == 0 and (weights >= 0).all()


def test_where_the_cases_say_nothing_the_profile_stays() -> None:
    same = TrainingCase(
        created_at=NOON, session_id=UUID(int=0), features=np.ones((4, 4)), is_used=np.array([True, False, False, False])
    )
    assert alike(optimize_weights([same] * 60, TRUTH), TRUTH) == pytest.approx(1)


def test_what_is_compared_was_not_learnt_from() -> None:
    # the younger part contradicts the older one, so what was learnt must look worse there
    older = life(TRUTH, contexts=140, seed=5)
    younger = [
        TrainingCase(
            created_at=case.created_at + timedelta(days=99),
            session_id=case.session_id,
            features=case.features,
            is_used=case.is_used,
        )
        for case in life(TRUTH[::-1], contexts=60, seed=6)
    ]
    assert len(older) == TRAINING_SHARE * 200
    made = fit_weights([*younger, *older], EVEN)
    assert made.gain < 0 and not made.is_better


def test_a_context_counts_by_what_was_decided_upon_it() -> None:
    first, second = life(TRUTH, contexts=2, seed=1)
    judged = [
        (first.created_at + timedelta(minutes=5), "failure"),
        (second.created_at + timedelta(minutes=59), "success"),
    ]
    assert [case.weight for case in weight_by_outcome([second, first], judged)] == [0.5, 2.0]
    late = [(second.created_at + timedelta(hours=2), "success"), (first.created_at - timedelta(minutes=1), "success")]
    assert [case.weight for case in weight_by_outcome([first, second], late)] == [1.0, 1.0]
