"""300 labelled beliefs of one person: `recall` returns the right ones, and few others."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from newton.agent.services.memories import FactDraft, MemoryService
from newton.content.yaml_source import parse_trusted
from tests.scenarios.conftest import Mind, load_minilm

BELIEFS: dict[str, Any] = parse_trusted(
    (Path(__file__).parents[1] / "data/labelled_beliefs.yaml").read_text(encoding="utf-8")
)


def test_the_questions_have_zero_to_four_right_beliefs() -> None:
    counts = [len(question["right"]) for question in BELIEFS["questions"]]
    assert (len(BELIEFS["facts"]), len(counts), min(counts), max(counts)) == (300, 100, 0, 4)
    assert all(ref in BELIEFS["facts"] for question in BELIEFS["questions"] for ref in question["right"])


@pytest.mark.slow
async def test_recall_returns_the_right_beliefs_and_few_others(mind: Mind) -> None:
    # S002-3: what hardly answers is left out, and "nothing known" is an answer
    mind = replace(mind, embedder=load_minilm())
    service = MemoryService(scope=mind.scope)
    ids = {ref: (await service.remember(FactDraft(content=text))).memory_id for ref, text in BELIEFS["facts"].items()}
    await mind.settle()
    old = {ids[ref] for ref in BELIEFS["superseded"]}
    right = returned = wanted = unknown = 0
    for question in BELIEFS["questions"]:
        recalled = await service.recall(question["ask"], kinds=["fact"])
        found = {memory.memory_id for memory in recalled.memories} - old
        answers = {ids[ref] for ref in question["right"]}
        right, returned, wanted = right + len(found & answers), returned + len(found), wanted + len(answers)
        unknown += not answers and len(found) <= 2
    assert right / wanted >= 0.84
    assert right / returned >= 0.3, "it was .05 without a minimum"
    assert unknown >= 4
