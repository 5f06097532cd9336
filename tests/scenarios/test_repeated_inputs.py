"""The same input again, in a session with a task: the words of the task widen the search, not the question."""

from dataclasses import replace

import pytest

from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.agent.session_data.tasks import TaskService
from newton.providers.minilm import MiniLM
from tests.scenarios.conftest import Mind

NOTES = [
    *("The parser drops the last field of a row.", "The tests of the parser take two minutes.", "Ana owns the parser."),
    *("The build runs on the blue machine.", "Omar reviews each change.", "The release is on Thursday."),
    *("The cache is cleared at midnight.", "The log has a line per request.", "The office is in Graz."),
    *("Coffee is in the kitchen.", "The lift is out of order.", "Nina is on holiday."),
]


@pytest.mark.parametrize("text", ["Fix it.", "Run the tests again.", "Who owns the parser?"])
async def test_an_input_is_repeated_in_a_session_with_a_task(mind: Mind, text: str) -> None:
    own = replace(mind, embedder=MiniLM())
    await own.know(*NOTES)
    session_id = await own.session()
    await TaskService(scope=own.scope).for_session(session_id).push("Mend the parser of rows")
    for _ in range(3):
        result = await take(own, TurnInput(session_id=session_id, text=text))
        assert result.text and result.bundle.missing == {}
        await own.settle()


async def take(mind: Mind, turn_input: TurnInput) -> TurnResult:
    *_, result = [piece async for piece in mind.turns(None).run(turn_input)]
    assert isinstance(result, TurnResult)
    return result
