"""Six levels of many tasks: what a context at a leaf holds, what a result leaves of its trace, and replays."""

import random
from datetime import timedelta
from uuid import UUID

import pytest

from newton.agent.session_data.tasks import TaskService
from newton.cognition.assembly.budget import TASK_LAYER_PERCENT, allocate_budget
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.session_context.service import SessionContextService
from newton.db.pool import Tx
from newton.dialogue import log, sessions, tasks
from newton.dialogue.messages import Message, Role
from newton.dialogue.view import count_view_tokens
from newton.memory.memory import WriteContext
from newton.providers import token_counter
from tests.scenarios.conftest import Mind
from tests.scenarios.test_replay import let_go, replayed_all
from tests.support import teller

LEVELS, BUDGET = 6, 8_000
WORDS = ["deployment", "waits", "for", "a", "lock", "that", "nobody", "holds", "and", "the", "worker", "has", "written"]


def doing(mind: Mind, session_id: UUID) -> TaskService:
    return TaskService(scope=mind.scope).for_session(session_id)


def said(lot: random.Random, words: int) -> str:
    return " ".join(lot.choices(WORDS, k=words))


async def grown(mind: Mind, session_id: UUID, *, many: int) -> tuple[int, int]:
    """So many tasks on six levels, with talk in each; at the end the current one is on the last level. Returns what
    the view costs then, and what the log does."""
    lot, ctx = (
        random.Random(6),
        teller(mind.agent_id, count_tokens=token_counter.count, trust="agent", now=mind.clock.now()),
    )
    async with mind.db.transaction(mind.agent_id) as tx:
        for n in range(1, many + 1):
            depth = len((await tasks.load_tree(tx, agent_id=mind.agent_id, session_id=session_id)).path)
            goal = f"Goal {n} on level {depth + 1}: {said(lot, lot.randint(3, 40))}"
            await tasks.push(tx, goal, session_id=session_id, ctx=ctx)
            await _talk(tx, session_id, f"about goal {n}", lot, ctx)
            end = depth + 1 == LEVELS or (depth and lot.random() < 0.3)
            if end and n < many - LEVELS:
                ended = (session_id, f"result {n}: {said(lot, lot.randint(2, 60))}")
                act = tasks.fail if lot.random() < 0.2 else tasks.pop
                await act(tx, ended[1], session_id=session_id, ctx=ctx)
            elif depth + 1 == LEVELS and n < many:
                await tasks.pop(tx, f"result {n}: done", session_id=session_id, ctx=ctx)
        read = await log.load_view(tx, agent_id=mind.agent_id, session_id=session_id)
        logged = await log.load_messages(
            tx, [log.MessageRange(0, log.MAX_POSITION)], agent_id=mind.agent_id, session_id=session_id
        )
    await mind.settle()
    return count_view_tokens(read.view), sum(line.tokens for line in logged)


async def _talk(tx: Tx, session_id: UUID, about: str, lot: random.Random, ctx: WriteContext) -> None:
    roles: tuple[Role, ...] = ("user", "assistant", "user", "assistant")
    lines = [Message(role=r, content=f"{about}, {k}: {said(lot, 30)}", said_at=ctx.now) for k, r in enumerate(roles)]
    await sessions.append(tx, lines, session_id=session_id, ctx=ctx)


def section(bundle: Bundle) -> list[str]:
    head, _, rest = bundle.text.partition("## Tasks\n")
    return rest.partition("\n## ")[0].splitlines() if rest or not head else []


@pytest.mark.slow
@pytest.mark.parametrize(("many", "share"), [(60, 0.6), pytest.param(200, 0.5, marks=pytest.mark.slow)])
async def test_a_leaf_of_many_tasks_sees_root_way_and_results_within_their_shares(
    mind: Mind, many: int, share: float
) -> None:
    # S001-37, S001-38
    session_id = await mind.session()
    await mind.know("The lock in the log is named amber-17 and the worker's room has a red door")
    shown, logged = await grown(mind, session_id, many=many)
    assert shown < share * logged
    tree = await doing(mind, session_id).tree()
    assert len(tree.tasks) == many and len(tree.path) == LEVELS
    bundle = await mind.context("What is the lock in the log named?", session_id=session_id, budget=BUDGET)
    lines = section(bundle)
    assert lines[0].startswith("- Goal: Goal 1 on level 1: ")
    assert [line.split(" on level")[0] for line in lines[1:LEVELS]] == [
        f"- {'Now' if task is tree.path[-1] else 'Within it'}: Goal {task.number}" for task in tree.path[1:]
    ]
    results = [task for task in tree.stack.related if any(f"Goal {task.number} on" in line for line in lines[LEVELS:])]
    assert results and len(results) == len(lines) - LEVELS
    flexible = sum(
        allocate_budget(BUDGET, has_tasks=True).layers[part] * 100 / each for part, each in TASK_LAYER_PERCENT.items()
    ) / len(TASK_LAYER_PERCENT)
    for part, percent in TASK_LAYER_PERCENT.items():
        layer = bundle.layers[part]
        assert 0 < layer.used <= layer.share <= percent / 100 * flexible + 1
    assert token_counter.count(bundle.text) == bundle.tokens <= BUDGET
    assert "amber-17" in bundle.text, "its own detail"
    assert not any(c.detail and c.memory_id in bundle.assembly_input.tasks.task_ids for c in bundle.candidates)
    await replayed_all(mind, [bundle])
    again = await mind.context("What is the lock in the log named?", session_id=session_id, budget=BUDGET)
    assert section(again) == lines


async def test_the_messages_of_an_ended_task_leave_the_view_and_the_current_focus(mind: Mind) -> None:
    # S001-38: its result stands for them
    session_id = await mind.session()
    acts, detail = doing(mind, session_id), "The marzipan backfill failed thrice at size 500"
    await acts.push("Ship the release")
    await acts.push("Write it")
    await mind.hear(detail, f"I have tried: {said(random.Random(1), 60)}")
    slid_out = SentMessages(session_id=session_id, first_position=2)
    during = await mind.context("Where am I now?", session_id=session_id, sent_messages=slid_out)
    assert [found.position for found in during.focus] == [0, 1]
    await acts.pop("All drafts are skipped")
    await mind.hear("Good, thanks for that.")
    after = await mind.context("Where am I now?", session_id=session_id, sent_messages=slid_out)
    assert after.focus == ()
    assert "- Done: Write it -> All drafts are skipped" in after.text
    await replayed_all(mind, [during, after])
    asked = await mind.context("What was the marzipan backfill?", session_id=session_id)
    assert detail in asked.text, "what is asked for is found"
    view = await mind.compacting("none").preview(session_id, max_tokens=50_000)
    assert [item.text for item in view] == ["Task: Write it -> All drafts are skipped", "Good, thanks for that."]
    assert [item.text for item in await mind.compacting("none").load_view(session_id, max_tokens=50_000)] == [
        item.text for item in view
    ]


async def test_what_is_searched_for_is_the_current_goal_beside_the_input(mind: Mind) -> None:
    # S001-37
    await mind.know("The ferry to Texel leaves from Den Helder", "Mira's cat is called Olive")
    session_id = await mind.session()
    before = await mind.context("What do we know?", session_id=session_id)
    await doing(mind, session_id).push("Book the ferry to Texel")
    after = await mind.context("What do we know?", session_id=session_id)

    def cosine(bundle: Bundle) -> float:
        (fact,) = [c for c in bundle.candidates if "ferry" in c.text]
        return fact.features["cosine"]

    assert "Den Helder" in after.text and cosine(after) > cosine(before)


async def test_without_a_current_task_a_context_is_what_it_was(mind: Mind) -> None:
    await mind.know("The ferry to Texel leaves from Den Helder")
    session_id, other = await mind.session(), await mind.session("other")
    acts = doing(mind, session_id)
    await acts.push("Book the ferry")
    await acts.block("the harbour is closed")
    bundle = await mind.context("Where does the ferry leave?", session_id=session_id)
    assert "## Tasks" not in bundle.text and "root" not in bundle.layers
    await acts.resume(1)
    assert "## Tasks" not in (await mind.context("Where does the ferry leave?", session_id=other)).text


async def test_a_context_of_the_past_has_the_tasks_of_then(mind: Mind) -> None:
    # S001-39
    session_id = await mind.session()
    acts = doing(mind, session_id)
    await acts.push("Book the ferry")
    mind.clock.advance(timedelta(hours=1))
    await acts.push("Find the harbour")
    mind.clock.advance(timedelta(hours=1))
    was = await mind.context("And now?", session_id=session_id)
    moment = mind.clock.now()
    mind.clock.advance(timedelta(hours=1))
    await acts.fail("it is closed", instead="Take the bridge")
    now = await mind.context("And now?", session_id=session_id)
    past = await mind.context("And now?", session_id=session_id, as_of=moment)
    assert past.text == was.text != now.text
    assert section(now)[1] == "- Now: Take the bridge (instead of: Find the harbour, a dead end: it is closed)"
    await replayed_all(mind, [was, now, past])


async def test_a_context_does_not_stand_when_the_tasks_have_changed(mind: Mind) -> None:
    session_id = await mind.session()
    acts, refreshing = doing(mind, session_id), SessionContextService(builder=mind.contexts)
    request = ContextBuildRequest(
        agent_id=mind.agent_id, input="Where does the ferry leave?", tokens=2_000, session_id=session_id
    )
    await acts.push("Book the ferry")
    await refreshing.get_for_turn(request)
    assert (await refreshing.get_for_turn(request)).method == "stood"
    await acts.push("Find the harbour")
    given = await refreshing.get_for_turn(request)
    assert (given.method, given.reason) == ("built", "stale: the tasks changed")
    assert section(given.bundle)[-1] == "- Now: Find the harbour"


async def test_a_forgotten_task_takes_the_contexts_with_it_that_told_of_it(mind: Mind) -> None:
    session_id = await mind.session()
    acts = doing(mind, session_id)
    await acts.push("Plan the move")
    secret = await acts.push("Call Priya at home")
    bundle = await mind.context("And now?", session_id=session_id)
    await acts.pop("she said no")
    await mind.forget(secret.task_id)
    assert await let_go(mind, bundle)
    assert "Priya" not in (await mind.context("And now?", session_id=session_id)).text


async def test_a_turn_folds_what_could_not_be_folded_when_it_ended(mind: Mind) -> None:
    # S001-38
    session_id = await mind.hear("hello")
    acts = doing(mind, session_id)
    await acts.push("Find the lock")
    await mind.hear(*(f"{n}: {said(random.Random(n), 60)}" for n in range(4)))
    whole = count_view_tokens(await mind.compacting().load_view(session_id, max_tokens=50_000))
    await acts.pop("A worker that died held it")
    await mind.hear("thanks")
    view = await mind.compacting("none").load_view(session_id, max_tokens=50_000)
    assert [item.text for item in view] == [
        "hello",
        "Task: Find the lock -> A worker that died held it",
        "thanks",
    ]
    assert count_view_tokens(view) < whole / 5
