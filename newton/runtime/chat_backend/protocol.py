"""What a conversation needs of whom it is held with."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol
from uuid import UUID

from newton.agent.services.memories import RememberResult
from newton.dialogue.branches import SessionCheckpoint
from newton.dialogue.task_tree import TaskTree
from newton.memory.transitions import AppliedTransition
from newton.runtime.chat_backend.view_models import ExplanationView, ProposalView, TurnView


class TaskCommands(Protocol):
    """The stack of tasks of one session. What cannot be done raises InputError and changes nothing."""

    async def tree(self) -> TaskTree: ...
    async def push(self, goal: str) -> object: ...
    async def pop(self, result: str) -> object: ...
    async def block(self, reason: str) -> object: ...
    async def resume(self, task_ref: str) -> object: ...
    async def fail(self, reason: str) -> object: ...


class ChatBackend(Protocol):
    """One agent, whether it is in this process or behind a daemon. Sessions go by their names.

    Everything raises NewtonError, and then the conversation may go on.
    """

    @property
    def agent(self) -> str:
        """What the agent is called."""
        ...

    @property
    def model(self) -> str | None:
        """The model that answers; None when none is set, and memory is quoted."""
        ...

    def run_turn(
        self, session: str, text: str, *, frame: str | None = None, include_context: bool = False
    ) -> AsyncGenerator[str | TurnView]:
        """Pieces of the reply as they come, then how the turn ended. Closed early, what had come until then is kept."""
        ...

    async def process_pending(self, limit: int | None = ...) -> None:
        """Sees to what was written: names, vectors, what facts are to each other; so many of each, or all."""
        ...

    async def create_session(self, session: str) -> None:
        """Begins the session of that name; one that there is goes on."""
        ...

    async def has_session(self, session: str) -> bool: ...

    async def close_session(self, session: str) -> None:
        """The conversation is over: what was said becomes an episode."""
        ...

    async def resolve_frame(self, name: str) -> str:
        """The frame of that name. Raises NotFoundError naming the nearest one."""
        ...

    async def explain_memory(self, bundle_id: UUID, item_ref: str) -> ExplanationView:
        """Why a memory is in that context, or is not. Raises InputError and ConflictError for what is not one of it."""
        ...

    async def remember(self, text: str) -> tuple[RememberResult, Sequence[AppliedTransition]]:
        """Keeps a fact; what became of it, and of others through it."""
        ...

    async def open_tasks(self, session: str) -> TaskCommands: ...

    async def list_checkpoints(self, session: str) -> Sequence[SessionCheckpoint]: ...

    async def create_checkpoint(self, session: str, name: str) -> SessionCheckpoint: ...

    async def create_branch(self, session: str, new: str, *, position: str | None = None) -> None:
        """Begins the session `new`, which goes on from this one's end, or from a checkpoint or a line of it."""
        ...

    async def list_proposals(self) -> Sequence[ProposalView]:
        """What waits for a person's yes, the first one first."""
        ...

    async def accept_proposal(self, tenet_id: UUID) -> ProposalView:
        """With what stood and went against it: it has taken the place of that."""
        ...

    async def reject_proposal(self, tenet_id: UUID) -> None: ...
