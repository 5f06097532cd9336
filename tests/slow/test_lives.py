"""A life of some weeks with the recorded answers of a strong model (tests/lives).

A changed prompt of a structured request has no recorded answer, and fails here: record the life again
(`sh scripts/live`, docs/benchmarks.md).
"""

from pathlib import Path

import pytest

from tests.lives.life import load_life
from tests.lives.living import live
from tests.lives.played_model import PlayedModel, load_cassette
from tests.lives.report import add_up, report_life

DATA = Path(__file__).parents[1] / "data" / "lives"


@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_what_a_life_with_a_model_came_to_is_not_lost() -> None:
    # docs/benchmarks.md has the figures
    life = load_life(DATA / "life_y.json")
    report = report_life(life, await live(life, PlayedModel(cassette=load_cassette(DATA / "life_y.jsonl"))))
    assert report["failures"]["runs"] == []
    requests = report["requests"]
    assert requests["tools_context_system_per_turn"] <= 2_000
    assert requests["calls_per_turn"] <= 1.2 and requests["background_share"] <= 0.19 and requests["prefix"] >= 0.9
    shares = {name: part / max(1, whole) for name, (part, whole) in add_up([report]).items()}
    least = {"right": 0.9, "changes": 0.85, "rules": 1.0, "wishes": 1.0, "answered": 0.9, "new_first": 0.85}
    assert {name: shares[name] for name, minimum in least.items() if shares[name] < minimum} == {}
    most = {"duplicates": 0.03, "stale": 0.08, "never": 0.2}  # "never" by words: fiction that is named so
    assert {name: shares[name] for name, maximum in most.items() if shares[name] > maximum} == {}
