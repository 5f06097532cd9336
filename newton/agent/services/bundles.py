"""Stored contexts: list, explain, replay and compare them."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle_store import BundleSummary
from newton.cognition.bundles.diff import BundleDiff, diff_bundles
from newton.cognition.bundles.explanation import BundleExplanation, explain_bundle
from newton.cognition.bundles.replay import CurrentRules, ReplayResult, replay_bundle
from newton.content.frames import Frame
from newton.content.profiles import Profile
from newton.db.pool import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleService:
    """Stored contexts of one agent. A bundle is named `latest`, or by its id or a prefix or suffix of it.

    Raises InputError, NotFoundError or ConflictError when no bundle of that name can be read.
    """

    scope: AgentScope
    frames: Mapping[str, Frame]
    profiles: Mapping[str, Profile]

    async def list_recent(self, limit: int, *, before: UUID | None = None) -> list[BundleSummary]:
        """Return the latest bundles, or those before a bundle, newest first."""
        async with self.scope.transaction() as tx:
            return await bundle_store.list_bundles(tx, agent_id=self.scope.agent_id, limit=limit, before=before)

    async def explain(self, bundle_ref: str) -> BundleExplanation:
        """Return the bundle with all its candidates as they were scored."""
        async with self.scope.transaction() as tx:
            return await self._explain(tx, bundle_ref)

    async def replay(self, bundle_ref: str) -> ReplayResult:
        """Rebuild the bundle from stored data and compare."""
        async with self.scope.transaction() as tx:
            bundle_id = await bundle_store.resolve_bundle_ref(tx, bundle_ref, agent_id=self.scope.agent_id)
            stored = await bundle_store.load_bundle(tx, bundle_id, agent_id=self.scope.agent_id)
            memories = await bundle_store.load_memory_histories(tx, stored.memory_ids, agent_id=self.scope.agent_id)
        frame = self.frames.get(stored.frame)
        today = CurrentRules(
            rules_hash=bundle_store.compute_rules_hash(),
            frame_edition=frame and frame.version_hash,
            profile=self.profiles.get(stored.trace.assembly_input.profile.name),
        )
        return replay_bundle(stored, memories, today)

    async def diff(self, bundle_ref: str, other_ref: str) -> BundleDiff:
        """Return the differences between two bundles."""
        async with self.scope.transaction() as tx:
            return diff_bundles(await self._explain(tx, bundle_ref), await self._explain(tx, other_ref))

    async def _explain(self, tx: Tx, bundle_ref: str) -> BundleExplanation:
        bundle_id = await bundle_store.resolve_bundle_ref(tx, bundle_ref, agent_id=self.scope.agent_id)
        stored = await bundle_store.load_bundle(tx, bundle_id, agent_id=self.scope.agent_id)
        return explain_bundle(
            stored, await bundle_store.load_memory_histories(tx, stored.memory_ids, agent_id=self.scope.agent_id)
        )
