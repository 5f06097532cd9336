"""What an input needs from memory, as it is read from its words, and what that leaves out."""

import json
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from newton.cognition.assembly.relevance_floor import ANSWER_INDEX, MAX_ANSWERS, RelevanceFloor
from newton.cognition.questions.needs import NEEDS, Need, estimate_needs, read_need
from newton.cognition.scoring.score import FEATURE_NAMES, ScoredMemory
from newton.ids import derive_model_id
from newton.memory.search_types import RecallQuery
from newton.providers.minilm import MiniLM
from tests.unit.assembling import found
from tests.unit.local_models import load_minilm

UNSEEN = Path(__file__).parents[1] / "data" / "need_stores" / "unseen"


def ask(text: str) -> RecallQuery:
    (vector,) = load_minilm().embed_now([text])
    return RecallQuery(text=text, vector=vector, model_id=derive_model_id(MiniLM.identity))


@pytest.mark.parametrize(
    ("text", "is_asked", "need"),
    [
        ("Who is my dentist?", True, "answer"),
        ("What are all my allergies?", False, "answer"),
        ("What should I cook for Petra on Saturday?", True, "gather"),
        ("Draft a mail to the landlord about the boiler", False, "gather"),
        ("Should we use Redis for caching?", False, "gather"),  # a decision, which more than its answer bears on
        ("Thanks, that was all for now!", False, "none"),
        ("What is the capital of Peru?", True, "answer"),  # no question is taken for one that needs nothing
    ],
)
def test_an_input_is_read_for_what_it_needs(text: str, is_asked: bool, need: Need) -> None:
    assert read_need(ask(text), is_asked=is_asked) == need


def test_what_cannot_be_judged_is_left_to_the_frame() -> None:
    query = ask("Who is my dentist?")
    widened = replace(query, text="Who is my dentist?\nPlan the trip", widened_from="Who is my dentist?")
    others = (replace(query, model_id=UUID(int=1)), replace(query, vector=None), widened, ask("Wo wohnt Clara denn?"))
    assert [read_need(one, is_asked=True) for one in (query, *others)] == ["answer", None, None, None, None]


def test_unseen_inputs_are_read_rightly() -> None:
    # docs/benchmarks.md has the figures
    inputs = [one for path in UNSEEN.glob("*.json") for one in json.loads(path.read_text(encoding="utf-8"))["inputs"]]
    vectors = load_minilm().embed_now([one["text"] for one in inputs])
    needs = [estimate_needs(one["text"], vector) for one, vector in zip(inputs, vectors, strict=True)]
    read = [NEEDS[int(np.argmax([one[need] for need in NEEDS]))] for one in needs]
    assert len(inputs) > 200
    assert np.mean([one["need"] == need for one, need in zip(inputs, read, strict=True)]) >= 0.8


def scored(*answers: float) -> list[ScoredMemory]:
    features = [0.5] * len(FEATURE_NAMES)
    made = list[ScoredMemory]()
    for number, answer in enumerate(answers):
        features[ANSWER_INDEX] = answer
        made.append(ScoredMemory(found(number), tuple(features), 1.0))
    return made


def test_beside_the_best_answer_what_is_far_from_it_is_left_out() -> None:
    floor = RelevanceFloor(0.08, answer=0.0015, question=0.9, need="answer")
    reasons = floor.find_needless(scored(0.9, 0.02, 0.005), "point")
    assert set(reasons) == {UUID(int=2)} and "best answer" in reasons[UUID(int=2)]
    assert len(floor.find_needless(scored(*[0.5] * 20), "point")) == 20 - MAX_ANSWERS
    assert floor.find_needless(scored(*[0.5] * 20), "list") == {}
    for other in (replace(floor, need="gather"), replace(floor, need=None), replace(floor, question=0.01)):
        assert other.find_needless(scored(0.9, 0.0001), "point") == {}


def test_what_needs_nothing_gets_nothing_unless_memory_surely_knows_it() -> None:
    floor = RelevanceFloor(0.08, question=0.1, need="none")
    assert set(floor.find_needless(scored(0.5, 0.1), "point")) == {UUID(int=0), UUID(int=1)}
    assert replace(floor, question=0.9).find_needless(scored(0.5, 0.1), "point") == {}
