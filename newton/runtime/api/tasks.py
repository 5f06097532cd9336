"""What a session is at: its stack of tasks, and working on it."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.tasks import Tasks
from newton.dialogue import sessions
from newton.dialogue.stack import Status, Task, Tree
from newton.runtime.api.acting import Writing
from newton.runtime.api.caller import Reader
from newton.runtime.api.memories import DOOR
from newton.runtime.api.shapes import Answer, Given
from newton.runtime.transfer.given import Ref, Utterance, Words
from newton.runtime.wiring import Newton

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

InSession = Annotated[str | None, Query(description="Of which session; without it, where a task was pushed last.")]


class _Of(Given):
    session: Ref | None = Field(
        None, description="In which session; without it, where a task was pushed last.", examples=["planning"]
    )


class ToPush(_Of):
    goal: Words = Field(examples=["Find out why the build is slow"])


class ToPop(_Of):
    result: Utterance = Field("", examples=["The cache was off; it takes 40 s now"])


class ToBlock(_Of):
    reason: Words = Field(examples=["Mira has the key and is away until Monday"])


class ToFail(ToBlock):
    instead: Words | None = Field(None, description="Push this goal in its place.")


class ToResume(_Of):
    number: int = Field(ge=1, le=1_000_000_000)


class Worked(Answer):
    """The task that was worked on, and the number of the one that is current now."""

    task_id: UUID
    number: int
    depth: int
    status: Status
    current: int | None


class Stacked(Answer):
    """A task in its tree."""

    task_id: UUID
    number: int
    parent_id: UUID | None
    instead_of: UUID | None
    depth: int
    goal: str
    status: Status
    current: bool
    words: str | None
    first: int
    last: int | None
    pushed_at: datetime
    changed_at: datetime


@router.get("")
async def tree(caller: Reader, session: InSession = None) -> list[Stacked]:
    """All tasks of a session."""
    found = await (await _stack(caller.newton, session)).tree()
    return [_stacked(task, found) for task in found.tasks]


@router.post("", status_code=201, response_model=Worked)
async def push(asked: ToPush, act: Writing) -> Response:
    """Begin a task within the current one. A session that is named and new begins with it."""

    async def work(newton: Newton) -> Worked:
        name = asked.session
        session_id = await newton.conversations(DOOR).begin(name) if name is not None else None
        stack = newton.tasks(DOOR).of(session_id) if session_id else newton.tasks(DOOR)
        return await _worked(stack, await stack.push(asked.goal))

    return await act.once(work)


@router.post("/pop", response_model=Worked)
async def pop(asked: ToPop, act: Writing) -> Response:
    """End the current task with its result."""

    async def work(newton: Newton) -> Worked:
        stack = await _stack(newton, asked.session)
        return await _worked(stack, await stack.pop(asked.result))

    return await act.once(work)


@router.post("/block", response_model=Worked)
async def block(asked: ToBlock, act: Writing) -> Response:
    """Set the current task aside."""

    async def work(newton: Newton) -> Worked:
        stack = await _stack(newton, asked.session)
        return await _worked(stack, await stack.block(asked.reason))

    return await act.once(work)


@router.post("/fail", response_model=Worked)
async def fail(asked: ToFail, act: Writing) -> Response:
    """End the current task as a dead end, and try another way if one is given."""

    async def work(newton: Newton) -> Worked:
        stack = await _stack(newton, asked.session)
        failed, _ = await stack.fail(asked.reason, instead=asked.instead)
        return await _worked(stack, failed)

    return await act.once(work)


@router.post("/resume", response_model=Worked)
async def resume(asked: ToResume, act: Writing) -> Response:
    """Go on with a blocked task."""

    async def work(newton: Newton) -> Worked:
        stack = await _stack(newton, asked.session)
        return await _worked(stack, await stack.resume(str(asked.number)))

    return await act.once(work)


async def _stack(newton: Newton, name: str | None) -> Tasks:
    if name is None:
        return newton.tasks(DOOR)
    async with newton.scope.transaction() as tx:
        return newton.tasks(DOOR).of(await sessions.known(tx, agent_id=newton.scope.agent_id, ref=name))


async def _worked(stack: Tasks, task: Task) -> Worked:
    current = (await stack.tree()).current
    return Worked(
        task_id=task.task_id,
        number=task.number,
        depth=task.depth,
        status=task.status,
        current=current and current.number,
    )


def _stacked(task: Task, tree: Tree) -> Stacked:
    own = {name: getattr(task, name) for name in Stacked.model_fields if name != "current"}
    return Stacked(**own, current=task == tree.current)
