"""The task stack of a session."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.agent.services.identity import PERSONAL_ORIGINS
from newton.db.pool import Tx
from newton.dialogue import sessions, tasks
from newton.dialogue.task_tree import Task, TaskTree
from newton.memory.memory import WriteContext

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskService:
    """Task stack of one session; without one, that of the last pushed task.

    Invalid operations raise InputError and change nothing.
    """

    scope: AgentScope
    session_id: UUID | None = None

    def for_session(self, session_id: UUID) -> "TaskService":
        """Return the service for that session."""
        return replace(self, session_id=session_id)

    async def get_session_ref(self) -> str:
        """Return the name of the session."""
        return await self._run(
            lambda tx, session_id, ctx: sessions.get_ref(tx, agent_id=ctx.agent_id, session_id=session_id)
        )

    async def tree(self) -> TaskTree:
        return await self._run(
            lambda tx, session_id, ctx: tasks.load_tree(tx, agent_id=ctx.agent_id, session_id=session_id)
        )

    async def push(self, goal: str) -> Task:
        """Push a task under the current one."""
        return await self._change_task("pushed", lambda tx, place, ctx: tasks.push(tx, goal, session_id=place, ctx=ctx))

    async def pop(self, result: str) -> Task:
        """Complete the current task with its result; its messages leave the view."""
        return await self._change_task(
            "popped", lambda tx, place, ctx: tasks.pop(tx, result, session_id=place, ctx=ctx)
        )

    async def block(self, reason: str) -> Task:
        """Block the current task."""
        return await self._change_task(
            "blocked", lambda tx, place, ctx: tasks.block(tx, reason, session_id=place, ctx=ctx)
        )

    async def resume(self, task_ref: str) -> Task:
        """Resume a blocked task, named by its number or the end of its id."""
        return await self._change_task(
            "resumed", lambda tx, place, ctx: tasks.resume(tx, task_ref, session_id=place, ctx=ctx)
        )

    async def fail(self, reason: str, *, instead: str | None = None) -> tuple[Task, Task | None]:
        """Fail the current task; push `instead`, if given, in its place."""

        async def replanned(tx: Tx, session_id: UUID, ctx: WriteContext) -> tuple[Task, Task | None]:
            failed = await tasks.fail(tx, reason, session_id=session_id, ctx=ctx)
            self._publish("failed", failed)
            if instead is None:
                return failed, None
            pushed = await tasks.push(tx, instead, session_id=session_id, ctx=ctx, instead_of=failed.task_id)
            self._publish("pushed", pushed)
            return failed, pushed

        return await self._run(replanned)

    async def _change_task(self, event: str, operation: Callable[[Tx, UUID, WriteContext], Awaitable[Task]]) -> Task:
        async def told(tx: Tx, session_id: UUID, ctx: WriteContext) -> Task:
            task = await operation(tx, session_id, ctx)
            self._publish(event, task)
            return task

        return await self._run(told)

    def _publish(self, event: str, task: Task) -> None:
        about = {"task_id": str(task.task_id), "number": task.number, "status": task.status}
        self.scope.publish(f"task.{event}", about)

    async def _run(self, operation: Callable[[Tx, UUID, WriteContext], Awaitable[T]]) -> T:
        async with self.scope.transaction() as tx:
            session_id = self.session_id or await tasks.latest_session(tx, agent_id=self.scope.agent_id)
            trust = "user" if self.scope.origin in PERSONAL_ORIGINS else "agent"
            ctx = self.scope.write_context(trust)
            return await operation(tx, session_id, ctx)
