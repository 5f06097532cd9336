"""The memory of a new user: a dozen facts, asked for in other words by an author who did not see the code."""

from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from newton.content.yaml_source import parse_trusted
from newton.memory import agents
from tests.scenarios.conftest import Mind, load_minilm
from tests.support import NOON

PEOPLE: list[dict[str, Any]] = parse_trusted(
    (Path(__file__).parents[1] / "data/small_stores_heldout.yaml").read_text(encoding="utf-8")
)
FOREIGN = 3  # of each person's questions without an answer, those that share no word with the facts
LABEL = 25  # characters by which a fact is known, because a context may shorten it


@pytest.mark.slow
@pytest.mark.parametrize(
    ("people", "least"),
    [(PEOPLE[:4], 0.85), pytest.param(PEOPLE[4:], 0.85, marks=pytest.mark.slow)],
    ids=["few", "rest"],
)
async def test_a_dozen_facts_answer_questions_in_other_words_and_no_others(
    mind: Mind, people: list[dict[str, Any]], least: float
) -> None:
    # S002-3: the floor lets in what answers, also while memory knows few words
    kept, sizes, foreign = list[bool](), list[int](), list[int]()
    model = load_minilm()
    for number, person in enumerate(people):
        agent_id = await agents.get_or_create_agent(mind.db, f"person-{number}", now=NOON)
        own = replace(mind, agent_id=agent_id, embedder=model)
        await own.know(*person["facts"])
        await own.settle()
        for question in person["questions"]:
            found = {item.text for item in (await own.context(question["ask"])).items}
            golden = [person["facts"][gold][:LABEL] for gold in question["gold"]]
            kept += [any(gold in text for text in found) for gold in golden]
            sizes.append(len(found))
        for text in person["unanswerable"][:FOREIGN]:
            items = (await own.context(text)).items  # how the person wants to be addressed applies to every answer
            foreign.append(sum("a standing" not in item.placement.reason for item in items))
    assert mean(kept) >= least
    assert mean(sizes) <= 4
    assert mean(size <= 2 for size in foreign) >= 0.9
