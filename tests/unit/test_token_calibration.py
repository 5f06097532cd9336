"""Token calibration learns a model's count from reported usage, for any tokenizer and message overhead."""

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.providers import minilm, token_counter
from newton.providers.token_calibration import TokenCalibration, UsageSample, fit_calibration
from tests.scenarios.longtalk import Talk

Counting = Callable[[str], int]

PIECES = minilm.build_tokenizer()
PIECES.no_truncation()
TOKENIZERS: dict[str, tuple[Counting, float]] = {
    "cl100k": (token_counter.count, 3),
    "wordpieces": (lambda text: len(PIECES.encode(text).ids) - 2, 6.5),
    "characters": (len, 0),
    "bytes": (lambda text: len(text.encode()), 12),
}


def prompts() -> list[list[str]]:
    """What a conversation that goes on sends, call by call: talk, and what tools gave."""
    sent: list[list[str]] = []
    texts = ["You are a helpful assistant. What you know is below."]
    for lines in Talk(20):
        texts = [*texts, *(line.content[:3_000] for line in lines if line.content)]
        sent.append(texts)
    return sent


PROMPTS = prompts()


@cache
def told(name: str) -> list[UsageSample]:
    """What an endpoint with that tokenizer reports of each of them."""
    return [sample(texts, *TOKENIZERS[name]) for texts in PROMPTS]


def sample(texts: list[str], counting: Counting, marks: float) -> UsageSample:
    reported = round(sum(map(counting, texts)) + marks * len(texts))
    return UsageSample(sum(map(token_counter.count, texts)), len(texts), reported)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_after_ten_calls_it_is_within_two_in_a_hundred(name: str) -> None:
    # S003-1, S003-19
    samples = told(name)
    for end in range(10, len(samples)):
        gauge, (counted, messages, reported) = fit_calibration(samples[:end]), samples[end]
        assert gauge.to_model_tokens(counted, messages) == pytest.approx(reported, rel=0.02)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_after_one_call_it_is_near(name: str) -> None:
    samples = told(name)
    gauge, (counted, messages, reported) = fit_calibration(samples[5:6]), samples[6]
    assert gauge.to_model_tokens(counted, messages) == pytest.approx(reported, rel=0.1)


def test_prose_and_what_stands_around_messages_are_told_apart() -> None:
    # S003-1
    prose = "Whatever the weather, the harbour master considers departures individually and carefully. "
    *samples, last = [sample([prose * n] * n, len, 2) for n in range(1, 12)]
    assert last.reported > 5 * last.counted
    assert fit_calibration(samples).to_model_tokens(last.counted, last.messages) == pytest.approx(
        last.reported, rel=0.02
    )
    # what stands around each message is told from its words
    calls = ((1, 40), (5, 3), (2, 90), (8, 10), (3, 7), (4, 60), (1, 9), (6, 30))
    samples = [UsageSample(1_000 * n, m, round(1.2 * 1_000 * n + 20 * m)) for n, m in calls]
    gauge = fit_calibration(samples)
    assert (gauge.ratio, gauge.overhead) == (pytest.approx(1.2, rel=0.01), pytest.approx(20, rel=0.02))
    assert gauge.to_model_tokens(500, 200) == pytest.approx(4_600, rel=0.02)
    assert fit_calibration([]) == TokenCalibration() == TokenCalibration(1.0, 4.0)
    assert TokenCalibration().to_model_tokens(1_000, 10) == 1_040
    assert TokenCalibration().to_local_tokens(1_040, 10) == 1_000
    # a ratio below the floor is refused
    # no tokenizer makes so few pieces; whoever reports so left something out
    samples = [UsageSample(1_000 * n, 2 * n, 390 * n) for n in range(1, 12)]
    assert fit_calibration(samples) == TokenCalibration()
    assert fit_calibration([*samples, UsageSample(1_000, 2, 1_208)]).ratio == pytest.approx(1.2)


def test_what_was_reported_wrongly_is_passed_over() -> None:
    right = [sample(texts, token_counter.count, 3) for texts in PROMPTS]
    wrong = [
        UsageSample(10_000, 5, 0),
        UsageSample(10_000, 5, 7),
        UsageSample(100, 2, 90_000),
        UsageSample(0, 0, 12),
        UsageSample(0, 3, 12),
    ]
    assert fit_calibration([*wrong, *right, *wrong]) == fit_calibration(right)
    assert fit_calibration(wrong) == TokenCalibration()


ODD = [
    UsageSample(16_483, 40, 10_000),
    UsageSample(16_483, 40, 500),
    UsageSample(1_000, 200, 9_000),
    UsageSample(20_000, 5, 12_500),
    UsageSample(3_000, 300, 3_000),
    UsageSample(9_000, 3, 60_000),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("calls", [3, 6, 19])
def test_one_odd_call_hardly_moves_it(name: str, odd: UsageSample, calls: int) -> None:
    # S003-1, S003-19: else one wrong bill makes every later prompt too long
    samples = told(name)[:calls]
    right, moved = fit_calibration(samples), fit_calibration([*samples, odd])
    assert moved.ratio == pytest.approx(right.ratio, rel=0.1)
    for counted, messages in ((30_000, 20), (30_000, 400)):
        assert moved.to_model_tokens(counted, messages) == pytest.approx(
            right.to_model_tokens(counted, messages), rel=0.1
        )


NUMBERS = st.integers(0, 200_000)


@given(st.lists(st.builds(UsageSample, NUMBERS, st.integers(0, 400), NUMBERS), max_size=20))
def test_whatever_is_reported_it_stays_usable(samples: list[UsageSample]) -> None:
    gauge = fit_calibration(samples)
    assert 0.6 <= gauge.ratio <= 8 and 0 <= gauge.overhead <= 50
    assert gauge.to_model_tokens(1_000, 10) > 0
    room = gauge.to_local_tokens(8_000, 10)
    assert room >= 0 and gauge.to_model_tokens(room, 10) <= max(8_001, gauge.to_model_tokens(0, 10))
