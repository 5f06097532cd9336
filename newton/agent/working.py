"""Working memory: what a session has at hand, and a context of it without a question, a model or a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import quantiles
from typing import TYPE_CHECKING
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.cognition import bundles, workingset
from newton.cognition.budget import MOST_TOKENS
from newton.cognition.working import JOINER, Assembled, Desk, assembled
from newton.cognition.workingset import Used
from newton.content.frames import Frame
from newton.content.profiles import Profile, profile_for
from newton.db.pool import Database, Tx
from newton.dialogue import sessions
from newton.errors import InputError

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

DEFAULT = "balanced"
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is at hand, and what was made of it: the least, the quartiles and the most of the hours since each memory
    came and since it was used, and each strategy with the ages of what it chose."""

    items: int
    tokens: int
    capacity: int
    hours_since_added: tuple[float, ...]
    hours_since_accessed: tuple[float, ...]
    strategies: tuple[Used, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemory:
    """Of one session. `capacity` is in tokens; `model_id` is whose stored vectors tell what is alike, if anyone's."""

    scope: AgentScope
    session_id: UUID
    profiles: Mapping[str, Profile]
    frames: Mapping[str, Frame]
    capacity: int
    model_id: UUID | None = None

    async def create_context(
        self, strategy: str = DEFAULT, max_tokens: int | None = None, *, decay_hours: float | None = None
    ) -> Assembled:
        """The best of what is at hand by a strategy, which is the name of a profile, within so many tokens; without a
        limit, within what working memory holds. `decay_hours` is the time constant in place of the profile's own.

        Raises NotFoundError for an unknown strategy and InputError for a limit or a decay that is not possible.
        """
        limit = self.capacity if max_tokens is None else max_tokens
        if not 1 <= limit <= MOST_TOKENS:
            raise InputError(f"A limit of {limit:,} tokens is not possible.", hint=f"Give 1 to {MOST_TOKENS:,}.")
        async with self.scope.transaction() as tx:
            seen = await bundles.frame_of(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            profile = profile_for(self.profiles, strategy, frame=seen)
            profile = profile if decay_hours is None else profile.paced(decay_hours)
            desk = await self._desk(tx, profile, seen)
            made = assembled(desk, profile, limit=limit)
            await workingset.note(tx, made, strategy, agent_id=self.scope.agent_id, now=desk.now)
        return made

    async def figures(self) -> Figures:
        async with self.scope.transaction() as tx:
            held = await workingset.held(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            used = await workingset.strategies(tx, agent_id=self.scope.agent_id)
        now = self.scope.now()
        return Figures(
            items=len(held),
            tokens=sum(found.summary_tokens + JOINER for found in held),
            capacity=self.capacity,
            hours_since_added=_quarters([(now - found.created_at) / HOUR for found in held]),
            hours_since_accessed=_quarters([(now - (found.accessed_at or now)) / HOUR for found in held]),
            strategies=tuple(used),
        )

    async def _desk(self, tx: Tx, profile: Profile, seen: str | None) -> Desk:
        held = await workingset.held(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
        vectors: dict[UUID, Vector] = {}
        if profile.order == "clustered" and self.model_id is not None:
            where = {"agent_id": self.scope.agent_id, "session_id": self.session_id}
            vectors = await workingset.vectors(tx, **where, model_id=self.model_id)
        frame = self.frames.get(seen) if seen else None
        return Desk(held=held, now=self.scope.now(), frame=frame, vectors=vectors)


async def session_at_work(db: Database, name: str | None, *, agent_id: UUID) -> UUID:
    """The session of that name, or without one the last that had anything at hand. Raises NotFoundError."""
    async with db.work(agent_id) as tx:
        if name is None:
            return (await workingset.last_session(tx, agent_id=agent_id))[0]
        return await sessions.known(tx, agent_id=agent_id, ref=name)


def _quarters(hours: Sequence[float]) -> tuple[float, ...]:
    """The least, the quartiles and the most; empty when there is nothing."""
    if not hours:
        return ()
    inner = quantiles(hours, n=4, method="inclusive") if len(hours) > 1 else [hours[0]] * 3
    return tuple(round(one, 2) for one in (min(hours), *inner, max(hours)))
