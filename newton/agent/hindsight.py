"""What contexts were given, why, whether they would be again, and how two of them differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.cognition import bundles
from newton.cognition.bundles import Listed
from newton.cognition.difference import Comparison, compared
from newton.cognition.explaining import Account, account
from newton.cognition.replay import Replay, Today, replayed
from newton.content.frames import Frame
from newton.content.profiles import Profile
from newton.db.pool import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """For one agent. A bundle is named by `latest`, by its id, or by letters of its beginning or end.

    What is asked of a bundle raises InputError, NotFoundError or ConflictError when it is not one that can be read.
    """

    scope: AgentScope
    frames: Mapping[str, Frame]
    profiles: Mapping[str, Profile]

    async def recent(self, most: int, *, before: UUID | None = None) -> list[Listed]:
        """The latest bundles, or the latest before that one, the last first."""
        async with self.scope.transaction() as tx:
            return await bundles.recent(tx, agent_id=self.scope.agent_id, most=most, before=before)

    async def why(self, given: str) -> Account:
        """The bundle with all its candidates as they were then."""
        async with self.scope.transaction() as tx:
            return await self._account(tx, given)

    async def replay(self, given: str) -> Replay:
        """The bundle made once more from what is stored, and compared."""
        async with self.scope.transaction() as tx:
            bundle_id = await bundles.resolve(tx, given, agent_id=self.scope.agent_id)
            stored = await bundles.stored(tx, bundle_id, agent_id=self.scope.agent_id)
            memories = await bundles.remembered(tx, stored.memory_ids, agent_id=self.scope.agent_id)
        frame = self.frames.get(stored.frame)
        today = Today(
            rules=bundles.rules(),
            frame_edition=frame and frame.edition,
            profile=self.profiles.get(stored.trace.setting.profile.name),
        )
        return replayed(stored, memories, today)

    async def diff(self, one: str, other: str) -> Comparison:
        """What the two bundles do not have in common."""
        async with self.scope.transaction() as tx:
            return compared(await self._account(tx, one), await self._account(tx, other))

    async def _account(self, tx: Tx, given: str) -> Account:
        bundle_id = await bundles.resolve(tx, given, agent_id=self.scope.agent_id)
        stored = await bundles.stored(tx, bundle_id, agent_id=self.scope.agent_id)
        return account(stored, await bundles.remembered(tx, stored.memory_ids, agent_id=self.scope.agent_id))
