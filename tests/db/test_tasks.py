"""The task stack: a tree with one way through it, whatever is done to it; and traces that fold behind it."""

import asyncio
import random
import re
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from newton.db.pool import Database, Tx
from newton.dialogue import log, sessions, tasks
from newton.dialogue.compaction import entry_store
from newton.dialogue.messages import Message, Role
from newton.dialogue.task_tree import TRANSITIONS, Task, TaskTree
from newton.dialogue.view import ViewMessage, count_view_tokens
from newton.errors import InputError
from newton.memory.forgetting import forget
from newton.providers.chat import ToolCall
from tests.db.test_lifecycle_table import DOC, rows
from tests.support import ANA, NOON, count, teller

LONG = "The deployment log shows that the third step waits for a lock which nobody holds any more. " * 3


async def begun(tx: Tx, ref: str = "s") -> UUID:
    return await sessions.ensure_session(tx, agent_id=ANA, ref=ref, now=NOON)


async def push(tx: Tx, session_id: UUID, goal: str) -> Task:
    return await tasks.push(tx, goal, session_id=session_id, ctx=teller())


async def pop(tx: Tx, session_id: UUID, result: str) -> Task:
    return await tasks.pop(tx, result, session_id=session_id, ctx=teller())


async def fail(tx: Tx, session_id: UUID, reason: str) -> Task:
    return await tasks.fail(tx, reason, session_id=session_id, ctx=teller())


async def tree(tx: Tx, session_id: UUID) -> TaskTree:
    return await tasks.load_tree(tx, agent_id=ANA, session_id=session_id)


async def view(tx: Tx, session_id: UUID) -> list[ViewMessage]:
    return list((await log.load_view(tx, agent_id=ANA, session_id=session_id)).view)


async def talk(tx: Tx, session_id: UUID, *words: str) -> None:
    """Turns: what was asked, and what a tool and the assistant made of it."""
    said: list[Message] = []
    for n, text in enumerate(words):
        ref = f"{text} {len(said)} {n}"
        call = ToolCall(id=ref, name="read_file", arguments='{"path": "deploy.log"}')
        parts: list[tuple[Role, str]] = [("user", text), ("assistant", ""), ("tool", LONG), ("assistant", "Read.")]
        for m, (role, content) in enumerate(parts):
            line = Message(role=role, content=content, said_at=NOON, ref=f"{ref} {m}")
            line = replace(line, calls=(call,)) if m == 1 else replace(line, tool_call_id=ref) if m == 2 else line
            said.append(line)
    await sessions.append(tx, said, session_id=session_id, ctx=teller())


async def fold(tx: Tx, session_id: UUID) -> int:
    """How many entries it makes."""
    before = await entry_store.list_entries(tx, agent_id=ANA, session_id=session_id)
    await tasks.fold_ended_tasks(
        tx, session_id=session_id, agent_id=ANA, now=NOON + timedelta(hours=1), count_tokens=count
    )
    return len(await entry_store.list_entries(tx, agent_id=ANA, session_id=session_id)) - len(before)


async def test_a_result_completes_a_task_and_its_parent_is_current_again(tx: Tx) -> None:
    # S001-35, S001-36, S001-38
    session_id = await begun(tx)
    for goal in ("Ship it", "Test it", "Find the flaky test"):
        await push(tx, session_id, goal)
    known = await tree(tx, session_id)
    assert [(t.goal, t.depth) for t in known.path] == [("Ship it", 0), ("Test it", 1), ("Find the flaky test", 2)]
    done = await pop(tx, session_id, "It is test_clock")
    known = await tree(tx, session_id)
    assert done.summary == "It is test_clock" and [t.goal for t in known.path] == ["Ship it", "Test it"]
    assert [t.summary for t in known.children(known.path[-1].task_id)] == ["It is test_clock"]


@pytest.mark.parametrize("words", ["", "   \n"])
async def test_nothing_is_popped_without_a_result(tx: Tx, words: str) -> None:
    # S001-36
    session_id = await begun(tx)
    await push(tx, session_id, "Ship it")
    with pytest.raises(InputError, match="result is missing"):
        await pop(tx, session_id, words)
    assert (await tree(tx, session_id)).tasks[0].status == "active"


async def test_without_a_current_task_nothing_is_popped_failed_or_blocked(tx: Tx) -> None:
    session_id = await begun(tx)
    for act in (pop, fail):
        with pytest.raises(InputError, match="no current task"):
            await act(tx, session_id, "why")
    await push(tx, session_id, "Wait")
    await tasks.block(tx, "no key", session_id=session_id, ctx=teller())
    with pytest.raises(InputError, match="resume NUMBER"):
        await tasks.block(tx, "no key", session_id=session_id, ctx=teller())


async def test_a_blocked_task_waits_and_is_resumed_where_it_belongs(tx: Tx) -> None:
    # S001-35
    session_id = await begun(tx)
    await push(tx, session_id, "Ship it")
    waiting = await push(tx, session_id, "Get the key")
    await tasks.block(tx, "Mira is away", session_id=session_id, ctx=teller())
    with pytest.raises(InputError, match="blocked subtask: 2"):
        await pop(tx, session_id, "shipped")
    await push(tx, session_id, "Write the notes")
    with pytest.raises(InputError, match="not a subtask of the current task 3"):
        await tasks.resume(tx, 2, session_id=session_id, ctx=teller())
    await pop(tx, session_id, "written")
    await tasks.resume(tx, waiting.number, session_id=session_id, ctx=teller())
    assert (await tree(tx, session_id)).current == replace(waiting, status="active", words=None)
    with pytest.raises(InputError, match="is active, so it cannot be resumed"):
        await tasks.resume(tx, 2, session_id=session_id, ctx=teller())


async def test_what_failed_is_kept_and_its_replacement_names_it(tx: Tx) -> None:
    # S001-41
    session_id = await begun(tx)
    await push(tx, session_id, "Make it fast")
    await push(tx, session_id, "Cache it")
    await push(tx, session_id, "Ask for Redis")
    await tasks.block(tx, "no budget", session_id=session_id, ctx=teller())
    dead = await fail(tx, session_id, "the cache is cold each morning")
    instead = await tasks.push(tx, "Add an index", session_id=session_id, ctx=teller(), instead_of=dead.task_id)
    known = await tree(tx, session_id)
    assert (instead.parent_id, instead.depth, instead.instead_of) == (dead.parent_id, dead.depth, dead.task_id)
    assert [(t.goal, t.status, t.words) for t in known.tasks[1:3]] == [
        ("Cache it", "failed", "the cache is cold each morning"),
        ("Ask for Redis", "failed", "given up with task 2: the cache is cold each morning"),
    ]
    assert [t.goal for t in known.stack.related] == ["Cache it"]


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_done_the_active_tasks_are_one_way_from_a_root(tx: Tx, seed: int) -> None:
    # S001-35, S001-36
    lot, session_id = random.Random(seed), await begun(tx)
    for n in range(60):
        known = await tree(tx, session_id)
        act = lot.choice(["push", "push", "push", "pop", "pop", "block", "resume", "fail"])
        before = known.tasks
        try:
            await _done(tx, session_id, act, str(n), lot)
        except InputError:
            assert (await tree(tx, session_id)).tasks == before
        _consistent(await tree(tx, session_id))
    assert len((await tree(tx, session_id)).tasks) > 10


async def _done(tx: Tx, session_id: UUID, act: str, words: str, lot: random.Random) -> None:
    match act:
        case "push":
            await push(tx, session_id, f"goal {words}")
        case "pop":
            await pop(tx, session_id, f"result {words}")
        case "block":
            await tasks.block(tx, f"waits {words}", session_id=session_id, ctx=teller())
        case "resume":
            await tasks.resume(tx, lot.randint(1, 40), session_id=session_id, ctx=teller())
        case _:
            await fail(tx, session_id, f"wrong {words}")


def _consistent(known: TaskTree) -> None:
    by_id = {task.task_id: task for task in known.tasks}
    active = [task for task in known.tasks if task.status == "active"]
    assert sorted(active, key=lambda t: t.depth) == list(known.path)
    assert [task.depth for task in known.path] == list(range(len(active)))
    assert all(b.parent_id == a.task_id for a, b in zip(known.path, known.path[1:], strict=False))
    assert known.current == (known.path[-1] if known.path else None)
    for task in known.tasks:
        parent = by_id[task.parent_id] if task.parent_id else None  # no orphan
        assert task.depth == (parent.depth + 1 if parent else 0)
        assert task.is_ended or not (parent and parent.is_ended), "nothing is open in what has ended"
        assert (task.last is not None) == task.is_ended and (task.words is not None or task.status == "active")


async def test_two_writers_push_one_below_the_other(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        session_id = await begun(tx)

    async def one(goal: str) -> None:
        async with db.transaction(agent) as tx:
            await push(tx, session_id, goal)

    await asyncio.gather(*(one(f"goal {n}") for n in range(8)))
    async with db.transaction(agent) as tx:
        known = await tree(tx, session_id)
    _consistent(known)
    assert [task.number for task in known.tasks] == list(range(1, 9)) and len(known.path) == 8


async def test_a_popped_task_leaves_its_result_in_the_view_and_its_trace_in_the_log(tx: Tx) -> None:
    # S001-38, S001-36
    session_id = await begun(tx)
    await talk(tx, session_id, "hello")
    await push(tx, session_id, "Find the lock")
    await talk(tx, session_id, "look there", "and there", "and behind it")
    before, lines = await view(tx, session_id), await _log(tx)
    await pop(tx, session_id, "A worker that died held it")
    after = await view(tx, session_id)
    assert count_view_tokens(after) < 0.6 * count_view_tokens(before) and await _log(tx) == lines
    assert [(s.kind, s.first, s.last) for s in after if s.kind != "line"] == [("task", 4, 11)]
    assert [s.text for s in after if s.kind == "task"] == ["Task: Find the lock -> A worker that died held it"]
    assert after[:4] == before[:4] and after[5:] == before[12:], "the last turn may still be under way"
    await talk(tx, session_id, "thanks")
    assert await fold(tx, session_id) == 1 and await fold(tx, session_id) == 0
    later = await view(tx, session_id)
    assert [(s.kind, s.first, s.last) for s in later if s.kind != "line"] == [("task", 4, 15)]
    entry_id = later[4].entry_id
    assert entry_id
    await entry_store.restore(tx, entry_id, session_id=session_id, ctx=teller())
    assert [s.kind for s in await view(tx, session_id)][:5] == ["line"] * 4 + ["task"]
    assert await fold(tx, session_id) == 0, "what a person has brought back stays"


async def test_an_outer_task_folds_over_those_in_it_and_names_their_dead_ends(tx: Tx) -> None:
    # S001-38
    session_id = await begun(tx)
    await push(tx, session_id, "Make it fast")
    await talk(tx, session_id, "how slow is it?")
    await push(tx, session_id, "Cache it")
    await talk(tx, session_id, "try a cache", "a bigger one")
    await fail(tx, session_id, "cold each morning")
    await push(tx, session_id, "Add an index")
    await talk(tx, session_id, "try an index", "on two columns")
    await pop(tx, session_id, "12 ms")
    assert [s.text for s in await view(tx, session_id) if s.kind == "task"] == [
        "Task: Cache it -> failed: cold each morning",
        "Task: Add an index -> 12 ms",
    ]
    await pop(tx, session_id, "It takes 12 ms by an index")
    await talk(tx, session_id, "next", "and next")
    await fold(tx, session_id)
    assert [(s.text, s.first, s.last) for s in await view(tx, session_id) if s.kind == "task"] == [
        ("Task: Make it fast -> It takes 12 ms by an index Dead ends: Cache it (cold each morning)", 0, 19)
    ]


async def test_a_turn_that_is_under_way_and_one_begun_before_the_task_stay_whole(tx: Tx) -> None:
    session_id = await begun(tx)
    await talk(tx, session_id, "begin")
    asked = Message(role="user", content="go on", said_at=NOON)
    await sessions.append(tx, [asked], session_id=session_id, ctx=teller())
    await push(tx, session_id, "Look")  # in the middle of a turn
    call = ToolCall(id="c", name="grep", arguments="{}")
    open_ = [Message(role="assistant", content="", said_at=NOON, calls=(call,))]
    await sessions.append(tx, open_, session_id=session_id, ctx=teller())
    before = await view(tx, session_id)
    await pop(tx, session_id, "seen")
    assert await view(tx, session_id) == before


async def test_a_turn_that_went_on_behind_the_pop_is_not_folded(tx: Tx) -> None:
    session_id = await begun(tx)
    await push(tx, session_id, "Look")
    await talk(tx, session_id, "begin", "go on")
    await pop(tx, session_id, "seen")
    later = Message(role="assistant", content=f"And this I say behind it. {LONG}", said_at=NOON)
    await sessions.append(tx, [later], session_id=session_id, ctx=teller())
    await talk(tx, session_id, "next", "and next")
    await fold(tx, session_id)
    assert [(s.kind, s.first, s.last) for s in await view(tx, session_id)][:2] == [("task", 0, 3), ("line", 4, 4)]


async def test_what_costs_less_than_its_account_is_not_folded(tx: Tx) -> None:
    session_id = await begun(tx)
    await push(tx, session_id, "Say hello")
    for text in ("hi", "you", "bye"):
        line = Message(role="user", content=text, said_at=NOON)
        await sessions.append(tx, [line], session_id=session_id, ctx=teller())
    await pop(tx, session_id, "said, in very many words that say no more than this: " + LONG)
    assert {s.kind for s in await view(tx, session_id)} == {"line"}


async def test_ended_tasks_are_episodes_and_parts_of_that_which_they_were_in(tx: Tx) -> None:
    # S001-39
    session_id = await begun(tx)
    root = await push(tx, session_id, "Ship it")
    await push(tx, session_id, "Cache it")
    dead = await fail(tx, session_id, "cold each morning")
    await pop(tx, session_id, "shipped without")
    told = await tx.fetch("select memory_id, summary, outcome from memory.memories where kind = 'episode' order by 2")
    assert [(row["memory_id"], row["outcome"]) for row in told] == [
        (dead.task_id, "failure"),
        (root.task_id, "success"),
    ]
    assert "cold each morning" in told[0]["summary"]
    links = await tx.fetch("select memory_id, link, other_id from memory.links")
    assert [tuple(row) for row in links] == [(dead.task_id, "part_of", root.task_id)]


async def test_a_forgotten_task_leaves_its_place_and_no_word(tx: Tx) -> None:
    session_id = await begun(tx)
    await push(tx, session_id, "Ship it")
    secret = await push(tx, session_id, "Call Priya at home")
    await talk(tx, session_id, "one", "two", "three")
    await pop(tx, session_id, "Priya said no")
    await forget(tx, [secret.task_id], derived=False, reason="private", ctx=teller())
    known = await tree(tx, session_id)
    assert (known.tasks[1].goal, known.tasks[1].words) == ("[forgotten]", "[forgotten]")
    assert not any("Priya" in s.text for s in await view(tx, session_id))
    await pop(tx, session_id, "shipped")  # its parent is told without it
    assert "Priya" not in str([dict(row) for row in await tx.fetch("select * from dialogue.compaction_entries")])


async def test_a_past_moment_has_the_stack_of_then(tx: Tx) -> None:
    # S001-39
    session_id = await begun(tx)
    for hour, goal in enumerate(("Ship it", "Test it")):
        await tasks.push(tx, goal, session_id=session_id, ctx=teller(now=NOON + timedelta(hours=hour)))
    late = teller(now=NOON + timedelta(hours=5))
    await tasks.pop(tx, "tested", session_id=session_id, ctx=late)

    async def goals(hours: float) -> list[tuple[str, str]]:
        moment = NOON + timedelta(hours=hours)
        known = await tasks.load_tree(tx, agent_id=ANA, session_id=session_id, moment=moment)
        return [(task.goal, task.status) for task in known.tasks]

    assert await goals(-1) == []
    assert await goals(0.5) == [("Ship it", "active")]
    assert await goals(4) == [("Ship it", "active"), ("Test it", "active")]
    assert await goals(5) == [("Ship it", "active"), ("Test it", "complete")]


async def test_the_database_holds_one_current_task_a_session(tx: Tx) -> None:
    session_id = await begun(tx)
    await push(tx, session_id, "Ship it")
    with pytest.raises(asyncpg.UniqueViolationError):
        await tx.execute(
            "insert into dialogue.tasks (agent_id, session_id, task_id, number, depth, goal, first_position, pushed_at)"
            " select agent_id, session_id, gen_random_uuid(), 2, 0, 'another', 0, pushed_at from dialogue.tasks"
        )


async def _log(tx: Tx) -> list[tuple[int, str]]:
    return [tuple(row) for row in await tx.fetch("select position, content from dialogue.messages order by position")]


async def test_the_table_the_database_and_the_page_tell_the_same_changes(tx: Tx) -> None:
    # S001-35
    section = re.split(r"^## ", DOC, flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith("Task\n")]
    told = {(before, row["event"], row["to"]) for row in rows(text) for before in row["from"].split(", ")}
    assert told == set(TRANSITIONS)

    async def check(name: str) -> str:
        return await tx.fetchval("select pg_get_constraintdef(oid) from pg_constraint where conname = $1", name)

    statuses = {status for change in TRANSITIONS for status in (change.before, change.after)}
    assert set(re.findall(r"'(\w+)'", await check("tasks_status_check"))) == statuses
    allowed = re.findall(
        r"'(\w+)'[^,()]*, '(\w+)'[^,()]*, '(\w+)'|= '(\w+)'", await check("task_transitions_allowed_check")
    )
    words = [word for found in allowed for word in found if word]
    assert {tuple(words[n : n + 3]) for n in range(0, len(words), 3)} == set(TRANSITIONS)


async def test_tasks_stand_only_so_deep(tx: Tx) -> None:
    session_id = await begun(tx)
    for n in range(tasks.MAX_DEPTH):
        await push(tx, session_id, f"Level {n}")
    with pytest.raises(InputError, match="50 levels deep, which is the maximum"):
        await push(tx, session_id, "One more")
    await pop(tx, session_id, "done")
    await push(tx, session_id, "Beside it")
