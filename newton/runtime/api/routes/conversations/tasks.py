"""Endpoints of the task stack of a session: tasks in progress, each inside the task before it."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.context_inputs import PopTaskInput, PushTaskInput
from newton.agent.field_types import CleanText, MessageContent, Ref
from newton.agent.session_data.tasks import TaskService
from newton.dialogue import sessions
from newton.dialogue.task_tree import Task
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.tools.views import TaskChange, TaskInfo, to_task_change, to_task_infos
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

SessionQuery = Annotated[
    str | None, Query(description="The name of the session. Default: the session of the last started task.")
]


class _SessionRequest(RequestModel):
    session: Ref | None = Field(
        None,
        description="The name of the session. Default: the session of the last started task.",
        examples=["planning"],
    )


class PushTaskRequest(_SessionRequest, PushTaskInput):
    """The goal of a task to start, and the steps of a plan."""

    goal: CleanText = Field(examples=["Find out why the build is slow"])


class PopTaskRequest(_SessionRequest, PopTaskInput):
    """The result of the current task."""

    result: MessageContent = Field("", examples=["The cache was off; it takes 40 s now"])


class BlockTaskRequest(_SessionRequest):
    reason: CleanText = Field(examples=["Mira has the key and is away until Monday"])


class FailTaskRequest(BlockTaskRequest):
    replacement_goal: CleanText | None = Field(None, description="The goal of a new task that replaces the failed one.")


class ResumeTaskRequest(_SessionRequest):
    number: int = Field(ge=1, le=1_000_000_000)


@router.get("")
async def list_tasks(caller: ReadAccess, session: SessionQuery = None) -> ItemList[TaskInfo]:
    """List all tasks of a session."""
    return ItemList(items=to_task_infos(await (await _task_service(caller.newton, session)).tree()))


@router.post("", status_code=201, response_model=TaskChange)
async def push_task(body: PushTaskRequest, act: WriteAction) -> Response:
    """Start a task inside the current task. With steps it is a plan: the first step is current, and each later one
    starts when the one before is finished. If the request names a session that does not exist, create it."""

    async def work(newton: AgentServices) -> TaskChange:
        name = body.session
        session_id = await newton.sessions(ORIGIN).begin(name) if name is not None else None
        tasks = newton.tasks(ORIGIN).for_session(session_id) if session_id else newton.tasks(ORIGIN)
        return await _to_task_change(tasks, await tasks.push(body.goal, body.steps))

    return await act.run_once(work)


@router.post("/pop", response_model=TaskChange)
async def pop_task(body: PopTaskRequest, act: WriteAction) -> Response:
    """Finish the current task and record its result. The next step of a plan starts, and the last one finishes it."""
    return await _change_task(act, body, lambda tasks: tasks.pop(body.result))


@router.post("/block", response_model=TaskChange)
async def block_task(body: BlockTaskRequest, act: WriteAction) -> Response:
    """Mark the current task as blocked."""
    return await _change_task(act, body, lambda tasks: tasks.block(body.reason))


@router.post("/fail", response_model=TaskChange)
async def fail_task(body: FailTaskRequest, act: WriteAction) -> Response:
    """Mark the current task as failed. Start a replacement if the request has one."""

    async def fail(tasks: TaskService) -> Task:
        return (await tasks.fail(body.reason, instead=body.replacement_goal))[0]

    return await _change_task(act, body, fail)


@router.post("/resume", response_model=TaskChange)
async def resume_task(body: ResumeTaskRequest, act: WriteAction) -> Response:
    """Resume a blocked task, or start a planned step."""
    return await _change_task(act, body, lambda tasks: tasks.resume(str(body.number)))


async def _change_task(
    act: WriteAction, body: _SessionRequest, change: Callable[[TaskService], Awaitable[Task]]
) -> Response:
    async def work(newton: AgentServices) -> TaskChange:
        tasks = await _task_service(newton, body.session)
        return await _to_task_change(tasks, await change(tasks))

    return await act.run_once(work)


async def _task_service(newton: AgentServices, name: str | None) -> TaskService:
    if name is None:
        return newton.tasks(ORIGIN)
    async with newton.scope.transaction() as tx:
        session_id = await sessions.get_session_id(tx, agent_id=newton.scope.agent_id, ref=name)
    return newton.tasks(ORIGIN).for_session(session_id)


async def _to_task_change(tasks: TaskService, task: Task) -> TaskChange:
    return to_task_change(task, await tasks.tree())
