"""The storage quota of an agent: the maximum size of the texts that it stores."""

from dataclasses import dataclass, field
from uuid import UUID

from newton.db.pool import Database
from newton.db.queries import load
from newton.errors import StorageQuotaError

SQL = load("newton.agent", "storage_quota.sql")

MEGABYTE = 1_000_000
REMEASURE_SHARE = 20  # measure again when a part of the quota as large as this has been written since


@dataclass(slots=True)
class _AgentUsage:
    """The bytes that an agent had stored at the last measurement, and the bytes written since."""

    measured: int
    written: int = 0


@dataclass(slots=True, kw_only=True, eq=False)
class StorageQuota:
    """The maximum bytes of text that each agent may store; None for no limit.

    The stored size is measured by a query at the first write of a process, and again when much has been written since.
    Between measurements the sizes of the written texts are added, so concurrent processes may exceed the quota by what
    they write until their next measurement.
    """

    max_bytes: int | None
    _usage: dict[UUID, _AgentUsage] = field(default_factory=dict[UUID, _AgentUsage], init=False)

    async def reserve(self, db: Database, agent_id: UUID, size: int) -> None:
        """Count `size` bytes that are about to be written. Raises StorageQuotaError if they exceed the quota."""
        if self.max_bytes is None:
            return
        usage = self._usage.get(agent_id)
        total = usage.measured + usage.written + size if usage else 0
        if usage is None or total > self.max_bytes or usage.written + size > self.max_bytes // REMEASURE_SHARE:
            usage = self._usage[agent_id] = _AgentUsage(await _measure(db, agent_id))
        if usage.measured + usage.written + size > self.max_bytes:
            raise StorageQuotaError(
                f"The agent stores {usage.measured / MEGABYTE:,.1f} MB, and {size / MEGABYTE:,.1f} MB more exceed its"
                f" quota of {self.max_bytes / MEGABYTE:,.0f} MB.",
                hint="Forget memories, erase an agent that is not needed, or raise NEWTON_MAX_STORAGE_MB.",
            )
        usage.written += size


NO_QUOTA = StorageQuota(max_bytes=None)


async def _measure(db: Database, agent_id: UUID) -> int:
    async with db.transaction(agent_id) as tx:
        row = await SQL["measure_storage"].fetch_one(tx, agent_id=agent_id)
    return row["bytes"] if row else 0
