"""What a conversation needs of whom it is held with."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol
from uuid import UUID

from newton.agent.verbs import Kept
from newton.dialogue.branches import Checkpoint
from newton.dialogue.stack import Tree
from newton.memory.transitions import Changed
from newton.runtime.talk.told import Explained, Turned, Wish


class Work(Protocol):
    """The stack of tasks of one session. What cannot be done raises InputError and changes nothing."""

    async def tree(self) -> Tree: ...
    async def push(self, goal: str) -> object: ...
    async def pop(self, result: str) -> object: ...
    async def block(self, reason: str) -> object: ...
    async def resume(self, given: str) -> object: ...
    async def fail(self, reason: str) -> object: ...


class Partner(Protocol):
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

    def take(
        self, session: str, text: str, *, frame: str | None = None, whole: bool = False
    ) -> AsyncGenerator[str | Turned]:
        """Pieces of the reply as they come, then how the turn ended. Closed early, what had come until then is kept."""
        ...

    async def settle(self, most: int | None = ...) -> None:
        """Sees to what was written: names, vectors, what facts are to each other; so many of each, or all."""
        ...

    async def begin(self, session: str) -> None:
        """Begins the session of that name; one that there is goes on."""
        ...

    async def known(self, session: str) -> bool: ...

    async def close(self, session: str) -> None:
        """The conversation is over: what was said becomes an episode."""
        ...

    async def frame(self, name: str) -> str:
        """The frame of that name. Raises NotFoundError naming the nearest one."""
        ...

    async def why(self, bundle_id: UUID, which: str) -> Explained:
        """Why a memory is in that context, or is not. Raises InputError and ConflictError for what is not one of it."""
        ...

    async def remember(self, text: str) -> tuple[Kept, Sequence[Changed]]:
        """Keeps a fact; what became of it, and of others through it."""
        ...

    async def tasks(self, session: str) -> Work: ...

    async def checkpoints(self, session: str) -> Sequence[Checkpoint]: ...

    async def checkpoint(self, session: str, name: str) -> Checkpoint: ...

    async def branch(self, session: str, new: str, *, at: str | None = None) -> None:
        """Begins the session `new`, which goes on from this one's end, or from a checkpoint or a line of it."""
        ...

    async def wishes(self) -> Sequence[Wish]:
        """What waits for a person's yes, the first one first."""
        ...

    async def accept(self, tenet_id: UUID) -> Wish:
        """With what stood and went against it: it has taken the place of that."""
        ...

    async def reject(self, tenet_id: UUID) -> None: ...
