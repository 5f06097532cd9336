"""The task stack of a session as an agent, or a person, works on it."""

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
    """For one agent; `origin` names the door. Without a session it is the one in which a task was pushed last.

    What cannot be done raises InputError and changes nothing.
    """

    scope: AgentScope
    session_id: UUID | None = None

    def for_session(self, session_id: UUID) -> "TaskService":
        """The same for that session."""
        return replace(self, session_id=session_id)

    async def get_session_ref(self) -> str:
        """What the session is called."""
        return await self._run(
            lambda tx, session_id, ctx: sessions.get_ref(tx, agent_id=ctx.agent_id, session_id=session_id)
        )

    async def tree(self) -> TaskTree:
        return await self._run(
            lambda tx, session_id, ctx: tasks.load_tree(tx, agent_id=ctx.agent_id, session_id=session_id)
        )

    async def push(self, goal: str) -> Task:
        """A new current task, under the one that was current."""
        return await self._change_task("pushed", lambda tx, place, ctx: tasks.push(tx, goal, session_id=place, ctx=ctx))

    async def pop(self, result: str) -> Task:
        """Ends the current task with its result; its trace leaves the view."""
        return await self._change_task(
            "popped", lambda tx, place, ctx: tasks.pop(tx, result, session_id=place, ctx=ctx)
        )

    async def block(self, reason: str) -> Task:
        """Sets the current task aside."""
        return await self._change_task(
            "blocked", lambda tx, place, ctx: tasks.block(tx, reason, session_id=place, ctx=ctx)
        )

    async def resume(self, task_ref: str) -> Task:
        """Goes on with a blocked task, named by its number or the end of its id."""
        return await self._change_task(
            "resumed", lambda tx, place, ctx: tasks.resume(tx, task_ref, session_id=place, ctx=ctx)
        )

    async def fail(self, reason: str, *, instead: str | None = None) -> tuple[Task, Task | None]:
        """Ends the current task as a dead end; with a goal `instead`, that one is pushed in its place."""

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
