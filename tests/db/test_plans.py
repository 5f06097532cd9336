"""Plans: tasks whose steps follow one another, as the one that works on them finishes or gives up each."""

from datetime import timedelta
from uuid import UUID

import pytest

from newton.db.pool import Tx
from newton.dialogue import tasks
from newton.dialogue.task_tree import Task
from newton.errors import InputError
from newton.memory.memory import WriteContext
from newton.operations.conversations.task_records import draw_changes
from tests.db.test_tasks import begun, fail, pop, talk, tree
from tests.support import ANA, NOON, teller

STEPS = ("Run the tests", "Write the notes", "Tag it")


async def planned(tx: Tx, session_id: UUID, *steps: str, ctx: WriteContext | None = None) -> Task:
    plan = await tasks.push(tx, "Ship it", steps=steps, session_id=session_id, ctx=ctx or teller())
    await tasks.advance_plan(tx, plan.task_id, "", session_id=session_id, ctx=ctx or teller())
    return plan


async def finish(tx: Tx, session_id: UUID, result: str) -> list[int]:
    """The numbers of the tasks that have changed."""
    task = await pop(tx, session_id, result)
    followed = await tasks.advance_plan(tx, task.parent_id, result, session_id=session_id, ctx=teller())
    return [task.number, *(one.number for one in followed)]


async def statuses(tx: Tx, session_id: UUID) -> list[str]:
    return [one.status for one in (await tree(tx, session_id)).tasks]


async def test_the_steps_of_a_plan_follow_one_another_and_the_last_completes_it(tx: Tx) -> None:
    # S001-35, S001-36: only code sets states and numbers
    session_id = await begun(tx)
    await planned(tx, session_id, *STEPS)
    assert await statuses(tx, session_id) == ["active", "active", "planned", "planned"]
    await talk(tx, session_id, "the tests")
    assert await finish(tx, session_id, "They pass") == [2, 3]
    await talk(tx, session_id, "the notes")
    now = await tree(tx, session_id)
    assert (now.current and now.current.goal, now.tasks[1].last, now.tasks[2].first) == (STEPS[1], 3, 4)
    assert await finish(tx, session_id, "Written") == [3, 4]
    assert await finish(tx, session_id, "v1 is tagged") == [4, 1]
    ended = await tree(tx, session_id)
    assert ended.current is None and {one.status for one in ended.tasks} == {"complete"}
    assert ended.tasks[0].words == "v1 is tagged"
    assert ended.ended_ranges == ((0, 7), (0, 3), (4, 7))
    episodes = "heart.episodes as e on e.agent_id = t.agent_id and e.memory_id = t.task_id"
    kinds = await tx.fetch(f"select t.task_id, e.title from dialogue.tasks as t join {episodes}")
    assert len(kinds) == 4


async def test_after_a_failed_step_nothing_starts_by_itself_and_what_is_left_is_skipped_with_the_plan(tx: Tx) -> None:
    session_id = await begun(tx)
    await planned(tx, session_id, *STEPS)
    failed = await fail(tx, session_id, "No network")
    assert await statuses(tx, session_id) == ["active", "failed", "planned", "planned"]
    again = await tasks.push(tx, "Run them here", session_id=session_id, ctx=teller(), instead_of=failed.task_id)
    assert await finish(tx, session_id, "They pass here") == [again.number, 3]
    await fail(tx, session_id, "Nobody may write")
    await tasks.resume(tx, 4, session_id=session_id, ctx=teller())  # the last step, although the second failed
    assert await finish(tx, session_id, "Tagged") == [4], "a plan with a failed step is not complete by itself"
    await fail(tx, session_id, "Without notes it cannot be shipped")
    assert await statuses(tx, session_id) == ["failed", "failed", "failed", "complete", "complete"]

    other = await begun(tx, "other")
    plan = await planned(tx, other, *STEPS)
    await fail(tx, other, "No network")
    await fail(tx, other, "There is no network today")
    assert await statuses(tx, other) == ["failed", "failed", "skipped", "skipped"]
    assert all(one.last is None for one in (await tree(tx, other)).tasks[2:])
    titles = [row["title"] for row in await tx.fetch("select title from heart.episodes where memory_id is not null")]
    assert plan.goal in titles and titles.count("Tag it") == 1, "nothing was done in a skipped step"


async def test_a_plan_within_a_step_is_worked_on_before_the_step_ends(tx: Tx) -> None:
    session_id = await begun(tx)
    await planned(tx, session_id, "Prepare", "Go")
    await planned(tx, session_id, "Look", "Leap")
    assert await finish(tx, session_id, "Looked") == [5, 6]
    related = (await tree(tx, session_id)).stack.related
    assert [one.number for one in related] == [3, 5], "what the outer plan still has to do is in the context, too"
    assert await finish(tx, session_id, "Leapt") == [6, 4]
    assert await finish(tx, session_id, "Prepared") == [2, 3]
    current = (await tree(tx, session_id)).current
    assert current and current.goal == "Go"


async def test_a_past_moment_has_the_plan_of_then(tx: Tx) -> None:
    session_id = await begun(tx)
    await planned(tx, session_id, *STEPS)
    later = teller(now=NOON + timedelta(minutes=5))
    task = await tasks.pop(tx, "They pass", session_id=session_id, ctx=later)
    await tasks.advance_plan(tx, task.parent_id, "They pass", session_id=session_id, ctx=later)
    assert draw_changes(await tree(tx, session_id)) == [
        "   ✓ 2. Run the tests -> They pass", "   ▸ 3. Write the notes  ← current",
    ]  # fmt: skip
    then = await tasks.load_tree(tx, agent_id=ANA, session_id=session_id, moment=NOON + timedelta(minutes=1))
    assert [one.status for one in then.tasks] == ["active", "active", "planned", "planned"]


@pytest.mark.parametrize(
    ("steps", "said"),
    [(("Alone",), "2 to 20 steps, not 1"), (("x",) * 21, "not 21"), (("One", "  "), "step is missing")],
)
async def test_what_is_no_plan_is_refused_with_a_remedy(tx: Tx, steps: tuple[str, ...], said: str) -> None:
    session_id = await begun(tx)
    with pytest.raises(InputError, match=said) as error:
        await planned(tx, session_id, *steps)
    assert error.value.hint
    assert (await tree(tx, session_id)).tasks == []
