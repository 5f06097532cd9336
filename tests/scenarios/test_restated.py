"""What the assistant repeats from memory: it is no second memory, whether a turn or another program stores it.

Planted and seen to fail: every reply a memory of its own.
"""

import pytest

from newton.agent.loop.turn import TurnInput
from newton.providers.fakes import ScriptedChat
from tests.scenarios.conftest import Mind
from tests.scenarios.test_changed_facts import compare_all
from tests.scenarios.test_outside import replies
from tests.scenarios.test_turn import log, take

pytestmark = pytest.mark.usefixtures("minilm")

REPEATED = "From what I know: the ferry is called Artemis."
TOLD = "My daughter Clemence lives in Nantes, she expects her first baby in June."
ECHO = "Congratulations! Clemence in Nantes with a first baby in June, what joy."
ASKING = "So she worries about the birth. Shall I note the day?"
HELP = "Ask at the town hall of Nantes, Mrs. Aubin keeps the list of midwives."
ADVICE = "Take the tunnel on Mondays, the toll is 12 euros then."


async def test_a_reply_that_only_repeats_memory_is_none_and_gives_way_with_what_it_repeats(mind: Mind) -> None:
    # S002-16: an old value is shown by no copy of it
    await mind.know("The ferry is called Artemis.")
    session_id, questions = await mind.session(), ("What is the ferry called?", "How do I get across on a Monday?")
    turns = mind.turns(ScriptedChat(REPEATED, ADVICE))
    for text in questions:
        await take(turns, TurnInput(session_id=session_id, text=text))
    assert [text for role, text in await log(mind, session_id) if role == "assistant"] == [REPEATED, ADVICE]
    assert list(await replies(mind)) == [ADVICE]
    await mind.know("The ferry is called Hermes now.")
    await compare_all(mind)
    assert "Artemis" not in (await mind.context(questions[0])).text


async def test_what_another_program_had_said_from_memory_is_left_to_the_fact(mind: Mind) -> None:
    # S002-16
    await mind.know("The ferry is called Artemis.")
    await mind.hear("Which ferry is it?", session="elsewhere")
    await mind.hear(REPEATED, f"The ferry is called Artemis. {ADVICE}", session="elsewhere", role="assistant")
    await mind.settle()
    text = (await mind.context("What is the ferry called?")).text
    assert "- The ferry is called Artemis." in text
    assert REPEATED not in text
    assert ADVICE in text, "a reply that says more is told whole"


async def test_a_reply_that_takes_up_what_was_told_is_no_second_memory(mind: Mind) -> None:
    # S002-16: the statement represents it, whether a turn or another program stores it
    turns, session_id = mind.turns(ScriptedChat(ECHO, HELP, ASKING)), await mind.session()
    for text in (TOLD, "She looks for a midwife.", "She worries about the birth."):
        await take(turns, TurnInput(session_id=session_id, text=text))
    assert list(await replies(mind)) == [HELP, ASKING], "a question explains what is told next"
    await mind.hear("My son Bastien cooks in Montreal.", session="elsewhere")
    await mind.hear("Bastien cooking in Montreal, you must be proud.", session="elsewhere", role="assistant")
    await mind.settle()
    text = (await mind.context("Where does my son Bastien cook?")).text
    assert "Montreal" in text and "you must be proud" not in text


@pytest.mark.parametrize(
    ("known", "new", "confirms"),
    [
        ("I live in Toulouse.", "I live in Toulouse, on the third floor near the canal.", True),
        (
            "My sister Ania lives in Krakow.",
            "I am flying out to see my sister Ania who lives in Krakow in two weeks.",
            True,
        ),
        ("I live in Toulouse.", "My brother lives in Toulouse, on the third floor.", False),
        ("I live in Toulouse.", "I no longer live in Toulouse, I live in Lyon.", False),
    ],
)
async def test_what_says_a_fact_again_and_more_confirms_it(mind: Mind, known: str, new: str, *, confirms: bool) -> None:
    # S002-16: it stays a fact of its own, and is in no conflict
    await mind.know(known)
    await mind.know(new)
    await compare_all(mind)
    rows = await mind.fetch(
        "select full_text from memory.confirmations join memory.memories using (agent_id, memory_id)"
    )
    assert [row["full_text"] for row in rows] == ([known] if confirms else [])
    assert new in await mind.facts()
    assert not await mind.fetch("select from heart.facts where is_contested")
