"""The task stack of a session as an agent, or a person, works on it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from newton.agent.bearing import PERSONAL
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.dialogue import sessions, tasks
from newton.dialogue.stack import Task, Tree
from newton.memory.memory import Teller

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """For one agent; `origin` names the door. Without a session it is the one in which a task was pushed last.

    What cannot be done raises InputError and changes nothing.
    """

    scope: AgentScope
    session_id: UUID | None = None

    def of(self, session_id: UUID) -> "Tasks":
        """The same for that session."""
        return replace(self, session_id=session_id)

    async def ref(self) -> str:
        """What the session is called."""
        return await self._done(
            lambda tx, session_id, ctx: sessions.ref_of(tx, agent_id=ctx.agent_id, session_id=session_id)
        )

    async def tree(self) -> Tree:
        return await self._done(
            lambda tx, session_id, ctx: tasks.tree(tx, agent_id=ctx.agent_id, session_id=session_id)
        )

    async def push(self, goal: str) -> Task:
        """A new current task, under the one that was current."""
        return await self._told("pushed", lambda tx, place, ctx: tasks.push(tx, goal, session_id=place, ctx=ctx))

    async def pop(self, result: str) -> Task:
        """Ends the current task with its result; its trace leaves the view."""
        return await self._told("popped", lambda tx, place, ctx: tasks.pop(tx, result, session_id=place, ctx=ctx))

    async def block(self, reason: str) -> Task:
        """Sets the current task aside."""
        return await self._told("blocked", lambda tx, place, ctx: tasks.block(tx, reason, session_id=place, ctx=ctx))

    async def resume(self, given: str) -> Task:
        """Goes on with a blocked task, named by its number or the end of its id."""
        return await self._told("resumed", lambda tx, place, ctx: tasks.resume(tx, given, session_id=place, ctx=ctx))

    async def fail(self, reason: str, *, instead: str | None = None) -> tuple[Task, Task | None]:
        """Ends the current task as a dead end; with a goal `instead`, that one is pushed in its place."""

        async def replanned(tx: Tx, session_id: UUID, ctx: Teller) -> tuple[Task, Task | None]:
            failed = await tasks.fail(tx, reason, session_id=session_id, ctx=ctx)
            self._tell("failed", failed)
            if instead is None:
                return failed, None
            pushed = await tasks.push(tx, instead, session_id=session_id, ctx=ctx, instead_of=failed.task_id)
            self._tell("pushed", pushed)
            return failed, pushed

        return await self._done(replanned)

    async def _told(self, what: str, act: Callable[[Tx, UUID, Teller], Awaitable[Task]]) -> Task:
        async def told(tx: Tx, session_id: UUID, ctx: Teller) -> Task:
            task = await act(tx, session_id, ctx)
            self._tell(what, task)
            return task

        return await self._done(told)

    def _tell(self, what: str, task: Task) -> None:
        about = {"task_id": str(task.task_id), "number": task.number, "status": task.status}
        self.scope.publish(f"task.{what}", about)

    async def _done(self, act: Callable[[Tx, UUID, Teller], Awaitable[T]]) -> T:
        async with self.scope.transaction() as tx:
            session_id = self.session_id or await tasks.latest_session(tx, agent_id=self.scope.agent_id)
            trust = "user" if self.scope.origin in PERSONAL else "agent"
            ctx = self.scope.write_context(trust)
            return await act(tx, session_id, ctx)
