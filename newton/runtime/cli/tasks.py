"""`newton tasks`: what a session is at, as a tree; and working on it."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from cyclopts import Parameter

from newton.agent.tasks import Tasks
from newton.dialogue import sessions
from newton.dialogue.stack import Status, Task, Tree
from newton.errors import InputError, NotFoundError
from newton.memory.representations import one_line
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, session_name, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened
from newton.runtime.talk.partner import Work
from newton.runtime.wiring import Newton

Session = Annotated[
    str | None, Parameter("--session", help="Of which session; without it, where a task was pushed last.")
]
Words = Annotated[str, Parameter(help="A line, in quotation marks.")]

NONE_YET = 'There is no task yet. `newton tasks push "Ship the release"` begins one.'
MARKS: Mapping[Status, str] = {"active": "▸", "complete": "✓", "blocked": "‖", "failed": "✗"}
MOST_SHOWN = 160  # characters of what came of a task


async def list_(*, session: Session = None, agent: Agent = None, json: AsJson = False) -> None:
    """Draw the tasks of a session: ▸ active, ✓ complete, ‖ blocked, ✗ failed.

    Example: newton tasks --session planning
    """
    async with opened(settings(agent)) as newton:
        tree = await (await _tasks(newton, session)).tree()
    if json:
        show.as_json([as_plain(task, current=task == tree.current) for task in tree.tasks])
    else:
        say("\n".join(drawn(tree)) or NONE_YET)


async def path(*, session: Session = None, agent: Agent = None, json: AsJson = False) -> None:
    """Say what is being done, from the root goal to the current task.

    Example: newton tasks path
    """
    async with opened(settings(agent)) as newton:
        way = (await (await _tasks(newton, session)).tree()).path
    if json:
        show.as_json([as_plain(task, current=task == way[-1]) for task in way])
    else:
        say("\n".join(told(way)))


async def push(
    goal: Words,
    *,
    session: Session = None,
    new: Annotated[bool, Parameter(negative=(), help="Begin the session that is named.")] = False,
    agent: Agent = None,
) -> None:
    """Begin a task within the current one.

    Example: newton tasks push "Find out why the build is slow" --session planning
    """
    async with opened(settings(agent)) as newton:
        acts = await _tasks(newton, session, begin=new)
        task = await acts.push(goal)
        name = await acts.ref()
    say(f"Task {task.number} of {name}, {_where(task)}: {task.goal}")


async def pop(result: Words = "", *, session: Session = None, agent: Agent = None) -> None:
    """End the current task with its result. What was said on the way leaves the view; the log keeps it.

    Example: newton tasks pop "The cache was off; it takes 40 s now"
    """
    async with opened(settings(agent)) as newton:
        acts = await _tasks(newton, session)
        task = await acts.pop(result)
        way = (await acts.tree()).path
    say("\n".join([f"Task {task.number} is complete: {task.goal}", *told(way)]))


async def block(reason: Words, *, session: Session = None, agent: Agent = None) -> None:
    """Set the current task aside, because it cannot go on for now.

    Example: newton tasks block "Mira has the key and is away until Monday"
    """
    async with opened(settings(agent)) as newton:
        acts = await _tasks(newton, session)
        task = await acts.block(reason)
        way = (await acts.tree()).path
    say("\n".join([f"Task {task.number} waits; `newton tasks resume {task.number}` takes it up.", *told(way)]))


async def resume(
    task: Annotated[str, Parameter(help="Its number, or the end of its id.")],
    *,
    session: Session = None,
    agent: Agent = None,
) -> None:
    """Go on with a blocked task.

    Example: newton tasks resume 4
    """
    async with opened(settings(agent)) as newton:
        acts = await _tasks(newton, session)
        await acts.resume(task)
        way = (await acts.tree()).path
    say("\n".join(told(way)))


async def fail(
    reason: Words,
    *,
    instead: Annotated[str | None, Parameter(help="Push this goal in its place.")] = None,
    session: Session = None,
    agent: Agent = None,
) -> None:
    """End the current task as a dead end, which is kept; with --instead, try another way.

    Example: newton tasks fail "the cache is cold each morning" --instead "Add an index"
    """
    async with opened(settings(agent)) as newton:
        acts = await _tasks(newton, session)
        failed, _ = await acts.fail(reason, instead=instead)
        way = (await acts.tree()).path
    say("\n".join([f"Task {failed.number} is a dead end: {failed.goal}", *told(way)]))


async def _tasks(newton: Newton, session: str | None, *, begin: bool = False) -> Tasks:
    """The stack of the session of that name. A name that nobody has used may be mistyped: it begins nothing unless that
    is said."""
    name = session_name(session)
    if name is None:
        if begin:
            raise InputError("Which session is to begin is missing.", hint="Name it with --session.")
        return newton.tasks("cli")
    if begin:
        return newton.tasks("cli").of(await newton.conversations("cli").begin(name))
    async with newton.scope.transaction() as tx:
        try:
            return newton.tasks("cli").of(await sessions.known(tx, agent_id=newton.scope.agent_id, ref=name))
        except NotFoundError as error:
            hint = "`newton sessions` lists them; `newton tasks push GOAL --session NAME --new` begins one."
            raise NotFoundError(error.what, hint=hint) from None


async def typed(acts: Work, words: str) -> str:
    """What `/task …` in a conversation does, and says. Raises InputError."""
    act, _, rest = words.partition(" ")
    match act:
        case "push":
            await acts.push(rest)
        case "pop":
            await acts.pop(rest)
        case "block":
            await acts.block(rest)
        case "resume":
            await acts.resume(rest)
        case "fail":
            await acts.fail(rest)
        case "":
            pass
        case _:
            raise InputError(
                f"/task {act} is nothing.", hint="There are /task push, pop, block, resume and fail, and /task alone."
            )
    tree = await acts.tree()
    return "\n".join(drawn(tree)) or "There is no task yet. /task push GOAL begins one."


def drawn(tree: Tree) -> Iterator[str]:
    """The tree, a line for each task and one for what came of it."""
    current = tree.current
    for root in tree.children(None):
        for task in (root, *tree.within(root.task_id)):
            indent = "   " * task.depth
            here = "  ← current" if task == current else ""
            failed = next((one for one in tree.tasks if one.task_id == task.instead_of), None)
            instead = f" (instead of {failed.number})" if failed else ""
            yield f"{indent}{MARKS[task.status]} {task.number}. {one_line(task.goal)}{instead}{here}"
            if task.words:
                yield f"{indent}     {show.beginning(task.words, MOST_SHOWN)}"


def told(way: tuple[Task, ...]) -> list[str]:
    """What is being done, the root goal first."""
    if not way:
        return ["No task is current. `newton tasks` shows what there is."]
    return [
        f"{'   ' * task.depth}{task.number}. {one_line(task.goal)}{'  ← current' if task is way[-1] else ''}"
        for task in way
    ]


def as_plain(task: Task, *, current: bool) -> dict[str, object]:
    return {
        "task_id": str(task.task_id),
        "number": task.number,
        "parent_id": task.parent_id and str(task.parent_id),
        "instead_of": task.instead_of and str(task.instead_of),
        "depth": task.depth,
        "goal": task.goal,
        "status": task.status,
        "current": current,
        "words": task.words,
        "lines": [task.first, task.last],
        "pushed_at": task.pushed_at.isoformat(),
        "changed_at": task.changed_at.isoformat(),
    }


def _where(task: Task) -> str:
    return f"on level {task.depth + 1}" if task.depth else "a root"
