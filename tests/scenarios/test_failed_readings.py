"""Lines for which the model fails: they hold up no others, are asked about again, and are not asked about for ever."""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from newton.agent.reconciliation.reconciler import MemoryReconciler
from newton.dialogue import branches, sessions
from newton.dialogue.messages import Message
from newton.errors import ProviderError, RefusedRequestError
from tests.scenarios.conftest import Mind
from tests.scenarios.reading import Reader, Sheet, asking, facts, read, told

pytestmark = pytest.mark.usefixtures("minilm")


@dataclass
class Failing(Reader):
    """A model that fails for new lines with a word, the first few times or always."""

    word: str = ""
    error: ProviderError = field(default_factory=lambda: RefusedRequestError("The filter refuses it.", hint="None."))
    times: int = 1_000
    failed: int = 0

    def __post_init__(self) -> None:
        self.meanwhile = self.fail

    async def fail(self) -> None:
        if self.word in new_lines(self.sheets[-1]) and self.failed < self.times:
            self.failed += 1
            raise self.error


def new_lines(sheet: Sheet) -> str:
    return sheet.text.split("<lines>")[1]


async def run(mind: Mind, model: Reader) -> None:
    """Read what is due; the errors of a job are logged."""
    with suppress(ProviderError):
        await read(mind, model=model)


@pytest.mark.slow
async def test_sessions_that_the_model_refuses_hold_up_no_other_and_are_given_up(mind: Mind) -> None:
    for number in range(3):
        await told(mind, f"My cousin Bo has the forbidden shelf {number}.", session=f"refused {number}")
        mind.clock.advance(timedelta(minutes=1))
    await told(mind, "My sister Anna lives in Linz.", session="good")
    model = Failing(word="forbidden")
    for _ in range(3):
        await run(mind, model)
    assert any("Anna lives" in new_lines(sheet) for sheet in model.sheets)
    for number in range(8):
        mind.clock.advance(timedelta(days=1))
        await told(mind, f"Today I baked loaf number {number}.", session=f"later {number}")
        await run(mind, model)
        await run(mind, model)
    asked = len(model.sheets)
    await run(mind, model)
    assert len(model.sheets) == asked, "nothing is due"
    assert model.failed < 3 * 10, "a few times for each"


async def test_old_lines_of_an_import_are_asked_about_again(mind: Mind) -> None:
    await told(mind, "My sister Anna lives in Linz.", session="first")
    mind.clock.advance(timedelta(minutes=1))
    said = Message(role="user", content="My uncle Karl keeps bees.", said_at=mind.clock.now() - timedelta(days=400))
    session_id = await mind.session("imported")
    async with mind.db.transaction(mind.agent_id) as tx:
        await sessions.append(tx, [said], session_id=session_id, ctx=mind.scope.write_context("user"))
    model = Failing(word="Karl", error=ProviderError("It does not answer.", hint="Wait."), times=1)
    await run(mind, model)
    await run(mind, model)
    assert sum("Karl" in new_lines(sheet) for sheet in model.sheets) == 2


@pytest.mark.slow
async def test_of_an_answer_that_is_cut_nothing_is_lost_and_the_rest_is_read_again(mind: Mind) -> None:
    names = ["Ada", "Bea", "Cleo", "Dora", "Edda", "Fee"]
    kinds = ["a cat", "a boat", "an oboe", "a loom", "a kiln", "a drum"]
    await told(
        mind, *(f"My cousin {name} bought {kind}, she loves it." for name, kind in zip(names, kinds, strict=True))
    )
    first = await facts(mind)

    def answer(sheet: Sheet) -> list[dict[str, object]]:
        pairs = [pair for pair in zip(names, kinds, strict=True) if f" {pair[0]} " in new_lines(sheet)]
        items = [
            sheet.item("update", name, name, text=clear(name, kind)) for name, kind in pairs if is_new(sheet, name)
        ]
        return [{**item, "subject": "very " * 200} for item in items]  # a model that wastes its tokens

    model = Reader([answer] * 9)
    await run(mind, model)
    now = await facts(mind)
    assert all(any(f"{name} " in one for one in now) for name in names) and len(now) >= len(first)
    asked = [sum(is_new(sheet, name) for name in names) for sheet in model.sheets]
    assert asked[0] == len(names) and len(asked) > 1 and sorted(asked, reverse=True) == asked, asked
    assert {clear(name, kind) for name, kind in zip(names, kinds, strict=True)} <= {*now}


def clear(name: str, kind: str) -> str:
    return f"Nora's cousin {name} bought {kind} and loves it."


def is_new(sheet: Sheet, word: str) -> bool:
    return re.search(rf"^\d+ (?!\(read\)).*\b{word}\b", new_lines(sheet), re.MULTILINE) is not None


@pytest.mark.slow
async def test_a_branch_of_a_long_session_is_read_from_its_first_message(mind: Mind) -> None:
    parent_id = await mind.hear(*(f"Shelf {number} is empty." for number in range(100)), session="long")
    async with mind.db.transaction(mind.agent_id) as tx:
        ctx = mind.scope.write_context()
        await branches.create_branch(tx, "branch", parent_id=parent_id, from_position=None, ctx=ctx)
    await told(mind, "My sister Anna lives in Graz.", session="branch")
    assert "My sister Anna lives in Graz." in await facts(mind), "it is known in the next turn"
    model = Reader()
    await run(mind, model)
    assert any("Anna lives" in new_lines(sheet) for sheet in model.sheets)


async def test_a_told_episode_that_the_model_refuses_holds_up_no_other(mind: Mind) -> None:
    for text in ("We saw the forbidden lake.", "We moved to Bergen in May."):
        await mind.verbs.remember_episode(text, title="The summer", occurred_at=mind.clock.now())
        mind.clock.advance(timedelta(minutes=1))
    model = Failing(word="forbidden")
    reconciler = MemoryReconciler(llm=asking(mind, model))
    results = [await reconciler.read_told_episodes(8, ended_before=mind.clock.now()) for _ in range(2)]
    assert ["Bergen" in new_lines(sheet) for sheet in model.sheets] == [False, True, False]
    assert results[1].calls == 0
