"""The task stack of a session, and the results of the procedures that were shown during its tasks."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.cognition.bundles import bundle_store
from newton.cognition.request import TaskScope
from newton.cognition.sources.filters import load_task_scope
from newton.db.pool import Tx
from newton.dialogue import sessions, tasks
from newton.dialogue.log import MAX_POSITION, MessageRange
from newton.dialogue.task_tree import Task, TaskTree
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import ActivationResult, LifecycleContext


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskService:
    """Task stack of one session; without `session_id`, of the session in which a task was last pushed.

    Invalid operations raise InputError and change nothing.
    """

    scope: AgentScope
    session_id: UUID | None = None

    def for_session(self, session_id: UUID) -> "TaskService":
        """Return a copy for this session."""
        return replace(self, session_id=session_id)

    async def get_session_ref(self) -> str:
        """Return the name of the session."""
        async with self._session() as (tx, ctx, session_id):
            return await sessions.get_ref(tx, agent_id=ctx.agent_id, session_id=session_id)

    async def tree(self) -> TaskTree:
        """Return all tasks of the session."""
        async with self._session() as (tx, ctx, session_id):
            return await tasks.load_tree(tx, agent_id=ctx.agent_id, session_id=session_id)

    async def load_scope(self, task: Task, tree: TaskTree) -> TaskScope:
        """Return the scope of a task of this tree: which messages and other memories belong to it."""
        async with self._session() as (tx, ctx, session_id):
            return await load_task_scope(tx, task, tree, agent_id=ctx.agent_id, session_id=session_id)

    async def push(self, goal: str, steps: Sequence[str] = ()) -> Task:
        """Start a task inside the current one, and return it. With `steps` it is a plan; the first step starts too."""
        async with self._session() as (tx, ctx, session_id):
            task = self._publish("pushed", await tasks.push(tx, goal, session_id=session_id, ctx=ctx, steps=steps))
            if steps:
                for step in await tasks.advance_plan(tx, task.task_id, "", session_id=session_id, ctx=ctx):
                    self._publish("started", step)
            return task

    async def pop(self, result: str) -> Task:
        """Complete the current task with its result, and return it. For the model, a line replaces its messages.

        After a step of a plan the next one starts, and the plan is complete after the last one.
        """
        async with self._session() as (tx, ctx, session_id):
            task = await tasks.pop(tx, result, session_id=session_id, ctx=ctx)
            followed = await tasks.advance_plan(tx, task.parent_id, result, session_id=session_id, ctx=ctx)
            for one in (task, *followed):
                if one.is_ended:
                    await self._rate_procedures(tx, one, "success", session_id=session_id, ctx=ctx)
                self._publish("popped" if one.is_ended else "started", one)
            return task

    async def block(self, reason: str) -> Task:
        """Mark the current task as blocked, with the reason, and return it."""
        async with self._session() as (tx, ctx, session_id):
            return self._publish("blocked", await tasks.block(tx, reason, session_id=session_id, ctx=ctx))

    async def resume(self, number: int) -> Task:
        """Resume a blocked task, or start a planned step, by its number; return the task."""
        async with self._session() as (tx, ctx, session_id):
            return self._publish("resumed", await tasks.resume(tx, number, session_id=session_id, ctx=ctx))

    async def fail(self, reason: str, *, instead: str | None = None) -> tuple[Task, Task | None]:
        """Mark the current task as failed, and start a task with the goal `instead`, if given, in its place.

        Return the failed task and the new one, or None.
        """
        async with self._session() as (tx, ctx, session_id):
            failed = self._publish("failed", await tasks.fail(tx, reason, session_id=session_id, ctx=ctx))
            await self._rate_procedures(tx, failed, "failure", session_id=session_id, ctx=ctx)
            if instead is None:
                return failed, None
            task = await tasks.push(tx, instead, session_id=session_id, ctx=ctx, instead_of=failed.task_id)
            return failed, self._publish("pushed", task)

    async def _rate_procedures(
        self, tx: Tx, task: Task, result: ActivationResult, *, session_id: UUID, ctx: LifecycleContext
    ) -> None:
        """Record a use, with this result, of each procedure shown during the task, outside of its subtasks."""
        tree = await tasks.load_tree(tx, agent_id=ctx.agent_id, session_id=session_id)
        inner = [_to_range(one) for one in tree.descendants(task.task_id) if one.has_begun]
        shown = await bundle_store.list_shown_procedures(
            tx, _to_range(task), inner, agent_id=ctx.agent_id, session_id=session_id
        )
        use_ids = await engine.record_activations(tx, "procedure", shown, stage="task", ctx=ctx)
        for memory_id, use_id in zip(shown, use_ids, strict=True):
            await engine.record_result(tx, "procedure", memory_id, result, activation=use_id, ctx=ctx)
            self.scope.publish("procedure.used", {"memory_id": str(memory_id), "result": result})

    def _publish(self, event: str, task: Task) -> Task:
        payload = {"task_id": str(task.task_id), "number": task.number, "status": task.status}
        self.scope.publish(f"task.{event}", payload)
        return task

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[tuple[Tx, LifecycleContext, UUID]]:
        """Open a transaction; yield it with a write context and the id of the session."""
        async with self.scope.write() as (tx, ctx):
            yield tx, ctx, self.session_id or await tasks.latest_session(tx, agent_id=ctx.agent_id)


def _to_range(task: Task) -> MessageRange:
    return MessageRange(task.first, MAX_POSITION if task.last is None else task.last)
