"""The task stack of a session in the database: pushed, popped, blocked, resumed, failed; and folded in the view."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import entries, log
from newton.dialogue.compaction.folding import RULES, STRATEGY, folds
from newton.dialogue.compaction.strategies import Block, Sight
from newton.dialogue.log import Read
from newton.dialogue.stack import Event, Task, Tree
from newton.dialogue.view import MESSAGE_TOKENS, Entry
from newton.errors import InputError, NotFoundError
from newton.heart import episodes
from newton.heart.episodes import Experience
from newton.ids import new_id
from newton.memory import store
from newton.memory.hygiene import clean
from newton.memory.memory import Count, Outcome, Teller
from newton.memory.representations import one_line

SQL = load("newton.dialogue", "tasks.sql")

MOST_GOAL, MOST_WORDS = 1_000, 10_000  # characters
DEEPEST = 50  # levels: a context tells the way from the root to the current task
OUTCOMES: dict[str, Outcome] = {"complete": "success", "failed": "failure"}


async def tree(tx: Tx, *, agent_id: UUID, session_id: UUID, moment: datetime | None = None) -> Tree:
    """The tasks of a session, or as they were at a moment."""
    rows = await SQL["list_tasks"].all(tx, agent_id=agent_id, session_id=session_id, moment=moment)
    return Tree([Task(**row) for row in rows])


async def latest_session(tx: Tx, *, agent_id: UUID) -> UUID:
    """Where a task was pushed last; before any was, the session that began last. Raises NotFoundError."""
    row = await SQL["get_latest_session"].one(tx, agent_id=agent_id)
    if row is None:
        raise NotFoundError(
            "There is no session yet.", hint="`newton tasks push GOAL --session NAME --new` begins one."
        )
    return row["session_id"]


async def push(tx: Tx, goal: str, *, session_id: UUID, ctx: Teller, instead_of: UUID | None = None) -> Task:
    """A new current task, under the one that was current; without such, a root. Raises InputError too deep down."""
    goal = _said(goal, "goal", MOST_GOAL)
    known = await _locked(tx, session_id=session_id, ctx=ctx)
    parent = known.current
    if parent and parent.depth + 1 >= DEEPEST:
        raise InputError(
            f"Tasks stand {DEEPEST} levels deep at most, and the current one, {parent.number}, is on the last.",
            hint="`newton tasks pop RESULT` ends it; what comes next may stand beside it.",
        )
    task = Task(
        task_id=new_id(),
        number=len(known.tasks) + 1,
        parent_id=parent and parent.task_id,
        instead_of=instead_of,
        depth=parent.depth + 1 if parent else 0,
        goal=goal,
        status="active",
        words=None,
        first=await log.end(tx, agent_id=ctx.agent_id, session_id=session_id) + 1,
        last=None,
        pushed_at=ctx.now,
        changed_at=ctx.now,
    )
    await SQL["insert_task"].run(
        tx,
        agent_id=ctx.agent_id,
        session_id=session_id,
        task_id=task.task_id,
        number=task.number,
        parent_id=task.parent_id,
        replaces_task_id=instead_of,
        depth=task.depth,
        goal=goal,
        first=task.first,
        now=ctx.now,
    )
    return task


async def pop(tx: Tx, result: str, *, session_id: UUID, ctx: Teller) -> Task:
    """Ends the current task with its result and folds its trace; its parent is current again.

    Raises InputError without a result, without a current task, and when a subtask of it is blocked.
    """
    result = _said(result, "result", MOST_WORDS)
    known = await _locked(tx, session_id=session_id, ctx=ctx)
    return await _end(tx, known, [(known.completable(), "completed", result)], session_id=session_id, ctx=ctx)


async def fail(tx: Tx, reason: str, *, session_id: UUID, ctx: Teller) -> Task:
    """Ends the current task as a dead end, which is kept. Blocked tasks in it are given up with it."""
    reason = _said(reason, "reason", MOST_WORDS)
    known = await _locked(tx, session_id=session_id, ctx=ctx)
    task = known.at_hand()
    waiting = [one for one in known.within(task.task_id) if one.status == "blocked"]
    ends: list[tuple[Task, Event, str]] = [
        *((one, "abandoned", f"given up with task {task.number}: {reason}") for one in reversed(waiting)),
        (task, "failed", reason),
    ]
    return await _end(tx, known, ends, session_id=session_id, ctx=ctx)


async def block(tx: Tx, reason: str, *, session_id: UUID, ctx: Teller) -> Task:
    """Sets the current task aside: it cannot go on. Its parent is current."""
    reason = _said(reason, "reason", MOST_WORDS)
    known = await _locked(tx, session_id=session_id, ctx=ctx)
    return await _move(tx, known.at_hand(), "blocked", reason, session_id=session_id, ctx=ctx)


async def resume(tx: Tx, given: str, *, session_id: UUID, ctx: Teller) -> Task:
    """Makes a blocked task the current one again. Raises InputError as Tree.resumable does."""
    known = await _locked(tx, session_id=session_id, ctx=ctx)
    return await _move(tx, known.resumable(given), "resumed", None, session_id=session_id, ctx=ctx)


async def folded(tx: Tx, *, session_id: UUID, agent_id: UUID, now: datetime, count: Count) -> Read:
    """The session, after ended tasks were told in a line in place of their traces, as far as they may be and cost less.
    The log stays as it is."""
    where = {"agent_id": agent_id, "session_id": session_id}
    known = await tree(tx, agent_id=agent_id, session_id=session_id)
    read = await log.read(tx, **where)
    if not any(task.ended for task in known.tasks):
        return read
    planned = folds(Sight(read.view, 0, read.pinned), known, count=count)
    told = [_entry(block, text, now=now, count=count) for block, text in planned]
    made = [entry for entry in told if entry.tokens + MESSAGE_TOKENS < entry.before]
    kept = made and await entries.keep(tx, made, **where, seen=read.seen)
    return await log.read(tx, **where) if kept else read


async def _end(tx: Tx, known: Tree, ends: Sequence[tuple[Task, Event, str]], *, session_id: UUID, ctx: Teller) -> Task:
    """Ends tasks, the last of which was current. Each becomes an episode, and those in it are a part of that."""
    ended = [await _move(tx, task, event, words, session_id=session_id, ctx=ctx) for task, event, words in ends]
    await episodes.keep(tx, [_experience(task, ctx.now) for task in ended], ctx=ctx)
    pairs = {child.task_id: task.task_id for task in ended for child in known.children(task.task_id)}
    there = await SQL["find_remembered"].all(tx, agent_id=ctx.agent_id, task_ids=list(pairs))
    await store.connect(tx, "part_of", [(row["task_id"], pairs[row["task_id"]]) for row in there], ctx=ctx)
    await folded(tx, session_id=session_id, agent_id=ctx.agent_id, now=ctx.now, count=ctx.count_tokens)
    return ended[-1]


def _experience(task: Task, now: datetime) -> Experience:
    return Experience(
        ref=str(task.task_id),
        title=one_line(task.goal),
        content=task.words or "",
        started_at=task.pushed_at,
        ended_at=max(now, task.pushed_at),
        outcome=OUTCOMES[task.status],
        memory_id=task.task_id,
    )


async def _locked(tx: Tx, *, session_id: UUID, ctx: Teller) -> Tree:
    await log.lock(tx, agent_id=ctx.agent_id, session_id=session_id)
    return await tree(tx, agent_id=ctx.agent_id, session_id=session_id)


async def _move(tx: Tx, task: Task, event: Event, words: str | None, *, session_id: UUID, ctx: Teller) -> Task:
    after = task.after(event)
    position = await log.end(tx, agent_id=ctx.agent_id, session_id=session_id)
    await SQL["transition_task"].run(
        tx,
        agent_id=ctx.agent_id,
        session_id=session_id,
        task_id=task.task_id,
        event=event,
        from_status=task.status,
        to_status=after,
        text=words,
        position=position,
        now=ctx.now,
        origin=ctx.origin,
    )
    moved = replace(task, status=after, words=words, changed_at=ctx.now)
    return replace(moved, last=position) if moved.ended else moved


def _entry(block: Block, text: str, *, now: datetime, count: Count) -> Entry:
    return Entry(
        entry_id=new_id(),
        kind=block.kind,
        first=block.first,
        last=block.last,
        text=text,
        tokens=count(text),
        before=block.tokens,
        strategy=STRATEGY,
        prompt=RULES,
        model=None,
        made_at=now,
    )


def _said(words: str, what: str, most: int) -> str:
    """The words as they are kept. Raises InputError for none, and for too many."""
    if not words.strip():
        raise InputError(f"The {what} is missing.", hint=f"Say the {what} in a line, in quotation marks.")
    kept = clean(words, what=what).strip()
    if len(kept) > most:
        raise InputError(
            f"The {what} has {len(kept):,} characters; {most:,} are the most.",
            hint="Say it shorter: it is shown often.",
        )
    return kept
