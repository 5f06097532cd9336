"""Commands `newton tasks`: the tasks and subtasks of a session."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from newton.agent.session_data.tasks import TaskService
from newton.dialogue import sessions
from newton.dialogue.task_tree import Task
from newton.errors import InputError, NotFoundError
from newton.memory.representations import one_line
from newton.runtime.chat_backend.protocol import TaskCommands
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, check_session_name, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.task_lines import draw_changes, draw_tree

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices

SessionOption = Annotated[
    str | None, Parameter("--session", help="Name of the session (default: the session of the last pushed task).")
]

NO_TASK_MESSAGE = 'No tasks yet. Start one: `newton tasks push "Ship the release"`'


async def list_tasks(*, session: SessionOption = None, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show the task tree of a session: ○ planned, ▸ active, ✓ complete, ‖ blocked, ✗ failed, · skipped.

    Example: newton tasks --session planning
    """
    async with open_agent(load_settings(agent)) as newton:
        tree = await (await _open_tasks(newton, session)).tree()
    if json:
        formatting.print_json([task_to_json(task, is_current=task == tree.current) for task in tree.tasks])
    else:
        say("\n".join(draw_tree(tree)) or NO_TASK_MESSAGE)


async def show_path(*, session: SessionOption = None, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Show the path from the root goal to the current task.

    Example: newton tasks path
    """
    async with open_agent(load_settings(agent)) as newton:
        path = (await (await _open_tasks(newton, session)).tree()).path
    if json:
        formatting.print_json([task_to_json(task, is_current=task == path[-1]) for task in path])
    else:
        say("\n".join(format_path(path)))


async def push_task(
    goal: Annotated[str, Parameter(help="Goal of the task.")],
    *,
    step: Annotated[
        list[str] | None,
        Parameter(negative=(), help="Step of a plan; repeatable. Each starts when the one before is complete."),
    ] = None,
    session: SessionOption = None,
    new: Annotated[bool, Parameter(negative=(), help="Create the session given by --session.")] = False,
    agent: AgentOption = None,
) -> None:
    """Start a subtask of the current task, or a first task if there is none; with --step, a plan.

    Example: newton tasks push "Find out why the build is slow" --session planning

    Example: newton tasks push "Ship the release" --step "Run the tests" --step "Write the notes"
    """
    async with open_agent(load_settings(agent), on_new_agent=formatting.print_new_agent) as newton:
        tasks = await _open_tasks(newton, session, create=new)
        task = await tasks.push(goal, step or ())
        name, tree = await tasks.get_session_ref(), await tasks.tree()
    level = f"level {task.depth + 1}" if task.depth else "root"
    say("\n".join([f"Task {task.number} of {name} ({level}): {task.goal}", *(draw_changes(tree)[1:] if step else ())]))


async def pop_task(
    result: Annotated[str, Parameter(help="Result of the task.")] = "",
    *,
    session: SessionOption = None,
    agent: AgentOption = None,
) -> None:
    """Complete the current task. A model then receives one line in place of its messages; they stay stored.

    After a step of a plan the next one starts; after the last one the plan is complete.

    Example: newton tasks pop "The cache was off; it takes 40 s now"
    """
    async with open_agent(load_settings(agent)) as newton:
        tasks = await _open_tasks(newton, session)
        task = await tasks.pop(result)
        path = (await tasks.tree()).path
    say("\n".join([f"Task {task.number} is complete: {task.goal}", *format_path(path)]))


async def block_task(
    reason: Annotated[str, Parameter(help="Why the task is blocked.")],
    *,
    session: SessionOption = None,
    agent: AgentOption = None,
) -> None:
    """Mark the current task as blocked; its parent becomes the current task.

    Example: newton tasks block "Mira has the key and is away until Monday"
    """
    async with open_agent(load_settings(agent)) as newton:
        tasks = await _open_tasks(newton, session)
        task = await tasks.block(reason)
        path = (await tasks.tree()).path
    say(
        "\n".join(
            [f"Task {task.number} is blocked; `newton tasks resume {task.number}` resumes it.", *format_path(path)]
        )
    )


async def resume_task(
    task: Annotated[str, Parameter(help="Number of the task, or the end of its id.")],
    *,
    session: SessionOption = None,
    agent: AgentOption = None,
) -> None:
    """Resume a blocked task, or start a planned step; it becomes the current task.

    Example: newton tasks resume 4
    """
    async with open_agent(load_settings(agent)) as newton:
        tasks = await _open_tasks(newton, session)
        await tasks.resume(task)
        path = (await tasks.tree()).path
    say("\n".join(format_path(path)))


async def fail_task(
    reason: Annotated[str, Parameter(help="Why the task failed.")],
    *,
    replacement_goal: Annotated[str | None, Parameter(help="Goal of a task that replaces the failed one.")] = None,
    session: SessionOption = None,
    agent: AgentOption = None,
) -> None:
    """Mark the current task as failed; with --replacement-goal, start another task in its place.

    Example: newton tasks fail "the cache is cold each morning" --replacement-goal "Add an index"
    """
    async with open_agent(load_settings(agent)) as newton:
        tasks = await _open_tasks(newton, session)
        failed, _ = await tasks.fail(reason, instead=replacement_goal)
        path = (await tasks.tree()).path
    say("\n".join([f"Task {failed.number} failed: {failed.goal}", *format_path(path)]))


async def _open_tasks(newton: "AgentServices", session: str | None, *, create: bool = False) -> TaskService:
    """Open the tasks of a session; None is the session of the last pushed task.

    Raises NotFoundError for an unknown session, whose name may be mistyped, unless `create`.
    """
    name = check_session_name(session)
    if name is None:
        if create:
            raise InputError("--new requires --session.", hint="Give the name of the new session.")
        return newton.tasks("cli")
    if create:
        return newton.tasks("cli").for_session(await newton.sessions("cli").begin(name))
    async with newton.scope.transaction() as tx:
        try:
            session_id = await sessions.get_session_id(tx, agent_id=newton.scope.agent_id, ref=name)
            return newton.tasks("cli").for_session(session_id)
        except NotFoundError as error:
            hint = (
                "`newton sessions` lists all sessions; `newton tasks push GOAL --session NAME --new` creates a session"
                " with a task."
            )
            raise NotFoundError(error.what, hint=hint) from None


async def run_task_command(commands: TaskCommands, text: str) -> str:
    """Run the chat command `/tasks TEXT` and return the task tree as text. Raises InputError for an unknown action."""
    action, _, rest = text.partition(" ")
    match action:
        case "push":
            goal, *steps = map(str.strip, rest.split("|"))
            await commands.push(goal, steps)
        case "pop":
            await commands.pop(rest)
        case "block":
            await commands.block(rest)
        case "resume":
            await commands.resume(rest)
        case "fail":
            await commands.fail(rest)
        case "":
            pass
        case _:
            raise InputError(
                f"Unknown command /tasks {action}.",
                hint="Use /tasks push, pop, block, resume, fail, or nothing after it.",
            )
    tree = await commands.tree()
    return "\n".join(draw_tree(tree)) or "No tasks yet. /tasks push GOAL starts one."


def format_path(path: tuple[Task, ...]) -> list[str]:
    """Return one line for each task on the path from the root goal to the current task."""
    if not path:
        return ["No current task. `newton tasks` lists all tasks."]
    return [
        f"{'   ' * task.depth}{task.number}. {one_line(task.goal)}{'  ← current' if task is path[-1] else ''}"
        for task in path
    ]


def task_to_json(task: Task, *, is_current: bool) -> dict[str, object]:
    return {
        "task_id": str(task.task_id),
        "number": task.number,
        "parent_id": task.parent_id and str(task.parent_id),
        "replaces_task_id": task.instead_of and str(task.instead_of),
        "depth": task.depth,
        "goal": task.goal,
        "status": task.status,
        "is_current": is_current,
        "note": task.words,
        "first_position": task.first,
        "last_position": task.last,
        "pushed_at": task.pushed_at.isoformat(),
        "changed_at": task.changed_at.isoformat(),
    }
