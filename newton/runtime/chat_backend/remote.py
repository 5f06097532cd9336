"""An agent behind a daemon, as a conversation needs it: nothing of it is in this process."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from pydantic import TypeAdapter

from newton import client as wire
from newton.agent.maintenance.service import BATCH_SIZE
from newton.agent.services.memories import RememberResult
from newton.client import Client, TokenInfoDict, session_path
from newton.client.connection import expect_newton_response
from newton.content.yaml_models import get_by_name
from newton.dialogue.branches import SessionCheckpoint
from newton.dialogue.compaction.progress_events import EVENT_TYPES, CompactionEvent
from newton.dialogue.task_tree import Task, TaskTree
from newton.errors import NewtonError, NotFoundError
from newton.memory.hygiene import clean_ref, clean_text
from newton.memory.transitions import AppliedTransition, PlannedTransition
from newton.runtime.chat_backend.protocol import TaskCommands
from newton.runtime.chat_backend.view_models import ExplanationView, ProposalView, TurnView

T = TypeVar("T")

TASKS = TypeAdapter(list[Task])
CHECKPOINTS = TypeAdapter(list[SessionCheckpoint])
PROPOSALS = TypeAdapter(list[ProposalView])


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAgent:
    """`who` is what the daemon said of whom the client speaks for; `tell` hears of compactions."""

    client: Client
    token_info: TokenInfoDict
    on_compaction: Callable[[CompactionEvent], None] = lambda event: None

    @property
    def agent(self) -> str:
        return self.token_info["agent"]

    @property
    def model(self) -> str | None:
        return self.token_info["model"]

    async def run_turn(
        self, session: str, text: str, *, frame: str | None = None, include_context: bool = False
    ) -> AsyncGenerator[str | TurnView]:
        said = clean_text(text, what="message")
        asked = {"whole": include_context} if frame is None else {"whole": include_context, "frame": frame}
        async with aclosing(self.client.run_turn(session, said, **asked)) as steps:  # else the daemon would speak on
            async for step in steps:
                if step.type == "compaction":
                    if event := _to_compaction_event(step.data):
                        self.on_compaction(event)
                elif (piece := _to_piece(step)) is not None:
                    yield piece

    async def process_pending(self, limit: int | None = BATCH_SIZE) -> None:
        """A daemon sees to it by itself."""

    async def create_session(self, session: str) -> None:
        await self.client.post("/v1/sessions", {"session": session})

    async def has_session(self, session: str) -> bool:
        try:
            await self.list_checkpoints(session)
        except NotFoundError:
            return False
        return True

    async def close_session(self, session: str) -> None:
        await self.client.close_session(session)

    async def resolve_frame(self, name: str) -> str:
        known = await self.client.get("/v1/frames")
        with expect_newton_response():
            names = {one["name"]: one["name"] for one in known}
        return get_by_name(names, name, "frame")

    async def explain_memory(self, bundle_id: UUID, item_ref: str) -> ExplanationView:
        told = await self.client.explain_memory(bundle_id, item_ref)
        with expect_newton_response():
            return ExplanationView.model_validate(told)

    async def remember(self, text: str) -> tuple[RememberResult, Sequence[AppliedTransition]]:
        told = await self.client.remember(text)
        with expect_newton_response():
            kept, at = RememberResult(told["learnt"], UUID(told["memory_id"])), told["at"]
        try:
            changed = await self.client.process_pending(at)
        except NewtonError:  # it is kept; what it changes in others follows by itself
            return kept, []
        with expect_newton_response():
            return kept, [_to_transition(one) for one in changed]

    async def open_tasks(self, session: str) -> TaskCommands:
        return RemoteTasks(self.client, session)

    async def list_checkpoints(self, session: str) -> Sequence[SessionCheckpoint]:
        return _parse(CHECKPOINTS, await self.client.get(f"{session_path(session)}/checkpoints"))

    async def create_checkpoint(self, session: str, name: str) -> SessionCheckpoint:
        called = clean_ref(name, what="checkpoint")
        await self.client.post(f"{session_path(session)}/checkpoint", {"name": called})
        return next(one for one in await self.list_checkpoints(session) if one.name == called)

    async def create_branch(self, session: str, new: str, *, position: str | None = None) -> None:
        await self.client.post(f"{session_path(session)}/branch", {"session": new, "at": position})

    async def list_proposals(self) -> Sequence[ProposalView]:
        return _parse(PROPOSALS, await self.client.get("/v1/identity/proposals"))

    async def accept_proposal(self, tenet_id: UUID) -> ProposalView:
        known = {one.tenet_id: one for one in await self.list_proposals()}
        gone = await self.client.accept_proposal(tenet_id)  # it answers ids; what they say is known by now
        standing = [one for one in known[tenet_id].instead_of if str(one.tenet_id) in gone]
        return known[tenet_id].model_copy(update={"instead_of": standing})

    async def reject_proposal(self, tenet_id: UUID) -> None:
        await self.client.reject_proposal(tenet_id)


@dataclass(frozen=True, slots=True)
class RemoteTasks:
    """The tasks of one session."""

    client: Client
    session: str

    async def tree(self) -> TaskTree:
        return TaskTree(_parse(TASKS, await self.client.get("/v1/tasks", {"session": self.session})))

    async def push(self, goal: str) -> object:
        return await self.client.push(goal, session=self.session)

    async def pop(self, result: str) -> object:
        return await self.client.pop(result, session=self.session)

    async def block(self, reason: str) -> object:
        return await self._post("block", reason=reason)

    async def resume(self, task_ref: str) -> object:
        return await self._post("resume", number=(await self.tree()).find(task_ref).number)

    async def fail(self, reason: str) -> object:
        return await self._post("fail", reason=reason)

    async def _post(self, action: str, **fields: str | int) -> object:
        return await self.client.post(f"/v1/tasks/{action}", {"session": self.session, **fields})


def _to_piece(step: wire.TurnEvent) -> str | TurnView | None:
    """What another version of Newton says beside these is left out."""
    with expect_newton_response():
        match step.type:
            case "piece":
                return str(step.data["text"])
            case "answer":
                return TurnView.model_validate(step.data)
            case _:
                return None


def _to_compaction_event(data: dict[str, Any]) -> CompactionEvent | None:
    kind = EVENT_TYPES.get(data.pop("event", ""))
    with expect_newton_response():
        return TypeAdapter(kind).validate_python(data) if kind else None


def _parse(adapter: TypeAdapter[T], data: object) -> T:
    with expect_newton_response():
        return adapter.validate_python(data)


def _to_transition(change: wire.ChangedMemoryDict) -> AppliedTransition:
    step = PlannedTransition(
        UUID(change["memory_id"]), change["event"], change["before"], change["after"], change["because"]
    )
    return AppliedTransition(step, change["micro"])
