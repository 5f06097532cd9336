"""The interface between a chat and an agent."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

from newton.agent.services.fact_intake import RememberReport
from newton.dialogue.branches import SessionCheckpoint
from newton.dialogue.task_tree import TaskTree
from newton.runtime.chat_backend.view_models import ExplanationView, ProposalView, TurnView


class PrivateMessage(NamedTuple):
    """A message that is not stored."""

    role: Literal["user", "assistant"]
    text: str


class TaskCommands(Protocol):
    """The task stack of one session. Its methods raise InputError for an invalid change."""

    async def tree(self) -> TaskTree: ...
    async def push(self, goal: str) -> object: ...
    async def pop(self, result: str) -> object: ...
    async def block(self, reason: str) -> object: ...
    async def resume(self, task_ref: str) -> object: ...
    async def fail(self, reason: str) -> object: ...


class ChatBackend(Protocol):
    """One agent, in this process or behind a daemon. Sessions are addressed by name. Methods raise NewtonError."""

    @property
    def agent(self) -> str:
        """The name of the agent."""
        ...

    @property
    def model(self) -> str | None:
        """The chat model; None when none is configured."""
        ...

    async def select_model(self, name: str) -> str:
        """Use the named model for the next turns and return its name. Raises ModelNotFoundError."""
        ...

    async def list_models(self) -> Sequence[str]:
        """List the models that the model's server offers. Raises ProviderError."""
        ...

    def run_turn(
        self,
        session: str,
        input: str,
        *,
        frame: str | None = None,
        include_context: bool = False,
        private: Sequence[PrivateMessage] | None = None,
    ) -> AsyncGenerator[str | TurnView]:
        """Yield the pieces of the reply, then the result. Closing the generator early stores the text so far.

        With `private`, the earlier private messages of the conversation, nothing of the turn is stored.
        """
        ...

    async def process_pending(self, limit: int | None = ...) -> None:
        """Index, embed and deduplicate new memories. `limit` is the maximum for each step; None means all."""
        ...

    async def learn(self) -> None:
        """Store idle sessions as episodes, and extract memories from a few conversations."""
        ...

    async def create_session(self, session: str) -> None:
        """Create the session, unless it exists."""
        ...

    async def has_session(self, session: str) -> bool: ...

    async def close_session(self, session: str) -> None:
        """Close the conversation and store it as an episode."""
        ...

    async def resolve_frame(self, name: str) -> str:
        """Return the full name of a frame. The NotFoundError for an unknown one suggests the nearest."""
        ...

    async def explain_memory(self, bundle_id: UUID, item_ref: str) -> ExplanationView:
        """Explain why a memory is or is not in a context. Raises InputError and ConflictError for an unknown item."""
        ...

    async def remember(self, content: str) -> RememberReport:
        """Store a fact; return the result and the transitions that it caused."""
        ...

    async def open_tasks(self, session: str) -> TaskCommands: ...

    async def list_checkpoints(self, session: str) -> Sequence[SessionCheckpoint]: ...

    async def create_checkpoint(self, session: str, name: str) -> SessionCheckpoint: ...

    async def create_branch(self, session: str, new: str, *, position: str | None = None) -> None:
        """Create the session `new` from the end of this one, or from a checkpoint or a message."""
        ...

    async def list_proposals(self) -> Sequence[ProposalView]:
        """List the identity proposals, oldest first."""
        ...

    async def accept_proposal(self, line_id: UUID) -> ProposalView:
        """Accept a proposal; return it with the lines that it replaced."""
        ...

    async def reject_proposal(self, line_id: UUID) -> None: ...

    async def call_tool(self, name: str, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Run a tool of `newton.runtime.tools` for a person and return its result."""
        ...
