"""Storage of the task stack of a session. In the view, one line replaces the messages of an ended task."""

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.extractive_summary import truncate
from newton.dialogue.compaction.strategies import CompactionBlock, ViewState, refusal_reason
from newton.dialogue.log import LoadedView
from newton.dialogue.task_tree import Task, TaskEvent, TaskTree
from newton.dialogue.view import MESSAGE_TOKENS, CompactionEntry, DialogueTurn, apply_entries, split_turns
from newton.errors import InputError, NotFoundError
from newton.heart import episodes
from newton.heart.episodes import NewEpisode
from newton.ids import new_id
from newton.memory import store
from newton.memory.hygiene import clean_text
from newton.memory.memory import Outcome, TokenCounter, WriteContext
from newton.memory.representations import one_line
from newton.memory.source_marks import describe_source, find_foreign

SQL = load("newton.dialogue", "tasks.sql")

MAX_TOKENS = 300  # of a folded task in the view

STRATEGY, RULES_VERSION = "task", "fold/1"


def fold_tasks(
    state: ViewState, tree: TaskTree, *, count_tokens: TokenCounter
) -> Iterator[tuple[CompactionBlock, str]]:
    """Yield (block of messages, replacing text) for each ended task whose messages can be replaced by a line now.

    Of a task, the longest run of complete turns is replaced, never the current turn. An outer task includes its
    subtasks.
    """
    turns = split_turns(state.view)[:-1]
    firsts = [turn.first for turn in turns]
    for task in outermost_ended(tree):
        if task.last is None:  # a skipped step has no messages
            continue
        inside = turns[bisect_left(firsts, task.first) : bisect_right(firsts, task.last)]
        run = _longest_run([turn for turn in inside if turn.last <= task.last and turn.is_complete])
        if not run:
            continue
        items = tuple(item for turn in run for item in turn.items)
        block = CompactionBlock("task", items, max_tokens=MAX_TOKENS)
        text = fold_line(task, tree, count_tokens=count_tokens)
        if not (len(items) == 1 and items[0].text == text) and refusal_reason(block, state) is None:
            yield block, text


def outermost_ended(tree: TaskTree) -> list[Task]:
    """Return the ended tasks whose parent task has not ended."""
    ended = {task.task_id for task in tree.tasks if task.is_ended}
    return [task for task in tree.tasks if task.is_ended and task.parent_id not in ended]


def fold_line(task: Task, tree: TaskTree, *, count_tokens: TokenCounter) -> str:
    """Return the text that replaces the messages of a task: goal, result and failed subtasks."""
    failed = [f"{one.goal} ({one.words})" for one in tree.descendants(task.task_id) if one.status == "failed"]
    dead_ends = f" Dead ends: {'; '.join(failed)}" if failed else ""
    result = f" -> {'failed: ' if task.status == 'failed' else ''}{task.words}"
    return _fit_line(f"Task: {task.goal}", result, dead_ends, count_tokens)


@functools.lru_cache(maxsize=1_024)
def _fit_line(goal: str, result: str, dead_ends: str, count_tokens: TokenCounter) -> str:
    """Join the parts of a line within MAX_TOKENS.

    Cached, because every turn of a session checks whether all ended tasks are replaced.
    """
    parts = ((goal, MAX_TOKENS // 4), (result, MAX_TOKENS // 2), (dead_ends, MAX_TOKENS // 4))
    cut = [
        truncate(" " * (text[:1] == " ") + one_line(text), max_tokens=limit, count_tokens=count_tokens)
        for text, limit in parts
        if text
    ]
    return truncate("".join(cut), max_tokens=MAX_TOKENS, count_tokens=count_tokens)


def _longest_run(candidates: Sequence[DialogueTurn]) -> Sequence[DialogueTurn]:
    """Return the run of consecutive turns that has the most tokens."""
    runs: list[list[DialogueTurn]] = []
    for turn in candidates:
        if runs and turn.first == runs[-1][-1].last + 1:
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return max(runs, key=lambda run: sum(turn.tokens for turn in run), default=())


MAX_GOAL_CHARS, MAX_TEXT_CHARS = 1_000, 10_000
MAX_DEPTH = 50  # levels: a context shows the path from the root
MIN_STEPS, MAX_STEPS = 2, 20  # of a plan
TaskEnding = tuple[Task, TaskEvent, str]  # with the result or the reason
OUTCOMES: dict[str, Outcome] = {"complete": "success", "failed": "failure"}


async def load_tree(tx: Tx, *, agent_id: UUID, session_id: UUID, moment: datetime | None = None) -> TaskTree:
    """Return the tasks of a session, as of `moment` if given."""
    rows = await SQL["list_tasks"].fetch_all(tx, agent_id=agent_id, session_id=session_id, moment=moment)
    return TaskTree([Task(**row) for row in rows])


async def latest_session(tx: Tx, *, agent_id: UUID) -> UUID:
    """Return the session in which a task was pushed last, else the last created one.

    Raises NotFoundError if there is no session.
    """
    row = await SQL["get_latest_session"].fetch_one(tx, agent_id=agent_id)
    if row is None:
        hint = "`newton tasks push GOAL --session NAME` creates a session with a task."
        raise NotFoundError("There is no session yet.", hint=hint)
    return row["session_id"]


async def push(
    tx: Tx,
    goal: str,
    *,
    session_id: UUID,
    ctx: WriteContext,
    steps: Sequence[str] = (),
    instead_of: UUID | None = None,
) -> Task:
    """Create a task below the current one, make it the current task, and return it.

    The steps are a plan: subtasks whose work begins later; `advance_plan` starts the first one. `instead_of` is a
    failed task that it replaces. Raises InputError if the stack has MAX_DEPTH tasks, and for too few or too many steps.
    """
    goal = _mark(_validate_text(goal, "goal", MAX_GOAL_CHARS), ctx)
    steps = [_mark(step, ctx) for step in _validate_steps(steps)]
    tree = await _lock_and_load(tx, session_id=session_id, ctx=ctx)
    parent = tree.current
    if parent and parent.depth + 1 + bool(steps) >= MAX_DEPTH:
        raise InputError(
            f"Task {parent.number} is {MAX_DEPTH} levels deep, which is the maximum.",
            hint="`newton tasks pop RESULT` completes the task; then push the next task beside it.",
        )
    task = Task(
        task_id=new_id(),
        number=len(tree.tasks) + 1,
        parent_id=parent.task_id if parent else None,
        instead_of=instead_of,
        depth=parent.depth + 1 if parent else 0,
        goal=goal,
        status="active",
        words=None,
        first=await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=session_id) + 1,
        last=None,
        pushed_at=ctx.now,
        changed_at=ctx.now,
    )
    names = ("task_id", "number", "parent_id", "instead_of", "depth", "goal", "first")
    columns = {name: getattr(task, name) for name in names}
    await SQL["insert_task"].execute(tx, agent_id=ctx.agent_id, session_id=session_id, **columns, now=ctx.now)
    if steps:
        await _insert_steps(tx, task, steps, session_id=session_id, ctx=ctx)
    return task


async def advance_plan(tx: Tx, plan_id: UUID | None, result: str, *, session_id: UUID, ctx: WriteContext) -> list[Task]:
    """Start the next step of the plan that is the current task; return the tasks that have changed.

    After its last step the plan is complete, with `result`, and its parent plan, if any, advances too. Nothing changes
    if the task is not the current one, has no steps, or if one of its subtasks failed or is blocked.
    """
    changed: list[Task] = []
    while plan_id is not None:
        tree = await load_tree(tx, agent_id=ctx.agent_id, session_id=session_id)
        plan = tree.current
        if plan is None or plan.task_id != plan_id:
            break
        if step := tree.find_next_step(plan_id):
            return [*changed, await _apply_event(tx, step, "started", None, session_id=session_id, ctx=ctx)]
        if not tree.is_plan_complete(plan_id):
            break
        changed.append(await _end_tasks(tx, tree, [(plan, "completed", result)], session_id=session_id, ctx=ctx))
        plan_id = plan.parent_id
    return changed


async def pop(tx: Tx, result: str, *, session_id: UUID, ctx: WriteContext) -> Task:
    """Complete the current task with its result and make its parent the current task; return the completed task.

    The messages of the task are replaced by one line; steps of it that have not begun are skipped. Raises InputError
    without a result or a current task, and if a subtask is blocked.
    """
    result = _validate_text(result, "result", MAX_TEXT_CHARS)
    tree = await _lock_and_load(tx, session_id=session_id, ctx=ctx)
    task = tree.require_completable()
    completed: TaskEnding = (task, "completed", result)
    ends = [*_skip_steps(tree, task, f"task {task.number} is complete without it"), completed]
    return await _end_tasks(tx, tree, ends, session_id=session_id, ctx=ctx)


async def fail(tx: Tx, reason: str, *, session_id: UUID, ctx: WriteContext) -> Task:
    """End the current task as failed, and return it. It remains visible as a dead end.

    Its blocked subtasks are abandoned, and steps that have not begun are skipped. Raises InputError without a reason or
    a current task.
    """
    reason = _validate_text(reason, "reason", MAX_TEXT_CHARS)
    tree = await _lock_and_load(tx, session_id=session_id, ctx=ctx)
    task = tree.require_current()
    blocked = [one for one in tree.descendants(task.task_id) if one.status == "blocked"]
    given_up = f"given up with task {task.number}: {reason}"
    abandoned: list[TaskEnding] = [(one, "abandoned", given_up) for one in reversed(blocked)]
    failed: TaskEnding = (task, "failed", reason)
    ends = [*_skip_steps(tree, task, given_up), *abandoned, failed]
    return await _end_tasks(tx, tree, ends, session_id=session_id, ctx=ctx)


async def block(tx: Tx, reason: str, *, session_id: UUID, ctx: WriteContext) -> Task:
    """Mark the current task as blocked and return it; its parent becomes current.

    Raises InputError without a reason or a current task.
    """
    reason = _validate_text(reason, "reason", MAX_TEXT_CHARS)
    tree = await _lock_and_load(tx, session_id=session_id, ctx=ctx)
    return await _apply_event(tx, tree.require_current(), "blocked", reason, session_id=session_id, ctx=ctx)


async def resume(tx: Tx, number: int, *, session_id: UUID, ctx: WriteContext) -> Task:
    """Make a blocked task, or a planned step, the current one. Raises the errors of `TaskTree.require_resumable`."""
    tree = await _lock_and_load(tx, session_id=session_id, ctx=ctx)
    task = tree.require_resumable(number)
    event: TaskEvent = "started" if task.status == "planned" else "resumed"
    return await _apply_event(tx, task, event, None, session_id=session_id, ctx=ctx)


async def fold_ended_tasks(
    tx: Tx, *, session_id: UUID, agent_id: UUID, now: datetime, count_tokens: TokenCounter
) -> LoadedView:
    """Replace the messages of ended tasks by one line each, where it is shorter; return the messages for a model."""
    key = {"agent_id": agent_id, "session_id": session_id}
    loaded, entries = await _plan_folds(tx, **key, now=now, count_tokens=count_tokens)
    saved = entries and await entry_store.save_if_unchanged(tx, entries, **key, sources=loaded.sources)
    return await log.load_view(tx, **key) if saved else loaded


async def preview_folded_view(
    tx: Tx, *, session_id: UUID, agent_id: UUID, now: datetime, count_tokens: TokenCounter
) -> LoadedView:
    """Return the messages for a model that `fold_ended_tasks` would return. Stores nothing."""
    key = {"agent_id": agent_id, "session_id": session_id}
    loaded, entries = await _plan_folds(tx, **key, now=now, count_tokens=count_tokens)
    return replace(loaded, view=apply_entries(loaded.view, entries)) if entries else loaded


async def _plan_folds(
    tx: Tx, *, session_id: UUID, agent_id: UUID, now: datetime, count_tokens: TokenCounter
) -> tuple[LoadedView, list[CompactionEntry]]:
    """Return the messages for a model as they are stored, and an entry for each ended task that can be folded."""
    tree = await load_tree(tx, agent_id=agent_id, session_id=session_id)
    loaded = await log.load_view(tx, agent_id=agent_id, session_id=session_id)
    if not any(task.is_ended for task in tree.tasks):
        return loaded, []
    folds = fold_tasks(ViewState(loaded.view, 0, loaded.pinned), tree, count_tokens=count_tokens)
    entries = [_to_entry(block, text, now=now, count_tokens=count_tokens) for block, text in folds]
    return loaded, [entry for entry in entries if entry.tokens + MESSAGE_TOKENS < entry.before]


def _skip_steps(task_tree: TaskTree, task: Task, reason: str) -> list[TaskEnding]:
    """Return the endings of the steps below a task that have not begun."""
    return [(one, "skipped", reason) for one in task_tree.descendants(task.task_id) if one.status == "planned"]


async def _insert_steps(tx: Tx, plan: Task, steps: Sequence[str], *, session_id: UUID, ctx: WriteContext) -> None:
    await SQL["insert_steps"].execute(
        tx,
        agent_id=ctx.agent_id,
        session_id=session_id,
        parent_id=plan.task_id,
        depth=plan.depth + 1,
        task_ids=[new_id() for _ in steps],
        last_number=plan.number,
        goals=list(steps),
        first=plan.first,
        now=ctx.now,
    )


async def _end_tasks(
    tx: Tx, task_tree: TaskTree, endings: Sequence[TaskEnding], *, session_id: UUID, ctx: WriteContext
) -> Task:
    """End tasks, the current one last. Each becomes an episode, linked to the episode of its parent task.

    A skipped step becomes none: nothing was done in it.
    """
    ended = [await _apply_event(tx, task, event, text, session_id=session_id, ctx=ctx) for task, event, text in endings]
    await episodes.add_episodes(tx, [_to_episode(task, ctx.now) for task in ended if task.has_begun], ctx=ctx)
    pairs = {child.task_id: task.task_id for task in ended for child in task_tree.children(task.task_id)}
    rows = await SQL["find_remembered"].fetch_all(tx, agent_id=ctx.agent_id, task_ids=list(pairs))
    await store.add_links(tx, "part_of", [(row["task_id"], pairs[row["task_id"]]) for row in rows], ctx=ctx)
    await fold_ended_tasks(tx, session_id=session_id, agent_id=ctx.agent_id, now=ctx.now, count_tokens=ctx.count_tokens)
    return ended[-1]


def _to_episode(task: Task, now: datetime) -> NewEpisode:
    return NewEpisode(
        ref=str(task.task_id),
        title=one_line(task.goal),
        content=task.words or "",
        started_at=task.began_at or task.pushed_at,
        ended_at=max(now, task.began_at or task.pushed_at),
        outcome=OUTCOMES[task.status],
        memory_id=task.task_id,
    )


async def _lock_and_load(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> TaskTree:
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
    return await load_tree(tx, agent_id=ctx.agent_id, session_id=session_id)


async def _apply_event(
    tx: Tx, task: Task, event: TaskEvent, text: str | None, *, session_id: UUID, ctx: WriteContext
) -> Task:
    after, text = task.status_after(event), text and _mark(text, ctx)
    position = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=session_id)
    key = {"agent_id": ctx.agent_id, "session_id": session_id, "task_id": task.task_id}
    change = {"event": event, "from_status": task.status, "to_status": after, "text": text, "position": position}
    await SQL["transition_task"].execute(tx, **key, **change, now=ctx.now, origin=ctx.origin)
    changed = replace(task, status=after, words=text, changed_at=ctx.now)
    if event == "started":
        return replace(changed, first=position + 1, began_at=ctx.now)
    return replace(changed, last=position) if changed.is_ended and changed.has_begun else changed


def _to_entry(block: CompactionBlock, text: str, *, now: datetime, count_tokens: TokenCounter) -> CompactionEntry:
    return CompactionEntry(
        entry_id=new_id(),
        kind=block.kind,
        first=block.first,
        last=block.last,
        text=text,
        tokens=count_tokens(text),
        before=block.tokens,
        strategy=STRATEGY,
        prompt=RULES_VERSION,
        model=None,
        made_at=now,
    )


def _mark(text: str, ctx: WriteContext) -> str:
    """Return a text with its source before it if whoever wrote it had read text of a tool or the web."""
    foreign = find_foreign(ctx.trust, kind=None, quarantined=True)
    return f"{describe_source(foreign, quarantined=True)}: {text}" if foreign and text else text


def _validate_steps(steps: Sequence[str]) -> list[str]:
    """Return the cleaned goals of the steps. Raises InputError for a wrong number, and for an empty or too long one."""
    if steps and not MIN_STEPS <= len(steps) <= MAX_STEPS:
        hint = "Work of one step needs no plan: leave the steps out. Steps of a step are a plan of their own."
        raise InputError(f"A plan has {MIN_STEPS} to {MAX_STEPS} steps, not {len(steps)}.", hint=hint)
    return [_validate_text(step, "step", MAX_GOAL_CHARS) for step in steps]


def _validate_text(text: str, label: str, max_chars: int) -> str:
    """Return the text without secrets and surrounding white space. Raises InputError if it is empty or too long."""
    if not text.strip():
        raise InputError(f"The {label} is missing.", hint=f"Give the {label} in quotation marks.")
    cleaned = clean_text(text, what=label).strip()
    if len(cleaned) > max_chars:
        raise InputError(
            f"The {label} has {len(cleaned):,} characters; the maximum is {max_chars:,}.",
            hint=f"Shorten the {label}.",
        )
    return cleaned
