"""`newton tasks`: what a session is at, as a tree; and working on it."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from cyclopts import Parameter

from newton.agent.services.tasks import TaskService
from newton.dialogue import sessions
from newton.dialogue.task_tree import Task, TaskStatus, TaskTree
from newton.errors import InputError, NotFoundError
from newton.memory.representations import one_line
from newton.runtime.bootstrap import open_newton
from newton.runtime.chat_backend.protocol import TaskCommands
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, check_session_name, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.wiring import AgentServices

SessionOption = Annotated[
    str | None, Parameter("--session", help="Of which session; without it, where a task was pushed last.")
]
TextArgument = Annotated[str, Parameter(help="A line, in quotation marks.")]

NO_TASK_MESSAGE = 'There is no task yet. `newton tasks push "Ship the release"` begins one.'
STATUS_SYMBOLS: Mapping[TaskStatus, str] = {"active": "▸", "complete": "✓", "blocked": "‖", "failed": "✗"}
MAX_RESULT_CHARS = 160  # characters of what came of a task


async def list_tasks(*, session: SessionOption = None, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Draw the tasks of a session: ▸ active, ✓ complete, ‖ blocked, ✗ failed.

    Example: newton tasks --session planning
    """
    async with open_newton(load_settings(agent)) as newton:
        tree = await (await _open_tasks(newton, session)).tree()
    if json:
        formatting.print_json([task_to_json(task, is_current=task == tree.current) for task in tree.tasks])
    else:
        say("\n".join(draw_tree(tree)) or NO_TASK_MESSAGE)


async def show_path(*, session: SessionOption = None, agent: AgentOption = None, json: JsonOption = False) -> None:
    """Say what is being done, from the root goal to the current task.

    Example: newton tasks path
    """
    async with open_newton(load_settings(agent)) as newton:
        way = (await (await _open_tasks(newton, session)).tree()).path
    if json:
        formatting.print_json([task_to_json(task, is_current=task == way[-1]) for task in way])
    else:
        say("\n".join(format_path(way)))


async def push_task(
    goal: TextArgument,
    *,
    session: SessionOption = None,
    new: Annotated[bool, Parameter(negative=(), help="Begin the session that is named.")] = False,
    agent: AgentOption = None,
) -> None:
    """Begin a task within the current one.

    Example: newton tasks push "Find out why the build is slow" --session planning
    """
    async with open_newton(load_settings(agent)) as newton:
        acts = await _open_tasks(newton, session, create=new)
        task = await acts.push(goal)
        name = await acts.get_session_ref()
    say(f"Task {task.number} of {name}, {_format_level(task)}: {task.goal}")


async def pop_task(result: TextArgument = "", *, session: SessionOption = None, agent: AgentOption = None) -> None:
    """End the current task with its result. What was said on the way leaves the view; the log keeps it.

    Example: newton tasks pop "The cache was off; it takes 40 s now"
    """
    async with open_newton(load_settings(agent)) as newton:
        acts = await _open_tasks(newton, session)
        task = await acts.pop(result)
        way = (await acts.tree()).path
    say("\n".join([f"Task {task.number} is complete: {task.goal}", *format_path(way)]))


async def block_task(reason: TextArgument, *, session: SessionOption = None, agent: AgentOption = None) -> None:
    """Set the current task aside, because it cannot go on for now.

    Example: newton tasks block "Mira has the key and is away until Monday"
    """
    async with open_newton(load_settings(agent)) as newton:
        acts = await _open_tasks(newton, session)
        task = await acts.block(reason)
        way = (await acts.tree()).path
    say("\n".join([f"Task {task.number} waits; `newton tasks resume {task.number}` takes it up.", *format_path(way)]))


async def resume_task(
    task: Annotated[str, Parameter(help="Its number, or the end of its id.")],
    *,
    session: SessionOption = None,
    agent: AgentOption = None,
) -> None:
    """Go on with a blocked task.

    Example: newton tasks resume 4
    """
    async with open_newton(load_settings(agent)) as newton:
        acts = await _open_tasks(newton, session)
        await acts.resume(task)
        way = (await acts.tree()).path
    say("\n".join(format_path(way)))


async def fail_task(
    reason: TextArgument,
    *,
    instead: Annotated[str | None, Parameter(help="Push this goal in its place.")] = None,
    session: SessionOption = None,
    agent: AgentOption = None,
) -> None:
    """End the current task as a dead end, which is kept; with --instead, try another way.

    Example: newton tasks fail "the cache is cold each morning" --instead "Add an index"
    """
    async with open_newton(load_settings(agent)) as newton:
        acts = await _open_tasks(newton, session)
        failed, _ = await acts.fail(reason, instead=instead)
        way = (await acts.tree()).path
    say("\n".join([f"Task {failed.number} is a dead end: {failed.goal}", *format_path(way)]))


async def _open_tasks(newton: AgentServices, session: str | None, *, create: bool = False) -> TaskService:
    """The stack of the session of that name. A name that nobody has used may be mistyped: it begins nothing unless that
    is said."""
    name = check_session_name(session)
    if name is None:
        if create:
            raise InputError("Which session is to begin is missing.", hint="Name it with --session.")
        return newton.tasks("cli")
    if create:
        return newton.tasks("cli").for_session(await newton.sessions("cli").begin(name))
    async with newton.scope.transaction() as tx:
        try:
            return newton.tasks("cli").for_session(
                await sessions.get_session_id(tx, agent_id=newton.scope.agent_id, ref=name)
            )
        except NotFoundError as error:
            hint = "`newton sessions` lists them; `newton tasks push GOAL --session NAME --new` begins one."
            raise NotFoundError(error.what, hint=hint) from None


async def run_task_command(commands: TaskCommands, text: str) -> str:
    """What `/task …` in a conversation does, and says. Raises InputError."""
    act, _, rest = text.partition(" ")
    match act:
        case "push":
            await commands.push(rest)
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
                f"/task {act} is nothing.", hint="There are /task push, pop, block, resume and fail, and /task alone."
            )
    tree = await commands.tree()
    return "\n".join(draw_tree(tree)) or "There is no task yet. /task push GOAL begins one."


def draw_tree(tree: TaskTree) -> Iterator[str]:
    """The tree, a line for each task and one for what came of it."""
    current = tree.current
    for root in tree.children(None):
        for task in (root, *tree.descendants(root.task_id)):
            indent = "   " * task.depth
            here = "  ← current" if task == current else ""
            failed = next((one for one in tree.tasks if one.task_id == task.instead_of), None)
            instead = f" (instead of {failed.number})" if failed else ""
            yield f"{indent}{STATUS_SYMBOLS[task.status]} {task.number}. {one_line(task.goal)}{instead}{here}"
            if task.words:
                yield f"{indent}     {formatting.truncate(task.words, MAX_RESULT_CHARS)}"


def format_path(path: tuple[Task, ...]) -> list[str]:
    """What is being done, the root goal first."""
    if not path:
        return ["No task is current. `newton tasks` shows what there is."]
    return [
        f"{'   ' * task.depth}{task.number}. {one_line(task.goal)}{'  ← current' if task is path[-1] else ''}"
        for task in path
    ]


def task_to_json(task: Task, *, is_current: bool) -> dict[str, object]:
    return {
        "task_id": str(task.task_id),
        "number": task.number,
        "parent_id": task.parent_id and str(task.parent_id),
        "instead_of": task.instead_of and str(task.instead_of),
        "depth": task.depth,
        "goal": task.goal,
        "status": task.status,
        "current": is_current,
        "words": task.words,
        "lines": [task.first, task.last],
        "pushed_at": task.pushed_at.isoformat(),
        "changed_at": task.changed_at.isoformat(),
    }


def _format_level(task: Task) -> str:
    return f"on level {task.depth + 1}" if task.depth else "a root"
