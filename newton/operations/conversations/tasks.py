"""Operations on the tasks of a session: goals in progress, each inside the one before."""

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.field_types import CleanText, MessageContent
from newton.operations.conversations.task_records import (
    NO_CURRENT_TASK,
    TaskChange,
    TaskInfo,
    TaskList,
    draw_changes,
    format_path,
    format_task,
    format_tasks,
    list_path,
    to_task_change,
    to_task_infos,
)
from newton.operations.declaration import Door, operation
from newton.operations.fields import CommandOption, OwnSession
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_NUMBER = 1_000_000_000
MAX_STEPS = 20
ACTS: Mapping[Door, str] = {"chat": "`/tasks` does it, with the action after it."}
to_text = attrgetter("text")


@operation("GET /v1/tasks", "reads", name="tasks", command="tasks list", text=format_tasks)
async def list_tasks(caller: "OperationCaller", *, session: OwnSession = None) -> TaskList:
    """List the tasks of a session with their goals and states, and the results of the finished ones.

    The symbols in a tree are ○ planned, ▸ active, ✓ complete, ‖ blocked, ✗ failed and · skipped.

    Example: newton tasks --session s
    """
    return TaskList(items=to_task_infos(await (await caller.tasks(session)).tree()))


@operation(
    "GET /v1/tasks/path",
    "reads",
    name="task_path",
    command="tasks path",
    text=format_task,
    empty=NO_CURRENT_TASK,
    absent={"mcp": "`tasks` marks the current task."},
)
async def show_path(caller: "OperationCaller", *, session: OwnSession = None) -> ItemList[TaskInfo]:
    """List the tasks from the root goal to the current task.

    Example: newton tasks path --session s
    """
    return ItemList(items=list_path(await (await caller.tasks(session)).tree()))


@operation("POST /v1/tasks", "adds", act="work", command="tasks push", text=to_text, absent=ACTS)
async def push_task(
    caller: "OperationCaller",
    goal: Annotated[CleanText, Field(description="What is to be achieved, as one sentence.")],
    *,
    steps: Annotated[
        tuple[CleanText, ...],
        CommandOption("step"),
        Field(
            max_length=MAX_STEPS,
            description="The steps of a plan, in order, each as one sentence: 2 to 20. None for a single step.",
            examples=[["Run the tests", "Write the notes"]],
        ),
    ] = (),
    session: OwnSession = None,
) -> TaskChange:
    """Start a task inside the current one, so that its goal stays in the context until `pop_task` finishes it.

    For work of several steps, give the steps as a plan: each starts when the one before is finished. A session that
    does not exist is created.

    Example: newton tasks push "Ship the release" --step "Run the tests" --step "Write the notes" --session s
    """
    tasks = await caller.tasks(session, creates=True)
    task, tree = await tasks.push(goal, steps), await tasks.tree()
    level = f"level {task.depth + 1}" if task.depth else "root"
    line = f"Task {task.number} of {await tasks.get_session_ref()} ({level}): {task.goal}"
    return to_task_change(task, tree, [line, *(draw_changes(tree)[1:] if steps else ())])


@operation("POST /v1/tasks/pop", "changes", act="work", command="tasks pop", text=to_text, absent=ACTS)
async def pop_task(
    caller: "OperationCaller",
    result: Annotated[
        MessageContent,
        Field(description="The result of the task, as one sentence.", examples=["It takes 40 s now"]),
    ],
    *,
    session: OwnSession = None,
) -> TaskChange:
    """Finish the current task of a session and record its result. The next step of a plan starts then.

    In the conversation, a one-line summary replaces the task's messages, which stay stored. After the last step of a
    plan the plan is finished.

    Example: newton tasks pop "The cache was off; it takes 40 s now" --session s
    """
    tasks = await caller.tasks(session)
    task = await tasks.pop(result)
    tree = await tasks.tree()
    return to_task_change(task, tree, [f"Task {task.number} is complete: {task.goal}", *format_path(tree)])


@operation("POST /v1/tasks/block", "changes", act="work", command="tasks block", text=to_text, absent=ACTS)
async def block_task(
    caller: "OperationCaller",
    reason: Annotated[CleanText, Field(description="Why the task cannot continue, and what it waits for.")],
    *,
    session: OwnSession = None,
) -> TaskChange:
    """Mark the current task of a session as blocked, with the reason. `resume_task` makes it the current task again.

    Example: newton tasks block "Mira has the key and is away until Monday" --session s
    """
    tasks = await caller.tasks(session)
    task = await tasks.block(reason)
    line, tree = f"Task {task.number} is blocked; `newton tasks resume {task.number}` resumes it.", await tasks.tree()
    return to_task_change(task, tree, [line, *format_path(tree)])


@operation("POST /v1/tasks/fail", "changes", act="work", command="tasks fail", text=to_text, absent=ACTS)
async def fail_task(
    caller: "OperationCaller",
    reason: Annotated[CleanText, Field(description="Why the task failed.")],
    *,
    replacement_goal: Annotated[
        CleanText | None, Field(description="The goal of a task to start in its place. Default: none is started.")
    ] = None,
    session: OwnSession = None,
) -> TaskChange:
    """Mark the current task of a session as failed, with the reason. A replacement task can be started in its place.

    If it is a step of a plan, the next one does not start by itself: `resume_task` starts it.

    Example: newton tasks fail "the cache is cold each morning" --replacement-goal "Add an index" --session s
    """
    tasks = await caller.tasks(session)
    task, _ = await tasks.fail(reason, instead=replacement_goal)
    tree = await tasks.tree()
    return to_task_change(task, tree, [f"Task {task.number} failed: {task.goal}", *format_path(tree)])


@operation(
    "POST /v1/tasks/resume",
    "changes",
    act="work",
    command="tasks resume",
    text=to_text,
    is_idempotent=True,
    absent=ACTS,
)
async def resume_task(
    caller: "OperationCaller",
    number: Annotated[
        int, Field(ge=1, le=MAX_NUMBER, description="The number of the task, as the list of tasks shows it.")
    ],
    *,
    session: OwnSession = None,
) -> TaskChange:
    """Resume a blocked task, or start a planned step, of a session by its number. It becomes the current task.

    Example: newton tasks resume 3 --session s
    """
    tasks = await caller.tasks(session)
    task, tree = await tasks.resume(number), await tasks.tree()
    return to_task_change(task, tree, format_path(tree))
