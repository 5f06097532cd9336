"""An error planted in any part of a turn changes its reply by nothing but one line in `missing`."""

import ast
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import newton
from newton.agent.loop.turn import TurnRunner
from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.agent.session_data.tasks import TaskService
from newton.cognition.assembly.sections import NOTHING_KNOWN
from newton.heart.censors import CensorRule
from newton.providers.fakes import ScriptedChat
from tests.planting import PlantedParts
from tests.scenarios.conftest import Mind

FUNCTIONS = {"run_part", "compute_part"}
# parts of other operations, and those of a turn that ends in another way: other tests plant them
ELSEWHERE = {
    *("prompt", "quotes", "stored reply", "statements", "embeddings", "tools of servers", "web search"),
    *("stored response", "conflicts", "extraction", "receipt"),
}
UPDATE = "context update"  # runs only if the session has a context
REASON = "internal error (KeyError)"
FACTS = ["The ferry is called Artemis.", "Ana Berg works at the ferry.", "The ferry leaves at nine on Friday."]


def find_parts() -> Iterator[str]:
    """Yield the name of each part of the product."""
    for path in sorted(Path(newton.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(f"{name}(" in text for name in FUNCTIONS) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
                name = node.args[0]
                if isinstance(name, ast.Constant):
                    yield str(name.value)


TEXT = "From now on answer briefly. Who works at the ferry on Friday?"


async def take(turns: TurnRunner, mind: Mind, text: str) -> TurnResult:
    mind.clock.advance(timedelta(minutes=1))
    *_, result = [piece async for piece in turns.run(TurnInput(session_id=await mind.session(), text=text))]
    assert isinstance(result, TurnResult)
    return result


async def prepare(mind: Mind) -> None:
    """Set up a session with a task and messages."""
    await mind.know(*FACTS)
    await TaskService(scope=mind.scope).for_session(await mind.session()).push("Plan the trip by ferry")
    await take(mind.turns(ScriptedChat("At nine.")), mind, "When does the ferry leave?")
    await mind.settle()


async def test_a_part_that_fails_costs_one_line_of_missing(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    await prepare(mind)
    for part in sorted({*find_parts()} - ELSEWHERE - {UPDATE}):
        with monkeypatch.context() as patch:
            planted = PlantedParts(patch, frozenset({part}))
            planted.install()
            result = await take(mind.turns(ScriptedChat("Ana Berg.")), mind, TEXT)
        assert part in planted.seen, part
        assert (result.text, result.degraded, result.missing) == ("Ana Berg.", None, {part: REASON})
        assert not (result.context and result.context.bundle.has_nothing_relevant), part


async def test_a_context_of_which_two_parts_fail_has_the_rest(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    await prepare(mind)
    PlantedParts(monkeypatch, frozenset({"answers", "fact labels"})).install()
    bundle = await mind.context("What is the ferry called?")
    assert bundle.missing == {"answers": REASON, "fact labels": REASON} and "Artemis" in bundle.text


async def test_a_context_that_cannot_be_updated_is_built_anew(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    await prepare(mind)
    turns = mind.turns(ScriptedChat("At nine.", "Ana Berg."))
    await take(turns, mind, "When does the ferry leave?")
    PlantedParts(monkeypatch, frozenset({UPDATE})).install()
    result = await take(turns, mind, TEXT)
    assert (result.text, result.missing, result.context and result.context.method) == (
        "Ana Berg.",
        {UPDATE: REASON},
        "built",
    )


async def test_a_failed_selection_is_not_told_as_an_empty_memory(mind: Mind, monkeypatch: pytest.MonkeyPatch) -> None:
    await prepare(mind)
    turns = mind.turns(ScriptedChat("I do not know.", "Ana Berg."))
    with monkeypatch.context() as patch:
        PlantedParts(patch, frozenset({"selection"})).install()
        failed = (await take(turns, mind, TEXT)).context
    assert failed and not failed.bundle.items and not failed.bundle.has_nothing_relevant
    assert "failed: stored memories." in failed.bundle.text and NOTHING_KNOWN not in failed.bundle.text
    rebuilt = (await take(turns, mind, TEXT)).context
    assert rebuilt and rebuilt.method == "built" and "Ana Berg works" in rebuilt.bundle.text


@pytest.mark.parametrize(
    ("function", "has_censors", "named"),
    [
        ("compute_part", True, "the state of the session, the tasks of the session, stored memories."),
        ("run_part", False, "stored memories, identity and constraints, the state of the session, the tasks"),
    ],
    ids=["assembly", "sources"],
)
async def test_a_context_that_cannot_be_built_keeps_what_was_read(
    mind: Mind, monkeypatch: pytest.MonkeyPatch, function: str, has_censors: bool, named: str
) -> None:
    await prepare(mind)
    await mind.censors.add(CensorRule(trigger="ferry", reason="Never name Artemis to strangers.", action="warn"))
    PlantedParts(monkeypatch, frozenset({"context"}), functions=frozenset({function})).install()
    bundle = await mind.context("What is the ferry called?")
    assert (bundle.missing["context"], bundle.has_nothing_relevant) == (REASON, False)
    assert ("Never name Artemis" in bundle.text) == has_censors and named in bundle.text
