"""Storage of one fact or episode: check it against the censors, store it, and report what a fact changed."""

from dataclasses import dataclass
from datetime import datetime

from newton.agent.loop.action_gate import ActionGate
from newton.agent.maintenance.service import MaintenanceService
from newton.agent.services.curation import CurationService
from newton.agent.services.memories import FactDraft, MemoryService, RememberResult
from newton.memory.lookup import MemoryMention


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberReport:
    """A stored memory; if it is a fact, also the facts that it replaced, and the current facts that it may contradict.

    `warning` is the warning of a matching censor. `embedder_error` is why the memory was not embedded, if it was not; a
    fact was then not compared with others.
    """

    result: RememberResult
    replaced: tuple[MemoryMention, ...] = ()
    contested: tuple[MemoryMention, ...] = ()
    warning: str | None = None
    embedder_error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactIntake:
    """Stores facts and episodes for a caller, and reports the effects."""

    memories: MemoryService
    curation: CurationService
    maintenance: MaintenanceService
    gate: ActionGate

    async def store(self, fact: FactDraft) -> RememberReport:
        """Store a fact and compare it with known facts.

        Raises as `MemoryService.remember` and `ActionGate.check_write`.
        """
        warning = await self._check(fact.content)
        result = await self.memories.remember(fact)
        processed = await self.maintenance.process_pending()
        effects = await self.curation.find_effects(result.memory_id)
        return RememberReport(
            result=result,
            replaced=tuple(effects.replaced),
            contested=tuple(effects.contested),
            warning=warning,
            embedder_error=processed.stopped_by,
        )

    async def store_episode(self, content: str, *, title: str, occurred_at: datetime | None) -> RememberReport:
        """Store an episode. Raises as `MemoryService.remember_episode` and `ActionGate.check_write`."""
        warning = await self._check(f"{title}\n{content}")
        result = await self.memories.remember_episode(content, title=title, occurred_at=occurred_at)
        processed = await self.maintenance.process_pending()
        return RememberReport(result=result, warning=warning, embedder_error=processed.stopped_by)

    async def _check(self, text: str) -> str | None:
        return await self.gate.check_write(text, trust=self.memories.scope.trust)
