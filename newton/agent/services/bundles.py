"""Stored contexts (bundles): list, explain, rebuild and compare them."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from newton.agent.scope import AgentScope
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle_store import BundleSummary
from newton.cognition.bundles.diff import BundleDiff, ExplainedBundle, diff_bundles
from newton.cognition.bundles.explanation import BundleExplanation, explain_bundle
from newton.cognition.bundles.replay import CurrentRules, MemoryHistory, ReplayResult, replay_bundle
from newton.cognition.bundles.trace import StoredBundle
from newton.content.frames import Frame
from newton.content.profiles import Profile
from newton.db.pool import Tx
from newton.dialogue import sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleService:
    """Stored contexts (bundles) of one agent: list, explain, rebuild and compare them.

    A `bundle_ref` is `latest`, an id, or the beginning or end of an id. Methods raise InputError, NotFoundError or
    ConflictError if it does not identify one readable context.
    """

    scope: AgentScope
    frames: Mapping[str, Frame]
    profiles: Mapping[str, Profile]

    async def list_recent(
        self, limit: int, *, before: UUID | None = None, session: str | None = None
    ) -> list[BundleSummary]:
        """Return up to `limit` stored contexts, newest first; with `before`, only those older than that context.

        `session` selects those of one session. Raises NotFoundError for an unknown session.
        """
        agent_id = self.scope.agent_id
        async with self.scope.transaction() as tx:
            session_id = None if session is None else await sessions.get_session_id(tx, agent_id=agent_id, ref=session)
            return await bundle_store.list_bundles(
                tx, agent_id=agent_id, limit=limit, before=before, session_id=session_id
            )

    async def explain(self, bundle_ref: str) -> BundleExplanation:
        """Return a stored context with all memories considered for it, their scores, and why each is in it or not."""
        async with self.scope.transaction() as tx:
            return explain_bundle(*await self._load(tx, bundle_ref))

    async def replay(self, bundle_ref: str) -> ReplayResult:
        """Build a stored context again from the data stored with it; return how it differs from the stored text."""
        async with self.scope.transaction() as tx:
            stored, memories = await self._load(tx, bundle_ref)
        frame, profile = self.frames.get(stored.frame), self.profiles.get(stored.profile)
        rules = CurrentRules(
            rules_hash=bundle_store.compute_rules_hash(),
            frame_edition=frame.version_hash if frame else None,
            profile=profile and stored.trace.overrides.apply_to_profile(profile),
        )
        return replay_bundle(stored, memories, rules)

    async def diff(self, bundle_ref: str, other_ref: str) -> BundleDiff:
        """Return the differences between two stored contexts."""
        async with self.scope.transaction() as tx:
            first, second = await self._load(tx, bundle_ref), await self._load(tx, other_ref)
            return diff_bundles(*(ExplainedBundle(one[0], explain_bundle(*one)) for one in (first, second)))

    async def _load(self, tx: Tx, bundle_ref: str) -> tuple[StoredBundle, Mapping[UUID, MemoryHistory]]:
        agent_id = self.scope.agent_id
        bundle_id = await bundle_store.resolve_bundle_ref(tx, bundle_ref, agent_id=agent_id)
        stored = await bundle_store.load_bundle(tx, bundle_id, agent_id=agent_id)
        histories, memory_ids = dict[UUID, MemoryHistory](), stored.memory_ids
        async for level_id in self.scope.visit_levels(tx):
            histories |= await bundle_store.load_memory_histories(tx, memory_ids, agent_id=level_id)
        return stored, histories
