"""The same input again and again, through each entry of a turn, in sessions of each kind."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.agent.session_data.tasks import TaskService
from tests.scenarios.conftest import Mind, load_minilm
from tests.scenarios.repeating import ENTRIES, MODES, repeating

DATA = Path(__file__).parents[1] / "data" / "followups.yaml"
REPEATS = 3
KEY = {"Idempotency-Key": "run-again"}
NOTES = [
    *("The parser drops the last field of a row.", "The tests of the parser take two minutes.", "Ana owns the parser."),
    *("The build runs on the blue machine.", "Omar reviews each change.", "The release is on Thursday."),
    *("The cache is cleared at midnight.", "The log has a line per request.", "The office is in Graz."),
    *("Coffee is in the kitchen.", "The lift is out of order.", "Nina is on holiday."),
]


class Work(NamedTuple):
    """What somebody works on, and what this person says again meanwhile."""

    goal: str
    facts: Sequence[str]
    followups: Sequence[str]


def read_works(path: Path = DATA) -> list[Work]:
    people = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [Work(one["goal"], one["statements"], one["followups"]) for one in people]


@pytest.mark.parametrize("text", ["Fix it.", "Run the tests again.", "Who owns the parser?"])
async def test_an_input_is_repeated_in_a_session_with_a_task(mind: Mind, text: str) -> None:
    own = replace(mind, embedder=load_minilm())
    await own.know(*NOTES)
    session_id = await own.session()
    await TaskService(scope=own.scope).for_session(session_id).push("Mend the parser of rows")
    for _ in range(REPEATS):
        *_, result = [piece async for piece in own.turns(None).run(TurnInput(session_id=session_id, text=text))]
        assert isinstance(result, TurnResult) and result.text and result.missing == {}
        await own.settle()


async def repeat(mind: Mind, home: Path, works: Sequence[Work], modes: Sequence[str], *, repeats: int = REPEATS) -> int:
    """Give each follow-up several times through each entry; return how many answers came. All must be complete."""
    own, answers = replace(mind, embedder=load_minilm()), 0
    async with repeating(own, home, load_minilm(), [*NOTES, *(fact for work in works for fact in work.facts)]) as agent:
        for number, work in enumerate(works):
            for mode, entry in product(modes, ENTRIES):
                session = f"{entry}-{mode}-{number}"
                await agent.prepare(session, mode, work.goal, work.facts[0])
                for text in [text for text in work.followups for _ in range(repeats)]:
                    answer = await agent.take(entry, session, mode, text)
                    assert answer.text and answer.missing == {}, (entry, mode, text, answer)
                    answers += 1
    return answers


async def test_an_input_is_repeated_through_each_entry(mind: Mind, tmp_path: Path) -> None:
    work = Work("Mend the parser of rows", NOTES[:1], ["Run the tests again."])
    assert await repeat(mind, tmp_path, [work], ["task"], repeats=2) == 2 * len(ENTRIES)


@pytest.mark.slow
async def test_an_input_is_given_again_while_it_is_being_answered(mind: Mind, tmp_path: Path) -> None:
    own = replace(mind, embedder=load_minilm())
    async with repeating(own, tmp_path, load_minilm(), NOTES) as agent:
        await agent.prepare("s1", "task", "Mend the parser of rows", NOTES[0])
        taking = [agent.take("turns", "s1", "task", "Run the tests again.") for _ in range(REPEATS)]
        answers = await asyncio.gather(*taking)
        assert [(answer.text, answer.missing) for answer in answers] == [("I will see to it.", {})] * REPEATS
        noted = {"messages": [{"role": "user", "content": "Run the tests again."}]}
        again = [await agent.http.post("/v1/sessions/s1/messages", json=noted, headers=KEY) for _ in range(2)]
        assert [one.status_code for one in again] == [201, 201] and again[0].json() == again[1].json()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
async def test_follow_ups_are_repeated_through_each_entry(mind: Mind, tmp_path: Path, mode: str) -> None:
    works = read_works()
    said = sum(len(work.followups) for work in works)
    assert await repeat(mind, tmp_path, works, [mode]) == said * REPEATS * len(ENTRIES)
