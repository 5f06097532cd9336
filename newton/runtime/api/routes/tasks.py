"""What a session is at: its stack of tasks, and working on it."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.services.tasks import TaskService
from newton.dialogue import sessions
from newton.dialogue.task_tree import Task, TaskStatus, TaskTree
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.routes.memories import ORIGIN
from newton.runtime.api.schemas import RequestModel, ResponseModel
from newton.runtime.transfer.schema import CleanText, MessageContent, Ref
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

SessionQuery = Annotated[str | None, Query(description="Of which session; without it, where a task was pushed last.")]


class _SessionRequest(RequestModel):
    session: Ref | None = Field(
        None, description="In which session; without it, where a task was pushed last.", examples=["planning"]
    )


class PushTaskRequest(_SessionRequest):
    goal: CleanText = Field(examples=["Find out why the build is slow"])


class PopTaskRequest(_SessionRequest):
    result: MessageContent = Field("", examples=["The cache was off; it takes 40 s now"])


class BlockTaskRequest(_SessionRequest):
    reason: CleanText = Field(examples=["Mira has the key and is away until Monday"])


class FailTaskRequest(BlockTaskRequest):
    instead: CleanText | None = Field(None, description="Push this goal in its place.")


class ResumeTaskRequest(_SessionRequest):
    number: int = Field(ge=1, le=1_000_000_000)


class TaskChange(ResponseModel):
    """The task that was worked on, and the number of the one that is current now."""

    task_id: UUID
    number: int
    depth: int
    status: TaskStatus
    current: int | None


class TaskInfo(ResponseModel):
    """A task in its tree."""

    task_id: UUID
    number: int
    parent_id: UUID | None
    instead_of: UUID | None
    depth: int
    goal: str
    status: TaskStatus
    current: bool
    words: str | None
    first: int
    last: int | None
    pushed_at: datetime
    changed_at: datetime


@router.get("")
async def list_tasks(caller: ReadAccess, session: SessionQuery = None) -> list[TaskInfo]:
    """All tasks of a session."""
    found = await (await _task_service(caller.newton, session)).tree()
    return [_to_task_info(task, found) for task in found.tasks]


@router.post("", status_code=201, response_model=TaskChange)
async def push_task(body: PushTaskRequest, act: WriteAction) -> Response:
    """Begin a task within the current one. A session that is named and new begins with it."""

    async def work(newton: AgentServices) -> TaskChange:
        name = body.session
        session_id = await newton.sessions(ORIGIN).begin(name) if name is not None else None
        stack = newton.tasks(ORIGIN).for_session(session_id) if session_id else newton.tasks(ORIGIN)
        return await _to_task_change(stack, await stack.push(body.goal))

    return await act.run_once(work)


@router.post("/pop", response_model=TaskChange)
async def pop_task(body: PopTaskRequest, act: WriteAction) -> Response:
    """End the current task with its result."""

    async def work(newton: AgentServices) -> TaskChange:
        stack = await _task_service(newton, body.session)
        return await _to_task_change(stack, await stack.pop(body.result))

    return await act.run_once(work)


@router.post("/block", response_model=TaskChange)
async def block_task(body: BlockTaskRequest, act: WriteAction) -> Response:
    """Set the current task aside."""

    async def work(newton: AgentServices) -> TaskChange:
        stack = await _task_service(newton, body.session)
        return await _to_task_change(stack, await stack.block(body.reason))

    return await act.run_once(work)


@router.post("/fail", response_model=TaskChange)
async def fail_task(body: FailTaskRequest, act: WriteAction) -> Response:
    """End the current task as a dead end, and try another way if one is given."""

    async def work(newton: AgentServices) -> TaskChange:
        stack = await _task_service(newton, body.session)
        failed, _ = await stack.fail(body.reason, instead=body.instead)
        return await _to_task_change(stack, failed)

    return await act.run_once(work)


@router.post("/resume", response_model=TaskChange)
async def resume_task(body: ResumeTaskRequest, act: WriteAction) -> Response:
    """Go on with a blocked task."""

    async def work(newton: AgentServices) -> TaskChange:
        stack = await _task_service(newton, body.session)
        return await _to_task_change(stack, await stack.resume(str(body.number)))

    return await act.run_once(work)


async def _task_service(newton: AgentServices, name: str | None) -> TaskService:
    if name is None:
        return newton.tasks(ORIGIN)
    async with newton.scope.transaction() as tx:
        return newton.tasks(ORIGIN).for_session(
            await sessions.get_session_id(tx, agent_id=newton.scope.agent_id, ref=name)
        )


async def _to_task_change(tasks: TaskService, task: Task) -> TaskChange:
    current = (await tasks.tree()).current
    return TaskChange(
        task_id=task.task_id,
        number=task.number,
        depth=task.depth,
        status=task.status,
        current=current and current.number,
    )


def _to_task_info(task: Task, tree: TaskTree) -> TaskInfo:
    own = {name: getattr(task, name) for name in TaskInfo.model_fields if name != "current"}
    return TaskInfo(**own, current=task == tree.current)
