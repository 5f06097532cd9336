"""Working memory of a session (the memories used last in it), and contexts built from it without a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from statistics import quantiles
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.cognition import working_set
from newton.cognition.assembly.fact_labels import count_label_tokens, label_separate_facts
from newton.cognition.assembly.working_context import (
    SEPARATOR_TOKENS,
    WorkingContext,
    WorkingSetSnapshot,
    assemble_working_context,
)
from newton.cognition.request import ContextOverrides
from newton.cognition.sources import session_state
from newton.cognition.working_set import ProfileStats, SessionScope
from newton.content.frames import Frame
from newton.content.profiles import ItemOrder, Profile, select_profile
from newton.db.pool import Database, Tx
from newton.dialogue import sessions

if TYPE_CHECKING:
    from newton.providers.embedding import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUseRecorder:
    """Adds memories to the working memory of one session, of at most `capacity` tokens; without a session, to none."""

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


DEFAULT_STRATEGY = "balanced"
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetStats:
    """Statistics on the working memory of a session, and on the profiles that built contexts from working memories.

    `hours_since_added` and `hours_since_accessed` each have the minimum, the three quartiles and the maximum.
    """

    items: int
    tokens: int
    capacity: int
    hours_since_added: tuple[float, ...]
    hours_since_accessed: tuple[float, ...]
    profiles: Sequence[ProfileStats]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemory:
    """The working memory of one session: the memories that it stored, showed or read, at most `capacity` tokens.

    `model_id` selects the vectors for clustering.
    """

    scope: AgentScope
    session_id: UUID
    profiles: Mapping[str, Profile]
    frames: Mapping[str, Frame]
    capacity: int
    model_id: UUID | None = None

    async def create_context(
        self,
        strategy: str = DEFAULT_STRATEGY,
        max_tokens: int | None = None,
        *,
        decay_hours: float | None = None,
        order: ItemOrder | None = None,
    ) -> WorkingContext:
        """Build a context from the working memory, of at most `max_tokens` (default: the capacity).

        `strategy` is the name of the profile that ranks the memories; `decay_hours` replaces its time constant, and
        `order` its order. Raises NotFoundError for an unknown strategy.
        """
        limit = max_tokens or self.capacity
        agent_id = self.scope.agent_id
        async with self.scope.transaction() as tx:
            frame = await session_state.find_session_frame(tx, agent_id=agent_id, session_id=self.session_id)
            profile = select_profile(self.profiles, strategy, frame=frame)
            overrides = ContextOverrides.model_validate({"decay_hours": decay_hours, "order": order})
            profile = overrides.apply_to_profile(profile)
            snapshot = await self._snapshot(tx, profile, frame)
            context = assemble_working_context(snapshot, profile, max_tokens=limit)
            await working_set.record_strategy_use(tx, context, strategy, agent_id=agent_id, now=snapshot.now)
        return context

    async def get_stats(self) -> WorkingSetStats:
        """Return the size of the working memory, and how old its memories are."""
        async with self.scope.transaction() as tx:
            items = await working_set.list_memories(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            profiles = await working_set.list_profile_stats(tx, agent_id=self.scope.agent_id)
        now = self.scope.now()
        return WorkingSetStats(
            items=len(items),
            tokens=sum(item.summary_tokens + SEPARATOR_TOKENS for item in items),
            capacity=self.capacity,
            hours_since_added=_quartiles([(now - item.created_at) / HOUR for item in items]),
            hours_since_accessed=_quartiles([(now - (item.accessed_at or now)) / HOUR for item in items]),
            profiles=profiles,
        )

    async def _snapshot(self, tx: Tx, profile: Profile, frame_name: str | None) -> WorkingSetSnapshot:
        key = {"agent_id": self.scope.agent_id, "session_id": self.session_id}
        memories = await working_set.list_memories(tx, **key)
        vectors: dict[UUID, Vector] = {}
        if profile.order == "clustered" and self.model_id is not None:
            vectors = await working_set.load_vectors(tx, **key, model_id=self.model_id)
        frame = self.frames.get(frame_name) if frame_name else None
        now = self.scope.now()
        labels = label_separate_facts(memories, now=now, tokens=count_label_tokens(self.scope.count_tokens))
        return WorkingSetSnapshot(memories=memories, now=now, frame=frame, vectors=vectors, labels=labels)


async def find_active_session(db: Database, session_ref: str | None, *, agent_id: UUID) -> UUID:
    """Return the id of the named session; without a name, of the last active one with a working memory.

    Raises NotFoundError if there is none.
    """
    async with db.transaction(agent_id) as tx:
        if session_ref is None:
            return (await working_set.find_last_session(tx, agent_id=agent_id))[0]
        return await sessions.get_session_id(tx, agent_id=agent_id, ref=session_ref)


def _quartiles(hours: Sequence[float]) -> tuple[float, ...]:
    """Return minimum, the three quartiles and maximum, rounded to 0.01; an empty tuple for no values."""
    if not hours:
        return ()
    inner = quantiles(hours, n=4, method="inclusive") if len(hours) > 1 else [hours[0]] * 3
    return tuple(round(value, 2) for value in (min(hours), *inner, max(hours)))
