"""The brief of a session: kept apart from its messages and summaries, in every prompt, closed and forgotten."""

import pytest

from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.agent.services.sessions import BriefService
from newton.cognition.request import SentMessages
from newton.dialogue.messages import Message
from newton.errors import NotFoundError
from tests.scenarios.conftest import Mind
from tests.scenarios.talking import Talking
from tests.scenarios.test_curation import curation
from tests.support import NOON
from tests.talks import says, turn

GOAL = "I want to move the shop from MySQL to Postgres before we hire anybody."
RULE = "Never push directly to main."
DEADLINE = "The deadline is 12 June."


def service(mind: Mind) -> BriefService:
    return BriefService(scope=mind.scope)


async def open_texts(mind: Mind, session: str = "s1") -> list[str]:
    return [item.text for item in await service(mind).list_items(session, only_open=True)]


async def say(mind: Mind, *texts: str, session: str = "s1") -> None:
    messages = [Message(role="user", content=text, said_at=mind.scope.now(), ref=text) for text in texts]
    await Talking(mind).doors.append(session, messages)


async def test_what_is_said_is_in_the_brief_word_for_word_once_until_a_person_closes_it(mind: Mind) -> None:
    # S003-16
    for _ in range(2):  # an import may repeat it
        await say(mind, f"Hello! {GOAL} {DEADLINE}", RULE, "How are you?")
    items = await service(mind).list_items("s1")
    assert [(item.kind, item.text, item.position) for item in items] == [
        *(("goal", GOAL, 0), ("deadline", DEADLINE, 0)),
        ("rule", RULE, 1),
    ]
    await service(mind).close("s1", items[0].item_id.hex[-8:], "done")
    assert await open_texts(mind) == [DEADLINE, RULE]
    for unknown in (items[0].item_id.hex[-8:], ""):
        with pytest.raises(NotFoundError, match="has no open item"):
            await service(mind).close("s1", unknown, "done")


@pytest.mark.slow
async def test_a_brief_survives_every_merge(mind: Mind) -> None:
    # S003-16, S003-F4: 60 turns of work, of which only summaries remain
    talking = Talking(mind)
    await talking.turns([[says("user", f"{GOAL} {DEADLINE} {RULE}"), says("assistant", "Noted.")]], most=4_000)
    await talking.turns([turn(n, work=1) for n in range(60)], most=4_000, at_once=3)
    view = await talking.doors.get_view("s1")
    assert all(item.first > 1 or item.entry_id for item in view.view), "the first turn is summarized"
    assert await open_texts(mind) == [GOAL, DEADLINE, RULE]


async def test_items_are_replaced_closed_and_taken_back(mind: Mind) -> None:
    # S003-16
    await say(mind, DEADLINE, RULE, "We still need to rotate the keys.")
    await say(mind, "The deadline moved to Friday.", "I have rotated the keys.", "You can push directly to main now.")
    assert await open_texts(mind) == ["The deadline moved to Friday."]
    items = {item.text: item for item in await service(mind).list_items("s1")}
    assert items[DEADLINE].replaced_by == items["The deadline moved to Friday."].item_id
    assert [items[text].status for text in (DEADLINE, "We still need to rotate the keys.", RULE)] == [
        "replaced",
        "done",
        "dropped",
    ]


async def test_a_branch_inherits_the_brief_and_changes_it_for_itself(mind: Mind) -> None:
    # S003-16
    doors = Talking(mind).doors
    await say(mind, GOAL, RULE)
    await doors.create_branch("s1", "b1")
    await say(mind, "You can push directly to main now.", session="b1")
    await say(mind, DEADLINE)
    assert (await open_texts(mind), await open_texts(mind, "b1")) == ([GOAL, RULE, DEADLINE], [GOAL])


async def forget(mind: Mind, text: str) -> None:
    memory_id = await mind.fetchval(
        "select memory_id from memory.memories where kind = 'exchange' and micro like $1", f"%{text}%"
    )
    await curation(mind).forget([str(memory_id)], include_derived=False, reason="a test")


async def test_forgetting_a_message_deletes_its_items_and_undoes_its_closings(mind: Mind) -> None:
    # S003-16: nothing of a forgotten message stays in the brief
    await say(mind, DEADLINE, RULE)
    await say(mind, "The deadline moved to Friday.")
    await forget(mind, "moved to Friday")
    await forget(mind, RULE)
    assert await open_texts(mind) == [DEADLINE]
    assert await mind.fetchval("select count(*) from dialogue.brief_items where text like '%Friday%'") == 0


async def test_the_brief_is_in_the_context_until_its_messages_are_sent(mind: Mind) -> None:
    # S003-16, S001-34
    await say(mind, f"{GOAL} {DEADLINE}", RULE)
    session_id = await mind.session("s1")
    bundle = await mind.context("What shall we do next?", session_id=session_id)
    section = bundle.text.partition("## Goals and Rules of This Conversation\n")[2].partition("## ")[0]
    day = f"{NOON:%Y-%m-%d}"
    assert section == f"- Goal: {GOAL}\n- Deadline (said {day}): {DEADLINE}\n- Rule: {RULE}\n"
    assert bundle.tokens == mind.scope.count_tokens(bundle.text)
    sent = SentMessages(session_id=session_id, first_position=1)
    later = await mind.context("What shall we do next?", session_id=session_id, sent_messages=sent)
    assert GOAL in later.text and RULE not in later.text.partition("## Goals and Rules")[2]
    elsewhere = await mind.context("What shall we do next?", session_id=await mind.session("s2"))
    assert "Goals and Rules" not in elsewhere.text


async def test_a_brief_that_does_not_fit_says_so_and_keeps_the_goal(mind: Mind) -> None:
    # S003-16
    rules = [f"Never touch the folder number {n} of the shop without asking the owner first." for n in range(40)]
    await say(mind, GOAL, *rules)
    bundle = await mind.context("And now?", session_id=await mind.session("s1"), budget=1_000)
    assert GOAL in bundle.text and "no room for" in bundle.missing["brief"]
    assert bundle.tokens <= 1_000


@pytest.mark.slow
async def test_without_a_model_a_question_for_the_goal_is_answered(mind: Mind) -> None:
    # S003-16
    await say(mind, f"{GOAL} {DEADLINE}")
    await Talking(mind).turns([turn(n) for n in range(20)], most=4_000, at_once=4)
    turn_input = TurnInput(session_id=await mind.session("s1"), text="What is our first goal and its deadline?")
    pieces = [piece async for piece in mind.turns(None).run(turn_input)]
    reply = pieces[-1]
    assert isinstance(reply, TurnResult)
    assert GOAL in reply.text and DEADLINE in reply.text
