"""Records which memories a session used, in its working memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.cognition import working_set
from newton.cognition.working_set import SessionScope


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUseRecorder:
    """Adds memories to the working memory of one session, of at most `capacity` tokens. Without a session, of none."""

    scope: AgentScope
    capacity: int
    session_id: UUID | None = None

    def for_session(self, session_id: UUID | None) -> "SessionUseRecorder":
        """Return a copy for this session."""
        return replace(self, session_id=session_id)

    async def record(self, memory_ids: Sequence[UUID]) -> None:
        """Add memories that the session stored, was shown or read."""
        if self.session_id is None or not memory_ids:
            return
        async with self.scope.write() as (tx, ctx):
            session = SessionScope(
                agent_id=ctx.agent_id, session_id=self.session_id, now=ctx.now, capacity=self.capacity
            )
            await working_set.add_memories(tx, memory_ids, scope=session)
